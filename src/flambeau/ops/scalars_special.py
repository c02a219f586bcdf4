"""More rows of the scalar table: functions that NumPy and SciPy compute and the compiler has no text for (it calls the eager kernel then).

The columns are those of :mod:`.scalars`.
"""

import math

import numpy as np

from ..base.elements import element_function, pair_function
from ..core.body import real_only, scalar
from .scalars import _no_sign, _special
from .scalars import _special as special_function  # noqa: F401  (what families that load later build rows from)

_NONE = lambda s, ct, *args: (None,) * (len(args) - 1)  # noqa: E731
_SQRT_PI = math.sqrt(math.pi)


_gammaln = _special("gammaln")  # -inf at -inf, where the limit from either side and PyTorch have inf


# Those of one operand that inductor/codegen/expansions has.
_EXPANDED = frozenset("asin acos atan sinh cosh asinh acosh atanh erfc erfinv lgamma i0 i0e i1 i1e digamma trigamma erfcx ndtri log_ndtr normal_cdf".split())


def _unary(name, numpy, vjp, aten=None):
    scalar(name, 1, "float", numpy, {"f": f"@{name}"} if name in _EXPANDED else {}, vjp, aten=aten)


def _square(s, x):
    return s.mul(x, x)


_unary("asin", element_function("asin", np.arcsin), lambda s, ct, x, r: (s.mul(ct, s.rsqrt(s.sub(1.0, _square(s, x)))),))
_unary("acos", element_function("acos", np.arccos), lambda s, ct, x, r: (s.neg(s.mul(ct, s.rsqrt(s.sub(1.0, _square(s, x))))),))
_unary("atan", element_function("atan", np.arctan), lambda s, ct, x, r: (s.div(ct, s.add(_square(s, x), 1.0)),))
_unary("sinh", element_function("sinh", np.sinh), lambda s, ct, x, r: (s.mul(ct, s.cosh(x)),))
_unary("cosh", element_function("cosh", np.cosh), lambda s, ct, x, r: (s.mul(ct, s.sinh(x)),))
_unary("asinh", element_function("asinh", np.arcsinh), lambda s, ct, x, r: (s.mul(ct, s.rsqrt(s.add(_square(s, x), 1.0))),))
# Of complex numbers the root of x^2 - 1 has the other sign where the real part is below 0.
_unary("acosh", element_function("acosh", np.arccosh), lambda s, ct, x, r: (s.mul(ct, s.mul(s.rsqrt(s.sub(x, 1.0)), s.rsqrt(s.add(x, 1.0)))),))
_unary("atanh", element_function("atanh", np.arctanh), lambda s, ct, x, r: (s.div(ct, s.sub(1.0, _square(s, x))),))
_unary("erfc", element_function("erfc"), lambda s, ct, x, r: (s.mul(ct, s.mul(-2 / _SQRT_PI, s.exp(s.neg(_square(s, x))))),))
_unary("erfinv", element_function("erfinv"), lambda s, ct, x, r: (s.mul(ct, s.mul(_SQRT_PI / 2, s.exp(_square(s, s.erfinv(x))))),))
_unary("erfcx", element_function("erfcx"), lambda s, ct, x, r: (s.mul(ct, s.sub(s.mul(2.0, s.mul(x, r)), 2 / _SQRT_PI)),), "special_erfcx")
_unary("gammaln", _gammaln, None, "special_gammaln")
_unary("lgamma", element_function("lgamma"), lambda s, ct, x, r: (s.mul(ct, s.digamma(x)),))
_unary("digamma", element_function("digamma"), lambda s, ct, x, r: (s.mul(ct, s.trigamma(x)),))
_unary("trigamma", element_function("trigamma"), None, "_trigamma")
_unary("i0", element_function("i0"), lambda s, ct, x, r: (s.mul(ct, s.i1(x)),), "special_i0")
_unary("i0e", element_function("i0e"), lambda s, ct, x, r: (s.mul(ct, s.sub(s.i1e(x), s.mul(s.sign(x), r))),), "special_i0e")
_unary("i1", element_function("i1"), lambda s, ct, x, r: (s.mul(ct, s.sub(s.i0(x), s.where(s.lt(s.abs(x), 1e-30), 0.5, s.div(r, _away(s, x))))),), "special_i1")
_unary("i1e", element_function("i1e"), lambda s, ct, x, r: (s.mul(ct, s.sub(s.i0e(x), s.where(s.lt(s.abs(x), 1e-30), 0.5, s.mul(r, s.add(s.sign(x), s.reciprocal(_away(s, x))))))),),
       "special_i1e")
_unary("ndtri", element_function("ndtri"), lambda s, ct, x, r: (s.mul(ct, s.mul(math.sqrt(2 * math.pi), s.exp(s.mul(0.5, _square(s, r))))),), "special_ndtri")
_unary("log_ndtr", element_function("log_ndtr"),
       lambda s, ct, x, r: (s.mul(ct, s.div(math.sqrt(2 / math.pi), s.erfcx(s.mul(x, -math.sqrt(0.5))))),), "special_log_ndtr")


_unary("normal_cdf", element_function("normal_cdf"),
       lambda s, ct, x, r: (s.mul(ct, s.mul(1 / math.sqrt(2 * math.pi), s.exp(s.mul(-0.5, _square(s, x))))),), "special_ndtr")


def _away(s, x):
    """``x``, or 1 at 0, so that what is not selected there has a derivative that is a number."""
    return s.where(s.lt(s.abs(x), 1e-30), 1.0, x)


