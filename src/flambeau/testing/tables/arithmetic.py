"""Samples: pointwise operators."""

import math

import numpy as np
import scipy.special as special

from ...base import dtypes
from ...base.memory_format import contiguous_format
from ..samples import T, apart, b, c, call, f, fixed, gaps, i, pos, row, unit


def one(make, *rest, **kw):
    """Shapes that every unary operator must take: dense, transposed, strided, zero-dimensional, empty."""
    return [call(np.asarray(x), *rest, **kw) for x in (make(2, 3), T(make(3, 2)), gaps(make(2, 2)), make(), make(0, 3), make(2, 1, 2).transpose(1, 2, 0))]


def two(a, b_=None, **kw):
    """Shapes for binary operators: equal, broadcast both ways, transposed, mixed layouts, zero-dimensional, empty."""
    b_ = b_ or a
    return [call(a(2, 3), b_(2, 3), **kw), call(a(2, 3), b_(3), **kw), call(a(3), b_(2, 1), **kw), call(T(a(3, 2)), T(b_(3, 2)), **kw),
            call(a(2, 3), T(b_(3, 2)), **kw), call(a(2, 2), b_(), **kw), call(a(), b_(), **kw), call(a(0, 3), b_(3), **kw),
            call(a(2, 1, 3).transpose(2, 0, 1), b_(1), **kw)]


# ---- arithmetic ------------------------------------------------------------------------------------------------------------
row("add.Tensor", two(f) + two(f, alpha=2.5)[:2] + [call(i(2, 3), i(3), alpha=3), call(f(2, 3), 2.5), call(i(3), 2), call(b(3), b(3))],
    lambda self, other, alpha=1: self + alpha * other if alpha != 1 else self + other, dtypes=True)
row("sub.Tensor", two(f) + two(f, alpha=0.5)[:2] + [call(i(2, 3), i(3), alpha=2), call(f(3), 1.5)], lambda self, other, alpha=1: self - alpha * other, dtypes=True)
row("rsub.Tensor", two(f)[:4] + [call(f(3), f(3), alpha=2)], lambda self, other, alpha=1: other - alpha * self, dtypes=True)
row("rsub.Scalar", [call(f(2, 3), 2.0), call(T(f(3, 2)), 1.5, 2.0), call(i(3), 2)], lambda self, other, alpha=1: other - alpha * self)
row("add.Scalar sub.Scalar mul.Scalar div.Scalar", [call(f(2, 3), 2.5), call(i(3), 2)], [np.add, np.subtract, np.multiply, np.divide], rtol=1e-6)
row("remainder.Scalar fmod.Scalar floor_divide.Scalar", [call(apart(6), 2), call(i(6, low=-9, high=9), 4)], [np.remainder, np.fmod, np.floor_divide], second=False, grad=())
row("div.Scalar_mode", [call(apart(6), 2.0, rounding_mode="floor")], lambda x, y, rounding_mode: np.floor(x / y), grad=())
row("mul.Tensor", two(f) + [call(i(2, 3), i(3)), call(f(3), 2.5), call(b(3), b(3)), call(i(3), f(3))], np.multiply, dtypes=True)
row("div.Tensor", two(f, pos) + [call(i(2, 3), i(3, low=1)), call(f(3), 3)], np.true_divide, dtypes=True)
_modes = {None: np.true_divide, "floor": np.floor_divide, "trunc": lambda a, c: np.trunc(a / c)}
row("div.Tensor_mode", [call(*s.args, rounding_mode=m) for m in (None, "floor", "trunc") for s in two(f, pos)[:4] + [call(i(6, low=-9, high=9), i(6, low=1))]],
    lambda self, other, rounding_mode: _modes[rounding_mode](self, other), dtypes=True)
