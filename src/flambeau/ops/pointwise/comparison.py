"""Comparison, logic, bits and selection."""

from __future__ import annotations

from ... import _C
from ...base import dtypes
from ...base.errors import DataDependentOutputException
from ...base.memory_format import contiguous_format
from ...base.shape_env import GuardOnDataDependentSymNode
from ...core.declare import composite, explicit, pointwise
from ...core.images import as_image
from ...core.operator import namespace
from .arithmetic import with_number

aten = namespace("aten")


def _comparison(name):
    def body(s, self, other):
        return getattr(s, name)(self, other)

    scalar = pointwise(
        f"{name}.Scalar(Tensor self, Scalar other) -> Tensor",
        operands=("self", "other"),
        wraps=("other",),
        out=dtypes.bool_,
        layout=("self", None),
        tags=("pointwise", "rounds_operands"),
    )(body)
    tensor = pointwise(
        f"{name}.Tensor(Tensor self, Tensor other) -> Tensor",
        out=dtypes.bool_,
        numbers=False,
        tags=("pointwise", "rounds_operands"),
    )(body)
    return scalar, tensor


eq, ne, lt, le, gt, ge = map(_comparison, ["eq", "ne", "lt", "le", "gt", "ge"])


def _logic(name):
    def body(s, self, other):
        return getattr(s, name)(s.ne(self, 0), s.ne(other, 0))

    return pointwise(f"{name}(Tensor self, Tensor other) -> Tensor", out=dtypes.bool_, numbers=False)(body)


logical_and, logical_or, logical_xor = map(_logic, ["logical_and", "logical_or", "logical_xor"])


@pointwise("logical_not(Tensor self) -> Tensor", out=dtypes.bool_)
def logical_not(s, self):
    return s.eq(self, 0)


NOT_BITS = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")


def _bitwise(name):
    def body(s, self, other):
        return getattr(s, name)(self, other)

    return pointwise(f"{name}.Tensor(Tensor self, Tensor other) -> Tensor", refuse=NOT_BITS)(body)


bitwise_and, bitwise_or, bitwise_xor = map(_bitwise, ["bitwise_and", "bitwise_or", "bitwise_xor"])
for _op in (bitwise_and, bitwise_or, bitwise_xor):
    with_number(_op, first=True)


@pointwise("bitwise_not(Tensor self) -> Tensor", refuse=NOT_BITS)
def bitwise_not(s, self):
    return s.bitwise_not(self)


def _condition_dtype(args):
    if args[0].dtype.name not in ("bool", "uint8"):
        raise RuntimeError(
            f"where expected condition to be a boolean tensor, but got a tensor with dtype {args[0].dtype.scalar_type}"
        )
    return "default"


@pointwise(
    "where.self(Tensor condition, Tensor self, Tensor other) -> Tensor",
    promote=_condition_dtype,
    operands=("self", "other"),
    variants="",
    inplace=False,
    out_rules="exact",
)
def where(s, condition, self, other):
    return s.where(condition, self, other)


@composite("where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor", variants="", out_rules="exact")
def where_scalar_other(condition, self, other):
    return aten.where.self(condition, self, _scalar_like(self, other))


@composite("where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor", variants="", out_rules="exact")
def where_scalar_self(condition, self, other):
    return aten.where.self(condition, _scalar_like(other, self), other)


@composite("where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor", variants="", out_rules="exact")
def where_scalars(condition, self, other):
    dtype = dtypes.result_type(self, other)
    return aten.where.self(
        condition, aten.scalar_tensor.default(self, dtype=dtype), aten.scalar_tensor.default(other, dtype=dtype)
    )


def _scalar_like(tensor, value):
    """The number as a zero-dimensional tensor that takes part in promotion like a number."""
    dtype = dtypes.result_type(tensor, value)
    return aten.scalar_tensor.default(value, dtype=dtype, device=tensor.device)


@composite("where(Tensor condition) -> Tensor[]", variants="", out_rules="exact")
def where_nonzero(condition):
    return aten.nonzero_numpy.default(condition)


def _mask_dtype(args):
    if args[1].dtype is not dtypes.bool_:
        raise RuntimeError(
            f"masked_fill_ only supports boolean masks, but got mask with dtype {dtypes.c_name(args[1].dtype)}"
        )
    return "default"


@pointwise(
    "masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor",
    promote=_mask_dtype,
    numbers=False,
    operands=("self",),
    layout=(),
    tags=("pointwise", "overlapping_writes", "numbers_as_elements"),
)
def masked_fill(s, self, mask, value):
    return s.where(mask, value, self)


masked_fill.derivative(self=lambda ct, mask: aten.masked_fill.Scalar(ct, mask, 0))


@composite("masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor", inplace=True)
def masked_fill_tensor(self, mask, value):
    if value.ndim:
        raise RuntimeError(
            f"masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s)."
        )
    if value.dtype.is_complex and not self.dtype.is_complex:
        raise RuntimeError(f"value cannot be converted to type {self.dtype} without overflow")
    _mask_dtype((self, mask))
    from .range_checks import held  # when it is first called: `import flambeau` stays small

    value = aten._to_copy.default(held(value, self.dtype), dtype=self.dtype)
    return as_image(aten.where.self(mask, value, self), contiguous_format)


def _equal_meta(self, other):
    raise DataDependentOutputException("torch.equal needs the values of its arguments")


@explicit("equal(Tensor self, Tensor other) -> bool", variants="function method", has_out=False, meta=_equal_meta)
def equal(self, other):
    if tuple(self.shape) != tuple(other.shape):
        return False
    return bool(aten.all.default(aten.eq.Tensor(self, other)).item())


@equal.override("eager")
def _equal(self, other):
    a, b = self._array, other._array
    same = _C.same_elements(a, b)
    if same is not None:
        return same
    return bool(a.shape == b.shape and (a == b).all()) if a.dtype == b.dtype else equal.definition.fn(self, other)


def _isclose_promotion(args):
    a, b = args[0].dtype, args[1].dtype
    if a is not b:
        raise RuntimeError(f"{a.scalar_type} did not match {b.scalar_type}")
    return "float" if a is dtypes.bool_ else "default"


@pointwise(
    "isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> Tensor",
    numbers=False,
    promote=_isclose_promotion,
    out=dtypes.bool_,
    inplace=False,
    has_out=False,
)
def isclose(s, self, other, rtol, atol, equal_nan):
    for name, bound in (("rtol", rtol), ("atol", atol)):
        if not bound >= 0:
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {bound}")
    close = s.le(s.abs(s.sub(self, other)), s.add(atol, s.mul(s.abs(other), rtol)))
    finite = s.lt(s.abs(other), float("inf"))
    same = s.logical_or(s.eq(self, other), s.logical_and(close, finite))
    return s.logical_or(same, s.logical_and(s.isnan(self), s.isnan(other))) if equal_nan else same


@composite("allclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> bool")
def allclose(self, other, rtol, atol, equal_nan):
    same = aten.all.default(aten.isclose.default(self, other, rtol, atol, equal_nan)).item()
    try:
        return bool(same)
    except GuardOnDataDependentSymNode as error:  # no size, which a guard could be about
        raise DataDependentOutputException(
            "aten.allclose.default: the result depends on the values of the arguments"
        ) from error
