"""What a native loop leaves to NumPy: calls of functions that there is no code for here (linear algebra, transforms, sorting, statistics, other
ufuncs).

The kernel calls Python in the middle of its run (``flb_loop_python`` of csrc/runtime/loop_call.c) with the text of the call and the arrays that
are its operands and results, in the loop's own memory. The sizes of the results follow from those of the operands by :data:`RULES`, the dtypes
are those of the same call on small arrays. Where NumPy raises, the loop ends, and the function runs plainly where that is possible.
"""

from __future__ import annotations

import ast
import functools
import importlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..base.numpy_kernels import served
from . import arrays, containers
from .emitter import Emitter
from .values import ArrayView, Declined, Expression, Known, Scalar, Size, Tuple, memory_type

__all__ = ["METHODS", "called", "perform", "rule_of"]

Sizes = tuple[Size, ...]
Rule = Callable[[Emitter, list, dict], list[Sizes]]
"""(emitter, positional arguments, keyword arguments) -> the sizes of each result. Arrays are there as views, numbers as Scalars, all else
as the object that it is."""


# ---- sizes of results ------------------------------------------------------------------------------------------------------


def _sizes(x) -> Sizes:
    if isinstance(x, ArrayView):
        return x.sizes
    if isinstance(x, Scalar):
        return ()
    raise Declined("an argument that isn't an array or a number")


def _like(k: int = 0, least: int = 0) -> Rule:
    """As argument ``k``, which has ``least`` dimensions or more."""

    def rule(e, args, options):
        sizes = _sizes(args[k])
        if len(sizes) < least:
            raise Declined("an argument of fewer dimensions")
        return [sizes]

    return rule


def _matrix(*results: Callable[[Emitter, Size, Size], Sizes], fixed: dict | None = None) -> Rule:
    """Of one matrix with ``m`` rows and ``n`` columns; ``fixed``: the keyword arguments that these results take."""

    def rule(e, args, options):
        sizes = _sizes(args[0])
        if len(sizes) != 2 or len(args) != 1 or options != (fixed or {}):
            raise Declined("other arguments than one matrix")
        return [result(e, *sizes) for result in results]

    return rule


def _of_numbers(e, args, options):
    return [()]


def _solved(e, args, options):
    a, b = map(_sizes, args)
    if len(a) != 2 or len(b) not in (1, 2):
        raise Declined("several systems at once")
    return [b]


def _reduced(e, args, options):
    """``f(x, ..., axis=None)`` of numbers beside the array."""
    sizes, axis = _sizes(args[0]), options.get("axis")
    if (
        any(isinstance(a, ArrayView) for a in args[1:])
        or options.get("keepdims")
        or type(axis) not in (int, type(None))
    ):
        raise Declined("these arguments")
    if axis is None:
        return [()]
    if not -len(sizes) <= axis < len(sizes):
        raise Declined(f"axis {axis} is out of bounds")
    axis %= len(sizes)
    return [(*sizes[:axis], *sizes[axis + 1 :])]


def _along(e, args, options):
    """As the array, where it has one dimension or an axis is given."""
    sizes = _sizes(args[0])
    if len(sizes) != 1 and type(options.get("axis")) is not int:
        raise Declined("several dimensions without an axis")
    return [sizes]


def _transformed(e, args, options):
    if len(args) != 1 or options.keys() - {"norm", "axis"}:
        raise Declined("a number of points")
    return _like(0, 1)(e, args, options)


def _half(e, args, options):
    if len(args) != 1 or options:
        raise Declined("a number of points")
    *outer, n = _sizes(args[0])
    return [(*outer, e.add(e.op("sdiv", n, 2), 1))]


def _doubled(e, args, options):
    if len(args) != 1 or options:
        raise Declined("a number of points")
    *outer, n = _sizes(args[0])
    return [(*outer, e.larger(e.mul(e.sub(n, 1), 2), 0))]


