"""Special functions: gamma family, Bessel, zeta, polygamma, and the other names of torch.special."""

from __future__ import annotations

import math

import numpy as np

from ...base import dtypes
from ...base.elements import pair_function
from ...base.quiet import errstate
from ...core.body import scalar
from ...core.declare import composite, pointwise
from ...core.operator import namespace
from ..scalars_special import special_function

aten = namespace("aten")
_LOW = ("float16", "bfloat16")
_COMPLEX = ("complex64", "complex128")

# ---- other names of operators of the root namespace ------------------------------------------------------------------------


def _same(name, of, tail="Tensor self", overload="default"):
    def fn(*args):
        return getattr(getattr(aten, of), overload)(*args)

    composite(f"special_{name}({tail}) -> Tensor", variants="")(fn)


for _name, _of in {
    "psi": "digamma", "digamma": "digamma", "expit": "sigmoid", "gammaln": "lgamma", "erf": "erf", "erfc": "erfc", "erfinv": "erfinv",
    "exp2": "exp2", "expm1": "expm1", "log1p": "log1p", "sinc": "sinc",
}.items():  # fmt: skip
    _same(_name, _of)
_same("logit", "logit", "Tensor self, float? eps=None")
_same("gammainc", "igamma", "Tensor self, Tensor other")
_same("gammaincc", "igammac", "Tensor self, Tensor other")
_same("multigammaln", "mvlgamma", "Tensor self, int p")
_same("polygamma", "polygamma", "int n, Tensor self")
_same("xlogy", "xlogy", "Tensor self, Tensor other", "Tensor")
_same("softmax", "softmax", "Tensor self, int dim, ScalarType? dtype=None", "int")
composite(
    "special_log_softmax(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", variants="", out_rules="exact"
)(lambda self, dim, dtype: aten.log_softmax.int(self, dim, dtype))
composite("special_round(Tensor self, *, int decimals=0) -> Tensor", variants="", out_rules="exact")(
    lambda self, decimals: aten.round.decimals(self, decimals=decimals) if decimals else aten.round.default(self)
)
composite("i0(Tensor self) -> Tensor", inplace=True)(lambda self: aten.special_i0.default(self))


@pointwise("special_ndtr(Tensor self) -> Tensor", promote="float", variants="", inplace=False)
def special_ndtr(s, self):
    """The distribution function of the normal distribution."""
    return s.mul(s.erfc(s.mul(self, -math.sqrt(0.5))), 0.5)


# ---- rows and operators of SciPy's functions of one number ------------------------------------------------------------------


def _unary(name, scipy_name=None, vjp=None, arg="self"):
    """An operator of one of SciPy's functions. Without ``vjp`` its results don't require gradients, as PyTorch's don't."""
    scalar(f"special_{name}", 1, "float", special_function(scipy_name or name), {}, vjp, f"special_{name}")

    def body(s, x):
        return getattr(s, f"special_{name}")(x)

    op = pointwise(
        f"special_{name}(Tensor {arg}) -> Tensor",
        promote="float",
        variants="",
        inplace=False,
        refuse=(*_LOW, *_COMPLEX),
    )(body)
    if vjp is None:
        op.derivative()
    _by_loop(op, scipy_name or name)


def _by_loop(op, name):
    """In a graph: SciPy's loop of this name."""
    op.override("lower", lambda low, val, *xs: low.ufunc(name, xs, val.dtype, val.device)[0])


# PyTorch has no derivative of these.
for _name, _scipy in {
    "bessel_j0": "j0", "bessel_j1": "j1", "bessel_y0": "y0", "bessel_y1": "y1", "modified_bessel_i0": "i0", "modified_bessel_i1": "i1",
    "modified_bessel_k0": "k0", "modified_bessel_k1": "k1",
}.items():  # fmt: skip
    _unary(_name, _scipy)
for _name, _scipy in {"scaled_modified_bessel_k0": "k0e", "scaled_modified_bessel_k1": "k1e"}.items():
    _unary(_name, _scipy, arg="x")


def _airy(x):
    import scipy.special

    return scipy.special.airy(x)[0].astype(getattr(x, "dtype", np.float64), copy=False)


def _spherical(x):
    """sin(x) / x, its series near 0."""
    x = np.asarray(x)
    near = np.abs(x) < 0.5
    square = x * x
    series = 1 - square / 6 * (1 - square / 20 * (1 - square / 42 * (1 - square / 72 * (1 - square / 110))))
    far = np.sin(x) / np.where(near, 1, x)
    return np.where(np.isinf(x), 0, np.where(near, series, far)).astype(x.dtype)


for _name, _fn in (("airy_ai", _airy), ("spherical_bessel_j0", _spherical)):
    scalar(f"special_{_name}", 1, "float", _fn, {}, None)
    pointwise(
        f"special_{_name}(Tensor x) -> Tensor", promote="float", variants="", inplace=False, refuse=(*_LOW, *_COMPLEX)
    )(lambda s, x, name=_name: getattr(s, f"special_{name}")(x)).derivative()
_by_loop(aten.special_airy_ai.default, "airy")


@aten.special_spherical_bessel_j0.default.override("lower")
def _lower_spherical(lowering, val, x):
    if val.dtype not in (dtypes.float32, dtypes.float64):
        raise NotImplementedError(f"no loop of {val.dtype}")

    def body(s, x):
        near, square = s.lt(s.abs(x), 0.5), s.mul(x, x)
        series = 1.0
        for n in (110, 72, 42, 20, 6):
            series = s.sub(1.0, s.mul(s.div(square, n), series))
        far = s.div(s.sin(x), s.where(near, 1.0, x))
        return s.where(s.eq(s.abs(x), math.inf), 0.0, s.where(near, series, far))

    return lowering.mapped(body, lowering.as_dtype(x, val.dtype), val)


