"""The two operators that call a function of NumPy's inside of a graph.

``numpy::call(Tensor[] arrays, str call) -> Tensor[]`` runs one call. ``call`` is the call as a literal: the function's path and its arguments, with a
number in the place of each array. The shapes, strides and dtypes of the results are those of the same call on made-up arrays of the same
description; they are found once a description. ``numpy::call_of_data`` is for results whose sizes depend on values.

Only ufuncs, their methods and the functions of the tables below are called like this: their results are new arrays, and they have no effects
(``out`` arrays go in as copies and are written by the graph).
"""

from __future__ import annotations

import ast
import functools
import importlib
import math
import operator
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import _C, _frame, _runtime
from ..base.device import CPU
from ..base.dtypes import from_numpy
from ..base.numpy_kernels import served
from ..base.quiet import errstate
from ..base.shape_checks import data_dependent_size
from ..base.shapes import contiguous_strides
from ..core.declare import extern
from ..core.definition import TensorMeta
from ..core.tensor import Tensor
from .literals import CONTAINERS, NONE, Kind, Literal, arguments_of, holds_arrays, literal, value
from .varying_sizes import Varying, sizes_vary, varying

__all__ = [
    "FUNCTIONS_BY_MODULE",
    "GIVES_ARRAY",
    "OF_DATA",
    "REST",
    "UFUNC_METHODS",
    "call_numpy",
    "call_of_data",
    "leaves_of",
    "prepared_call",
    "rebuilt",
    "run_telling",
    "sample_for",
    "structure_for",
    "text_of",
]

FUNCTIONS_BY_MODULE = {
    "numpy": (
        "angle append argpartition argsort bartlett bitwise_count blackman block cbrt choose convolve copysign corrcoef correlate cov cross "
        "cumulative_prod cumulative_sum delete diag_indices diagflat diff digitize divmod ediff1d fix frexp gcd geomspace gradient hamming hanning "
        "histogram_bin_edges "
        "heaviside histogram histogram2d histogramdd hypot i0 indices insert interp isclose iscomplex isin isneginf isposinf isreal kaiser lcm "
        "ldexp left_shift lexsort logaddexp logaddexp2 logspace mask_indices matvec median modf nanargmax nanargmin nancumprod nancumsum nanmax "
        "nanmean nanmedian nanmin nanpercentile nanquantile nanstd nanvar nextafter packbits pad partition percentile polyadd polyder polyfit "
        "polyint polymul polysub polyval poly quantile ravel_multi_index resize right_shift searchsorted select signbit sinc sort_complex spacing "
        "take_along_axis trapezoid tril_indices tril_indices_from triu_indices triu_indices_from unpackbits unravel_index unwrap vander vecdot "
        "vecmat"
    ),
    "flambeau.numpy.checks": "all_finite",
    "numpy.linalg": (
        "cholesky cond cross det eig eigh eigvals eigvalsh inv lstsq matmul matrix_norm matrix_power matrix_rank multi_dot norm outer pinv qr "
        "slogdet solve svd svdvals tensordot tensorinv tensorsolve trace vecdot vector_norm"
    ),
    "numpy.polynomial.polynomial": "polyval polyval2d polyval3d polygrid2d polyder polyint polyvander polyvander2d polyfit",
    "numpy.polynomial.chebyshev": "chebval chebval2d chebder chebint chebvander chebfit chebpts1 chebpts2 chebgauss",
    "numpy.polynomial.legendre": "legval legval2d legder legint legvander legfit leggauss",
    "numpy.polynomial.hermite": "hermval hermder hermint hermvander hermfit hermgauss",
    "numpy.polynomial.laguerre": "lagval lagder lagint lagvander lagfit laggauss",
    "numpy.fft": (
        "fft fft2 fftfreq fftn fftshift hfft ifft ifft2 ifftn ifftshift ihfft irfft irfft2 irfftn rfft rfft2 rfftfreq rfftn"
    ),
}
REST = (
    "sum prod mean var std average max amax min amin ptp argmax argmin any all cumsum cumprod nansum nanprod clip round around nan_to_num where "
    "dot vdot inner outer matmul tensordot einsum kron trace sort roll repeat tile concatenate concat stack vstack hstack dstack column_stack take "
    "linspace tril triu"
)
"""Functions on tensors whose results are new arrays: for arguments that they refuse (TypeError), these too are called."""
OF_DATA = (
    "unique unique_all unique_counts unique_inverse unique_values union1d intersect1d setdiff1d setxor1d polydiv histogram "
    "histogram_bin_edges compress extract delete insert where ix_ repeat"
)
"""Functions whose results have sizes that depend on values: one node too, whose sizes are symbols. Some only with some arguments."""
UFUNC_METHODS = ("reduce", "accumulate", "outer", "reduceat")
GIVES_ARRAY = frozenset(f"numpy.{name}" for name in "pad block cov cross i0".split())
"""What gives arrays where others give scalars, for what has no dimensions."""
METHODS_BEHIND = {getattr(np, name): getattr(np.ndarray, name) for name in ("argsort", "searchsorted", "argpartition")}
"""Functions in Python that do nothing but call the method of their first argument."""
LARGEST_SAMPLE = 1 << 24  # elements of made-up arrays


