"""The scalar table: the operations that bodies are written in.

Columns: name, arity, kind, NumPy function, LLVM by type letter, vector-Jacobian product, ATen name where it differs.
Conventions that must not change silently: NaN propagates through maximum and minimum; at a tie their gradient is halved, as in
PyTorch, and whole on both sides at a nan; abs has derivative 0 at 0; where and comparisons are not differentiated in their condition. A cotangent
that is 0 by selection is written ``where(c, 0.0, ...)`` outermost: :func:`..core.body.vjp` keeps it from meeting an infinity further down.
A row uses its result ``r`` only where PyTorch saves the result for the backward: what is saved is what may not be written afterwards.

The LLVM column names an operation (``fadd``), a comparison (``fcmp olt``), an intrinsic (``llvm.sqrt``), or, with ``@`` in front, an expansion of
inductor/expansions: transcendental functions are polynomials there, so that LLVM can vectorise them.
"""

import math

import numpy as np

from ..base.elements import element_function
from ..core.body import real_only, scalar


def _special(name):
    """A SciPy special function, imported at its first call: scipy.special takes longer to import than flambeau does."""

    def call(x, *rest):
        import scipy.special

        out = getattr(scipy.special, name)(x, *rest)
        return out.astype(x.dtype, copy=False) if isinstance(x, np.ndarray) else out

    def ufunc():
        import scipy.special

        return getattr(scipy.special, name)

    call.ufunc = ufunc  # for native loops on floating operands
    return call


def _where(c, a, b):
    return np.where(c, a, b)


def _rsqrt(x):
    return 1 / np.sqrt(x)


_rsqrt.body = lambda s, x: s.div(1.0, s.sqrt(x))


_sigmoid_of_reals = element_function("sigmoid")


def _sigmoid(x):
    if getattr(x, "dtype", np.dtype(float)).kind == "c":
        return np.reciprocal(np.exp(np.negative(x)) + 1.0)
    return _sigmoid_of_reals(x)


_sigmoid.ufunc = lambda: _sigmoid_of_reals


_log1p_of_reals = element_function("log1p", np.log1p)


def _log1p(x):
    """Of complex numbers near 0 from x (x + 2) + y**2, which is what |1 + z|**2 is above 1; NumPy takes the logarithm of |1 + z|."""
    if getattr(x, "dtype", np.dtype(float)).kind != "c":
        return _log1p_of_reals(x)
    out, re, im = np.asarray(np.log1p(x)), np.real(x), np.imag(x)
    near = (abs(re) < 0.5) & (abs(im) < 0.5)
    out.real = np.where(near, np.log1p(np.where(near, re * (re + 2) + im * im, 0)) / 2, out.real)
    return out


_log1p.ufunc = lambda: _log1p_of_reals


def _sign(x):
    """0 at nan, as in PyTorch."""
    kind = getattr(x, "dtype", np.dtype(float)).kind
    if kind == "b":
        return np.array(x)
    out = np.sign(x)
    return out if kind in "iuc" else np.where(np.isnan(out), np.zeros((), out.dtype), out)


def _no_sign(s, x):
    """0 in the dtype of ``x``, also where that is nan."""
    return s.fmin(s.abs(x), 0.0)


_sign.of_reals = lambda s, x: s.where(s.gt(x, 0.0), 1.0, s.where(s.lt(x, 0.0), -1.0, _no_sign(s, x)))


def _pow(x, y):
    """Integers to negative powers are 0 unless the base is 1 or -1, as in C; NumPy refuses them."""
    if getattr(x, "dtype", np.dtype(type(x))).kind in "iu" and getattr(y, "dtype", np.dtype(int)).kind in "i":
        y = np.asarray(y)
        negative = y < 0
        if negative.any():
            odd = np.where(x == -1, 1 - 2 * (y & 1), 0)
            return np.where(negative, np.where(x == 1, 1, odd), np.power(x, np.where(negative, 0, y))).astype(np.result_type(x, y), copy=False)
    out = np.power(x, y)
    if getattr(out, "dtype", np.dtype(int)).kind == "f":
        # NOTE: NumPy's vectorised float32 power gives nan for -inf to a fraction, depending on the position.
        wrong = np.isnan(out) & (np.asarray(x) == -np.inf) & ~np.isnan(y)
        if wrong.any():
            out = np.where(wrong, np.where(np.asarray(y) > 0, np.inf, 0), out).astype(out.dtype)
    return out


