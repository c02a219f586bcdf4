"""NumPy functions without a counterpart on tensors as functions on tensors: one node of a graph each (:mod:`graph_calls`).

What they compute has no derivative here, but for the rows of :data:`DIFFERENTIABLE`: asking for one is an error.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _C
from ..core.operator import namespace
from .graph_calls import call_numpy, call_of_data, leaves_of, rebuilt, sample_for, structure_for, text_of
from .promotion import is_tensor

__all__ = ["DIFFERENTIABLE", "differentiable", "of_data", "opaque"]

_WRITING = ("overwrite_input", "overwrite_a", "overwrite_b")  # what asks a function to use its arguments' memory up
_GIVING = ("new_shape", "bins", "N", "M", "repeats", "reps", "num")
# Their shapes follow from values in these cases: (function, argument that must not be an array of this call).
_SHAPE_GIVING = {
    "resize": 1, "histogram": 1, "histogram_bin_edges": 1,
    "histogram2d": 2, "vander": 1, "hamming": 0, "hanning": 0, "kaiser": 0, "repeat": 1, "tile": 1, "linspace": 2,
}  # fmt: skip


def of_data(name: str) -> Callable:
    """``np.name``, whose results have sizes that depend on values, as a function on tensors. TypeError for arguments that a graph can't hold."""

    def call(*args, **kwargs) -> Any:
        if kwargs.get("out") is not None:
            raise TypeError(f"np.{name} with out=")
        arrays, text = text_of("numpy", name, args, kwargs)
        return rebuilt(sample_for(text, arrays), iter(call_of_data(arrays, text)))

    call.__name__ = call.__qualname__ = f"numpy_{name}_of_data"
    return call


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
    arrays, text = text_of(module, name, args, kwargs, outs)
    if _C.tls("grad_enabled") and any(a.requires_grad for a in arrays):
        found = DIFFERENTIABLE.get(f"{module}.{name}")
        if callable(found):
            return found(*args, **kwargs)
        if found is not None and len(args) == found[1] and all(map(is_tensor, args)) and kwargs == found[2]:
            out = getattr(namespace("aten"), found[0])(*args)
            if not isinstance(out, tuple):
                return out
            cls = type(sample_for(text, arrays))
            return cls(*out) if hasattr(cls, "_fields") else tuple(out)
        raise NotImplementedError(
            f"{module.replace('numpy', 'np', 1)}.{name} has no derivative here: call it on arrays that no gradient is asked for"
        )
    if outs is not None:
        made = sample_for(text, arrays)
        _check_written(name, leaves_of(made), outs)
    else:
        made = structure_for(text, arrays)
    return rebuilt(made, iter(call_numpy(arrays, text)))


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