# ---- incomplete gamma, zeta, polygamma ----------------------------------------------------------------------------------------


def _pair(name):
    """The ufunc of base/elements.py, made at its first call."""

    def call(x, y):
        with errstate(all="ignore"):
            return pair_function(name)(x, y)

    call.ufunc = lambda: pair_function(name)
    return call


for _name, _scipy in (("igamma", "gammainc"), ("igammac", "gammaincc")):
    scalar(_name, 2, "float", _pair(_scipy), {})
    pointwise(
        f"{_name}(Tensor self, Tensor other) -> Tensor",
        numbers=False,
        refuse=("bool", "uint8", "int8", "int16", "int32", "int64", *_COMPLEX),
    )(lambda s, self, other, name=_name: getattr(s, name)(self, other))
    _by_loop(getattr(aten, _name).default, _scipy)


def _igamma_vjp(sign):
    def formula(ct, self, other):
        log = aten.sub.Tensor(aten.mul.Tensor(aten.sub.Tensor(self, 1), aten.log.default(other)), other)
        slope = aten.mul.Tensor(ct, aten.exp.default(aten.sub.Tensor(log, aten.lgamma.default(self))))
        return slope if sign > 0 else aten.neg.default(slope)

    return formula


def _no_parameter(name):
    def formula(ct):
        raise NotImplementedError(f"the derivative for '{name}: input' is not implemented.")

    return formula


for _name, _sign in (("igamma", 1), ("igammac", -1)):
    getattr(aten, _name).default.derivative(self=_no_parameter(_name), other=_igamma_vjp(_sign))


scalar("special_zeta", 2, "float", _pair("zeta"), {})
special_zeta = pointwise(
    "special_zeta(Tensor self, Tensor other) -> Tensor",
    promote="float",
    variants="",
    inplace=False,
    refuse=(*_LOW, *_COMPLEX),
)(lambda s, self, other: s.special_zeta(self, other))
special_zeta.derivative(
    self=_no_parameter("zeta"),
    other=lambda ct, self, other: aten.mul.Tensor(
        ct, aten.neg.default(aten.mul.Tensor(self, aten.special_zeta.default(aten.add.Tensor(self, 1.0), other)))
    ),
)


_by_loop(special_zeta, "zeta")


def _with_numbers(name, first="self", second="other"):
    """The overloads that take a number on one side."""
    packet = getattr(aten, name)
    op = packet.default if "default" in packet._overloads else packet.Tensor

    def left(x, y):
        return op(aten.scalar_tensor.default(x, dtype=dtypes.result_type(x, y) if y.dtype.category < 2 else y.dtype), y)

    def right(x, y):
        return op(x, aten.scalar_tensor.default(y, dtype=dtypes.result_type(x, y) if x.dtype.category < 2 else x.dtype))

    composite(f"{name}.{first}_scalar(Scalar {first}, Tensor {second}) -> Tensor", variants="")(left)
    composite(f"{name}.{second}_scalar(Tensor {first}, Scalar {second}) -> Tensor", variants="")(right)


_with_numbers("special_zeta")
_with_numbers("special_xlogy")


def _polygamma(n, x):
    import scipy.special

    x = np.asarray(x)
    return scipy.special.polygamma(n, x.astype(np.float64)).astype(x.dtype)


scalar("polygamma", 2, "float", _polygamma, {})


@pointwise(
    "polygamma(int n, Tensor self) -> Tensor", promote="float", variants="function", refuse=_COMPLEX, inplace=False
)
def polygamma(s, n, self):
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    return s.digamma(self) if n == 0 else s.trigamma(self) if n == 1 else s.polygamma(n, self)


@polygamma.override("lower")
def _lower_polygamma(lowering, val, n, self):
    """By the zeta function, as SciPy has it."""
    if not isinstance(n, int):
        raise NotImplementedError("polygamma of an order that varies")
    if n < 2:
        return lowering.pointwise(polygamma, (n, self), val)
    import scipy.special

    x = lowering.as_dtype(lowering.as_dtype(self, val.dtype), dtypes.float64)
    (made,) = lowering.ufunc("zeta", (n + 1, x), dtypes.float64, val.device)
    scale = float((-1.0) ** (n + 1) * scipy.special.gamma(n + 1.0))
    return lowering.mapped(lambda s, z: s.mul(z, scale), made, val)


polygamma.derivative(self=lambda ct, n, self: aten.mul.Tensor(ct, aten.polygamma.default(n + 1, self)))


@composite("mvlgamma(Tensor self, int p) -> Tensor", inplace=True)
def mvlgamma(self, p):
    """log of the multivariate gamma function: p (p - 1) / 4 log(pi) + sum over j < p of lgamma(self - j / 2)."""
    if self.dtype is dtypes.bool_ or self.dtype.is_complex:
        raise RuntimeError(f"mvlgamma is not implemented for {self.dtype}")
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    x = self if self.dtype.is_floating_point else aten._to_copy.default(self, dtype=dtypes.get_default_dtype())
    halves = aten.arange.start_step(-p * 0.5 + 0.5, 0.5, 0.5, dtype=x.dtype, device=x.device)
    terms = aten.lgamma.default(aten.add.Tensor(aten.unsqueeze.default(x, -1), halves))
    return aten.add.Tensor(aten.sum.dim_IntList(terms, [-1]), p * (p - 1) * math.log(math.pi) / 4)
