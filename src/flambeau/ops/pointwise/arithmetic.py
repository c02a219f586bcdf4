"""Arithmetic on elements: add, mul, div, pow, clamp, lerp, addcmul ..."""

from __future__ import annotations

import math

from ...base import dtypes
from ...base.symint import SymBool, SymFloat, SymInt, check_fits, is_int
from ...core.declare import INTEGERS, composite, pointwise
from ...core.operator import namespace
from ...core.promotion import REFUSALS, one_dtype, refused

aten = namespace("aten")


_CATEGORIES = {bool: 0, int: 1, float: 2, complex: 3, SymBool: 0, SymInt: 1, SymFloat: 2}


def _alpha(at, name="alpha"):
    """Promotion of operators with a factor: integers can't be scaled by a fraction."""

    def rule(args):
        check_factor(name, args[at], args[:at])
        return "default"

    return rule


def check_factor(name: str, factor, operands) -> None:
    """RuntimeError when a factor is of a kind above that of the operands: a fraction for integers, a truth value for numbers."""
    kinds = {x.dtype.category if hasattr(x, "dtype") else _CATEGORIES.get(x.__class__, 0) for x in operands}
    kind = _CATEGORIES.get(factor.__class__, 1)
    if kind == 0:
        if name != "value" and kinds != {0}:
            raise RuntimeError(f"Boolean {name} only supported for Boolean results.")
    elif kind >= 2:
        if max(kinds) < 2:
            raise RuntimeError(f"For integral input tensors, argument {name} must not be a floating point number.")
        if kind == 3 and max(kinds) < 3:
            raise RuntimeError(f"For non-complex input tensors, argument {name} must not be a complex number.")


def scaled(t, by):
    """``by * t`` in the dtype of ``t``, which has to hold ``by``; a fraction is cut off before integers are multiplied."""
    check_fits(by, t.dtype)
    if t.dtype is dtypes.bool_:
        by = bool(by)
    elif t.dtype.category == 1 and isinstance(by, (float, SymFloat)):
        by = math.trunc(by)
    return t if by == 1 else aten.mul.Tensor(t, by)


@pointwise(
    "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    promote=_alpha(2),
    factor="alpha",
    tags=("pointwise", "shifts"),
)
def add(s, self, other, alpha):
    return s.add(self, other if alpha == 1 else s.mul(other, alpha))


def _is_bool(x) -> bool:
    return x.__class__ is bool or getattr(x, "dtype", None) is dtypes.bool_


def _subtraction(args):
    """Promotion of differences, which truth values have none of."""
    bools = [_is_bool(x) for x in args[:2]]
    if any(bools):
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator instead."
            if all(bools)
            else "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use the `~` or "
            "`logical_not()` operator instead."
        )
    return _alpha(2)(args)


@pointwise(
    "sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    promote=_subtraction,
    tags=("pointwise", "shifts"),
)
def sub(s, self, other, alpha):
    return s.sub(self, other if alpha == 1 else s.mul(other, alpha))


@pointwise(
    "rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    numbers=False,
    promote=_subtraction,
    layout=("other", "self"),
    inplace=False,
)
def rsub(s, self, other, alpha):
    return s.sub(other, self if alpha == 1 else s.mul(self, alpha))


@pointwise(
    "rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
    operands=("self", "other"),
    wraps=("other",),
    promote=_subtraction,
    inplace=False,
)
def rsub_scalar(s, self, other, alpha):
    return s.sub(other, self if alpha == 1 else s.mul(self, alpha))


@pointwise("mul.Tensor(Tensor self, Tensor other) -> Tensor")
def mul(s, self, other):
    return s.mul(self, other)


@pointwise("div.Tensor(Tensor self, Tensor other) -> Tensor", promote="float")
def div(s, self, other):
    return s.div(self, other)


def _quotient_dtype(args):
    self, other, rounding_mode = args
    if rounding_mode is None:
        return "float"
    if rounding_mode in ("floor", "trunc") and dtypes.result_type(self, other) is dtypes.bool_:
        refused(f"div_{rounding_mode}", dtypes.bool_)
    return "default"


