"""Less frequent elementary functions and torch.special."""

from __future__ import annotations

import math

from ...base import dtypes
from ...core.declare import COMPLEX, INTEGERS, composite, explicit, pointwise
from ...core.operator import namespace
from ...core.promotion import one_dtype, refused
from .arithmetic import with_number
from .comparison import NOT_BITS

aten = namespace("aten")


def _unary(opname: str, row: str | None = None, **kw):
    def body(s, self):
        return getattr(s, row or opname)(self)

    body.__name__ = opname
    return pointwise(f"{opname}(Tensor self) -> Tensor", promote="float", **kw)(body)


for _name in ("asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "erfc", "erfinv", "lgamma", "digamma"):
    _unary(_name)
for _name in ("i0", "i0e", "i1", "i1e", "ndtri", "log_ndtr", "erfcx"):
    _unary(
        f"special_{_name}",
        _name,
        name=_name,
        variants="special",
        inplace=False,
        refuse=("float16", "bfloat16") if _name in ("ndtri", "log_ndtr", "erfcx") else (),
    )


@pointwise("_trigamma(Tensor self) -> Tensor", promote="float", variants="", inplace=False, has_out=False)
def _trigamma(s, self):
    return s.trigamma(self)


_trigamma.derivative(self=lambda ct, self: aten.mul.Tensor(ct, aten.polygamma.default(2, self)))


def _alias(name, of, places="function method"):
    def fn(self):
        return getattr(aten, of).default(self)

    composite(f"{name}(Tensor self) -> Tensor", variants=places, inplace=False)(fn)
    # The method is another name of the function; this is the operator's.
    composite(f"{name}_(Tensor(a!) self) -> Tensor(a!)", variants="", inplace=False)(
        lambda self: getattr(aten, f"{of}_").default(self)
    )


for _name, _of in (
    ("arcsin", "asin"),
    ("arccos", "acos"),
    ("arctan", "atan"),
    ("arcsinh", "asinh"),
    ("arccosh", "acosh"),
    ("arctanh", "atanh"),
    ("absolute", "abs"),
    ("negative", "neg"),
    ("fix", "trunc"),
):
    _alias(_name, _of)


@pointwise("sinc(Tensor self) -> Tensor", promote="float")
def sinc(s, self):
    t = s.mul(self, math.pi)
    zero = s.eq(self, 0.0)
    return s.where(zero, 1.0, s.div(s.sin(t), s.where(zero, 1.0, t)))


def _sinc_vjp(ct, self):
    t = aten.mul.Tensor(self, math.pi)
    square = aten.mul.Tensor(t, self)
    slope = aten.div.Tensor(aten.sub.Tensor(aten.mul.Tensor(t, aten.cos.default(t)), aten.sin.default(t)), square)
    return aten.masked_fill.Scalar(aten.mul.Tensor(ct, slope), aten.eq.Scalar(square, 0), 0)


sinc.derivative(self=_sinc_vjp)


@pointwise("deg2rad(Tensor self) -> Tensor", refuse=COMPLEX, promote="float", layout="self")
def deg2rad(s, self):
    return s.mul(self, math.pi / 180)


@pointwise("rad2deg(Tensor self) -> Tensor", refuse=COMPLEX, promote="float", layout="self")
def rad2deg(s, self):
    return s.mul(self, 180 / math.pi)


@pointwise("frac(Tensor self) -> Tensor", refuse=INTEGERS, out_rules="exact")
def frac(s, self):
    return s.sub(self, s.trunc(self))


frac.derivative(self=lambda ct: ct)


@pointwise("special_entr(Tensor self) -> Tensor", promote="float", variants="special", name="entr", inplace=False)
def special_entr(s, self):
    return s.where(
        s.gt(self, 0.0),
        s.neg(s.mul(self, s.log(self))),
        s.where(s.eq(self, 0.0), 0.0, s.where(s.isnan(self), self, -math.inf)),
    )


special_entr.derivative(self=lambda ct, self: aten.mul.Tensor(ct, aten.rsub.Scalar(aten.log.default(self), -1)))


@pointwise("logit(Tensor self, float? eps=None) -> Tensor", refuse=COMPLEX, promote="float", operands=("self",))
def logit(s, self, eps):
    if eps is not None:
        # Not minimum and maximum: what is below eps isn't looked at again, and where eps is nan nothing is cut off.
        self, given = s.where(s.gt(self, 1 - eps), 1 - eps, self), self
        self = s.where(s.lt(given, eps), eps, self)
    x = self
    return s.log(s.div(x, s.sub(1.0, x)))


@pointwise(
    "logit_backward(Tensor grad_output, Tensor self, float? eps=None) -> Tensor",
    variants="",
    operands=("grad_output", "self"),
    inplace=False,
)
def logit_backward(s, grad_output, self, eps):
    low, high, beyond = (0.0, 1.0, math.nan) if eps is None or eps < 0 else (eps, 1 - eps, 0.0)
    outside = s.logical_or(s.lt(self, low), s.gt(self, high))
    return s.where(outside, beyond, s.div(grad_output, s.mul(self, s.sub(1.0, self))))


logit.derivative(self=lambda ct, self, eps: logit_backward(ct, self, eps))


@composite("positive(Tensor(a) self) -> Tensor(a)")
def positive(self):
    if self.dtype is dtypes.bool_:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return self


def _nan_to_num_body(s, self, nan, posinf, neginf):
    out = s.where(s.isnan(self), 0.0 if nan is None else nan, self)
    return s.where(s.eq(self, math.inf), posinf, s.where(s.eq(self, -math.inf), neginf, out))


_replace = pointwise(
    "_nan_to_num(Tensor self, float nan, float posinf, float neginf) -> Tensor",
    operands=("self",),
    layout="self",
    variants="",
    inplace=False,
    has_out=False,
)(_nan_to_num_body)


@explicit(
    "nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor",
    variants="function method",
    inplace=True,
)
def nan_to_num(self, nan, posinf, neginf):
    """Infinities become the largest numbers of the dtype unless others are given; integers have neither nan nor infinity. Of complex numbers each
    part is taken by itself."""
    if self.dtype.category < 2:
        return aten.clone.default(self)
    limits = dtypes.finfo(self.dtype.to_real())
    parts = aten.view_as_real.default(aten.resolve_conj.default(self)) if self.dtype.is_complex else self
    out = _replace(
        parts,
        0.0 if nan is None else nan,
        limits.max if posinf is None else posinf,
        limits.min if neginf is None else neginf,
    )
    return aten.view_as_complex.default(out) if self.dtype.is_complex else out


@pointwise("atan2(Tensor self, Tensor other) -> Tensor", numbers=False, promote="float")
def atan2(s, self, other):
    return s.atan2(self, other)


@pointwise("hypot(Tensor self, Tensor other) -> Tensor", numbers=False, refuse=INTEGERS)
def hypot(s, self, other):
    return s.hypot(self, other)


@pointwise("copysign.Tensor(Tensor self, Tensor other) -> Tensor", promote="float", numbers="after")
def copysign(s, self, other):
    return s.copysign(self, other)


with_number(copysign)


@pointwise("fmax(Tensor self, Tensor other) -> Tensor", numbers=False, inplace=False)
def fmax(s, self, other):
    return s.fmax(self, other)


@pointwise("fmin(Tensor self, Tensor other) -> Tensor", numbers=False, inplace=False)
def fmin(s, self, other):
    return s.fmin(self, other)


@pointwise(
    "heaviside(Tensor self, Tensor values) -> Tensor",
    numbers=False,
    promote=one_dtype("heaviside is not yet implemented for tensors with different dtypes."),
    out_rules="exact",
)
def heaviside(s, self, values):
    return s.heaviside(self, values)


_nextafter = pointwise(
    "_nextafter(Tensor self, Tensor other) -> Tensor", numbers=False, variants="", inplace=False, has_out=False
)(lambda s, self, other: s.nextafter(self, other))


@pointwise(
    "_nextafter_narrow(Tensor self, Tensor other, float step, float least, float most) -> Tensor",
    numbers=False,
    variants="",
    inplace=False,
    has_out=False,
)
def _nextafter_narrow(s, self, other, step, least, most):
    """In 16 bits, computed in float32: a part of a step between half of one and one and a half, which rounding makes a whole one. ``step`` is
    six tenths of the distance of 1 to its neighbour, ``least`` of the smallest number."""
    size = s.abs(self)
    part = s.maximum(s.mul(s.minimum(size, most), step), least)
    moved = s.where(s.lt(self, other), s.add(self, part), s.sub(self, part))
    moved = s.where(s.eq(size, math.inf), s.copysign(most, self), moved)
    moved = s.where(s.eq(moved, 0.0), s.copysign(0.0, self), moved)
    return s.where(s.eq(self, other), other, s.where(s.logical_or(s.isnan(self), s.isnan(other)), math.nan, moved))


# As the function of wider numbers: the step isn't differentiated.
_nextafter_narrow.derivative(
    self=lambda ct, self, other: aten.where.ScalarOther(aten.ne.Tensor(self, other), ct, 0),
    other=lambda ct, other_like: aten.zeros_like.default(ct),
)


@explicit(
    "nextafter(Tensor self, Tensor other) -> Tensor",
    variants="function method",
    inplace=True,
    tags=("pointwise",),
    out_rules="casts",
)
def nextafter(self, other):
    """The neighbour of each number towards another one."""
    kind = dtypes.result_type(self, other)
    if not kind.is_floating_point:
        refused("nextafter", kind)
    if kind.itemsize > 2:
        return _nextafter(self, other)
    limits = dtypes.finfo(kind)
    return _nextafter_narrow(self, other, 0.6 * limits.eps, 0.6 * limits.eps * limits.tiny, limits.max)


@pointwise("gcd(Tensor self, Tensor other) -> Tensor", numbers=False, refuse=("bool", *NOT_BITS))
def gcd(s, self, other):
    return s.gcd(self, other)


@pointwise("lcm(Tensor self, Tensor other) -> Tensor", numbers=False, refuse=("bool", *NOT_BITS))
def lcm(s, self, other):
    return s.lcm(self, other)


@pointwise("bitwise_left_shift.Tensor(Tensor self, Tensor other) -> Tensor", refuse=("bool", *NOT_BITS))
def bitwise_left_shift(s, self, other):
    return s.lshift(self, other)


@pointwise("bitwise_right_shift.Tensor(Tensor self, Tensor other) -> Tensor", refuse=("bool", *NOT_BITS))
def bitwise_right_shift(s, self, other):
    return s.rshift(self, other)


for _op in (bitwise_left_shift, bitwise_right_shift):
    with_number(_op, overload="Tensor_Scalar", first=True)


@pointwise("logaddexp(Tensor self, Tensor other) -> Tensor", numbers=False, inplace=False, refuse=INTEGERS)
def logaddexp(s, self, other):
    return s.logaddexp(self, other)


@pointwise("logaddexp2(Tensor self, Tensor other) -> Tensor", numbers=False, inplace=False, refuse=INTEGERS)
def logaddexp2(s, self, other):
    return s.logaddexp2(self, other)


def _x_times(log):
    """x log(y), 0 where x is 0, nan where y is."""

    def body(s, self, other):
        return s.where(s.isnan(other), math.nan, s.where(s.eq(self, 0.0), 0.0, s.mul(self, getattr(s, log)(other))))

    return body


xlogy = pointwise("xlogy.Tensor(Tensor self, Tensor other) -> Tensor", refuse=COMPLEX, promote="float")(_x_times("log"))
composite("xlogy.Scalar_Other(Tensor self, Scalar other) -> Tensor", variants="", inplace=True)(
    lambda self, other: xlogy(self, other)
)
composite("xlogy.Scalar_Self(Scalar self, Tensor other) -> Tensor", variants="")(lambda self, other: xlogy(self, other))
special_xlog1py = pointwise(
    "special_xlog1py(Tensor self, Tensor other) -> Tensor",
    refuse=COMPLEX,
    promote="float",
    variants="special",
    name="xlog1py",
    inplace=False,
)(_x_times("log1p"))
for _name, _schema in (("self", "Scalar self, Tensor other"), ("other", "Tensor self, Scalar other")):
    composite(f"special_xlog1py.{_name}_scalar({_schema}) -> Tensor", variants="")(
        lambda self, other: special_xlog1py(self, other)
    )


def _x_log_vjps(log, derived, lowest):
    """Nothing where x is 0 and the logarithm isn't finite or isn't there."""

    def of_self(ct, self, other):
        if not hasattr(
            other, "shape"
        ):  # NOTE: an operator takes a number for a tensor of the default dtype, which would round it
            other = aten.full_like.default(ct, other)
        undefined = aten.logical_and.default(aten.eq.Scalar(self, 0), aten.le.Scalar(other, lowest))
        return aten.masked_fill.Scalar(aten.mul.Tensor(ct, log(other)), undefined, 0)

    return {
        "self": of_self,
        "other": lambda ct, self, other: aten.div.Tensor(aten.mul.Tensor(ct, self), derived(other)),
    }


xlogy.derivative(**_x_log_vjps(lambda y: aten.log.default(y), lambda y: y, 0))
special_xlog1py.derivative(**_x_log_vjps(lambda y: aten.log1p.default(y), lambda y: aten.add.Tensor(y, 1), -1))


@pointwise("signbit(Tensor self) -> Tensor", out=dtypes.bool_, inplace=False, out_rules="exact")
def signbit(s, self):
    return s.signbit(self)


@pointwise("isposinf(Tensor self) -> Tensor", refuse=COMPLEX, out=dtypes.bool_, inplace=False, out_rules="exact")
def isposinf(s, self):
    return s.eq(self, math.inf)


@pointwise("isneginf(Tensor self) -> Tensor", refuse=COMPLEX, out=dtypes.bool_, inplace=False, out_rules="exact")
def isneginf(s, self):
    return s.eq(self, -math.inf)


@composite(
    "float_power.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor", inplace="Scalar", out_rules="exact inplace"
)
def float_power(self, exponent):
    wide = dtypes.complex128 if self.dtype.is_complex or isinstance(exponent, complex) else dtypes.float64
    return aten.pow.Tensor_Scalar(aten._to_copy.default(self, dtype=wide), exponent)


@composite("float_power.Scalar(Scalar self, Tensor exponent) -> Tensor", variants="function")
def float_power_of_number(self, exponent):
    wide = dtypes.complex128 if exponent.dtype.is_complex or isinstance(self, complex) else dtypes.float64
    return aten.pow.Scalar(self, aten._to_copy.default(exponent, dtype=wide))


@composite(
    "float_power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor", inplace="Tensor", out_rules="exact inplace"
)
def float_power_tensor(self, exponent):
    wide = dtypes.complex128 if self.dtype.is_complex or exponent.dtype.is_complex else dtypes.float64
    return aten.pow.Tensor_Tensor(aten._to_copy.default(self, dtype=wide), aten._to_copy.default(exponent, dtype=wide))


@explicit(
    "ldexp.Tensor(Tensor self, Tensor other) -> Tensor",
    variants="function method",
    inplace="default",
    out_rules="casts",
)
def ldexp(self, other):
    if other.dtype.is_floating_point or not self.dtype.is_floating_point:
        return aten.mul.Tensor(self, aten.pow.Scalar(2.0, other))
    # The power itself may not fit where the product does.
    wide = dtypes.float64 if self.dtype is dtypes.float64 else dtypes.float32
    out, half = aten._to_copy.default(self, dtype=wide), aten.floor_divide.default(other, 2)
    for part in (half, aten.sub.Tensor(other, half)):
        out = aten.mul.Tensor(out, aten.exp2.default(aten._to_copy.default(part, dtype=wide)))
    return aten._to_copy.default(out, dtype=self.dtype)


ldexp.derivative(
    self=lambda ct, other: aten.ldexp.Tensor(ct, other),
    other=lambda ct, result: aten.mul.Tensor(ct, aten.mul.Tensor(result, math.log(2.0))),
)