row("floor_divide", two(f, pos)[:5] + [call(i(6, low=-9, high=9), i(6, low=1))], np.floor_divide, grad=(), dtypes=True)
row("remainder.Tensor", two(apart, pos)[:6] + [call(i(6, low=-9, high=9), i(6, low=1)), call(f(3), -pos(3))], np.remainder, second=False, dtypes=True)
row("fmod.Tensor", two(apart, pos)[:6] + [call(i(6, low=-9, high=9), i(6, low=1)), call(f(3), -pos(3))], np.fmod, second=False, dtypes=True)
row("pow.Tensor_Scalar", [call(pos(2, 3), e) for e in (0, 1, 2, 3, 0.5, -1, -0.5, 2.5, -2)] + [call(f(2, 3), 2), call(f(), 3), call(i(3), 2), call(T(f(3, 2)), 4),
    call(f(0, 2), 2)], np.power, dtypes=True)
row("pow.Tensor_Tensor", two(pos, f) + [call(i(3), i(3))], np.power, dtypes=True)
row("pow.Scalar", [call(2.0, f(2, 3)), call(0.5, T(f(3, 2))), call(3, i(3))], np.power, strides=False)
row("neg sign", one(apart) + [call(i(5, low=-3))], [np.negative, np.sign], dtypes=True)
row("abs", one(apart) + [call(i(5, low=-3))], np.abs, dtypes=True)
row("maximum minimum", two(f) + [call(i(3), i(3)), call(np.array([1.0, 2.0]), np.array([1.0, 3.0]))][:1], [np.maximum, np.minimum], dtypes=True)
row("clamp", one(apart, -0.7, 0.8) + [call(f(3), 0.1), call(f(3), None, 0.2), call(i(5, low=-3), 0, 2), call(f(3), min=0)],
    lambda self, min=None, max=None: np.clip(self, min, max), dtypes=True)
row("clamp.Tensor", [call(apart(2, 3), unit(3) - 1, unit(3) + 1), call(apart(2, 3), unit(3)), call(apart(3), None, unit(3)), call(T(apart(3, 2)), unit(2, 1), unit(2, 1) + 1)],
    lambda self, min=None, max=None: np.minimum(np.maximum(self, -np.inf if min is None else min), np.inf if max is None else max))
row("clamp_min clamp_max", one(apart, 0.3) + [call(i(5), 2)], [np.maximum, np.minimum], dtypes=True)
row("clamp_min.Tensor clamp_max.Tensor", two(apart, unit)[:4], [np.maximum, np.minimum])
row("addcmul", [call(f(2, 3), f(3), f(2, 1)), call(f(2, 3), f(2, 3), f(2, 3), value=0.5), call(T(f(3, 2)), T(f(3, 2)), f(2, 3))],
    lambda self, tensor1, tensor2, value=1: self + value * tensor1 * tensor2, dtypes=True)
row("addcdiv", [call(f(2, 3), f(3), pos(2, 1)), call(f(2, 3), f(2, 3), pos(2, 3), value=0.5)],
    lambda self, tensor1, tensor2, value=1: self + value * tensor1 / tensor2, dtypes=True)
row("lerp.Scalar", [call(f(2, 3), f(2, 3), w) for w in (0.0, 0.3, 0.5, 0.8, 1.0, 1.7)] + [call(f(3), f(2, 1), 0.2)], lambda s, e, w: s + w * (e - s))
row("lerp.Tensor", [call(f(2, 3), f(3), unit(2, 3)), call(f(3), f(3), unit())], lambda s, e, w: s + w * (e - s))
row("true_divide.Tensor", two(f, pos)[:2], np.true_divide)
row("square", one(f) + [call(i(3))], np.square, dtypes=True)