@pointwise(
    "div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor",
    promote=_quotient_dtype,
)
def div_mode(s, self, other, rounding_mode):
    if rounding_mode is None:
        return s.div(self, other)
    if rounding_mode == "floor":
        return s.floordiv(self, other)
    if rounding_mode == "trunc":
        return s.truncdiv(self, other)
    raise RuntimeError(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'")


def _div_mode_self(ct, other, rounding_mode):
    """A rounded quotient has the derivative 0 by convention; floor_divide itself has none."""
    return aten.zeros_like.default(ct) if rounding_mode is not None else aten.div.Tensor(ct, other)


def _div_mode_other(ct, self, other, rounding_mode):
    if rounding_mode is not None:
        return aten.zeros_like.default(ct)
    slope = aten.div.Tensor(aten.div.Tensor(self, other), other)
    return aten.neg.default(aten.mul.Tensor(ct, slope))


div_mode.derivative(self=_div_mode_self, other=_div_mode_other)


@pointwise("floor_divide(Tensor self, Tensor other) -> Tensor", refuse=("bool",), inplace="Tensor")
def floor_divide(s, self, other):
    return s.floordiv(self, other)


@pointwise("remainder.Tensor(Tensor self, Tensor other) -> Tensor", refuse=("bool",))
def remainder(s, self, other):
    return s.remainder(self, other)


@pointwise(
    "remainder.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
    operands=("self", "other"),
    wraps=("self",),
    refuse=("bool",),
    variants="function",
    inplace=False,
)
def remainder_of_number(s, self, other):
    return s.remainder(self, other)


@pointwise("fmod.Tensor(Tensor self, Tensor other) -> Tensor", numbers="after", refuse=("bool",))
def fmod(s, self, other):
    return s.fmod(self, other)


_ROOTS = {0.5: "sqrt", -0.5: "rsqrt", -1: "reciprocal"}


def _power(s, self, exponent):
    """Whole powers that are cheaper as products keep PyTorch's rounding: x**2 is x*x there too."""
    if exponent == 2:
        return s.mul(self, self)
    if exponent == 3:
        return s.mul(s.mul(self, self), self)
    if exponent == -2:
        return s.reciprocal(s.mul(self, self))
    if exponent in _ROOTS:
        return getattr(s, _ROOTS[exponent])(self)
    if exponent == 1:
        return self
    return s.pow(self, exponent)


def _whole_power(args):
    self, exponent = args
    if self.dtype.category < 2 and is_int(exponent) and exponent < 0:
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    return "default"


@pointwise(
    "pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
    promote=_whole_power,
    operands=("self", "exponent"),
    tags=("pointwise", "numbers_as_elements"),
    inplace="Scalar",
)
def pow_scalar(s, self, exponent):
    return _power(s, self, exponent)


pow_scalar.derivative(
    self=lambda ct, self, exponent: (
        aten.zeros_like.default(ct) if exponent == 0 else ct * (exponent * aten.pow.Tensor_Scalar(self, exponent - 1))
    )
)


@pointwise(
    "pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor", refuse=("bool",), inplace="Tensor", numbers="after"
)
def pow_tensor(s, self, exponent):
    return s.pow(self, exponent)


@pointwise(
    "pow.Scalar(Scalar self, Tensor exponent) -> Tensor",
    operands=("self", "exponent"),
    wraps=("self",),
    layout=(),
    variants="function",
    inplace=False,
    refuse=("bool",),
)
def pow_base(s, self, exponent):
    return s.pow(self, exponent)


def _negation(args):
    if _is_bool(args[0]):
        raise RuntimeError(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the `~` or "
            "`logical_not()` operator instead."
        )
    return "default"


@pointwise("neg(Tensor self) -> Tensor", promote=_negation, out_rules="exact")
def neg(s, self):
    return s.neg(self)


@pointwise(
    "abs(Tensor self) -> Tensor", refuse=("bool",), out=lambda args: args[0].dtype.to_real(), out_rules="exact inplace"
)
def abs_(s, self):
    return s.abs(self)


@pointwise("sign(Tensor self) -> Tensor", out_rules="exact")
def sign(s, self):
    return s.sign(self)


@pointwise("maximum(Tensor self, Tensor other) -> Tensor", numbers=False, inplace=False)
def maximum(s, self, other):
    return s.maximum(self, other)


@pointwise("minimum(Tensor self, Tensor other) -> Tensor", numbers=False, inplace=False)
def minimum(s, self, other):
    return s.minimum(self, other)


@pointwise(
    "addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    numbers=False,
    promote=_alpha(3, "value"),
    factor="value",
    refuse=("bool",),
)
def addcmul(s, self, tensor1, tensor2, value):
    return s.add(self, s.mul(tensor1 if value == 1 else s.mul(tensor1, value), tensor2))


REFUSALS["addcdiv"] = (
    "Integer division with addcdiv is no longer supported: convert the tensors to a floating type, or use "
    "self + value * torch.trunc(tensor1 / tensor2) for what it did before."
)


def _of_fractions(args):
    """RuntimeError where integers are divided, whatever the quotient is added to."""
    if args[1].dtype.category < 2 and args[2].dtype.category < 2:
        raise RuntimeError(REFUSALS["addcdiv"])
    return "float"


@pointwise(
    "addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    numbers=False,
    promote=_of_fractions,
    factor="value",
    refuse=INTEGERS,
)
def addcdiv(s, self, tensor1, tensor2, value):
    return s.add(self, s.div(tensor1 if value == 1 else s.mul(tensor1, value), tensor2))


_LERP = one_dtype("expected dtype {} for `end` but got dtype {}")


def _lerp_by_tensor(args):
    """A weight without dimensions is promoted as a number is; one with some must have the dtype of the ends."""
    self, end, weight = args
    return _LERP(args[:2] if getattr(weight, "ndim", 1) == 0 else args)


@pointwise(
    "lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor",
    numbers=False,
    operands=("self", "end"),
    promote=_LERP,
    refuse=INTEGERS,
)
def lerp(s, self, end, weight):
    """From the nearer end, so that weight 0 and 1 give the ends exactly."""
    if abs(weight) < 0.5:
        return s.add(self, s.mul(s.sub(end, self), weight))
    return s.sub(end, s.mul(s.sub(end, self), 1 - weight))


@pointwise(
    "lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor",
    promote=_lerp_by_tensor,
    refuse=INTEGERS,
    out_rules="exact",
)
def lerp_tensor(s, self, end, weight):
    d = s.sub(end, self)
    return s.where(s.lt(s.abs(weight), 0.5), s.add(self, s.mul(weight, d)), s.sub(end, s.mul(d, s.sub(1.0, weight))))


def _also_called(name, of):
    """Another name of an operator of two operands, with numbers for the second one too."""
    target = getattr(aten, of).Tensor
    for overload in ("Tensor", "Scalar"):
        op = composite(f"{name}.{overload}(Tensor self, {overload} other) -> Tensor", inplace=True)(
            lambda self, other: target(self, other)
        )
        op.takes_numbers = "always"  # as the operator that it is


_also_called("true_divide", "div")
_also_called("multiply", "mul")
_also_called("divide", "div")


@composite("subtract.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", inplace=True, tags=("shifts",))
def subtract(self, other, alpha):
    return aten.sub.Tensor(self, other, alpha=alpha)


subtract.takes_numbers = "always"


@composite("subtract.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", inplace=True, tags=("shifts",))
def subtract_number(self, other, alpha):
    return aten.sub.Tensor(self, other, alpha=alpha)


@composite("square(Tensor self) -> Tensor", inplace=True)
def square(self):
    return aten.pow.Tensor_Scalar(self, 2)


def with_number(op, alpha="", overload="Scalar", first=False):
    """The overload that ATen has for a number in the second place (``first``: and the one for a number in the first place); calls with numbers
    reach ``op`` itself, as in PyTorch."""
    name = op._opname
    schema = f"{name}.{overload}(Tensor self, Scalar other{alpha}) -> Tensor"
    composite(schema, variants="", inplace=True, tags=op.tags & {"shifts"})(
        (lambda self, other, alpha: op(self, other, alpha=alpha)) if alpha else lambda self, other: op(self, other)
    )
    if first:
        composite(f"{name}.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", variants="")(
            lambda self, other: op(self, other)
        )


for _op in (aten.add.Tensor, aten.sub.Tensor):
    with_number(_op, ", Scalar alpha=1")
for _op in (aten.mul.Tensor, aten.div.Tensor, floor_divide, remainder, fmod):
    with_number(_op)


@composite("div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor", variants="", inplace=True)
def div_number_mode(self, other, rounding_mode):
    return aten.div.Tensor_mode(self, other, rounding_mode=rounding_mode)


for _other in ("Tensor", "Scalar"):
    composite(
        f"divide.{_other}_mode(Tensor self, {_other} other, *, str? rounding_mode) -> Tensor",
        inplace=True,
    )(lambda self, other, rounding_mode: aten.div.Tensor_mode(self, other, rounding_mode=rounding_mode))