def _convolved(default: str) -> Rule:
    def rule(e, args, options):
        a, b, *mode = args
        mode = mode[0] if mode else options.get("mode", default)
        (n,), (m,) = _sizes(a), _sizes(b)
        most, least = e.larger(n, m), e.smaller(n, m)
        if mode == "full":
            return [(e.sub(e.add(n, m), 1),)]
        if mode == "same":
            return [(most,)]
        if mode == "valid":
            return [(e.add(e.sub(most, least), 1),)]
        raise Declined(f"the mode {mode!r}")

    return rule


def _histogram(e, args, options):
    bins = args[1] if len(args) > 1 else options.get("bins", 10)
    if type(bins) is not int or bins < 1:
        raise Declined("bins that aren't a known number")
    return [(bins,), (bins + 1,)]


def _linspace(e, args, options):
    n = args[2] if len(args) > 2 else options.get("num", 50)
    if type(n) is not int or n < 0 or _sizes(args[0]) or _sizes(args[1]):
        raise Declined("a number of points that isn't known")
    return [(n,)]


def _diagonal(e, args, options):
    sizes = _sizes(args[0])
    if len(args) != 1 or options:
        raise Declined("another diagonal")
    return [(sizes[0], sizes[0])] if len(sizes) == 1 else [(e.smaller(*sizes),)]


def _kronecker(e, args, options):
    a, b = map(_sizes, args)
    if len(a) != len(b):
        raise Declined("arrays of different numbers of dimensions")
    return [tuple(e.mul(n, m) for n, m in zip(a, b))]


def _einsum(e, args, options):
    text, *operands = args
    if type(text) is not str or options or "." in text:
        raise Declined("these subscripts")
    given, arrow, out = text.replace(" ", "").partition("->")
    parts = given.split(",")
    if not arrow:
        letters = given.replace(",", "")
        out = "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    sizes: dict[str, Size] = {}
    for part, x in zip(parts, operands, strict=True):
        for letter, n in zip(part, _sizes(x), strict=True):
            if letter not in sizes or sizes[letter] == 1:
                sizes[letter] = n
    return [tuple(sizes[letter] for letter in out)]


def _elementwise(e, args, options):
    if options:
        raise Declined("keyword arguments of a ufunc")
    wholes = [arrays.as_expression(e, a) for a in args if isinstance(a, ArrayView)]
    return [arrays.broadcast(e, wholes) if wholes else ()]


def _least(e, m, n):
    return e.smaller(m, n)


def _rules() -> dict[Any, Rule]:
    la, fft = np.linalg, np.fft
    # fmt: off
    rules: dict[Any, Rule] = {
        la.solve: _solved, la.inv: _like(0, 2), la.cholesky: _like(0, 2), la.matrix_power: _like(0, 2),
        la.det: _matrix(lambda e, m, n: ()), la.slogdet: _matrix(lambda e, m, n: (), lambda e, m, n: ()),
        la.matrix_rank: _matrix(lambda e, m, n: ()), la.cond: _matrix(lambda e, m, n: ()), np.trace: _matrix(lambda e, m, n: ()),
        la.pinv: _matrix(lambda e, m, n: (n, m)), la.eigvalsh: _matrix(lambda e, m, n: (m,)),
        la.eigh: _matrix(lambda e, m, n: (m,), lambda e, m, n: (m, n)),
        la.qr: _matrix(lambda e, m, n: (m, _least(e, m, n)), lambda e, m, n: (_least(e, m, n), n)),
        la.svd: _matrix(lambda e, m, n: (m, m), lambda e, m, n: (_least(e, m, n),), lambda e, m, n: (n, n)),
        la.norm: _reduced, np.interp: _like(0), np.searchsorted: _like(1), np.polyval: _like(1), np.kron: _kronecker, np.diag: _diagonal,
        np.convolve: _convolved("full"), np.correlate: _convolved("valid"), np.histogram: _histogram, np.linspace: _linspace,
        np.einsum: _einsum, np.allclose: _of_numbers, np.array_equal: _of_numbers, np.trapezoid: _of_numbers,
        fft.rfft: _half, fft.irfft: _doubled,
    }
    # fmt: on
    for f in (np.sort, np.argsort, np.triu, np.tril, np.round, np.roll, np.unwrap, np.sinc):
        rules[f] = _like(0)
    for f in (fft.fft, fft.ifft, fft.fft2, fft.ifft2, fft.fftn, fft.ifftn, fft.fftshift, fft.ifftshift):
        rules[f] = _transformed
    for f in (np.cumsum, np.cumprod, np.gradient, np.partition, np.argpartition):
        rules[f] = _along
    for name in "median percentile quantile std var ptp nanmean nansum nanmax nanmin nanstd nanvar nanmedian".split():
        rules[getattr(np, name)] = _reduced
    return rules


