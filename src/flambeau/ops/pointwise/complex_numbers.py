"""Complex numbers: parts, polar form, conjugates.

Gradients follow PyTorch: that of a real function is the conjugate Wirtinger derivative. Formulas of holomorphic operators are written as for
real numbers (autograd/rules.py conjugates around them); those here are not holomorphic and carry the tag ``own_complex_derivative``.
"""

from __future__ import annotations

from ... import _C
from ...base import dtypes
from ...base.memory_format import preserve_format
from ...core.declare import composite, extern, pointwise
from ...core.definition import TensorMeta
from ...core.lazy import make, plain_of
from ...core.operator import namespace

aten = namespace("aten")
_OWN = ("pointwise", "own_complex_derivative")


# ---- conjugates ----------------------------------------------------------------------------------------------------------

_conj_physical = pointwise(
    "_conj_physical(Tensor self) -> Tensor", variants="", inplace=False, has_out=False, layout="self", tags=_OWN
)(lambda s, self: s.conj(self))
_conj_physical.derivative(self=lambda ct: aten.conj_physical.default(ct))


@composite("conj_physical(Tensor self) -> Tensor", inplace=True, out_rules="exact")
def conj_physical(self):
    """Real numbers are what is given, not a copy."""
    return aten._conj_physical.default(self) if self.dtype.is_complex else self


def _lazily(name, tags, flip, compute):
    """A view of the same memory whose elements are computed when they are read (core/lazy.py)."""

    def meta(self):
        strides = self.strides if isinstance(self, TensorMeta) else self.stride()
        offset = self.offset if isinstance(self, TensorMeta) else self._offset
        return TensorMeta(tuple(self.shape), tuple(strides), self.dtype, self.device, offset)

    def view(self):
        plain, conjugated, negated = plain_of(self)
        out = make(plain, *flip(conjugated, negated))
        _C.note_view(out, self, op, ())
        return out

    op = extern(f"{name}(Tensor(a) self) -> Tensor(a)", meta=meta, variants="", tags=tags)(lambda self: self)
    op.override("eager", view)
    op.override("lazy", view)
    op.override("write_back", lambda base, contents: compute()(contents))
    op.override("batch", lambda call, self: op(self))
    op.override("lower", lambda lowering, val, self: lowering.operator(compute(), (self,), {}, val))
    op.derivative(self=lambda ct: compute()(ct))
    return op


_lazily(
    "_conj",
    ("own_complex_derivative",),
    lambda conjugated, negated: (not conjugated, negated),
    lambda: aten._conj_physical.default,
)
_lazily("_neg_view", (), lambda conjugated, negated: (conjugated, not negated), lambda: aten.neg.default)


@composite("conj(Tensor(a) self) -> Tensor(a)")
def conj(self):
    """A view of the conjugates; a real tensor itself."""
    return aten._conj.default(self) if self.dtype.is_complex else self


@composite("adjoint(Tensor(a) self) -> Tensor(a)")
def adjoint(self):
    if self.ndim == 1:
        raise RuntimeError("tensor.adjoint() is only supported on matrices or batches of matrices. Got 1-D tensor.")
    if self.ndim == 0:
        return aten.conj.default(self)
    return aten.conj.default(aten.transpose.int(self, -2, -1))


@composite("resolve_conj(Tensor(a) self) -> Tensor(a)")
def resolve_conj(self):
    """A conjugated view's elements in memory of their own; every other tensor itself."""
    return aten.clone.default(self) if self.is_conj() else self


@composite("resolve_neg(Tensor(a) self) -> Tensor(a)")
def resolve_neg(self):
    """A negated view's elements in memory of their own; every other tensor itself."""
    return aten.clone.default(self) if self.is_neg() else self


# ---- polar form ----------------------------------------------------------------------------------------------------------


