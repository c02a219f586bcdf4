"""Public functions and methods whose signature isn't that of one operator: they choose by flags, return more or less, or take several forms."""

from __future__ import annotations

import math
import operator

import numpy as np

from .. import _C
from ..base.errors import AllocationError
from ..base.memory_format import contiguous_format, format_strides, preserve_format
from ..base.symint import SymInt, is_symbolic
from .device_memory import described_at, is_described, on_device, resized_on_device
from .modes import tell_resized
from .operator import namespace
from .overrides import checked_input
from .promotion import check_can_hold

__all__ = ["FUNCTIONS", "METHODS"]

aten = namespace("aten")


def nonzero(input, *, out=None, as_tuple=False):
    """Positions of elements that aren't zero: (number, dimensions), or a tuple of one vector each dimension."""
    if not isinstance(as_tuple, bool):
        raise TypeError(f"nonzero(): argument 'as_tuple' must be bool, not {type(as_tuple).__name__}")
    if out is not None and not isinstance(out, _C.TensorBase):
        raise TypeError(f"nonzero(): argument 'out' must be Tensor, not {type(out).__name__}")
    if not as_tuple:
        return aten.nonzero(input) if out is None else aten.nonzero.out(input, out=out)
    if out is not None:
        raise RuntimeError("nonzero does not support the out kwarg when as_tuple is True")
    if input._ndim == 0:
        input = aten.unsqueeze(input, 0)
    return tuple(aten.unbind(aten.nonzero(input), 1))


def _asked(values, inverse, counts, return_inverse, return_counts):
    out = (values, *([inverse] if return_inverse else []), *([counts] if return_counts else []))
    return out if len(out) > 1 else values


def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """The different values in ascending order (slices along ``dim``); with flags also the place of each element among them, and the
    number of times that each occurs."""
    flags = sorted.__class__ is return_inverse.__class__ is return_counts.__class__ is bool
    if dim is None and flags and isinstance(input, _C.TensorBase):
        found = aten._unique2.default(input, sorted, return_inverse, return_counts)
    elif dim is None:
        found = aten._unique2(input, sorted=sorted, return_inverse=return_inverse, return_counts=return_counts)
    else:
        found = aten.unique_dim(input, dim, sorted=sorted, return_inverse=return_inverse, return_counts=return_counts)
    return _asked(*found, return_inverse, return_counts)


def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    """The first of each run of equal values (slices along ``dim``); flags as in :func:`unique`."""
    if isinstance(input, _C.TensorBase) and return_inverse.__class__ is return_counts.__class__ is bool and dim is None:
        found = aten.unique_consecutive.default(input, return_inverse, return_counts)
    else:
        found = aten.unique_consecutive(input, return_inverse=return_inverse, return_counts=return_counts, dim=dim)
    return _asked(*found, return_inverse, return_counts)


_MODES = {
    "use_mm_for_euclid_dist_if_necessary": None,
    "use_mm_for_euclid_dist": 1,
    "donot_use_mm_for_euclid_dist": 2,
}


def cdist(x1, x2, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary"):
    """Distances of all pairs of rows of (..., P, M) and (..., R, M), in the p-norm: (..., P, R). ValueError for an unknown mode."""
    if not isinstance(compute_mode, str) or compute_mode not in _MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    return aten.cdist(x1, x2, float(p), _MODES[compute_mode])


def lu(A, pivot=True, get_infos=False, out=None):  # noqa: N803
    """(LU, pivots) of matrices, and with ``get_infos`` LAPACK's codes instead of errors."""
    result = aten._lu_with_info(A, pivot=pivot, check_errors=not get_infos)
    made = tuple(result) if get_infos else tuple(result)[:2]
    if out is None:
        return made
    for target, value in zip(out, made):
        aten.copy_(target.resize_(value.shape), value)
    return out


def stft(
    input,
    n_fft,
    hop_length=None,
    win_length=None,
    window=None,
    center=True,
    pad_mode="reflect",
    normalized=False,
    onesided=None,
    return_complex=None,
    align_to_window=None,
):
    """Short-time Fourier transform of (length,) or (batch, length): (..., frequencies, frames). TypeError for numbers where flags belong."""
    checked_input("stft", input)
    flags = {"normalized": normalized, "onesided": onesided, "return_complex": return_complex}
    for name, value in flags.items():
        if value is not None and not isinstance(value, bool):
            raise TypeError(f"stft(): argument '{name}' must be bool, not {type(value).__name__}")
    if isinstance(n_fft, float):
        raise TypeError("stft(): argument 'n_fft' (position 2) must be int, not float")
    if not isinstance(pad_mode, str):
        raise TypeError(f"stft(): argument 'pad_mode' must be str, not {type(pad_mode).__name__}")
    return aten.stft.center(
        input,
        n_fft,
        hop_length,
        win_length,
        window,
        center,
        pad_mode,
        normalized,
        onesided,
        return_complex,
        align_to_window,
    )


def histogramdd(input, bins, range=None, weight=None, density=False):
    """Counts of points (..., D) in D-dimensional cells, and the edges of the cells along each dimension."""
    if isinstance(bins, int):
        bins = [bins] * input.shape[-1]
    if isinstance(bins[0], _C.TensorBase):
        edges = list(bins)
        hist = aten._histogramdd_from_bin_tensors(input, edges, weight=weight, density=density)
    else:
        range = None if range is None else list(range)
        edges = aten._histogramdd_bin_edges(input, list(bins), range=range, weight=weight, density=density)
        hist = aten._histogramdd_from_bin_cts(input, list(bins), range=range, weight=weight, density=density)
    return _histogramdd(hist, tuple(edges))


def _histogramdd(hist, edges):
    from .named_results import named_return_type

    return named_return_type("histogramdd", ("hist", "bin_edges"))(hist, edges)


def _each(name):
    def at_least(*tensors):
        """Each tensor with at least so many dimensions; one tensor, several, or a list of them."""
        if len(tensors) == 1 and not isinstance(tensors[0], (list, tuple)):
            return getattr(aten, name)(tensors[0])
        several = tensors[0] if len(tensors) == 1 else tensors
        return tuple(getattr(aten, name)(t) for t in several)

    at_least.__name__ = name
    return at_least


_AT_LEAST = [_each(f"atleast_{n}d") for n in (1, 2, 3)]


def resize_(self, *sizes, memory_format=None):
    """Give the tensor another shape, row-major or in ``memory_format``, in place. Its memory stays while it is large enough, else the
    elements move to a new one, whose rest is undefined. RuntimeError for tensors that ask for a gradient or have no data."""
    if not sizes:
        raise TypeError('resize_() missing 1 required positional arguments: "size"')
    size = tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], (list, tuple)) else sizes
    size = tuple(operator.index(n) if isinstance(n, (np.integer, _C.TensorBase)) else n for n in size)
    wrong = next((n for n in size if not isinstance(n, int | SymInt) or isinstance(n, bool)), None)
    if wrong is not None:
        raise TypeError(f"resize_(): argument 'size' (position 1) must be tuple of ints, not {type(wrong).__name__}")
    return aten.resize_.default(self, list(size), memory_format=memory_format)


