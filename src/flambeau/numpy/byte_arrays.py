"""Arrays of text, dates and records in a graph.

Tensors have no such elements, so in the graph such an array is the tensor of its bytes, with the bytes of an element as a further dimension.
Its dtype is known while tracing. ``numpy::call_bytes(Tensor[] arrays, str call) -> Tensor[]`` has NumPy compute something of them: as
``numpy::call`` (:mod:`graph_calls`), with the dtypes of those among ``arrays`` that are bytes.
"""

from __future__ import annotations

import ast
import functools
import math
import operator
import warnings
from collections.abc import Callable, Sequence

import numpy as np
import numpy.char
import numpy.strings

from ..base.device import CPU
from ..base.dtypes import from_numpy
from ..base.quiet import errstate
from ..base.shapes import contiguous_strides
from ..core.declare import extern
from ..core.definition import TensorMeta
from .graph_calls import LARGEST_SAMPLE, run_telling
from .literals import Kind, Literal, arguments_of, literal, value

__all__ = [
    "FUNCTIONS",
    "KINDS",
    "Kind",
    "Literal",
    "METHODS",
    "OPERATORS",
    "array_of",
    "bytes_of",
    "call_bytes",
    "captured",
    "dtype_literal",
    "element_of",
    "literal",
    "made_of",
    "name_of_function",
]

KINDS = "SUVMm"
FUNCTIONS = {
    "numpy": (
        "append argmax argmin argsort array array_equal asarray busday_count column_stack concatenate datetime_as_string "
        "diff equal expand_dims flip full full_like greater greater_equal hstack insert is_busday isin isnat less less_equal lexsort max maximum min "
        "minimum not_equal ones ones_like repeat roll searchsorted sort stack subtract add take tile vstack where zeros zeros_like"
    ),
    "numpy.strings": (
        "add capitalize center count decode encode endswith equal expandtabs find greater greater_equal index isalnum isalpha isdecimal isdigit "
        "islower isnumeric isspace istitle isupper less less_equal ljust lower lstrip mod multiply not_equal partition replace rfind rindex rjust "
        "rpartition rstrip startswith str_len strip swapcase title translate upper zfill slice"
    ),
    "numpy.char": (
        "add center compare_chararrays count equal find greater greater_equal index join less less_equal ljust mod multiply not_equal partition "
        "replace rfind rindex rjust rpartition zfill"
    ),
}
METHODS = "all any argmax argmin argsort astype copy max mean min ptp repeat searchsorted sum take"
MODULES = {"numpy": np, "numpy.strings": np.strings, "numpy.char": np.char}
OPERATORS = "eq ne lt le gt ge add sub mul truediv floordiv getitem"


def captured(dtype: np.dtype) -> bool:
    """Whether arrays of a dtype are carried as bytes."""
    return dtype.kind in KINDS and dtype.itemsize > 0 and not dtype.hasobject and dtype.isnative and _restored(dtype)


def _restored(dtype: np.dtype) -> bool:
    try:
        return np.dtype(np.lib.format.descr_to_dtype(dtype_literal(dtype))) == dtype
    except (TypeError, ValueError):
        return False


def dtype_literal(dtype: np.dtype):
    return np.lib.format.dtype_to_descr(dtype)


def bytes_of(a: np.ndarray) -> np.ndarray:
    """A view of the array's bytes."""
    return a.view([("bytes", "u1", (a.dtype.itemsize,))])["bytes"]


