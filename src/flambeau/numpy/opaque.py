"""NumPy functions without a counterpart on tensors, called as they are from inside a graph.

``numpy::call(Tensor[] arrays, str call) -> Tensor[]`` runs one call of a NumPy function. ``call`` is the call as a literal: the function's
path and its arguments, with a number in the place of each array, so that a graph that holds it can be kept on disk. The shapes, strides and
dtypes of the results are those of the same call on made-up arrays of the same description; they are found once a description.

Only ufuncs, their methods and the functions in :data:`FUNCTIONS_BY_MODULE` are called like this: their results are new arrays whose
shapes don't depend on values, and they have no effects. What they compute has no derivative here: asking for one is an error.
"""

from __future__ import annotations

import ast
import functools
import importlib
import warnings
from typing import Any

import numpy as np

from .. import _C
from ..base.device import CPU
from ..base.dtypes import from_numpy
from ..core.declare import extern
from ..core.definition import TensorMeta
from ..core.operator import namespace
from ..dynamo.numpy_bridge import ufunc_methods
from .promotion import is_tensor
from .table import FUNCTIONS, METHODS, OPERATORS, implements, into

__all__ = ["DIFFERENTIABLE", "FUNCTIONS_BY_MODULE", "differentiable", "opaque"]

FUNCTIONS_BY_MODULE = {
    "numpy": (
        "angle append argpartition argsort bartlett bitwise_count blackman block cbrt choose convolve copysign corrcoef correlate cov cross "
        "cumulative_prod cumulative_sum delete diag_indices diagflat diff digitize divmod ediff1d fix frexp gcd geomspace gradient hamming hanning "
        "heaviside histogram histogram2d histogramdd hypot i0 indices insert interp isclose iscomplex isin isneginf isposinf isreal kaiser lcm "
        "ldexp left_shift lexsort logaddexp logaddexp2 logspace mask_indices matvec median modf nanargmax nanargmin nancumprod nancumsum nanmax "
        "nanmean nanmedian nanmin nanpercentile nanquantile nanstd nanvar nextafter packbits pad partition percentile polyadd polyder polyfit "
        "polyint polymul polysub polyval quantile ravel_multi_index resize right_shift searchsorted select signbit sinc sort_complex spacing "
        "take_along_axis trapezoid tril_indices tril_indices_from triu_indices triu_indices_from unpackbits unravel_index unwrap vander vecdot "
        "vecmat"
    ),
    "numpy.linalg": (
        "cholesky cond cross det eig eigh eigvals eigvalsh inv lstsq matmul matrix_norm matrix_power matrix_rank multi_dot outer pinv qr "
        "slogdet solve svd svdvals tensordot tensorinv tensorsolve trace vecdot vector_norm"
    ),
    "numpy.fft": (
        "fft fft2 fftfreq fftn fftshift hfft ifft ifft2 ifftn ifftshift ihfft irfft irfft2 irfftn rfft rfft2 rfftfreq rfftn"
    ),
}
UFUNC_METHODS = ("reduce", "accumulate", "outer", "reduceat")
# Their shapes follow from values in these cases: (function, argument that must not be an array of this call).
_SHAPE_GIVING = {"resize": 1, "histogram": 1, "histogram2d": 2, "vander": 1, "hamming": 0, "hanning": 0, "kaiser": 0}


def _literal(x, arrays: list) -> Any:
    """A value as a literal: ("a", number) for arrays, ("v", value), ("s", dtype, value) for scalars, ("d", name) for dtypes, or a container."""
    if is_tensor(x) or isinstance(x, np.ndarray):
        arrays.append(x)
        return ("a", len(arrays) - 1)
    if x is None or isinstance(x, (bool, int, float, complex, str)):
        return ("v", x)
    if isinstance(x, np.generic) and x.dtype.kind in "biufc":
        return ("s", x.dtype.str, x.item())
    if isinstance(x, np.dtype) or (isinstance(x, type) and issubclass(x, np.generic)):
        return ("d", np.dtype(x).str)
    if isinstance(x, type) and x in (bool, int, float, complex):
        return ("d", np.dtype(x).str)
    if type(x) in (list, tuple):
        return ("l" if type(x) is list else "t", [_literal(y, arrays) for y in x])
    raise TypeError(f"{type(x).__name__} can't be an argument of a NumPy function in a graph")