def resize(self, size: tuple, memory_format):
    """:func:`resize_` itself, behind the operator's name."""
    if self._requires_grad:
        raise RuntimeError("cannot resize variables that require grad")
    placed = on_device(self)
    described = not placed and is_described(self)
    if self._array is None and not placed and not described:
        raise NotImplementedError("resize_ needs a tensor with data")
    if not is_symbolic(size) and any(n < 0 for n in size):
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(size)}: {list(size)}")
    format = contiguous_format if memory_format is None else memory_format
    if format is preserve_format:
        raise RuntimeError("Unsupported memory format Preserve")
    if tuple(self._shape) == size and memory_format is None:
        return self
    tell_resized(self, "resize_")
    strides = format_strides(size, format)
    if not is_symbolic(strides) and any(abs(s) >= 1 << 63 for s in strides):
        raise RuntimeError("Stride calculation overflowed")
    n, kind = math.prod(size), self._dtype.np
    room = self._storage.nbytes() // self._dtype.itemsize - self._offset
    if described:
        storage = self._storage if n <= room else self.new_empty(self._offset + n)._storage
        made = described_at(self, storage, size, strides, self._offset)
    elif n <= room and not placed:
        made = _C.strided(self, size, strides, 0)
    elif placed:
        made = resized_on_device(self, size, strides, n <= room)
    else:
        if n * kind.itemsize >= 1 << 63:
            raise AllocationError(f"Storage size calculation overflowed with sizes={list(size)}")
        memory = np.empty(n, kind)
        memory[: max(room, 0)] = _C.strided(self, (max(room, 0),), (1,), 0)._array if room > 0 else []
        made = _C.strided(_C.from_array(memory), size, strides, 0)
    _C.take_place(self, made)
    self._bump_version()
    return self


def resize_as_(self, the_template, *, memory_format=None):
    """:meth:`resize_` to the shape of another tensor; with ``preserve_format`` also to the memory format that its strides suggest."""
    if not isinstance(the_template, _C.TensorBase):
        raise TypeError(
            f"resize_as_(): argument 'the_template' (position 1) must be Tensor, not {type(the_template).__name__}"
        )
    return aten.resize_as_.default(self, the_template, memory_format=memory_format)


def _chalf(self, memory_format=None):
    """Refuses: NumPy has no complex numbers of half precision."""
    raise NotImplementedError("chalf: NumPy has no complex numbers of half precision, so tensors don't either")


_chalf.__name__ = "chalf"


def overwrite(target, made):
    """``target`` with the elements of ``made``. RuntimeError when its dtype can't hold them."""
    check_can_hold(target.dtype, made.dtype)
    return aten.copy_(target, made)


def polygamma(self, n):
    """The derivative of order ``n`` of the digamma function."""
    return aten.polygamma(n, self)


def polygamma_(self, n):
    """:meth:`polygamma` in place."""
    return overwrite(self, aten.polygamma(n, aten.clone(self)))


_SEVERAL = (nonzero, unique, unique_consecutive, cdist, lu, stft, histogramdd, resize_as_, *_AT_LEAST)
FUNCTIONS = {f.__name__: f for f in _SEVERAL}
METHODS = {
    f.__name__: f
    for f in (nonzero, unique, unique_consecutive, lu, stft, resize_, resize_as_, _chalf, polygamma, polygamma_)
}