def _pow_of_reals(s, x, y):
    out = s.power(x, y)
    if isinstance(x, float | int) and x != -math.inf:
        return out
    wrong = s.logical_and(s.logical_and(s.isnan(out), s.eq(x, -math.inf)), s.eq(y, y))
    return s.where(wrong, s.where(s.gt(y, 0.0), math.inf, s.abs(s.mul(out, 0.0) if isinstance(y, float | int) else _no_sign(s, y))), out)


_pow.of_reals = _pow_of_reals


def _checked(fn, of_reals=None):
    """``fn``, with an error for integers divided by zero, which NumPy makes 0; ``of_reals``: the function of floating numbers, where it is another."""

    def call(x, y):
        if getattr(y, "dtype", np.dtype(type(y))).kind in "iub" and getattr(x, "dtype", np.dtype(type(x))).kind in "iub" and not np.all(y):
            raise RuntimeError("ZeroDivisionError")
        if of_reals is not None and "f" in (getattr(x, "dtype", np.dtype(type(x))).kind, getattr(y, "dtype", np.dtype(type(y))).kind):
            return of_reals(x, y)
        return fn(x, y)

    if isinstance(fn, np.ufunc):
        call.ufunc = lambda: of_reals or fn
    call.refuses_zero = True
    return call


@_checked
def _truncdiv(x, y):
    if getattr(x, "dtype", np.dtype(type(x))).kind in "iu" and getattr(y, "dtype", np.dtype(type(y))).kind in "iu":
        q, r = np.divmod(x, y)
        return q + ((r != 0) & ((np.asarray(x) < 0) != (np.asarray(y) < 0)))
    return np.trunc(np.true_divide(x, y))


def _unless(s, loses, ct, x, y):
    """Cotangent of one side of maximum or minimum: nothing where it ``loses``, half at a tie, all of it where either is nan."""
    return s.where(loses, 0.0, s.where(s.eq(x, y), s.mul(ct, 0.5), ct))


def _pow_exponent(s, ct, x, y, r):
    """ct x**y log(x), but 0 for 0 to a power that isn't negative."""
    slope = s.mul(ct, s.mul(r, s.log(x)))
    if isinstance(x, (int, float)):
        return slope if x else s.where(s.ge(y, 0.0), 0.0, slope)
    return s.where(s.logical_and(s.eq(x, 0.0), s.ge(y, 0.0)), 0.0, slope)


def _cast(x, dtype):
    return np.asarray(x).astype(dtype)


def _round(x):
    return np.round(x)


_round.ufunc = lambda: np.rint

_TWO_OVER_SQRT_PI = 2 / math.sqrt(math.pi)

# --- arithmetic -------------------------------------------------------------------------------------------------------
scalar("add", 2, "arith", np.add, {"f": "fadd", "i": "add", "b": "or"},
       lambda s, ct, x, y, r: (ct, ct))
scalar("sub", 2, "arith", np.subtract, {"f": "fsub", "i": "sub"},
       lambda s, ct, x, y, r: (ct, s.neg(ct)))
scalar("mul", 2, "arith", np.multiply, {"f": "fmul", "i": "mul", "b": "and"},
       lambda s, ct, x, y, r: (s.mul(ct, y), s.mul(ct, x)))
scalar("div", 2, "float", np.true_divide, {"f": "fdiv"},
       lambda s, ct, x, y, r: (s.div(ct, y), s.mul(s.neg(ct), s.div(s.div(x, y), y))))
scalar("neg", 1, "arith", np.negative, {"f": "fneg", "i": "@negative_int"}, lambda s, ct, x, r: (s.neg(ct),))
scalar("abs", 1, "arith", np.abs, {"f": "llvm.fabs", "i": "@abs_int", "b": "@copy"},
       lambda s, ct, x, r: (s.mul(ct, s.sgn(x)),))