# ---- comparison, logic, bits -----------------------------------------------------------------------------------------------
_tie = [call(np.array([1.0, 2.0, np.nan]), np.array([1.0, 3.0, np.nan])), call(i(6), i(6)), call(b(4), b(4)), call(i(4), f(4))]
_np = [np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal]
row("eq.Tensor ne.Tensor lt.Tensor le.Tensor gt.Tensor ge.Tensor", two(f) + _tie, _np, grad=(), dtypes=True)
row("eq.Scalar ne.Scalar lt.Scalar le.Scalar gt.Scalar ge.Scalar", one(f, 0.3) + [call(i(6), 2), call(i(6), 1.5), call(b(3), 1)], _np, grad=(), dtypes=True)
row("logical_and logical_or logical_xor", two(f) + _tie, [np.logical_and, np.logical_or, np.logical_xor], grad=(), dtypes=True)
row("logical_not", one(f) + [call(i(5)), call(b(5))], np.logical_not, grad=(), dtypes=True)
row("bitwise_and.Tensor bitwise_or.Tensor bitwise_xor.Tensor", two(i) + [call(b(4), b(4))], [np.bitwise_and, np.bitwise_or, np.bitwise_xor], dtypes=True)
row("bitwise_not", [call(i(5, low=-3)), call(b(5)), call(T(i(2, 3)))], np.invert, dtypes=True)
row("bitwise_left_shift.Tensor bitwise_right_shift.Tensor", [call(i(2, 3), i(3)), call(i(4, low=-5), i(4))], [np.left_shift, np.right_shift])
row("isnan isinf isfinite", one(f) + [call(np.array([1.0, np.nan, np.inf, -np.inf])), call(i(3)), call(b(3))], [np.isnan, np.isinf, np.isfinite], grad=(), dtypes=True)
row("isposinf isneginf signbit", one(f) + [call(np.array([1.0, np.nan, np.inf, -np.inf, -0.0])), call(i(3))], [np.isposinf, np.isneginf, np.signbit], grad=(), dtypes=True)
row("isclose", [call(f(3), f(3)), call(np.array([1.0, np.inf, np.nan, 2.0]), np.array([1.0 + 1e-9, np.inf, np.nan, 3.0])),
                call(np.array([1.0, np.nan]), np.array([1.1, np.nan]), 0.2, 0.0, True), call(i(3), i(3))],
    lambda a, c, rtol=1e-5, atol=1e-8, equal_nan=False: np.isclose(a, c, rtol, atol, equal_nan), grad=())
row("allclose equal", [call(f(3), f(3)), call(np.ones(3), np.ones(3)), call(np.ones(0), np.ones(0))], [np.allclose, np.array_equal], grad=())
row("where.self", [call(b(2, 3), f(2, 3), f(2, 3)), call(b(3), f(2, 3), f(2, 1)), call(T(b(3, 2)), T(f(3, 2)), T(f(3, 2))), call(b(), f(2), f()),
                   call(b(3), i(3), f(3)), call(b(0, 2), f(2), f(2))], np.where)
row("where", [call(b(2, 3)), call(f(3))], lambda c: list(np.nonzero(c)), grad=())
row("where.ScalarOther", [call(b(2, 3), f(2, 3), 2.0), call(b(3), i(3), 1.5)], np.where)
row("where.ScalarSelf", [call(b(2, 3), 2.0, f(2, 3)), call(b(3), 2, i(3))], np.where)
row("where.Scalar", [call(b(2, 3), 2.0, 1.0), call(b(3), 2, 1)], lambda c, x, y: np.where(c, x, y))
row("masked_fill.Scalar", [call(f(2, 3), b(2, 3), 1.5), fixed(f(2, 3), b(3), -np.inf), call(T(f(3, 2)), b(2, 3), 0), call(i(3), b(3), 7), call(f(), b(), 1.0), call(f(3), b(2, 3), 1.0)],
    lambda x, m, v: np.where(m, v, x), strides=False)
row("masked_fill.Tensor", [call(f(2, 3), b(2, 3), f()), call(f(2, 3), b(3), np.asarray(2))], lambda x, m, v: np.where(m, v, x))

# ---- copies and conversions ------------------------------------------------------------------------------------------------
row("clone", one(f) + [call(T(f(2, 3)), memory_format=contiguous_format), call(i(3)), call(b(3))], lambda self, memory_format=None: self, dtypes=True)
row("_to_copy", one(f) + [call(i(3))], lambda self: self)
row("copy", [call(f(2, 3), f(3)), call(f(2, 3), i(2, 3)), call(i(3), f(3)), call(T(f(3, 2)), f(2, 3))],
    lambda self, src, non_blocking=False: np.broadcast_to(src, self.shape).astype(self.dtype))
