"""Operator samples in other memory layouts: the same shapes and (where the layout allows) values, other strides."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from .samples import Call

__all__ = ["LAYOUTS", "rearranged"]


def _reversed(a):
    """Column-major."""
    return np.asfortranarray(a) if a.ndim > 1 else a


def _swapped(a):
    """The first two dimensions exchanged in memory."""
    return np.ascontiguousarray(a.swapaxes(0, 1)).swapaxes(0, 1) if a.ndim > 1 else a


def _channels_last(a):
    """The second dimension innermost."""
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(a, 1, -1)), -1, 1) if a.ndim > 2 else a


def _gaps(a):
    """Every second element of a row."""
    if not a.ndim:
        return a
    wide = np.zeros((*a.shape[:-1], 2 * a.shape[-1]), a.dtype)
    wide[..., ::2] = a
    return wide[..., ::2]


def _window(a):
    """A part of something larger, column-major."""
    if a.ndim < 2:
        return a
    wide = np.zeros(tuple(n + 2 for n in a.shape), a.dtype, order="F")
    inside = tuple(slice(1, n + 1) for n in a.shape)
    wide[inside] = a
    return wide[inside]


def _expanded(a):
    """One row repeated without memory of its own."""
    return np.broadcast_to(a[:1], a.shape) if a.ndim > 1 and a.shape[0] > 1 else a


def _expanded_last(a):
    return np.broadcast_to(a[..., :1], a.shape) if a.ndim > 1 and a.shape[-1] > 1 else a


LAYOUTS: dict[str, Callable] = {
    "reversed": _reversed,
    "swapped": _swapped,
    "channels_last": _channels_last,
    "gaps": _gaps,
    "window": _window,
    "expanded": _expanded,
    "expanded_last": _expanded_last,
}


def _each(x, change):
    if isinstance(x, np.ndarray):
        return change(x) if x.size else x
    if isinstance(x, (list, tuple)):
        return type(x)(_each(y, change) for y in x)
    if isinstance(x, dict):
        return {k: _each(v, change) for k, v in x.items()}
    return x


def rearranged(sample: Call) -> Iterator[tuple[str, Call]]:
    """(name of the layout, sample) for all layouts that change a stride, of all tensors and of the first one alone."""
    seen = set()
    for name, change in LAYOUTS.items():
        for alone in (False, True):
            if alone:
                args = (*(_each(a, change) for a in sample.args[:1]), *sample.args[1:])
                kwargs = sample.kwargs
            else:
                args, kwargs = _each(sample.args, change), _each(sample.kwargs, change)
            key = _strides((args, kwargs))
            if key not in seen and key != _strides((sample.args, sample.kwargs)):
                seen.add(key)
                yield f"{name}{' first' if alone else ''}", Call(args, kwargs, sample.grad)


def _strides(x):
    if isinstance(x, np.ndarray):
        return x.strides
    if isinstance(x, (list, tuple)):
        return tuple(map(_strides, x))
    return tuple(map(_strides, x.values())) if isinstance(x, dict) else None