scalar("sgn", 1, "arith", _sign, {"f": "@sign", "i": "@sign_int", "b": "@copy"}, lambda s, ct, x, r: (None,))
scalar("sign", 1, "arith", _sign, {"f": "@sign", "i": "@sign_int", "b": "@copy"}, lambda s, ct, x, r: (None,))
scalar("maximum", 2, "arith", np.maximum, {"f": "@maximum", "i": "@maximum_int", "b": "or"},
       lambda s, ct, x, y, r: (_unless(s, s.lt(x, y), ct, x, y), _unless(s, s.gt(x, y), ct, x, y)))
scalar("minimum", 2, "arith", np.minimum, {"f": "@minimum", "i": "@minimum_int", "b": "and"},
       lambda s, ct, x, y, r: (_unless(s, s.gt(x, y), ct, x, y), _unless(s, s.lt(x, y), ct, x, y)))
scalar("floordiv", 2, "arith", _checked(np.floor_divide), {"f": "@floordiv", "i": "@floordiv_int"},
       aten="floor_divide")
scalar("truncdiv", 2, "arith", _truncdiv, {"f": "@truncdiv", "i": "@truncdiv_int"}, aten="floor_divide",
       doc="quotient rounded towards zero")
scalar("remainder", 2, "arith", _checked(np.remainder, element_function("remainder", np.remainder)), {"f": "@remainder", "i": "@remainder_int"},
       lambda s, ct, x, y, r: (ct, s.neg(s.mul(ct, s.floordiv(x, y)))))
scalar("fmod", 2, "arith", _checked(np.fmod, element_function("fmod", np.fmod)), {"f": "@fmod", "i": "@fmod_int"},
       lambda s, ct, x, y, r: (ct, s.neg(s.mul(ct, s.trunc(s.div(x, y))))))
scalar("power", 2, "float", np.power, {})  # NumPy's alone
scalar("pow", 2, "arith", _pow, {"f": "@pow", "i": "@pow_int"},
       lambda s, ct, x, y, r: (s.where(s.eq(y, 0.0), 0.0, s.mul(ct, s.mul(y, s.pow(x, s.sub(y, 1.0))))), _pow_exponent(s, ct, x, y, r)))

# --- floating point ---------------------------------------------------------------------------------------------------
scalar("reciprocal", 1, "float", np.reciprocal, {"f": "@reciprocal"}, lambda s, ct, x, r: (s.neg(s.mul(ct, s.mul(r, r))),))
scalar("exp", 1, "float", element_function("exp", np.exp), {"f": "@exp"}, lambda s, ct, x, r: (s.mul(ct, r),))
scalar("exp2", 1, "float", element_function("exp2", np.exp2), {"f": "@exp2"}, lambda s, ct, x, r: (s.mul(s.mul(ct, r), math.log(2)),))
scalar("expm1", 1, "float", element_function("expm1", np.expm1), {"f": "@expm1"}, lambda s, ct, x, r: (s.mul(ct, s.add(r, 1.0)),))
scalar("log", 1, "float", element_function("log", np.log), {"f": "@log"}, lambda s, ct, x, r: (s.div(ct, x),))
scalar("log1p", 1, "float", _log1p, {"f": "@log1p"}, lambda s, ct, x, r: (s.div(ct, s.add(x, 1.0)),))
scalar("log2", 1, "float", element_function("log2", np.log2), {"f": "@log2"}, lambda s, ct, x, r: (s.div(ct, s.mul(x, math.log(2))),))
scalar("log10", 1, "float", element_function("log10", np.log10), {"f": "@log10"}, lambda s, ct, x, r: (s.div(ct, s.mul(x, math.log(10))),))
scalar("sqrt", 1, "float", np.sqrt, {"f": "llvm.sqrt"}, lambda s, ct, x, r: (s.div(ct, s.mul(2.0, r)),))
scalar("rsqrt", 1, "float", _rsqrt, {"f": "@rsqrt"}, lambda s, ct, x, r: (s.mul(s.mul(-0.5, ct), s.mul(r, s.mul(r, r))),))
scalar("sin", 1, "float", element_function("sin", np.sin), {"f": "@sin"}, lambda s, ct, x, r: (s.mul(ct, s.cos(x)),))
scalar("cos", 1, "float", element_function("cos", np.cos), {"f": "@cos"}, lambda s, ct, x, r: (s.mul(ct, s.neg(s.sin(x))),))
scalar("tan", 1, "float", element_function("tan", np.tan), {"f": "@tan"}, lambda s, ct, x, r: (s.mul(ct, s.add(1.0, s.mul(r, r))),))
scalar("tanh", 1, "float", element_function("tanh", np.tanh), {"f": "@tanh"}, lambda s, ct, x, r: (s.mul(ct, s.sub(1.0, s.mul(r, r))),))
scalar("sigmoid", 1, "float", _sigmoid, {"f": "@sigmoid"}, lambda s, ct, x, r: (s.mul(ct, s.mul(s.sub(1.0, r), r)),))
scalar("erf", 1, "float", element_function("erf"), {"f": "@erf"},
       lambda s, ct, x, r: (s.mul(ct, s.mul(_TWO_OVER_SQRT_PI, s.exp(s.neg(s.mul(x, x))))),))