row("fill.Scalar", one(f, 2.5) + [call(i(3), 7), call(b(2), 1)], lambda self, v: np.full_like(self, v), dtypes=True)
row("fill.Tensor", [call(f(2, 3), f()), call(i(3), np.asarray(2))], lambda self, v: np.full_like(self, v))
row("zero", one(f)[:3], np.zeros_like)
row("contiguous lift_fresh", one(f)[:4], lambda self: self)
row("alias", one(f)[:4], lambda self: self)
row("detach", one(f)[:4], lambda self: self, grad=())

# ---- elementary functions --------------------------------------------------------------------------------------------------
_each = {"exp": (np.exp, f), "expm1": (np.expm1, f), "log": (np.log, pos), "log1p": (np.log1p, pos), "log2": (np.log2, pos), "log10": (np.log10, pos),
         "sqrt": (np.sqrt, pos), "rsqrt": (lambda x: 1 / np.sqrt(x), pos), "sin": (np.sin, f), "cos": (np.cos, f), "tan": (np.tan, unit), "tanh": (np.tanh, f),
         "erf": (special.erf, f), "erfc": (special.erfc, f), "erfinv": (special.erfinv, unit), "reciprocal": (np.reciprocal, pos), "sigmoid": (special.expit, f),
         "exp2": (np.exp2, f), "asin": (np.arcsin, unit), "acos": (np.arccos, unit), "atan": (np.arctan, f), "sinh": (np.sinh, f), "cosh": (np.cosh, f),
         "asinh": (np.arcsinh, f), "acosh": (np.arccosh, lambda *s: pos(*s) + 1), "atanh": (np.arctanh, unit), "lgamma": (special.gammaln, pos),
         "digamma": (special.digamma, pos), "sinc": (np.sinc, apart), "deg2rad": (np.deg2rad, f), "rad2deg": (np.rad2deg, f), "frac": (lambda x: x - np.trunc(x), apart),
         "special_i0": (special.i0, f), "special_i0e": (special.i0e, f), "special_i1": (special.i1, f), "special_i1e": (special.i1e, f),
         "special_ndtri": (special.ndtri, lambda *s: unit(*s) / 2 + 0.5), "special_log_ndtr": (special.log_ndtr, f),
         "special_entr": (special.entr, pos), "special_erfcx": (special.erfcx, f), "logit": (special.logit, lambda *s: unit(*s) / 2 + 0.5)}
for _name, (_fn, _make) in _each.items():
    row(_name, one(_make) + ([call(i(3, low=1))] if _make is not unit and _name not in ("reciprocal", "frac") else []), _fn, dtypes=_name not in ("logit",), second=_name not in ("lgamma", "digamma"), rtol=1e-9)
row("floor ceil trunc round", one(apart) + [call(i(4, low=-3)), call(np.array([0.5, 1.5, -0.5, 2.5]))], [np.floor, np.ceil, np.trunc, np.round], grad=(), dtypes=True)
row("round.decimals", [call(f(3), decimals=2), call(f(3) * 100, decimals=-1)], lambda x, decimals: np.round(x, decimals), grad=())
row("positive conj resolve_conj resolve_neg", one(f)[:3], lambda x: x)
row("sgn", one(apart)[:3], np.sign)