def array_of(b: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The array whose bytes these are, a view of them where they lie side by side."""
    if b.strides[-1] != 1:
        b = np.ascontiguousarray(b)
    return b.view(dtype)[..., 0] if b.size else np.empty(b.shape[:-1], dtype)


def made_of(t, dtype: np.dtype, read_only: bool) -> np.ndarray:
    """A graph's output as the array that the program holds."""
    a = np.asarray(array_of(t.numpy(), dtype))
    if read_only and a.flags.writeable:
        a = a.view()
        a.flags.writeable = False
    return a


def element_of(t, dtype: np.dtype) -> np.generic:
    """The same for NumPy's scalars."""
    return array_of(t.numpy(), dtype)[()]


@functools.cache
def _names() -> dict[int, tuple[Callable, str, str]]:
    """(function, module, name) by the id of each function that is called."""
    known: dict[int, tuple] = {}
    for module, names in FUNCTIONS.items():
        for name in names.split():
            f = getattr(MODULES[module], name, None)  # some are newer than the oldest NumPy we run on
            if f is not None:
                known.setdefault(id(f), (f, module, name))
    return known


def name_of_function(f) -> tuple[str, str] | None:
    """Where a function that may be called is found; None for others."""
    hit, *where = _names().get(id(f), (None, "", ""))
    return (where[0], where[1]) if hit is f else None


@functools.lru_cache(4096)
def _parsed(call: str):
    """(function, positional arguments, keyword arguments, which arrays stand for NumPy's scalars, dtypes). ValueError for a function that isn't in
    the tables."""
    module, name, *given, scalars, dtypes = ast.literal_eval(call)
    args, kwargs = arguments_of(*given)
    if module == "ndarray" and name in METHODS.split():
        f: Callable = lambda a, *more, **options: getattr(a, name)(*more, **options)  # noqa: E731
    elif module == "operator" and name in OPERATORS.split():
        f = getattr(operator, name)
    elif name in FUNCTIONS.get(module, "").split():
        f = getattr(MODULES[module], name)
    else:
        raise ValueError(f"{module}.{name} is not a function that graphs call")
    return f, args, kwargs, scalars, [None if d is None else np.dtype(np.lib.format.descr_to_dtype(d)) for d in dtypes]


def _run(call: str, arrays):
    f, args, kwargs, scalars, dtypes = _parsed(call)
    given = [a if d is None else array_of(a, d) for a, d in zip(arrays, dtypes, strict=True)]
    for k in scalars:
        given[k] = given[k][()]
    return f(*(value(a, given) for a in args), **{k: value(v, given) for k, v in kwargs.items()})


def leaves_of(result) -> list[np.ndarray]:
    """The arrays of a result. TypeError when there is something else in it."""
    if isinstance(result, (tuple, list)):
        return [leaf for part in result for leaf in leaves_of(part)]
    if isinstance(result, (bool, int, float)):
        raise TypeError("it gives a number of Python's")
    if not isinstance(result, (np.ndarray, np.generic)):
        raise TypeError(f"it gives {type(result).__name__}")
    dtype = result.dtype
    if type(result) not in (np.ndarray, dtype.type) or not (dtype.kind in "biufc" or captured(dtype)):
        raise TypeError(f"it gives {type(result).__name__} of {dtype}")
    return [np.asarray(result)]


def _made_up(shape: tuple, dtype: np.dtype, of: np.dtype | None, full: int) -> np.ndarray:
    """An array of this description: empty text or what fills it, numbers 0 or 1."""
    if of is None:
        return np.full(shape, full, dtype)
    if of.kind not in "SU":
        return np.full(shape, full, np.uint8)
    return bytes_of(np.full(shape[:-1], "1" * (full * of.itemsize // (4 if of.kind == "U" else 1)), of))


@functools.lru_cache(4096)
def sample(call: str, descriptions: tuple):
    """The result of the call on made-up arrays of these (shape, dtype). TypeError where its shapes or dtypes follow from what is in them."""
    if sum(math.prod(shape) for shape, _ in descriptions) > LARGEST_SAMPLE:
        raise TypeError("its arrays are too large to be made up")
    *_, dtypes = _parsed(call)
    results = []
    place = ast.literal_eval(call)[:2] == ("operator", "getitem")
    for full in (0, 1):
        arrays = [
            _made_up(shape, np.dtype(d), of, 0 if place else full)
            for (shape, d), of in zip(descriptions, dtypes, strict=True)
        ]
        try:
            with errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = _run(call, arrays)
        except Exception as e:
            if not full:
                continue  # what is empty may not be allowed
            raise TypeError(f"what it returns can't be told without its data ({type(e).__name__}: {e})") from e
        leaves = leaves_of(result)
        if any(np.may_share_memory(leaf, a) for leaf in leaves for a in arrays):
            raise TypeError("it gives back memory of an argument")
        if any(isinstance(r, np.ndarray) and not r.ndim for r in (result if isinstance(result, tuple) else (result,))):
            raise TypeError("it gives an array without dimensions")
        results.append(result)
    told = [[(leaf.shape, leaf.dtype) for leaf in leaves_of(r)] for r in results]
    if told[0] != told[-1]:
        raise TypeError("the dtype or the shape of what it returns follows from what is in the arrays")
    return results[-1]


def described(arrays) -> tuple:
    return tuple((tuple(int(n) for n in a.shape), np.dtype(getattr(a.dtype, "np", a.dtype)).str) for a in arrays)


def _carried(leaf: np.ndarray) -> np.ndarray:
    return leaf if leaf.dtype.kind in "biufc" else bytes_of(leaf)


def _meta(arrays, call):
    made = map(_carried, leaves_of(sample(call, described(arrays))))
    return [TensorMeta(m.shape, contiguous_strides(m.shape), from_numpy(m.dtype), CPU) for m in made]


@extern("numpy::call_bytes(Tensor[] arrays, str call) -> Tensor[]", meta=_meta, variants="", tags=("has_side_effects",))
def call_bytes(arrays: Sequence[np.ndarray], call: str) -> list[np.ndarray]:
    """RuntimeError where what NumPy gives isn't as on made-up arrays."""
    made = [np.array(_carried(leaf), order="C") for leaf in leaves_of(run_telling(_run, call, arrays))]
    for m, promised in zip(made, leaves_of(sample(call, described(arrays))), strict=True):
        p = _carried(promised)
        if (m.shape, m.dtype) != (p.shape, p.dtype):
            raise RuntimeError(f"{call} gave {m.dtype}{list(m.shape)}, and {p.dtype}{list(p.shape)} on made-up arrays")
    return made
