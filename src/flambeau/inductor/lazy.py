"""Tensors during lowering."""

from __future__ import annotations

import math

from .ir import dense_strides

__all__ = ["Lazy"]


class Lazy:
    """A tensor during lowering. ``dtype`` is the flambeau dtype; ``at(coords)`` the Value of an element; ``region`` where it lies in memory,
    None as long as it doesn't."""

    __slots__ = ("shape", "dtype", "device", "at", "region", "strides", "view")

    def __init__(self, shape, dtype, at, region=None, strides=None, device=None):
        self.shape, self.dtype, self.at, self.region = tuple(shape), dtype, at, region
        self.strides = strides  # what the tensor's strides are by its shape rule
        self.device = device
        self.view = None  # (tensor it is a view of, function of view handlers) for a view of a tensor without memory

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def numel(self) -> int:
        return math.prod(self.shape)

    def size(self, d=None):
        return self.shape if d is None else self.shape[d]

    def dim(self) -> int:
        return len(self.shape)

    def stride(self):
        return self.strides or dense_strides(self.shape)