# ---- complex numbers ---------------------------------------------------------------------------------------------------------
row("_conj", [call(c(2, 3)), call(T(c(3, 2)))], np.conj, grad=())
row("_neg_view", [call(f(2, 3)), call(c(2, 3))], np.negative, grad=())
row("view_as_real", [call(c(2, 3)), call(T(c(3, 2)))], lambda x: np.stack([x.real, x.imag], -1), grad=())
row("view_as_complex", [call(f(2, 3, 2)), call(f(2))], lambda x: x[..., 0] + 1j * x[..., 1], grad=())
row("real", [call(c(2, 3)), call(f(3))], np.real, grad=())
row("imag", [call(c(2, 3))], np.imag, grad=())
row("conj_physical _conj_physical adjoint", [call(c(2, 3))], [np.conj, np.conj, lambda x: np.conj(x).T], grad=())
row("complex", [call(f(2, 3), f(3))], lambda a, b: a + 1j * b, grad=())
row("polar", [call(f(2, 3), f(3))], lambda a, b: a * np.exp(1j * b), grad=())
row("angle", [call(c(2, 3)), call(apart(4))], np.angle, grad=())
row("view.dtype", [call(f(2, 3), dtypes.int64), call(f(2, 4), dtypes.int32)], lambda x, d: x.view(d.np), grad=())
row("isreal", [call(c(2, 3)), call(f(3))], np.isreal, grad=())
row("nan_to_num", [call(np.array([1.0, np.nan, np.inf, -np.inf])), call(np.array([np.nan, np.inf]), 1.0, 2.0, 3.0), call(f(2, 3)), call(i(3))],
    lambda x, nan=0.0, posinf=None, neginf=None: np.nan_to_num(x, nan=nan or 0.0, posinf=posinf, neginf=neginf), dtypes=True)
row("atan2 hypot", two(pos, pos), [np.arctan2, np.hypot], dtypes=True)
row("bitwise_and.Scalar bitwise_or.Scalar bitwise_xor.Scalar", [call(i(2, 3), 5)], [np.bitwise_and, np.bitwise_or, np.bitwise_xor])
row("bitwise_and.Scalar_Tensor bitwise_or.Scalar_Tensor bitwise_xor.Scalar_Tensor", [call(5, i(2, 3))], [np.bitwise_and, np.bitwise_or, np.bitwise_xor])
row("bitwise_left_shift.Tensor_Scalar bitwise_right_shift.Tensor_Scalar", [call(i(2, 3), 2)], [np.left_shift, np.right_shift])
row("bitwise_left_shift.Scalar_Tensor bitwise_right_shift.Scalar_Tensor", [call(9, i(2, 3))], [np.left_shift, np.right_shift])
row("divide.Tensor_mode", [call(f(3), pos(3), rounding_mode="floor"), call(f(3), pos(3), rounding_mode=None)], lambda x, y, rounding_mode: _modes[rounding_mode](x, y), grad=())
row("divide.Scalar_mode", [call(f(3), 2.0, rounding_mode="floor"), call(f(3), 2.0, rounding_mode=None)], lambda x, y, rounding_mode: _modes[rounding_mode](x, y), grad=())
row("copysign.Scalar", [call(apart(2, 3), -1.0)], np.copysign)
row("xlogy.Scalar_Other", [call(pos(2, 3), 2.0)], special.xlogy)
row("xlogy.Scalar_Self", [call(2.0, pos(2, 3))], special.xlogy)
row("float_power.Scalar", [call(2.0, f(3))], np.float_power)
row("copysign.Tensor", two(apart, apart) + [fixed(np.array([1.0, -2.0]), np.array([-0.0, 0.0]))], np.copysign, dtypes=True)
row("logaddexp logaddexp2", two(f), [np.logaddexp, np.logaddexp2])
row("xlogy.Tensor special_xlog1py", two(pos, pos) + [call(np.array([0.0, 0.0, 1.0]), np.array([0.0, np.nan, 2.0]))][:0], [special.xlogy, special.xlog1py], dtypes=True)
row("fmax fmin", two(apart, f)[:5] + [call(np.array([np.nan, 1.0]), np.array([2.0, np.nan]))], [np.fmax, np.fmin], dtypes=True)
row("heaviside", two(apart, f), np.heaviside, grad=(), dtypes=True)
row("gcd lcm", [call(i(4, high=30), i(4, high=30)), call(i(2, 3, high=30), i(3, high=30))], [np.gcd, np.lcm])
row("nextafter _nextafter", two(f), [np.nextafter, np.nextafter], grad=())
row("_nextafter_narrow", [call(f(3), f(3), 0.6 * 2.0**-10, 0.6 * 2.0**-24, 65504.0)], None, grad=(), torch=None)
row("float_power.Tensor_Scalar", [call(pos(3), 2), call(i(3), 2)], np.float_power)
row("ldexp.Tensor", [call(f(3), i(3))], np.ldexp)

