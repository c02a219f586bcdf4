"""NumPy functions without a counterpart on tensors, called as they are from inside a graph.

``numpy::call(Tensor[] arrays, str call) -> Tensor[]`` runs one call of a NumPy function. ``call`` is the call as a literal: the function's
path and its arguments, with a number in the place of each array, so that a graph that holds it can be kept on disk. The shapes, strides and
dtypes of the results are those of the same call on made-up arrays of the same description; they are found once a description.

Only ufuncs, their methods and the functions in :data:`FUNCTIONS_BY_MODULE` are called like this: their results are new arrays whose
shapes don't depend on values, and they have no effects (``out`` arrays go in as copies and are written by the graph). So are functions on
tensors for arguments that they don't cover (:data:`REST`). What they compute has no derivative here: asking for one is an error.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib
import inspect
import math
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from .. import _C, _frame
from ..base.device import CPU
from ..base.dtypes import from_numpy
from ..base.numpy_kernels import served
from ..base.shape_env import data_dependent_size
from ..base.shapes import contiguous_strides
from ..core.declare import extern
from ..core.definition import TensorMeta
from ..core.operator import namespace
from ..core.tensor import Tensor
from ..dynamo.numpy import numpy_bridge
from .promotion import is_tensor
from .table import FUNCTIONS, METHODS, OPERATORS, UFUNCS, implements, into

__all__ = ["DIFFERENTIABLE", "FUNCTIONS_BY_MODULE", "differentiable", "opaque"]

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
_DATA_GIVING = {
    "delete": (1, "obj"),
    "insert": (1, "obj"),
    "histogram": (1, "bins"),
    "histogram_bin_edges": (1, "bins"),
}
"""Of those that are called with sizes known from shapes: the argument that may tell otherwise."""
UFUNC_METHODS = ("reduce", "accumulate", "outer", "reduceat")
GIVES_ARRAY = frozenset(f"numpy.{name}" for name in "pad block cov cross i0".split())
"""What gives arrays where others give scalars, for what has no dimensions."""
LARGEST_SAMPLE = 1 << 24  # elements of made-up arrays
_WRITING = ("overwrite_input", "overwrite_a", "overwrite_b")  # what asks a function to use its arguments' memory up
_GIVING = ("new_shape", "bins", "N", "M", "repeats", "reps", "num")
# Their shapes follow from values in these cases: (function, argument that must not be an array of this call).
_SHAPE_GIVING = {
    "resize": 1, "histogram": 1, "histogram_bin_edges": 1,
    "histogram2d": 2, "vander": 1, "hamming": 0, "hanning": 0, "kaiser": 0, "repeat": 1, "tile": 1, "linspace": 2,
}  # fmt: skip


def _literal(x, arrays: list) -> Any:
    """A value as a literal: ("a", number) for arrays ("o" for those that are written), ("v", value), ("s", dtype, value) for scalars,
    ("d", name) for dtypes, ("z", ends and step) for slices, or a container."""
    if is_tensor(x) or isinstance(x, np.ndarray):
        arrays.append(x)
        return ("a", len(arrays) - 1)
    if type(x) is complex:
        return ("c", str(x))
    if isinstance(x, np.generic) and x.dtype.kind in "biufc":  # NOTE: before numbers, since np.float64 is a float
        return ("s", x.dtype.str, str(x.item()) if x.dtype.kind == "c" else x.item())
    if x is None or isinstance(x, (bool, int, float, str)):
        return ("v", x)
    if isinstance(x, np.dtype) or (isinstance(x, type) and issubclass(x, np.generic)):
        return ("d", np.dtype(x).str)
    if isinstance(x, type) and x in (bool, int, float, complex):
        return ("d", np.dtype(x).str)
    if type(x) is slice:
        return ("z", [_literal(y, arrays) for y in (x.start, x.stop, x.step)])
    if type(x) in (list, tuple):
        return ("l" if type(x) is list else "t", [_literal(y, arrays) for y in x])
    raise TypeError(f"{type(x).__name__} can't be an argument of a NumPy function in a graph")


def _value(item, arrays):
    kind = item[0]
    if kind == "a":
        return arrays[item[1]]
    if kind == "o":
        return np.array(arrays[item[1]])
    if kind == "v":
        return item[1]
    if kind == "c":  # NOTE: read as an expression, the text of a complex number loses signs of zeros
        return complex(item[1])
    if kind == "s":
        dtype, number = np.dtype(item[1]), item[2]
        return dtype.type(complex(number) if dtype.kind == "c" else number)
    if kind == "d":
        return np.dtype(item[1])
    values = [_value(y, arrays) for y in item[1]]
    return values if kind == "l" else slice(*values) if kind == "z" else tuple(values)


@functools.lru_cache(4096)
def _parsed(call: str):
    """(function, its positional arguments, its keyword arguments) of a call's text. ValueError for a function that isn't in the table."""
    module, name, args, kwargs = ast.literal_eval(call)
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
    return f(*(_value(a, arrays) for a in args), **{k: _value(v, arrays) for k, v in kwargs.items()})


_CAUGHT = ("error", None, Warning, re.compile(f"{re.escape(__name__)}$"), 0)
_SILENT = ("ignore", *_CAUGHT[1:])
"""Filters for what NumPy would show as a warning of this module's, which is where it sees the call."""