@functools.lru_cache(4096)
def _parsed(call: str):
    """(function, its positional arguments, its keyword arguments) of a call's text. ValueError for a function that isn't in the table."""
    module, name, *given = ast.literal_eval(call)
    args, kwargs = arguments_of(*given)
    head, _, method = name.partition(".")
    f = getattr(importlib.import_module(module), head)
    if isinstance(f, np.ufunc) and module in ("numpy", "scipy.special") and method in ("", *UFUNC_METHODS):
        return (getattr(f, method) if method else f), args, kwargs
    of_numpy = module == "numpy" and name in (*REST.split(), *OF_DATA.split())
    if name not in FUNCTIONS_BY_MODULE.get(module, "").split() and not of_numpy:
        raise ValueError(f"{module}.{name} is not a function that graphs call")
    return served(f), args, kwargs


def _run(call: str, arrays) -> Any:
    f, args, kwargs = _parsed(call)
    return f(*(value(a, arrays) for a in args), **{k: value(v, arrays) for k, v in kwargs.items()})


_CAUGHT = ("error", None, Warning, re.compile(r"flambeau\.numpy\.(graph_calls|byte_arrays)$|numpy\."), 0)
_SILENT = ("ignore", *_CAUGHT[1:])
_ALL_CAUGHT = ("error", None, Warning, None, 0)
"""Filters for what NumPy would show as a warning of this module's, which is where it sees the call, or of its own (np.mean of nothing). A native
call has no frame: NumPy sees the program's."""


class Warned(RuntimeError):
    """NumPy warned: the frame is run plainly, where it warns at the program's line."""

    run_plainly = True


def _filtered(row: tuple, run: Callable, call: str, arrays):
    """What ``run`` gives with this filter in front. Nothing is told that filters have changed: what was shown once stays shown."""
    filters: Any = warnings.filters  # a list, though typeshed says that it is any sequence
    filters.insert(0, row)
    try:
        return run(call, arrays)
    finally:
        if filters and filters[0] is row:
            del filters[0]
        elif row in filters:
            filters.remove(row)


def run_telling(run: Callable, call: str, arrays) -> Any:
    """What ``run`` gives; what NumPy warns of is told once, at the program's line, or where that can't run again at its function's."""
    first = warnings.filters[0] if warnings.filters else _CAUGHT
    if first[0] == "ignore" and first[1:] == (None, Warning, None, 0):
        return run(call, arrays)
    try:
        return _filtered(_CAUGHT, run, call, arrays)
    except Warning as w:
        if _frame.runs_again():
            raise Warned(str(w)) from w
        caught = w
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in (
        "flambeau",
        "numpy",
        "contextlib",
    ):
        frame = frame.f_back
    scope = frame.f_globals
    registry = scope.setdefault("__warningregistry__", {})
    warnings.warn_explicit(caught, None, frame.f_code.co_filename, frame.f_lineno, scope.get("__name__"), registry)
    return _filtered(_SILENT, run, call, arrays)


