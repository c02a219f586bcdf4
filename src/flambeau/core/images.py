"""Results of operators on images: in the memory format (channels last, or row-major) of the image they are made from."""

from __future__ import annotations

import functools
from collections.abc import Callable

from ..base.shapes import statically_equal
from .layouts import image_format, image_strides, strides_of
from .operator import namespace

__all__ = ["as_image", "as_images"]

aten = namespace("aten")


def as_image(out, format):
    """``out``, copied unless it has exactly the strides of a new tensor in ``format``."""
    line = out.ndim == 3 and format.rank == 4
    if format.rank is not None and out.ndim != format.rank and not line:
        return out
    want = image_strides(tuple(out.shape), format)
    if all(map(statically_equal, strides_of(out), want)):
        return out
    if line:
        return aten.squeeze.dim(aten.clone.default(aten.unsqueeze.default(out, -2), memory_format=format), -2)
    return aten.clone.default(out, memory_format=format)


def as_images(fn: Callable, at: int, line: bool, count: int | None) -> Callable:
    """``fn``, its results (the first ``count``) in the memory format that the argument at ``at`` suggests. ``line``: (N, C, L) are images of one
    row, instead of row-major always."""

    @functools.wraps(fn)
    def run(*args):
        format = image_format(tuple(args[at].shape), strides_of(args[at]), line)
        made = fn(*args)
        if not isinstance(made, (tuple, list)):
            return as_image(made, format)
        n = len(made) if count is None else count
        return type(made)([t if t is None else as_image(t, format) for t in made[:n]] + list(made[n:]))

    return run
