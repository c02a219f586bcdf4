"""Tensors during lowering."""

from __future__ import annotations

import math

from ..ir.nodes import dense_strides
from ..ir.sizes import sizes, symbolic

__all__ = ["LazyTensor", "broadcast_coords", "flatten", "strides_of"]


class LazyTensor:
    """A tensor during lowering. ``sizes``: ints and expressions, ``shape`` the same for operators to ask; ``dtype`` is the flambeau dtype;
    ``at(coords)`` the Value of an element; ``region`` where it lies in memory, None as long as it doesn't."""

    __slots__ = (
        "sizes",
        "dtype",
        "device",
        "at",
        "region",
        "strides",
        "view",
        "example",
        "depth",
        "origins",
        "undefined",
    )

    def __init__(self, shape, dtype, at, region=None, strides=None, device=None, example=None):
        self.sizes, self.dtype, self.at, self.region = tuple(shape), dtype, at, region
        self.example = example
        self.strides = strides  # what the tensor's strides are by its shape rule
        self.device = device
        self.origins: tuple = ()  # operators of the graph that an element is computed by
        self.depth = 0  # nodes of the graph that an element is computed by, one in another
        self.undefined = False  # whether elements may be anything, and are read as 0 where they don't lie in memory
        self.view = None  # (tensor it is a view of, function of view handlers) for a view of a tensor without memory

    @property
    def shape(self) -> tuple:
        return tuple(symbolic(n, self.example) for n in self.sizes)

    @property
    def ndim(self) -> int:
        return len(self.sizes)

    def numel(self):
        return math.prod(self.shape)

    def size(self, d=None):
        return self.shape if d is None else self.shape[d]

    def dim(self) -> int:
        return len(self.sizes)

    def stride(self):
        return tuple(symbolic(s, self.example) for s in self.strides or dense_strides(self.sizes))


def broadcast_coords(coords, shape):
    """Coordinates in a tensor of this shape for those in what it is broadcast to."""
    tail = coords[len(coords) - len(shape) :] if shape else ()
    return tuple(0 if n == 1 else c for c, n in zip(tail, shape))


def strides_of(val):
    """The strides of a tensor without data as sizes; None of anything else."""
    return sizes(val.stride()) if hasattr(val, "stride") else None


def flatten(tree) -> list:
    """The leaves of nested tuples, lists and dicts."""
    if not isinstance(tree, _NESTED):
        return [tree]
    leaves: list = []
    _add_leaves(tree, leaves)
    return leaves


def _add_leaves(tree, leaves: list) -> None:
    for x in tree.values() if isinstance(tree, dict) else tree:
        if isinstance(x, _NESTED):
            _add_leaves(x, leaves)
        else:
            leaves.append(x)


_NESTED = (tuple, list, dict)


def tensors_in(tree) -> list[LazyTensor]:
    """The tensors among the leaves."""
    return [x for x in flatten(tree) if isinstance(x, LazyTensor)]