def leaves_of(result) -> list[np.ndarray]:
    """The arrays of a result. TypeError when there is something else in it."""
    if isinstance(result, (np.ndarray, np.generic)) and result.dtype.kind in "biufc":
        return [np.asarray(result)]
    if isinstance(result, (tuple, list)):
        return [leaf for part in result for leaf in leaves_of(part)]
    raise TypeError(f"a NumPy function in a graph returns arrays, not {type(result).__name__}")


def rebuilt(result, leaves):
    """``result`` with its arrays replaced by the next of ``leaves`` (an iterator)."""
    if isinstance(result, (tuple, list)):
        parts = [rebuilt(part, leaves) for part in result]
        return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
    return next(leaves)


@functools.lru_cache(4096)
def _sample(call: str, descriptions: tuple) -> Any:
    """The result of the call on made-up arrays of these (shape, dtype): what its shapes and dtypes are read off.

    The arrays are well-conditioned where they are matrices, increasing along their last dimension otherwise, so that functions which demand
    something of their arguments accept them."""
    if sum(math.prod(shape) for shape, _, _ in descriptions) > LARGEST_SAMPLE:
        raise TypeError("its arrays are too large to be made up")
    arrays = []
    for shape, strides, dtype in descriptions:
        d = np.dtype(dtype)
        a = np.broadcast_to(np.arange(shape[-1]) % 127 if shape else np.array(1), shape)
        if d.kind in "fc" and len(shape) > 1 and shape[-1] == shape[-2]:
            a = a / (127.0 * shape[-1]) + 2 * np.eye(shape[-1])
            a = a + np.swapaxes(a, -1, -2)
        extent = sum((n - 1) * s for n, s in zip(shape, strides)) if 0 not in shape else 0
        made = np.ndarray(shape, d, np.zeros(extent + d.itemsize, np.uint8), 0, strides)
        made[...] = a
        arrays.append(made)
    try:
        with errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = _run(call, arrays)
            leaves = leaves_of(result)
            if any(np.may_share_memory(leaf, a) for leaf in leaves for a in arrays):
                raise TypeError("it gives back memory of an argument")
            leaves = _own(leaves, arrays)
    except Exception as e:
        raise TypeError(f"what it returns can't be told without its data ({type(e).__name__}: {e})") from e
    module, name, _, options = ast.literal_eval(call)
    if "out" not in options and f"{module}.{name}" not in GIVES_ARRAY and _has_array_without_dimensions(result):
        raise TypeError(f"{call}: an array without dimensions")
    return rebuilt(result, iter(leaves))


def _has_array_without_dimensions(result) -> bool:
    if isinstance(result, (tuple, list)):
        return any(map(_has_array_without_dimensions, result))
    return isinstance(result, np.ndarray) and result.ndim == 0


def _own(leaves: list[np.ndarray], arrays) -> list[np.ndarray]:
    """The results, copied where they share memory with an argument or with each other."""
    return [
        np.array(leaf)
        if leaf.base is not None and any(np.may_share_memory(leaf, o) for o in (*arrays, *leaves[:k]))
        else leaf
        for k, leaf in enumerate(leaves)
    ]


def _description(a) -> tuple:
    if type(a) is np.ndarray:
        return a.shape, a.strides, a.dtype.str
    d = np.dtype(a.dtype.np)
    return tuple(int(n) for n in a.shape), tuple(int(n) * d.itemsize for n in a.stride()), d.str


def sample_for(call, arrays):
    return _sample(call, tuple(map(_description, arrays)))


def structure_for(call, arrays):
    """A result of the call whose structure and dtypes are those for these arrays, at other sizes where theirs are symbols."""
    found = _varying(call, arrays)
    return sample_for(call, arrays) if found is None else found.made