def _value(item, arrays):
    kind = item[0]
    if kind == "a":
        return arrays[item[1]]
    if kind == "v":
        return item[1]
    if kind == "s":
        return np.dtype(item[1]).type(item[2])
    if kind == "d":
        return np.dtype(item[1])
    values = [_value(y, arrays) for y in item[1]]
    return values if kind == "l" else tuple(values)


@functools.lru_cache(4096)
def _parsed(call: str):
    """(function, its positional arguments, its keyword arguments) of a call's text. ValueError for a function that isn't in the table."""
    module, name, args, kwargs = ast.literal_eval(call)
    head, _, method = name.partition(".")
    f = getattr(importlib.import_module(module), head)
    if isinstance(f, np.ufunc) and module in ("numpy", "scipy.special") and method in ("", *UFUNC_METHODS):
        return (getattr(f, method) if method else f), args, kwargs
    if name not in FUNCTIONS_BY_MODULE.get(module, "").split():
        raise ValueError(f"{module}.{name} is not a function that graphs call")
    return f, args, kwargs


def _run(call: str, arrays) -> Any:
    f, args, kwargs = _parsed(call)
    return f(*(_value(a, arrays) for a in args), **{k: _value(v, arrays) for k, v in kwargs.items()})


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
    arrays = []
    for shape, dtype in descriptions:
        d = np.dtype(dtype)
        a = np.broadcast_to(np.arange(shape[-1]) % 127 if shape else np.array(1), shape)
        if d.kind in "fc" and len(shape) > 1 and shape[-1] == shape[-2]:
            a = a / (127.0 * shape[-1]) + 2 * np.eye(shape[-1])
            a = a + np.swapaxes(a, -1, -2)
        arrays.append(np.array(a).astype(d))
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _run(call, arrays)
    except Exception as e:
        raise TypeError(f"{call}: what this returns can't be told without its data ({type(e).__name__}: {e})") from e


def _sample_for(call, arrays):
    return _sample(
        call,
        tuple(
            (tuple(int(n) for n in a.shape), a.dtype.str if type(a) is np.ndarray else np.dtype(a.dtype.np).str)
            for a in arrays
        ),
    )