scalar("floor", 1, "arith", np.floor, {"f": "llvm.floor", "i": "@copy"}, lambda s, ct, x, r: (None,))
scalar("ceil", 1, "arith", np.ceil, {"f": "llvm.ceil", "i": "@copy"}, lambda s, ct, x, r: (None,))
scalar("trunc", 1, "arith", np.trunc, {"f": "llvm.trunc", "i": "@copy"}, lambda s, ct, x, r: (None,))
scalar("round", 1, "arith", _round, {"f": "llvm.roundeven", "i": "@copy"}, lambda s, ct, x, r: (None,))

# --- comparison, logic, bits ------------------------------------------------------------------------------------------
_NONE2 = lambda s, ct, x, y, r: (None, None)  # noqa: E731
for _name, _np, _f, _i in [("eq", np.equal, "oeq", "eq"), ("ne", np.not_equal, "une", "ne"), ("lt", np.less, "olt", "slt"),
                           ("le", np.less_equal, "ole", "sle"), ("gt", np.greater, "ogt", "sgt"), ("ge", np.greater_equal, "oge", "sge")]:
    scalar(_name, 2, "compare", _np, {"f": f"fcmp {_f}", "i": f"icmp {_i}", "b": f"icmp {_i.replace('s', 'u')}",
                                      "u": f"icmp {_i.replace('s', 'u')}"}, _NONE2)
scalar("isnan", 1, "compare", np.isnan, {"f": "@isnan", "i": "@false", "b": "@false"}, lambda s, ct, x, r: (None,))
scalar("logical_and", 2, "logic", np.logical_and, {"b": "and"}, _NONE2)
scalar("logical_or", 2, "logic", np.logical_or, {"b": "or"}, _NONE2)
scalar("logical_xor", 2, "logic", np.logical_xor, {"b": "xor"}, _NONE2)
scalar("logical_not", 1, "logic", np.logical_not, {"b": "@logical_not"}, lambda s, ct, x, r: (None,))
scalar("bitwise_and", 2, "bit", np.bitwise_and, {"i": "and", "b": "and"}, _NONE2)
scalar("bitwise_or", 2, "bit", np.bitwise_or, {"i": "or", "b": "or"}, _NONE2)
scalar("bitwise_xor", 2, "bit", np.bitwise_xor, {"i": "xor", "b": "xor"}, _NONE2)
scalar("bitwise_not", 1, "bit", np.invert, {"i": "@bitwise_not", "b": "@logical_not"}, lambda s, ct, x, r: (None,))
scalar("where", 3, "select", _where, {"*": "select"},
       lambda s, ct, c, a, b, r: (None, s.where(c, ct, 0.0), s.where(c, 0.0, ct)), doc="condition is bool; the branches share a dtype")
scalar("cast", 2, "cast", _cast, {"*": "@cast"}, lambda s, ct, x, dtype, r: (ct, None), aten="_to_copy",
       doc="second operand is a flambeau dtype (literal)")

real_only("sign maximum minimum floordiv truncdiv remainder fmod erf floor ceil trunc round lt le gt ge bitwise_and bitwise_or bitwise_xor bitwise_not")