def _varying(call, arrays) -> Varying | None:
    if not sizes_vary(arrays):
        return None
    return varying(arrays, functools.partial(_sample, call), leaves_of)


def _meta(arrays, call):
    found = _varying(call, arrays)
    if found is not None:
        return [TensorMeta(r.shape, r.strides, from_numpy(r.dtype), CPU) for r in found.results]
    return [
        TensorMeta(leaf.shape, tuple(s // leaf.itemsize for s in leaf.strides), from_numpy(leaf.dtype), CPU)
        for leaf in leaves_of(sample_for(call, arrays))
    ]


def _as_promised(call: str, arrays, sized: Callable[[np.ndarray], Any]) -> list[np.ndarray]:
    """The arrays that the call returns. RuntimeError where their dtype, or what ``sized`` gives, differs from the made-up results'."""
    leaves = leaves_of(run_telling(_run, call, arrays))
    for leaf, expected in zip(leaves, leaves_of(sample_for(call, arrays)), strict=True):
        if leaf.dtype != expected.dtype or sized(leaf) != sized(expected):
            raise RuntimeError(
                f"{call} gave {leaf.dtype}{list(leaf.shape)}, and {expected.dtype}{list(expected.shape)} on made-up arrays"
            )
    return leaves


@extern("numpy::call(Tensor[] arrays, str call) -> Tensor[]", meta=_meta, variants="", tags=("has_side_effects",))
def call_numpy(arrays: Sequence[np.ndarray], call: str) -> list[np.ndarray]:
    """Its errors and warnings are effects: it is called though its result is not used."""
    return _own(_as_promised(call, arrays, lambda leaf: leaf.shape), arrays)


def _prepared(template: list) -> Callable | None:
    """How a graph calls it, see ``EagerCall``: what doesn't change between calls is read once (csrc/runtime/numpy_call.c)."""
    slots, call = template
    f, args, kwargs = _parsed(call)
    if args and args[0].kind is Kind.ARRAY:
        f = METHODS_BEHIND.get(f, f)
    read = [_reader(item) for item in args]
    named = {name: _reader(item) for name, item in kwargs.items()}

    def once(_, arrays):
        return f(*[r(arrays) for r in read], **{name: r(arrays) for name, r in named.items()})

    def plainly(*given) -> list[Tensor]:
        """The call whose warnings are told, and whose results are said to be others than expected."""
        arrays = [getattr(given[s.k], "_array", given[s.k]) for s in slots]
        leaves = leaves_of(run_telling(once, call, arrays))
        expected = expect(tuple(arrays))
        if len(leaves) != len(expected):
            raise RuntimeError(_unlike(call, leaves, expected))
        for k, (leaf, (dtype, shape, strides)) in enumerate(zip(leaves, expected)):
            if leaf.dtype != dtype or leaf.shape != shape:
                raise RuntimeError(_unlike(call, leaves, expected))
            if leaf.strides != strides or any([np.may_share_memory(leaf, o) for o in (*arrays, *leaves[:k])]):
                leaves[k] = made = np.ndarray(shape, dtype, np.empty(leaf.size, dtype), 0, strides)
                made[...] = leaf
        return [_C.from_array(leaf) for leaf in leaves]

    def expect(arrays) -> tuple:
        return _expected(call, tuple([(a.shape, a.strides, a.dtype.str) for a in arrays]))

    return prepared_call(slots, f, args, kwargs, expect, plainly)


def prepared_call(slots, f, args, kwargs, expect, plainly, writes=False) -> Callable | None:
    """``f(*args, **kwargs)`` of literals as a graph calls it on the arrays of ``slots``; ``expect`` and ``plainly`` as ``_runtime.NumpyCall`` has
    them; None where it can't be. ``writes``: the function writes into a copy of the first array, its first argument beside ``args``."""
    if any(not hasattr(s, "look") or s.k < 0 for s in slots):
        return None
    items = [_argument(item) for item in (*args, *kwargs.values())]
    if writes:
        items = [(_COPY, None), *items]
    if len(slots) > 16 or len(items) > 32:
        return None
    sources, arguments = zip(*items) if items else ((), ())
    places = tuple([s.k for s in slots])
    return _runtime.NumpyCall(f, arguments, sources, tuple(kwargs), places, _ALL_CAUGHT, expect, plainly)


_KNOWN, _MADE, _COPY = -1, -2, -3
"""Where an argument of ``_runtime.NumpyCall`` comes from, if it isn't an array: it is known, it is called with the arrays, it is a copy of the first
array and the result."""


def _argument(item: Literal) -> tuple[int, Any]:
    """Where an argument comes from and what it is, as ``_runtime.NumpyCall`` takes them."""
    if item.kind is Kind.ARRAY:
        return item.content, None
    reader = _reader(item)
    known = None if holds_arrays(item) else reader(())
    return (_MADE, reader) if known is None and item != NONE or type(known) is list else (_KNOWN, known)


def _reader(item: Literal) -> Callable:
    """An argument from the arrays: :func:`value` of this literal."""
    if item.kind is Kind.ARRAY:
        return operator.itemgetter(item.content)
    if holds_arrays(item):
        return functools.partial(value, item)
    known = value(item, ())
    return (lambda arrays: list(known)) if type(known) is list else lambda arrays: known


@functools.lru_cache(4096)
def _expected(call: str, descriptions: tuple) -> tuple[tuple[np.dtype, tuple, tuple], ...]:
    """dtype, shape and strides of the results on made-up arrays of these descriptions, dense as the graph has them."""
    leaves = leaves_of(_sample(call, descriptions))
    return tuple([(leaf.dtype, leaf.shape, np.empty_like(leaf).strides) for leaf in leaves])


def _unlike(call: str, leaves, expected) -> str:
    given = [f"{leaf.dtype}{list(leaf.shape)}" for leaf in leaves]
    made = [f"{dtype}{list(shape)}" for dtype, shape, _ in expected]
    return f"{call} gave {', '.join(given)}, and {', '.join(made)} on made-up arrays"


call_numpy.override("prepared", _prepared)
call_numpy.override("quiet", True)


def _meta_of_data(arrays, call):
    name = ast.literal_eval(call)[1]
    made = []
    for leaf in leaves_of(sample_for(call, arrays)):
        shape = tuple(data_dependent_size(f"np.{name}") for _ in leaf.shape)
        made.append(TensorMeta(shape, contiguous_strides(shape), from_numpy(leaf.dtype), CPU))
    return made


@extern(
    "numpy::call_of_data(Tensor[] arrays, str call) -> Tensor[]",
    meta=_meta_of_data,
    variants="",
    tags=("has_side_effects",),
)
def call_of_data(arrays: Sequence[np.ndarray], call: str) -> list[np.ndarray]:
    """As `call_numpy`, where the sizes of the results depend on values."""
    return [np.array(leaf, order="C") for leaf in _as_promised(call, arrays, lambda leaf: leaf.ndim)]


def text_of(module: str, name: str, args: tuple, kwargs: dict, outs=None) -> tuple[list, str]:
    """The arrays of a call and the call as a literal."""
    arrays: list = []
    given = {k: literal(v, arrays) for k, v in kwargs.items()}
    positional = [literal(a, arrays) for a in args]
    if outs is not None:
        given["out"] = _written(literal(outs, arrays))
    if any(isinstance(a, np.ndarray) for a in arrays):
        raise TypeError(f"np.{name} with an array that isn't an argument of the captured function")
    return arrays, repr((module, name, positional, given))


def _written(item: Literal) -> Literal:
    if item.kind is Kind.ARRAY:
        return Literal(Kind.WRITTEN, item.content)
    return Literal(item.kind, [_written(i) for i in item.content]) if item.kind in CONTAINERS else item