def _meta(arrays, call):
    return [
        TensorMeta(leaf.shape, tuple(s // leaf.itemsize for s in leaf.strides), from_numpy(leaf.dtype), CPU)
        for leaf in _leaves(_sample_for(call, arrays))
    ]


@extern("numpy::call(Tensor[] arrays, str call) -> Tensor[]", meta=_meta, variants="", tags=("has_side_effects",))
def call_numpy(arrays, call):
    """Its errors and warnings are effects: it is called though its result is not used."""
    leaves = _leaves(_run(call, arrays))
    for leaf, expected in zip(leaves, _leaves(_sample_for(call, arrays)), strict=True):
        if leaf.dtype != expected.dtype or leaf.shape != expected.shape:
            raise RuntimeError(
                f"{call} gave {leaf.dtype}{list(leaf.shape)}, and {expected.dtype}{list(expected.shape)} on made-up arrays"
            )
    return [np.array(leaf, copy=True) if leaf.base is not None else leaf for leaf in leaves]


DIFFERENTIABLE = {
    "numpy.linalg.solve": ("linalg_solve", 2, {}), "numpy.linalg.inv": ("linalg_inv", 1, {}), "numpy.linalg.det": ("linalg_det", 1, {}),
    "numpy.linalg.slogdet": ("linalg_slogdet", 1, {}), "numpy.linalg.cholesky": ("linalg_cholesky", 1, {}),
    "numpy.linalg.eigvalsh": ("linalg_eigvalsh", 1, {}), "numpy.linalg.eigh": ("linalg_eigh", 1, {}),
    "numpy.linalg.svd": ("linalg_svdvals", 1, {"compute_uv": False}), "numpy.linalg.pinv": ("linalg_pinv", 1, {}),
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


def opaque(module: str, name: str):
    """``module.name`` as a function on tensors: one node of a graph. TypeError for arguments that a graph can't hold."""
    of_values = _SHAPE_GIVING.get(name)

    def call(*args, **kwargs):
        if of_values is not None and len(args) > of_values and is_tensor(args[of_values]) and args[of_values].ndim == 0:
            raise TypeError(f"np.{name}: the shape of the result depends on values")
        arrays: list = []
        text = repr(
            (module, name, [_literal(a, arrays) for a in args], {k: _literal(v, arrays) for k, v in kwargs.items()})
        )
        if any(isinstance(a, np.ndarray) for a in arrays):
            raise TypeError(f"np.{name} with an array that isn't an argument of the captured function")
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
        return _rebuild(shape, iter(call_numpy(arrays, text)))

    call.__name__ = call.__qualname__ = f"numpy_{name}"
    return call


def _or_numpy(impl, name: str):
    """A ufunc's function on tensors, and for what that doesn't cover (TypeError) NumPy's own. Arguments that are written to are not."""
    whole = opaque("numpy", name)

    @functools.wraps(impl)
    def call(*args, **kwargs):
        try:
            return impl(*args, **kwargs)
        except TypeError:
            if kwargs.get("out") is not None or len(args) > getattr(np, name).nin:
                raise
            return whole(*args, **kwargs)

    return call


def _fill() -> None:
    for i, (f, impl) in enumerate(FUNCTIONS):
        if isinstance(f, np.ufunc):
            FUNCTIONS[i] = (f, _or_numpy(impl, f.__name__))
    known = {id(f) for f, _ in FUNCTIONS}
    for module, names in FUNCTIONS_BY_MODULE.items():
        where = importlib.import_module(module)
        for name in names.split():
            f = getattr(where, name, None)  # some are newer than the oldest NumPy we run on
            if f is not None and id(f) not in known:
                implements(f)(opaque(module, name))
    for name in dir(np):
        f = getattr(np, name)
        if isinstance(f, np.ufunc) and f.__name__ == name:
            if id(f) not in known and f.signature is None:
                implements(f)(opaque("numpy", name))
            for method in UFUNC_METHODS if f.nin == 2 and f.nout == 1 and f.signature is None else ():
                ufunc_methods[name, method] = opaque("numpy", f"{name}.{method}")


_fill()
_OPERATORS = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.divide, "floordiv": np.floor_divide, "mod": np.remainder,
    "pow": np.power, "matmul": np.matmul, "and_": np.bitwise_and, "or_": np.bitwise_or, "xor": np.bitwise_xor, "lshift": np.left_shift,
    "rshift": np.right_shift,
}  # fmt: skip


def _in_place(impl):
    """``x op= y`` of an array: the ufunc with ``out=x``."""

    def in_place(x, y, /):
        return into(x, impl(x, y))

    in_place.__name__ = in_place.__qualname__ = f"i{impl.__name__}"
    return in_place


for _name, _ufunc in _OPERATORS.items():
    OPERATORS[_name] = next(impl for f, impl in FUNCTIONS if f is _ufunc)
    OPERATORS[f"i{_name.rstrip('_')}"] = _in_place(OPERATORS[_name])
for _f, _impl in FUNCTIONS:
    if _f in (np.pad, np.block):
        _impl.gives_array = True  # of what has no dimensions too
for _name in ("argsort", "argpartition", "searchsorted", "choose"):
    METHODS.setdefault(_name, opaque("numpy", _name))


def _reduce(function):
    """``ufunc.reduce`` by a reduction on tensors, which differs in its default axis only."""

    def reduce(array, axis=0, dtype=None, out=None, keepdims=False):
        if dtype is not None:
            return function(array, axis=axis, dtype=dtype, out=out, keepdims=keepdims)
        return function(array, axis=axis, out=out, keepdims=keepdims)

    return reduce


for _ufunc, _function in (("add", np.sum), ("multiply", np.prod), ("maximum", np.max), ("minimum", np.min)):
    ufunc_methods[_ufunc, "reduce"] = _reduce(next(impl for f, impl in FUNCTIONS if f is _function))