RULES = _rules()
_FIXED = {
    np.linalg.svd: [
        ({"compute_uv": False}, _matrix(lambda e, m, n: (_least(e, m, n),), fixed={"compute_uv": False})),
        (
            {"full_matrices": False},
            _matrix(
                lambda e, m, n: (m, _least(e, m, n)),
                lambda e, m, n: (_least(e, m, n),),
                lambda e, m, n: (_least(e, m, n), n),
                fixed={"full_matrices": False},
            ),
        ),
    ],
}
"""Rules for certain keyword arguments."""
METHODS = {
    "argsort": np.argsort, "cumsum": np.cumsum, "cumprod": np.cumprod, "std": np.std, "var": np.var, "round": np.round, "trace": np.trace,
    "searchsorted": np.searchsorted, "reshape": np.reshape, "ravel": np.ravel, "flatten": np.ndarray.flatten,
}  # fmt: skip
"""Methods of arrays that are these functions of them."""


def rule_of(f) -> Rule | None:
    """The rule of a function that loops leave to NumPy; None where there is none."""
    try:
        found = RULES.get(f)
    except TypeError:
        return None
    if found is None and isinstance(f, np.ufunc) and f.nout == 1 and f.signature is None and _path(f) is not None:
        return _elementwise
    return found


@functools.lru_cache(256)
def _path(f) -> tuple[str, str] | None:
    """(module, name) by which a function is found again."""
    for module in (getattr(f, "__module__", None), "numpy", "scipy.special"):
        if module is not None and getattr(importlib.import_module(module), f.__name__, None) is f:
            return module, f.__name__
    return None


# ---- the call, as the kernel writes it -------------------------------------------------------------------------------------


def called(e: Emitter, f, args: list, kwargs: dict, place: str, rerunnable: bool):
    """The results of ``f(*args, **kwargs)``: arrays of the loop's own, and numbers. ``rerunnable``: all may be done again
    plainly where NumPy raises."""
    if e.noting:
        raise Declined(f"a gradient is asked for through np.{f.__name__}")
    inputs: list[ArrayView] = []
    given = [_argument(e, a, inputs, f"{place} {k}") for k, a in enumerate(args)]
    options = {name: _constant(v) for name, v in kwargs.items()}
    rule = next((rule for fixed, rule in _FIXED.get(f, ()) if fixed == options), None) or rule_of(f)
    try:
        sizes = rule(e, [value for _, value in given], options)
    except (IndexError, ValueError, TypeError) as reason:
        raise Declined(f"np.{f.__name__} with these arguments ({reason})") from None
    except Declined as reason:
        raise Declined(f"np.{f.__name__} with {reason}") from None
    call = repr(
        (*_path(f), tuple((kind, value if kind == "v" else None) for kind, value in given), options, len(sizes))
    )
    kinds = _dtypes(call, tuple((x.dtype.str, x.ndim) for x in inputs))
    if any(len(n) != ndim for n, (_, _, ndim) in zip(sizes, kinds, strict=True)):
        raise Declined(f"np.{f.__name__} gives other arrays")
    outs = [arrays.temporary(e, dtype, n, f"{place}.{k}") for k, (n, (dtype, _, _)) in enumerate(zip(sizes, kinds))]
    for view in inputs:
        e.touch(view)
    e.python(call, rerunnable, [*inputs, *outs])
    made = [_result(e, out, weak) for out, (_, weak, _) in zip(outs, kinds, strict=True)]
    return made[0] if len(made) == 1 else Tuple(tuple(made))