# ---- activations -----------------------------------------------------------------------------------------------------------
_phi = lambda x: 0.5 * (1 + special.erf(x / math.sqrt(2)))  # noqa: E731
_pdf = lambda x: np.exp(-x * x / 2) / math.sqrt(2 * math.pi)  # noqa: E731


def _gelu(x, approximate="none"):
    return x * _phi(x) if approximate == "none" else 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


row("relu", one(apart) + [call(i(4, low=-3))], lambda x: np.maximum(x, 0), dtypes=True)
row("threshold", one(apart, 0.3, 2.0), lambda x, t, v: np.where(x <= t, v, x), dtypes=True)
row("threshold_backward", [call(f(2, 3), apart(2, 3), 0.0), call(T(f(3, 2)), T(apart(3, 2)), 0.5)], lambda g, x, t: np.where(x <= t, 0, g))
row("gelu", one(f) + one(f, approximate="tanh"), _gelu, rtol=1e-9)
row("gelu_backward", two(f)[:4] + [call(f(3), f(3), approximate="tanh")],
    lambda g, x, approximate="none": g * (_phi(x) + x * _pdf(x)) if approximate == "none" else g * (_gelu(x + 1e-6, "tanh") - _gelu(x - 1e-6, "tanh")) / 2e-6, rtol=1e-7)
row("silu", one(f), lambda x: x * special.expit(x))
row("silu_backward", two(f)[:4], lambda g, x: g * special.expit(x) * (1 + x * (1 - special.expit(x))))
row("sigmoid_backward", two(f, unit)[:4], lambda g, y: g * y * (1 - y))
row("tanh_backward", two(f, unit)[:4], lambda g, y: g * (1 - y * y))
row("leaky_relu", one(apart) + [call(apart(3), 0.2)], lambda x, slope=0.01: np.where(x > 0, x, x * slope))
row("softplus", one(f) + [call(f(3), 2.0, 1.0)], lambda x, beta=1, threshold=20: np.where(x * beta > threshold, x, np.log1p(np.exp(x * beta)) / beta))
row("elu", one(apart) + [call(apart(3), 0.5, 1.5, 2.0)], lambda x, alpha=1, scale=1, input_scale=1: scale * np.where(x > 0, x, alpha * np.expm1(x * input_scale)))
row("selu", one(apart), lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)))
row("celu", one(apart) + [call(apart(3), 2.0)], lambda x, alpha=1.0: np.maximum(x, 0) + np.minimum(0, alpha * np.expm1(x / alpha)))
row("hardtanh", one(apart) + [call(apart(3), -0.5, 0.7)], lambda x, lo=-1, hi=1: np.clip(x, lo, hi))
row("relu6", one(apart), lambda x: np.clip(x, 0, 6))
row("hardsigmoid", one(apart), lambda x: np.clip(x + 3, 0, 6) / 6)
row("hardswish", one(apart), lambda x: x * np.clip(x + 3, 0, 6) / 6)
row("hardshrink", one(apart) + [call(apart(3), 0.8)], lambda x, l=0.5: np.where(np.abs(x) > l, x, 0))
row("softshrink", one(apart) + [call(apart(3), 0.8)], lambda x, l=0.5: np.where(x > l, x - l, np.where(x < -l, x + l, 0)))
row("mish", one(f), lambda x: x * np.tanh(np.log1p(np.exp(x))))
row("log_sigmoid", one(f), lambda x: special.log_expit(x), strides=False)
row("_prelu_kernel", [call(apart(2, 3), unit(2, 3)), call(apart(2, 3), np.array([[0.2]]))], lambda x, w: np.where(x > 0, x, w * x))
row("prelu", [call(apart(2, 3), np.array([0.2])), call(apart(2, 3), unit(3)), call(apart(2, 3, 2), unit(3))],
    lambda x, w: np.where(x > 0, x, x * w.reshape((1, -1) + (1,) * (x.ndim - 2)) if w.size > 1 else x * w))