class Warned(RuntimeError):
    """NumPy warned: the frame is run plainly, where it warns at the program's line."""

    run_plainly = True


@contextlib.contextmanager
def _filtered(row: tuple):
    """With this filter in front. Nothing is told that filters have changed: what was shown once stays shown."""
    filters: Any = warnings.filters  # a list, though typeshed says that it is any sequence
    filters.insert(0, row)
    try:
        yield
    finally:
        if row in filters:
            filters.remove(row)


def _run_telling(call: str, arrays) -> Any:
    """As `_run`; what NumPy warns of is told once, at the program's line, or where that can't run again at its function's."""
    first = warnings.filters[0] if warnings.filters else _CAUGHT
    if first[0] == "ignore" and first[1:] == (None, Warning, None, 0):
        return _run(call, arrays)
    try:
        with _filtered(_CAUGHT):
            return _run(call, arrays)
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
    with _filtered(_SILENT):
        return _run(call, arrays)


def _leaves(result) -> list[np.ndarray]:
    """The arrays of a result. TypeError when there is something else in it."""
    if isinstance(result, (np.ndarray, np.generic)) and result.dtype.kind in "biufc":
        return [np.asarray(result)]
    if isinstance(result, (tuple, list)):
        return [leaf for part in result for leaf in _leaves(part)]
    raise TypeError(f"a NumPy function in a graph returns arrays, not {type(result).__name__}")


def _rebuild(result, leaves):
    """``result`` with its arrays replaced by the next of ``leaves`` (an iterator)."""
    if isinstance(result, (tuple, list)):
        parts = [_rebuild(part, leaves) for part in result]
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
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = _run(call, arrays)
            leaves = _leaves(result)
            if any(np.may_share_memory(leaf, a) for leaf in leaves for a in arrays):
                raise TypeError("it gives back memory of an argument")
            leaves = _own(leaves, arrays)
    except Exception as e:
        raise TypeError(f"what it returns can't be told without its data ({type(e).__name__}: {e})") from e
    module, name, _, options = ast.literal_eval(call)
    if "out" not in options and f"{module}.{name}" not in GIVES_ARRAY and _has_array_without_dimensions(result):
        raise TypeError(f"{call}: an array without dimensions")
    return _rebuild(result, iter(leaves))


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


def _sample_for(call, arrays):
    return _sample(call, tuple(map(_description, arrays)))