def _atan2(s, ct, y, x, r):
    square = s.add(_square(s, x), _square(s, y))
    origin = s.eq(square, 0.0)
    return s.where(origin, 0.0, s.mul(ct, s.div(x, square))), s.where(origin, 0.0, s.neg(s.mul(ct, s.div(y, square))))


def _signbit(x):
    return np.signbit(x) if getattr(x, "dtype", np.dtype(float)).kind == "f" else x < 0


_signbit.ufunc = lambda: np.signbit


def _heaviside(x, y):
    return np.where(x == 0, y, (x > 0)).astype(getattr(x, "dtype", np.float64), copy=False)


_heaviside.of_reals = lambda s, x, y: s.where(s.eq(x, 0.0), y, s.where(s.gt(x, 0.0), 1.0, _no_sign(s, x)))

scalar("atan2", 2, "float", element_function("atan2", np.arctan2), {"f": "@atan2"}, _atan2)
scalar("hypot", 2, "float", element_function("hypot", np.hypot), {"f": "@hypot"}, lambda s, ct, x, y, r: (s.mul(ct, s.div(x, r)), s.mul(ct, s.div(y, r))))
scalar("copysign", 2, "float", np.copysign, {"f": "llvm.copysign"},
       lambda s, ct, x, y, r: (s.where(s.eq(x, 0.0), 0.0, s.mul(ct, s.div(r, x))), None))
scalar("fmax", 2, "arith", np.fmax, {"f": "@fmax", "i": "@maximum_int", "b": "or"}, lambda s, ct, x, y, r: (s.where(s.logical_or(s.ge(x, y), s.isnan(y)), ct, 0.0),
                                                               s.where(s.logical_or(s.ge(x, y), s.isnan(y)), 0.0, ct)))
scalar("fmin", 2, "arith", np.fmin, {"f": "@fmin", "i": "@minimum_int", "b": "and"}, lambda s, ct, x, y, r: (s.where(s.logical_or(s.le(x, y), s.isnan(y)), ct, 0.0),
                                                               s.where(s.logical_or(s.le(x, y), s.isnan(y)), 0.0, ct)))
scalar("nextafter", 2, "float", np.nextafter, {"f": "@nextafter"},
       lambda s, ct, x, y, r: (s.where(s.eq(x, y), 0.0, ct), None))
scalar("signbit", 1, "compare", _signbit, {"f": "@signbit", "i": "@signbit", "b": "@false"}, _NONE)
scalar("heaviside", 2, "arith", _heaviside, {"f": "@heaviside", "i": "@heaviside", "b": "or"})
def _logaddexp(of_reals, power, log_base):
    """log(b^x + b^y); NumPy has it for real numbers. Of complex ones the part with the greater real part is taken out."""

    def of_numbers(x, y):
        if not (np.iscomplexobj(x) or np.iscomplexobj(y)):
            return of_reals(x, y)
        first = np.real(x) >= np.real(y)
        high, low = np.where(first, x, y), np.where(first, y, x)
        return (high + np.log1p(power(low - high)) / log_base).astype(np.result_type(x, y))

    of_numbers.ufunc = lambda: of_reals
    return of_numbers


scalar("gcd", 2, "bit", np.gcd, {"i": "@gcd"}, _NONE)
scalar("lcm", 2, "bit", np.lcm, {"i": "@lcm"}, _NONE)
scalar("lshift", 2, "bit", np.left_shift, {"i": "@lshift"}, _NONE, aten="bitwise_left_shift")
scalar("rshift", 2, "bit", np.right_shift, {"i": "@rshift"}, _NONE, aten="bitwise_right_shift")
scalar("logaddexp", 2, "float", _logaddexp(element_function("logaddexp", np.logaddexp), np.exp, 1.0), {"f": "@logaddexp"}, lambda s, ct, x, y, r: (s.div(ct, s.add(s.exp(s.sub(y, x)), 1.0)),
                                                                         s.div(ct, s.add(s.exp(s.sub(x, y)), 1.0))))
scalar("logaddexp2", 2, "float", _logaddexp(element_function("logaddexp2", np.logaddexp2), np.exp2, np.log(2.0)), {"f": "@logaddexp2"}, lambda s, ct, x, y, r: (s.div(ct, s.add(s.exp2(s.sub(y, x)), 1.0)),
                                                                           s.div(ct, s.add(s.exp2(s.sub(x, y)), 1.0))))

# --- complex numbers: their derivatives are next to the operators (ops/pointwise/complex_numbers.py) -----------------------------------


def _complex(x, y):
    out = np.empty(np.broadcast(x, y).shape, np.result_type(x, y, np.complex64))
    out.real, out.imag = x, y
    return out


_complex.ufunc = lambda: pair_function("complex")


def _angle(x):
    """pi for negative numbers, 0 for others, nan at nan."""
    if getattr(x, "dtype", np.dtype(float)).kind == "c":
        return np.arctan2(x.imag, x.real)
    return np.where(np.isnan(x), x, np.where(x < 0, np.pi, 0)).astype(x.dtype)


_angle.of_reals = lambda s, x: s.where(s.isnan(x), x, s.where(s.lt(x, 0.0), math.pi, _no_sign(s, x)))


scalar("conj", 1, "arith", np.conjugate, {"*": "@copy"}, None, aten="conj_physical")
scalar("complex", 2, "float", _complex, {})
scalar("angle", 1, "float", _angle, {"f": "@angle"})

real_only("atan2 hypot copysign fmax fmin nextafter signbit heaviside gcd lcm lshift rshift logaddexp2 erfc erfinv erfcx lgamma digamma trigamma i0 i0e i1 i1e ndtri log_ndtr normal_cdf")