def _argument(e: Emitter, x, inputs: list[ArrayView], place: str) -> tuple[str, Any]:
    """("a", view), ("s" or "n", NumPy's or Python's number) or ("v", an object that is known)."""
    if isinstance(x, Scalar) and x.const is None:
        if x.weak is None or (x.weak and x.kind == "b"):
            raise Declined("a number of which it isn't known whether it is Python's")
        out = arrays.temporary(e, x.dtype, (), place)
        e.store(arrays.address(e, out, ()), x.dtype, x.v)
        inputs.append(out)
        return "n" if x.weak else "s", x
    if isinstance(x, Expression):
        out = arrays.temporary(e, x.dtype, x.sizes, place)
        arrays.fill(e, out, x)
        x = out
    if isinstance(x, ArrayView):
        inputs.append(x)
        return "a", x
    return "v", _constant(x)


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
def _dtypes(call: str, inputs: tuple[tuple[str, int], ...]) -> list[tuple[np.dtype, bool, int]]:
    """(dtype, whether it is Python's number, number of dimensions) of each result, of the call on small arrays."""
    made = []
    for dtype, ndim in inputs:
        increasing = np.broadcast_to(np.arange(1, 4), (3,) * ndim) if ndim else 1
        made.append(np.array(np.eye(3) * 4 + 1 if ndim == 2 else increasing, dtype=dtype))
    try:
        with np.errstate(all="ignore"):
            results = _results(call, made)
    except Exception as reason:
        raise Declined(f"what {call} gives can't be told ({reason})") from None
    out = []
    for r in results:
        a = np.asarray(r)
        if not isinstance(r, np.ndarray | np.generic | bool | int | float):
            raise Declined(f"{call} gives no arrays")
        memory_type(a.dtype)
        out.append((a.dtype, not isinstance(r, np.ndarray | np.generic), a.ndim))
    return out


@functools.lru_cache(1024)
def _parsed(call: str):
    module, name, given, options, count = ast.literal_eval(call)
    return served(getattr(importlib.import_module(module), name)), given, options, count


def _results(call: str, arrays_) -> tuple:
    f, given, options, count = _parsed(call)
    rest = iter(arrays_)
    args = [_GIVEN[kind](next(rest)) if kind != "v" else value for kind, value in given]
    made = f(*args, **options)
    made = tuple(made) if isinstance(made, tuple) else (made,)
    if len(made) != count:
        raise RuntimeError(f"{call} gave {len(made)} results")
    return made


_GIVEN = {"a": lambda a: a, "s": lambda a: a[()], "n": lambda a: a.item()}


def perform(call: str, given: tuple[np.ndarray, ...]) -> int:
    """What the kernel calls: the results go into the last of the arrays. The floating-point flags that NumPy would have told of."""
    if call.startswith("container "):
        return containers.made(call, given)
    count, raised = _parsed(call)[3], 0

    def note(kind: str, flag: int) -> None:
        nonlocal raised
        raised |= flag

    with np.errstate(all="call", call=note):
        made = _results(call, given)
    for out, result in zip(given[-count:], made):
        result = np.asarray(result)
        if result.shape != out.shape or result.dtype != out.dtype:
            raise RuntimeError(f"{call} gave {result.dtype}{list(result.shape)}, not {out.dtype}{list(out.shape)}")
        out[...] = result
    return raised