def _meta(arrays, call):
    return [
        TensorMeta(leaf.shape, tuple(s // leaf.itemsize for s in leaf.strides), from_numpy(leaf.dtype), CPU)
        for leaf in _leaves(_sample_for(call, arrays))
    ]


@extern("numpy::call(Tensor[] arrays, str call) -> Tensor[]", meta=_meta, variants="", tags=("has_side_effects",))
def call_numpy(arrays: Sequence[np.ndarray], call: str) -> list[np.ndarray]:
    """Its errors and warnings are effects: it is called though its result is not used."""
    leaves = _leaves(_run_telling(call, arrays))
    for leaf, expected in zip(leaves, _leaves(_sample_for(call, arrays)), strict=True):
        if leaf.dtype != expected.dtype or leaf.shape != expected.shape:
            raise RuntimeError(
                f"{call} gave {leaf.dtype}{list(leaf.shape)}, and {expected.dtype}{list(expected.shape)} on made-up arrays"
            )
    return _own(leaves, arrays)


def _meta_of_data(arrays, call):
    name = ast.literal_eval(call)[1]
    made = []
    for leaf in _leaves(_sample_for(call, arrays)):
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
    leaves = _leaves(_run_telling(call, arrays))
    for leaf, expected in zip(leaves, _leaves(_sample_for(call, arrays)), strict=True):
        if leaf.dtype != expected.dtype or leaf.ndim != expected.ndim:
            raise RuntimeError(
                f"{call} gave {leaf.ndim} dimensions of {leaf.dtype}, and {expected.ndim} of {expected.dtype} on made-up arrays"
            )
    return [np.array(leaf, order="C") for leaf in leaves]


def of_data(name: str) -> Callable:
    """``np.name``, whose results have sizes that depend on values, as a function on tensors. TypeError for arguments that a graph can't hold."""

    def call(*args, **kwargs) -> Any:
        if kwargs.get("out") is not None:
            raise TypeError(f"np.{name} with out=")
        arrays, text = _text("numpy", name, args, kwargs)
        return _rebuild(_sample_for(text, arrays), iter(call_of_data(arrays, text)))

    call.__name__ = call.__qualname__ = f"numpy_{name}_of_data"
    return call


def _text(module: str, name: str, args: tuple, kwargs: dict, outs=None) -> tuple[list, str]:
    """The arrays of a call and the call as a literal."""
    arrays: list = []
    given = {k: _literal(v, arrays) for k, v in kwargs.items()}
    positional = [_literal(a, arrays) for a in args]
    if outs is not None:
        given["out"] = _written(_literal(outs, arrays))
    if any(isinstance(a, np.ndarray) for a in arrays):
        raise TypeError(f"np.{name} with an array that isn't an argument of the captured function")
    return arrays, repr((module, name, positional, given))


def _svd(a, full_matrices=True, compute_uv=True, hermitian=False):
    """np.linalg.svd with a derivative: the singular values, or the reduced factors, which are all there is of a square matrix."""
    if hermitian or (compute_uv and full_matrices and a.shape[-1] != a.shape[-2]):
        raise NotImplementedError("np.linalg.svd has no derivative here with all vectors of a matrix that isn't square")
    aten = namespace("aten")
    if not compute_uv:
        return aten.linalg_svdvals(a)
    return type(np.linalg.svd(np.eye(1)))(*aten.linalg_svd(a, False))


DIFFERENTIABLE = {
    "numpy.linalg.solve": ("linalg_solve", 2, {}), "numpy.linalg.inv": ("linalg_inv", 1, {}), "numpy.linalg.det": ("linalg_det", 1, {}),
    "numpy.linalg.slogdet": ("linalg_slogdet", 1, {}), "numpy.linalg.cholesky": ("linalg_cholesky", 1, {}),
    "numpy.linalg.eigvalsh": ("linalg_eigvalsh", 1, {}), "numpy.linalg.eigh": ("linalg_eigh", 1, {}),
    "numpy.linalg.svd": _svd, "numpy.linalg.pinv": ("linalg_pinv", 1, {}),
    "numpy.linalg.qr": ("linalg_qr", 1, {}), "numpy.logaddexp": ("logaddexp", 2, {}), "numpy.logaddexp2": ("logaddexp2", 2, {}),
    "numpy.hypot": ("hypot", 2, {}), "numpy.kron": ("kron", 2, {}), "numpy.diff": ("diff", 1, {}), "numpy.cross": ("linalg_cross", 2, {}),
    "numpy.sinc": ("sinc", 1, {}), "numpy.fft.fft": ("fft_fft", 1, {}), "numpy.fft.ifft": ("fft_ifft", 1, {}),
    "numpy.fft.rfft": ("fft_rfft", 1, {}), "numpy.fft.irfft": ("fft_irfft", 1, {}),
    **{f"numpy.fft.{f}": (f"fft_{f}", 1, {}) for f in (
        "fft2", "ifft2", "fftn", "ifftn", "rfft2", "irfft2", "rfftn", "irfftn", "fftshift", "ifftshift")},
    "numpy.linalg.svdvals": ("linalg_svdvals", 1, {}), "numpy.linalg.vecdot": ("linalg_vecdot", 2, {}), "numpy.vecdot": ("linalg_vecdot", 2, {}),
    "numpy.linalg.cross": ("linalg_cross", 2, {}), "numpy.i0": ("special_i0", 1, {}), "numpy.copysign": ("copysign", 2, {}),
    "numpy.trapezoid": ("trapezoid", 1, {}), "numpy.cov": ("cov", 1, {}), "numpy.corrcoef": ("corrcoef", 1, {}), "numpy.nanmean": ("nanmean", 1, {}),
}  # fmt: skip
"""What has a derivative all the same: the operator that computes the same, the number of arguments, and the keyword arguments with which it does. Or
a function of the arguments."""


def differentiable(module: str, name: str) -> bool:
    """Whether a function that is called as NumPy's has a derivative."""
    return f"{module}.{name}" in DIFFERENTIABLE


def opaque(module: str, name: str) -> Callable:
    """``module.name`` as a function on tensors: one node of a graph. TypeError for arguments that a graph can't hold."""
    of_values = _SHAPE_GIVING.get(name, 0)

    def call(*args, **kwargs) -> Any:
        asked = (
            [*args[of_values : of_values + 1], *(v for k, v in kwargs.items() if k in _GIVING)]
            if name in _SHAPE_GIVING
            else ()
        )
        if any(is_tensor(v) and (v.ndim == 0 or name in ("repeat", "tile")) for v in asked):
            raise TypeError(f"np.{name}: the shape of the result depends on values")
        if name == "where" and len(args) != 3:
            raise TypeError("np.where of a condition alone: the shape of the result depends on values")
        in_place = name == "nan_to_num" and not (args[1] if len(args) > 1 else kwargs.get("copy", True))
        if in_place or any(kwargs.get(k) for k in _WRITING):
            raise TypeError(f"np.{name} that may write into its arguments")
        args, kwargs, outs = _without_out(module, name, args, kwargs)
        made = _called(module, name, args, kwargs, outs)
        if outs is None:
            return made
        if isinstance(outs, tuple) and isinstance(made, tuple):
            return tuple(m if out is None else out.copy_(m) for out, m in zip(outs, made, strict=True))
        (out,) = outs if isinstance(outs, tuple) else (outs,)
        return out.copy_(made)

    call.__name__ = call.__qualname__ = f"numpy_{name}"
    return call


def _called(module: str, name: str, args: tuple, kwargs: dict, outs):
    arrays, text = _text(module, name, args, kwargs, outs)
    if _C.tls("grad_enabled") and any(a.requires_grad for a in arrays):
        found = DIFFERENTIABLE.get(f"{module}.{name}")
        if callable(found):
            return found(*args, **kwargs)
        if found is not None and len(args) == found[1] and all(map(is_tensor, args)) and kwargs == found[2]:
            out = getattr(namespace("aten"), found[0])(*args)
            if not isinstance(out, tuple):
                return out
            cls = type(_sample_for(text, arrays))
            return cls(*out) if hasattr(cls, "_fields") else tuple(out)
        raise NotImplementedError(
            f"{module.replace('numpy', 'np', 1)}.{name} has no derivative here: call it on arrays that no gradient is asked for"
        )
    shape = _sample_for(text, arrays)
    if outs is not None:
        _check_written(name, _leaves(shape), outs)
    return _rebuild(shape, iter(call_numpy(arrays, text)))


def _check_written(name, leaves, outs) -> None:
    """TypeError where what is returned can't be what was written."""
    outs = outs if isinstance(outs, tuple) else (outs,)
    for leaf, out in zip(leaves, outs, strict=True):
        if out is not None and (leaf.shape != tuple(out.shape) or leaf.dtype != np.dtype(out.dtype.np)):
            raise TypeError(f"np.{name} returned something else than what it was given to write")


def _without_out(module: str, name: str, args: tuple, kwargs: dict):
    """(args, kwargs, out) with ``out`` taken from among the arguments: None, an array, or a tuple of arrays and None."""
    kwargs = dict(kwargs)
    outs = kwargs.pop("out", None)
    f = getattr(importlib.import_module(module), name.partition(".")[0])
    if isinstance(f, np.ufunc):
        if "." not in name and len(args) > f.nin:
            outs, args = (*args[f.nin :], *[None] * (f.nin + f.nout - len(args))), args[: f.nin]
        elif "." in name:
            at = {"reduce": 3, "accumulate": 3, "reduceat": 4}.get(name.partition(".")[2], len(args))
            if len(args) > at:
                outs, args = args[at], (*args[:at], None, *args[at + 1 :])
    elif (at := _place_of_out(f)) is not None and len(args) > at:
        outs, args = args[at], (*args[:at], None, *args[at + 1 :])
    if isinstance(outs, tuple) and all(o is None for o in outs):
        outs = None
    for out in outs if isinstance(outs, tuple) else () if outs is None else (outs,):
        if out is not None and not is_tensor(out):
            raise TypeError("return arrays must be of ArrayType")
    return args, kwargs, outs


@functools.lru_cache(1024)
def _place_of_out(f) -> int | None:
    try:
        return list(inspect.signature(f).parameters).index("out")
    except ValueError:  # no signature is known, or it has no such parameter
        return None


def _written(item):
    if item[0] in ("a", "o"):
        return ("o", item[1])
    return (item[0], [_written(i) for i in item[1]]) if item[0] in ("t", "l") else item


def _or_numpy(impl, name: str, unknown: tuple[str, ...] = (), module: str = "numpy"):
    """A function on tensors, and for what that doesn't cover (TypeError) NumPy's own. TypeError for arguments of names that are ``unknown``."""
    whole = opaque(module, name)

    @functools.wraps(impl)
    def call(*args, **kwargs) -> Any:
        if any(k in kwargs for k in unknown):
            raise TypeError(f"{name}() got an unexpected keyword argument")
        try:
            return impl(*args, **kwargs)
        except TypeError:
            return whole(*args, **kwargs)

    return call


_entered: set[str] = set()


def _of_loaded_modules() -> Iterator[tuple[Callable, Callable]]:
    """The functions of NumPy's modules that are loaded and weren't asked for before, with what calls them."""
    for module in [m for m in FUNCTIONS_BY_MODULE if m.startswith("numpy") and m in sys.modules and m not in _entered]:
        _entered.add(module)
        for name in FUNCTIONS_BY_MODULE[module].split():
            f = getattr(sys.modules[module], name, None)  # some are newer than the oldest NumPy we run on
            if f is not None:
                yield f, opaque(module, name)


def _enter_late() -> bool:
    """Enter the functions of modules of NumPy's that the program has imported meanwhile. Whether there are new ones."""
    new = [(f, impl) for f, impl in _of_loaded_modules() if id(f) not in numpy_bridge.functions]
    for f, impl in new:
        numpy_bridge.register(f, impl)
    return bool(new)


numpy_bridge.late.append(_enter_late)


def _tells_sizes(x) -> bool:
    """Whether an argument is a mask, or the name of a rule for the number of bins."""
    return isinstance(x, str) or (is_tensor(x) and np.dtype(x.dtype.np) == np.bool_)


def _else_of_data(impl, name: str):
    """A function on tensors, and for what it doesn't cover the call whose sizes depend on values."""
    rest, place = of_data(name), _DATA_GIVING.get(name)

    @functools.wraps(impl)
    def call(*args, **kwargs) -> Any:
        if place is not None and _tells_sizes(args[place[0]] if len(args) > place[0] else kwargs.get(place[1])):
            return rest(*args, **kwargs)
        try:
            return impl(*args, **kwargs)
        except TypeError:
            return rest(*args, **kwargs)

    return call


def _fill_of_data() -> None:
    known = {id(f): i for i, (f, _) in enumerate(FUNCTIONS)}
    called = FUNCTIONS_BY_MODULE["numpy"].split()
    for name in OF_DATA.split():
        f = getattr(np, name, None)  # some are newer than the oldest NumPy we run on
        if f is None:
            continue
        if id(f) in known:
            FUNCTIONS[known[id(f)]] = (f, _else_of_data(FUNCTIONS[known[id(f)]][1], name))
        elif name in called:
            implements(f)(made := _else_of_data(opaque("numpy", name), name))
            del made.__wrapped__  # no function on tensors stands behind it
        else:
            implements(f)(of_data(name))


def _fill() -> None:
    rest = {id(getattr(np, name)): name for name in REST.split() if hasattr(np, name)}
    for i, (f, impl) in enumerate(FUNCTIONS):
        if isinstance(f, np.ufunc) or id(f) in rest:
            FUNCTIONS[i] = (f, _or_numpy(impl, rest.get(id(f)) or f.__name__))
    _fill_of_data()
    for i, (f, impl) in enumerate(FUNCTIONS):
        if f is np.linalg.norm:
            FUNCTIONS[i] = (f, _or_numpy(impl, "norm", module="numpy.linalg"))
    for name in METHODS.keys() & set(REST.split()) - {"sort"}:  # the method sorts in place
        METHODS[name] = _or_numpy(METHODS[name], name, unknown=("correction",))  # of np.var and np.std only
    known = {id(f) for f, _ in FUNCTIONS}
    for f, impl in _of_loaded_modules():
        if id(f) not in known:
            implements(f)(impl)
    for name, f in UFUNCS.items():
        if id(f) not in known and f.signature is None:
            implements(f)(opaque("numpy", name))
        for method in UFUNC_METHODS if f.nin == 2 and f.nout == 1 and f.signature is None else ():
            numpy_bridge.ufunc_methods[name, method] = opaque("numpy", f"{name}.{method}")


_fill()
_OPERATORS = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.divide, "floordiv": np.floor_divide, "mod": np.remainder,
    "pow": np.power, "matmul": np.matmul, "and_": np.bitwise_and, "or_": np.bitwise_or, "xor": np.bitwise_xor, "lshift": np.left_shift,
    "rshift": np.right_shift,
}  # fmt: skip


def _in_place(impl):
    """``x op= y`` of an array: the ufunc with ``out=x``."""

    def in_place(x: Tensor, y: ArrayLike, /) -> Tensor:
        return into(x, impl(x, y), "same_kind")

    in_place.__name__ = in_place.__qualname__ = f"i{impl.__name__}"
    return in_place


_COMPARISONS = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip
for _name, _ufunc in _COMPARISONS.items():
    OPERATORS[_name] = next(impl for f, impl in FUNCTIONS if f is _ufunc)
for _name, _ufunc in _OPERATORS.items():
    OPERATORS[_name] = next(impl for f, impl in FUNCTIONS if f is _ufunc)
    OPERATORS[f"i{_name.rstrip('_')}"] = _in_place(OPERATORS[_name])
for _f, _impl in FUNCTIONS:
    if f"{_f.__module__}.{getattr(_f, '__name__', '')}" in GIVES_ARRAY:
        _impl.gives_array = True  # type: ignore[attr-defined]
for _name in ("argsort", "argpartition", "searchsorted", "choose"):
    METHODS.setdefault(_name, opaque("numpy", _name))


def _reduce(function):
    """``ufunc.reduce`` by a reduction on tensors, which differs in its default axis only."""

    def reduce(
        array: ArrayLike,
        axis: int | Sequence[int] | None = 0,
        dtype: DTypeLike | None = None,
        out: Tensor | None = None,
        keepdims: bool = False,
    ) -> Tensor:
        if dtype is not None:
            return function(array, axis=axis, dtype=dtype, out=out, keepdims=keepdims)
        return function(array, axis=axis, out=out, keepdims=keepdims)

    return reduce


for _ufunc, _function in (("add", np.sum), ("multiply", np.prod), ("maximum", np.max), ("minimum", np.min)):
    numpy_bridge.ufunc_methods[_ufunc, "reduce"] = _or_numpy(
        _reduce(next(impl for f, impl in FUNCTIONS if f is _function)), f"{_ufunc}.reduce"
    )
