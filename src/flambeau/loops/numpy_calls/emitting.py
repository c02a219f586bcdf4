"""The call, as the kernel writes it."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from ...base.quiet import errstate
from .. import arrays
from ..emitter import Emitter
from ..values import ArrayView, Declined, Expression, Known, Scalar, Tuple, memory_type
from .description import ArgumentKind, CallDescription
from .performing import results_of
from .result_sizes import FIXED, rule_of

__all__ = ["METHODS", "called"]

METHODS = {
    "argsort": np.argsort, "cumsum": np.cumsum, "cumprod": np.cumprod, "std": np.std, "var": np.var, "round": np.round, "trace": np.trace,
    "searchsorted": np.searchsorted, "reshape": np.reshape, "ravel": np.ravel, "flatten": np.ndarray.flatten,
}  # fmt: skip
"""Methods of arrays that are these functions of them."""


class ResultType(NamedTuple):
    """``weak``: whether it is Python's number."""

    dtype: np.dtype
    weak: bool
    ndim: int


def called(e: Emitter, f, args: list, kwargs: dict, place: str, rerunnable: bool):
    """The results of ``f(*args, **kwargs)``: arrays of the loop's own, and numbers. ``rerunnable``: all may be done again
    plainly where NumPy raises."""
    if e.noting:
        raise Declined(f"a gradient is asked for through np.{f.__name__}")
    inputs: list[ArrayView] = []
    given = [_argument(e, a, inputs, f"{place} {k}") for k, a in enumerate(args)]
    options = {name: _constant(v) for name, v in kwargs.items()}
    rule = next((rule for fixed, rule in FIXED.get(f, ()) if fixed == options), None) or rule_of(f)
    try:
        sizes = rule(e, [value for _, value in given], options)
    except (IndexError, ValueError, TypeError) as reason:
        raise Declined(f"np.{f.__name__} with these arguments ({reason})") from None
    except Declined as reason:
        raise Declined(f"np.{f.__name__} with {reason}") from None
    told = tuple((kind, value if kind is ArgumentKind.LITERAL else None) for kind, value in given)
    call = CallDescription(f, told, options, len(sizes)).printed()
    types = _result_types(call, tuple((x.dtype.str, x.ndim) for x in inputs))
    if any(len(n) != t.ndim for n, t in zip(sizes, types, strict=True)):
        raise Declined(f"np.{f.__name__} gives other arrays")
    outs = [arrays.temporary(e, t.dtype, n, f"{place}.{k}") for k, (n, t) in enumerate(zip(sizes, types))]
    for view in inputs:
        e.touch(view)
    e.python(call, rerunnable, [*inputs, *outs])
    made = [_result(e, out, t.weak) for out, t in zip(outs, types, strict=True)]
    return made[0] if len(made) == 1 else Tuple(tuple(made))


def _argument(e: Emitter, x, inputs: list[ArrayView], place: str) -> tuple[ArgumentKind, Any]:
    """How it is given, and the view, the number or the object that is known."""
    if isinstance(x, Scalar) and x.const is None:
        if x.weak is None or (x.weak and x.kind == "b"):
            raise Declined("a number of which it isn't known whether it is Python's")
        out = arrays.temporary(e, x.dtype, (), place)
        e.store(arrays.address(e, out, ()), x.dtype, x.v)
        inputs.append(out)
        return ArgumentKind.PYTHON_NUMBER if x.weak else ArgumentKind.NUMPY_NUMBER, x
    if isinstance(x, Expression):
        out = arrays.temporary(e, x.dtype, x.sizes, place)
        arrays.fill(e, out, x)
        x = out
    if isinstance(x, ArrayView):
        inputs.append(x)
        return ArgumentKind.ARRAY, x
    return ArgumentKind.LITERAL, _constant(x)


def _constant(x):
    """The object that a value is known to be, one that its text says."""
    if isinstance(x, Tuple):
        return tuple(map(_constant, x.items))
    value = x.value if isinstance(x, Known) else getattr(x, "const", None)
    if isinstance(value, np.generic) or (value is None and not isinstance(x, Known)) or _is_unsaid(value):
        raise Declined("an argument that isn't known")
    return value


def _is_unsaid(value) -> bool:
    return not isinstance(value, bool | int | float | str | type(None)) or (
        isinstance(value, float) and not math.isfinite(value)
    )


def _result(e: Emitter, out: ArrayView, weak: bool):
    if out.ndim:
        return out
    return Scalar(out.dtype, weak, arrays.load(e, out, ()).v)


@functools.lru_cache(1024)
def _result_types(call: str, inputs: tuple[tuple[str, int], ...]) -> list[ResultType]:
    """Of the call on small arrays of these dtypes and numbers of dimensions."""
    made = []
    for dtype, ndim in inputs:
        increasing = np.broadcast_to(np.arange(1, 4), (3,) * ndim) if ndim else 1
        made.append(np.array(np.eye(3) * 4 + 1 if ndim == 2 else increasing, dtype=dtype))
    try:
        with errstate(all="ignore"):
            results = results_of(call, made)
    except Exception as reason:
        raise Declined(f"what {call} gives can't be told ({reason})") from None
    out = []
    for r in results:
        a = np.asarray(r)
        if not isinstance(r, np.ndarray | np.generic | bool | int | float):
            raise Declined(f"{call} gives no arrays")
        memory_type(a.dtype)
        out.append(ResultType(a.dtype, not isinstance(r, np.ndarray | np.generic), a.ndim))
    return out
