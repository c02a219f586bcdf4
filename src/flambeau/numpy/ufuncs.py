"""Elementwise functions. NumPy itself says in which dtype a ufunc computes (``ufunc.resolve_dtypes``); the ATen
operator computes it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ..base import dtypes
from ..core.operator import namespace
from ..core.tensor import Tensor
from .layout import kept
from .promotion import as_tensor, cast, dtype_of, is_tensor, number, numpy_dtype, result_dtype
from .table import OPERATORS, implements, into, later

__all__ = ["loop_dtypes", "ufunc"]

aten = namespace("aten")

_REAL = "?bhilqBHILQfd"
_COMPLEX = "FD"


def loop_dtypes(
    uf: np.ufunc, xs: Sequence[ArrayLike], dtype: DTypeLike | None = None, casting: str = "same_kind"
) -> tuple[list[np.dtype], np.dtype]:
    """(dtypes that the inputs are cast to, dtype of the result). TypeError, as in NumPy, when the ufunc has no loop
    for them."""
    kinds = [dtype_of(x) for x in xs]
    given = [d if isinstance(d, np.dtype) else np.dtype(bool) if type(d) is bool else type(d) for d in kinds]
    if all(isinstance(g, type) for g in given):
        given = [np.asarray(x).dtype for x in xs]
    if casting not in ("same_kind", "unsafe") and any(isinstance(g, type) for g in given):
        # NOTE: NumPy 2.4's resolve_dtypes crashes where it has to refuse to cast a Python number
        raise TypeError(f"np.{uf.__name__} of a Python number with casting={casting!r}")
    named = {} if dtype is None else {"signature": (*[None] * len(xs), numpy_dtype(dtype))}
    *ins, out = uf.resolve_dtypes((*given, None), casting=casting, **named)
    return ins, out


def _operand(x, dtype: np.dtype, tensor: bool):
    if is_tensor(x):
        return cast(x, dtype)
    if isinstance(x, (list, tuple, np.ndarray)):
        return as_tensor(x, dtype)
    return as_tensor(x, dtype) if tensor else number(x, dtype)


def ufunc(uf: np.ufunc, compute: Callable, *, kinds: str = _REAL + _COMPLEX, numbers: bool = False) -> Callable:
    """An implementation of ``uf``. ``compute(*operands)`` gets operands of the loop's dtypes. ``kinds``: type
    characters of loops that are covered. ``numbers``: the second operand may stay a Python number."""
    names = ["x1", "x2"] if uf.nin == 2 else ["x"]

    def run(
        xs: Sequence[ArrayLike],
        out: Tensor | None,
        where: ArrayLike,
        casting: str,
        order: str | None,
        dtype: DTypeLike,
        subok: bool,
    ) -> Tensor:
        if where is not True or order != "K" or subok is not True:
            raise TypeError(f"np.{uf.__name__} with where=, order= or subok=")
        xs = [as_tensor(x) if isinstance(x, (list, tuple)) else x for x in xs]
        ins, result = loop_dtypes(uf, xs, dtype, casting)
        if any(d.char not in kinds for d in ins):
            raise TypeError(f"np.{uf.__name__} in {', '.join(map(str, ins))}")
        operands = [_operand(x, d, not (numbers and k)) for k, (x, d) in enumerate(zip(xs, ins))]
        made = cast(compute(*operands), result)
        return kept(made, *operands) if out is None else into(out, made, casting)

    if uf.nin == 1:

        def impl(
            x: ArrayLike,
            /,
            out: Tensor | None = None,
            *,
            where: ArrayLike = True,
            casting: str = "same_kind",
            order: str | None = "K",
            dtype: DTypeLike | None = None,
            subok: bool = True,
        ) -> Tensor:
            return run((x,), out, where, casting, order, dtype, subok)
    else:

        def impl(
            x1: ArrayLike,
            x2: ArrayLike,
            /,
            out: Tensor | None = None,
            *,
            where: ArrayLike = True,
            casting: str = "same_kind",
            order: str | None = "K",
            dtype: DTypeLike | None = None,
            subok: bool = True,
        ) -> Tensor:
            return run((x1, x2), out, where, casting, order, dtype, subok)

    impl.__name__ = impl.__qualname__ = uf.__name__
    impl.__doc__ = f"np.{uf.__name__}({', '.join(names)}) on tensors."
    return implements(uf)(impl)


_FLOAT = "fd"
_INTS = "bhilqBHILQ"

# ---- one argument
# ------------------------------------------------------------------------------------------------------------

for _name, _aten in {
    "sin": "sin",
    "cos": "cos",
    "tan": "tan",
    "sinh": "sinh",
    "cosh": "cosh",
    "tanh": "tanh",
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "arcsinh": "asinh",
    "arccosh": "acosh",
    "arctanh": "atanh",
    "exp": "exp",
    "exp2": "exp2",
    "expm1": "expm1",
    "log": "log",
    "log2": "log2",
    "log10": "log10",
    "log1p": "log1p",
    "sqrt": "sqrt",
    "reciprocal": "reciprocal",
}.items():
    ufunc(getattr(np, _name), later(_aten), kinds=_FLOAT + _COMPLEX if _name in ("exp", "reciprocal") else _FLOAT)


def _rounding(name):
    packet = later(name)
    return lambda x: packet(x) if x.dtype.is_floating_point else x.clone()


for _name, _aten in {"floor": "floor", "ceil": "ceil", "trunc": "trunc", "rint": "round"}.items():
    ufunc(getattr(np, _name), _rounding(_aten), kinds=_REAL)


def _test(name, otherwise):
    packet = later(name)
    return lambda x: packet(x) if x.dtype.is_floating_point else aten.full_like(x, otherwise, dtype=dtypes.bool_)


for _name, _otherwise in {"isnan": False, "isinf": False, "isfinite": True}.items():
    ufunc(getattr(np, _name), _test(_name, _otherwise), kinds=_REAL)


def _sign(x):
    s = aten.sign(x)
    return aten.where(aten.isnan(x), x, s) if x.dtype.is_floating_point else s


negative = ufunc(np.negative, later("neg"))
positive = ufunc(np.positive, lambda x: x.clone())
absolute = ufunc(np.absolute, lambda x: x.clone() if x.dtype is dtypes.bool_ else aten.abs(x), kinds=_REAL + _COMPLEX)
ufunc(np.fabs, later("abs"), kinds=_FLOAT)
ufunc(np.sign, _sign, kinds=_REAL[1:])
ufunc(np.square, lambda x: aten.mul(x, x))
ufunc(np.deg2rad, lambda x: aten.mul(x, math.pi / 180), kinds=_FLOAT)
ufunc(np.radians, lambda x: aten.mul(x, math.pi / 180), kinds=_FLOAT)
ufunc(np.rad2deg, lambda x: aten.mul(x, 180 / math.pi), kinds=_FLOAT)
ufunc(np.degrees, lambda x: aten.mul(x, 180 / math.pi), kinds=_FLOAT)
invert = ufunc(
    np.invert, lambda x: aten.logical_not(x) if x.dtype is dtypes.bool_ else aten.bitwise_not(x), kinds="?" + _INTS
)

# ---- two arguments
# -----------------------------------------------------------------------------------------------------------


def _divisor_is_safe(x) -> bool:
    """Integer division by zero and of the smallest integer by -1 have their own rules in NumPy: only known, positive
    divisors are taken."""
    return not is_tensor(x) and not isinstance(x, (list, tuple, np.ndarray)) and x > 0


def _whole(name):
    """floor_divide, remainder, fmod: floats, and integers by a known positive number."""
    packet = later(name)

    def compute(a: Tensor, b: ArrayLike) -> Tensor:
        if not a.dtype.is_floating_point and not _divisor_is_safe(b):
            raise TypeError(f"np.{name} of integers by something that may be zero")
        return packet(a, b)

    return compute


def _binary(uf, name, *, numbers=True, **kw):
    return ufunc(uf, later(name), numbers=numbers, **kw)


add = _binary(np.add, "add")
subtract = _binary(np.subtract, "sub", kinds=(_REAL + _COMPLEX).replace("?", ""))
multiply = _binary(np.multiply, "mul")
divide = _binary(np.divide, "div", kinds=_FLOAT + _COMPLEX)
floor_divide = ufunc(np.floor_divide, _whole("floor_divide"), kinds=_INTS + _FLOAT, numbers=True)
remainder = ufunc(np.remainder, _whole("remainder"), kinds=_INTS + _FLOAT, numbers=True)
ufunc(np.fmod, _whole("fmod"), kinds=_INTS + _FLOAT, numbers=True)


def _power(a, b):
    if a.dtype.is_floating_point:
        return aten.pow(a, b)
    if is_tensor(b) or not 0 <= b <= 64:
        raise TypeError("np.power of integers by something that may be negative")
    out, base = None, a
    while b:
        if b & 1:
            out = base if out is None else aten.mul(out, base)
        b >>= 1
        if b:
            base = aten.mul(base, base)
    return aten.ones_like(a) if out is None else out.clone() if out is a else out


power = ufunc(np.power, _power, kinds=_INTS + _FLOAT, numbers=True)
implements(np.float_power)(
    lambda x1, x2, /: power(
        cast(_real_only(x1), np.float64), cast(_real_only(x2), np.float64) if is_tensor(x2) else float(x2)
    )
)

maximum, minimum = (
    _binary(np.maximum, "maximum", numbers=False, kinds=_REAL),
    _binary(np.minimum, "minimum", numbers=False, kinds=_REAL),
)


def _ignoring_nan(name):
    packet = later(name)

    def compute(a: Tensor, b: ArrayLike) -> Tensor:
        if not a.dtype.is_floating_point:
            return packet(a, b)
        return aten.where(aten.isnan(a), b, aten.where(aten.isnan(b), a, packet(a, b)))

    return compute


ufunc(np.fmax, _ignoring_nan("maximum"), kinds=_REAL)
ufunc(np.fmin, _ignoring_nan("minimum"), kinds=_REAL)
_binary(np.arctan2, "atan2", numbers=False, kinds=_FLOAT)


def _compare(uf, name):
    packet = later(name)

    def compute(a: Tensor, b: ArrayLike) -> Tensor:
        if is_tensor(b) and a.dtype is not b.dtype:  # signed with unsigned 64-bit: NumPy compares exactly
            raise TypeError(f"np.{uf.__name__} of {dtype_of(a)} and {dtype_of(b)}")
        return packet(a, b)

    return ufunc(uf, compute, kinds=_REAL if name not in ("eq", "ne") else _REAL + _COMPLEX, numbers=True)


equal, not_equal = _compare(np.equal, "eq"), _compare(np.not_equal, "ne")
less, less_equal = _compare(np.less, "lt"), _compare(np.less_equal, "le")
greater, greater_equal = _compare(np.greater, "gt"), _compare(np.greater_equal, "ge")


def _logical(uf, name):
    packet = later(name)

    def compute(*xs) -> Tensor:
        return packet(*(cast(x, np.bool_) for x in xs))

    return ufunc(uf, compute, kinds=_REAL)


logical_and, logical_or = _logical(np.logical_and, "logical_and"), _logical(np.logical_or, "logical_or")
_logical(np.logical_xor, "logical_xor")
_logical(np.logical_not, "logical_not")
bitwise_and = _binary(np.bitwise_and, "bitwise_and", numbers=False, kinds="?" + _INTS)
bitwise_or = _binary(np.bitwise_or, "bitwise_or", numbers=False, kinds="?" + _INTS)
bitwise_xor = _binary(np.bitwise_xor, "bitwise_xor", numbers=False, kinds="?" + _INTS)


OPERATORS.update(
    {
        "eq": equal,
        "ne": not_equal,
        "lt": less,
        "le": less_equal,
        "gt": greater,
        "ge": greater_equal,
        "neg": negative,
        "pos": positive,
        "abs": absolute,
        "invert": invert,
    }
)

# ---- others that go element by element
# ---------------------------------------------------------------------------------------


@implements(np.clip)
def clip(
    a: ArrayLike,
    a_min: Any = np._NoValue,
    a_max: Any = np._NoValue,
    out: Tensor | None = None,
    *,
    min: Any = np._NoValue,
    max: Any = np._NoValue,
) -> Tensor:
    """np.clip: both bounds by position, or any by ``min`` and ``max``."""
    if a_min is np._NoValue and a_max is np._NoValue:
        return _clip(a, *(None if b is np._NoValue else b for b in (min, max)), out)
    if any(b is np._NoValue for b in (a_min, a_max)) or not (min is np._NoValue and max is np._NoValue):
        raise TypeError("np.clip with one bound by position, or a bound given twice")
    return _clip(a, a_min, a_max, out)


@implements(method="clip")
def _clip(a, min=None, max=None, out=None):
    """Bounds take part in promotion."""
    low, high = min, max
    x = as_tensor(a)
    bounds = [b for b in (low, high) if b is not None]
    if not bounds and dtype_of(x).kind == "b":
        raise TypeError("np.clip of booleans without bounds")
    dtype = result_dtype(x, *bounds)
    x = cast(x, dtype)
    for b, packet in ((low, maximum), (high, minimum)):
        if b is not None:
            x = packet(
                x, as_tensor(b, dtype) if is_tensor(b) or not np.isscalar(b) else as_tensor(number(b, dtype), dtype)
            )
    return into(out, x if bounds else x.clone(), "same_kind")


@implements(np.round, np.around, method="round")
def round_(a: ArrayLike, decimals: int = 0, out: Tensor | None = None) -> Tensor:
    """np.round: scaled by a power of ten, rounded half to even, scaled back."""
    x = as_tensor(a)
    d = dtype_of(x)
    if d.kind in "iu" and decimals >= 0:
        return into(out, x.clone())
    if d.char not in _FLOAT:
        raise TypeError(f"np.round of {d}")
    if decimals == 0:
        return into(out, aten.round(x))
    scale = float(10 ** abs(decimals))
    return into(
        out,
        aten.div(aten.round(aten.mul(x, scale)), scale)
        if decimals > 0
        else aten.mul(aten.round(aten.div(x, scale)), scale),
    )


@implements(np.where, gives_array=True)
def where(condition: ArrayLike, x: ArrayLike, y: ArrayLike, /) -> Tensor:
    """np.where with three arguments; with one its shape depends on the data."""
    if x is None or y is None:
        raise TypeError("np.where of objects")
    dtype = result_dtype(x, y)
    parts = cast(as_tensor(condition), np.bool_), as_tensor(x, dtype), as_tensor(y, dtype)
    return kept(aten.where.self(*parts), *parts)


@implements(np.nan_to_num)
def nan_to_num(
    x: ArrayLike, copy: bool | None = True, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """np.nan_to_num of a copy."""
    t = as_tensor(x)
    d = dtype_of(t)
    if copy is None:
        raise TypeError("np.nan_to_num with copy=None")
    if d.kind in "biu" and (copy or is_tensor(x)):
        return t.clone() if copy else t
    if d.char not in _FLOAT or not copy:
        raise TypeError("np.nan_to_num in place, or of complex or half precision numbers")
    info = np.finfo(d)
    high, low = (info.max if posinf is None else posinf), (info.min if neginf is None else neginf)
    out = aten.where(aten.isnan(t), aten.full_like(t, float(nan)), t)  # which may be an infinity: that one stays
    out = aten.where(aten.eq(t, math.inf), aten.full_like(t, float(high)), out)
    return aten.where(aten.eq(t, -math.inf), aten.full_like(t, float(low)), out)


def _real_only(x):
    if is_tensor(x) and x.dtype.is_complex:
        raise TypeError("real and imaginary parts of complex tensors")
    return as_tensor(x)


@implements(np.real, attribute="real", gives_array=True, keeps_scalars=True)
def real(val: ArrayLike) -> Tensor:
    """The array itself, or a view of the real parts."""
    if not is_tensor(val):
        raise TypeError("np.real of a number, which may be Python's")
    return aten.real(as_tensor(val))


@implements(
    np.imag,
    attribute="imag",
    gives_array=True,
    keeps_scalars=True,
    read_only=lambda val, *_: not (is_tensor(val) and val.dtype.is_complex),
)
def imag(val: ArrayLike) -> Tensor:
    """A view of the imaginary parts; zeros for real numbers."""
    if not is_tensor(val):
        raise TypeError("np.imag of a number, which may be Python's")
    t = as_tensor(val)
    return aten.imag(t) if t.dtype.is_complex else aten.zeros_like(t)


ufunc(
    np.conjugate,
    lambda x: aten.conj_physical(x) if x.dtype.is_complex else x.clone(),
    kinds=(_REAL + _COMPLEX).replace("?", ""),
)


def _conj(x, out=None, /):
    """ndarray.conj: of real numbers the array itself."""
    if out is not None:
        raise TypeError("ndarray.conj into an array")
    return aten.conj_physical(x) if x.dtype.is_complex else x


for _name in ("conj", "conjugate"):
    implements(method=_name, gives_array=lambda x: not x.dtype.is_complex)(_conj)