row("glu", [call(f(2, 4)), call(f(4, 3), 0)], lambda x, dim=-1: np.split(x, 2, dim)[0] * special.expit(np.split(x, 2, dim)[1]))
_alias = {"arcsin": np.arcsin, "arccos": np.arccos, "arctan": np.arctan, "arcsinh": np.arcsinh, "arctanh": np.arctanh, "absolute": np.abs, "negative": np.negative, "fix": np.trunc}
for _name, _fn in _alias.items():
    row(_name, [call(unit(3))], _fn)
row("arccosh", [call(pos(3) + 1)], np.arccosh)
row("_trigamma", [call(pos(3))], lambda x: special.polygamma(1, x), grad=(), torch=None)
row("_nan_to_num", [call(np.array([1.0, np.nan, np.inf]), 0.0, 1.0, 2.0)], None, torch=None)
row("float_power.Tensor_Tensor", [call(pos(3), f(3))], np.float_power)
row("clip", [call(apart(3), -0.5, 0.5)], np.clip)
row("clip.Tensor", [call(apart(3), unit(3) - 1, unit(3) + 1)], np.clip)
row("subtract.Tensor multiply.Tensor divide.Tensor", [call(f(3), pos(3))], [np.subtract, np.multiply, np.divide])

# ---- derivatives of activations with branches ------------------------------------------------------------------------------
row("leaky_relu_backward", [call(*s.args, 0.2, False) for s in two(f, apart)[:4]], lambda g, x, slope, _: np.where(x > 0, g, g * slope))
row("softplus_backward", [call(*s.args, 2.0, 1.0) for s in two(f)[:4]], lambda g, x, beta, t: np.where(x * beta > t, g, g * special.expit(x * beta)))
row("elu_backward", [call(f(3), 0.5, 1.5, 2.0, False, apart(3)), call(f(2, 3), 1.0, 1.0, 1.0, True, apart(2, 3))],
    lambda g, alpha, scale, inner, is_result, x: g * np.where(x > 0, scale, inner * (x + alpha * scale) if is_result else inner * alpha * scale * np.exp(x * inner)))
row("hardtanh_backward", [call(*s.args, -0.5, 0.7) for s in two(f, apart)[:4]] + [fixed(np.ones(2), np.array([-0.5, 0.7]), -0.5, 0.7)],
    lambda g, x, lo, hi: np.where((x > lo) & (x < hi), g, 0))
row("hardsigmoid_backward", two(f, apart)[:4] + [fixed(np.ones(2), np.array([-3.0, 3.0]))], lambda g, x: np.where(np.abs(x) < 3, g / 6, 0), rtol=1e-7)
row("hardswish_backward", two(f, apart)[:4] + [fixed(np.ones(2), np.array([-3.0, 3.0]))], lambda g, x: g * np.where(x <= -3, 0, np.where(x < 3, x / 3 + 0.5, 1)))
row("mish_backward", two(f)[:4] + [fixed(np.ones(2), np.array([1e4, -1e4]))],
    lambda g, x: g * (np.tanh(np.logaddexp(0, x)) + x * special.expit(x) * (1 - np.tanh(np.logaddexp(0, x)) ** 2)))
row("logit_backward", [call(f(3), pos(3) / 3), call(f(3), pos(3) / 3, 0.1), fixed(np.ones(4), np.array([-1.0, 0.05, 0.95, 2.0]), 0.1)],
    lambda g, x, eps=None: np.where((x < (eps or 0)) | (x > 1 - (eps or 0)), np.nan if eps is None else 0.0, g / (x * (1 - x))))
row("remainder.Scalar_Tensor", [call(5.5, pos(3)), call(-7, i(3, low=1)), call(5.5, i(3, low=1))], np.remainder, rtol=1e-6)
row("true_divide.Scalar multiply.Scalar divide.Scalar subtract.Scalar", [call(f(3), 2.5), call(i(3), 2)], [np.divide, np.multiply, np.divide, np.subtract], rtol=1e-6)