def _pair_dtype(name):
    def dtype(args):
        a, b = args[0].dtype, args[1].dtype
        if a.name not in ("float16", "float32", "float64") or b.name not in ("float16", "float32", "float64"):
            raise RuntimeError(
                f"Expected both inputs to be Half, Float or Double tensors but got {a.scalar_type} and {b.scalar_type}"
            )
        if a is not b:
            raise RuntimeError(
                f"Expected object of scalar type {a.scalar_type} but got scalar type {b.scalar_type} for second argument"
            )
        return a.to_complex()

    return dtype


complex_ = pointwise(
    "complex(Tensor real, Tensor imag) -> Tensor",
    variants="function",
    out=_pair_dtype("complex"),
    numbers=False,
    inplace=False,
    tags=_OWN,
    out_rules="exact",
)(lambda s, real, imag: s.complex(real, imag))
complex_.derivative(real=lambda ct: aten.real.default(ct), imag=lambda ct: aten.imag.default(ct))

polar = pointwise(
    "polar(Tensor abs, Tensor angle) -> Tensor",
    variants="function",
    out=_pair_dtype("polar"),
    numbers=False,
    inplace=False,
    tags=_OWN,
    out_rules="exact",
)(lambda s, abs, angle: s.complex(s.mul(abs, s.cos(angle)), s.mul(abs, s.sin(angle))))


def _polar_vjp(ct, abs, angle, result, mask):
    """d/d abs: e^(i angle); d/d angle: i result."""
    grads = [None, None]
    if mask[0]:
        unit = aten.polar.default(aten.ones_like.default(abs), angle)
        grads[0] = aten.real.default(aten.mul.Tensor(ct, aten.conj_physical.default(unit)))
    if mask[1]:
        transposed = aten.mul.Tensor(aten.conj_physical.default(ct), aten.mul.Tensor(result, 1j))
        grads[1] = aten.real.default(transposed)
    return tuple(grads)


polar.derivative(abs__angle=_polar_vjp)


def _angle_out(args):
    d = args[0].dtype
    return d.to_real() if d.is_complex else d if d.category == 2 else dtypes.get_default_dtype()


angle = pointwise("angle(Tensor self) -> Tensor", promote="float", out=_angle_out, inplace=False, tags=_OWN)(
    lambda s, self: s.angle(self)
)


def _angle_vjp(ct, self):
    if not self.dtype.is_complex:
        return aten.zeros_like.default(ct)
    size = aten.abs.default(self)
    real = aten.div.Tensor(aten.neg.default(aten.mul.Tensor(aten.imag.default(self), ct)), aten.mul.Tensor(size, size))
    imag = aten.div.Tensor(aten.mul.Tensor(aten.real.default(self), ct), aten.mul.Tensor(size, size))
    both = aten.complex.default(real, imag)
    return aten.masked_fill.Scalar(both, aten.eq.Scalar(size, 0), 0)


angle.derivative(self=_angle_vjp)

sgn = pointwise("sgn(Tensor self) -> Tensor", tags=_OWN, out_rules="exact")(lambda s, self: s.sgn(self))


def _sgn_vjp(ct, self, result):
    """0 for real numbers; the part of the cotangent across the direction of the number, over its size."""
    if not self.dtype.is_complex:
        return aten.zeros_like.default(ct)
    size = aten.abs.default(self)
    along = aten.real.default(aten.mul.Tensor(aten.conj_physical.default(ct), result))
    slope = aten.div.Tensor(aten.sub.Tensor(ct, aten.mul.Tensor(result, along)), size)
    return aten.masked_fill.Scalar(slope, aten.eq.Scalar(size, 0), 0)


sgn.derivative(self=_sgn_vjp)


@composite("isreal(Tensor self) -> Tensor")
def isreal(self):
    if not self.dtype.is_complex:
        return aten.ones_like.default(self, dtype=dtypes.bool_, memory_format=preserve_format)
    return aten.eq.Scalar(aten.imag.default(self), 0)
