"""The memory order of results: which operands decide it, and arrays that have it. One truth for shape rules, kernels, recipes, lowering."""

from __future__ import annotations

import functools

import numpy as np

from .. import _C
from ..base.shapes import contiguous_strides, elementwise_strides
from .operator import OpOverload

__all__ = [
    "dense_like",
    "in_order",
    "layout_indices",
    "overlaps_itself",
    "refuse_overlap",
    "result_strides",
    "strides_of",
]

OVERLAPPING = "overlapping_writes"  # tag of an operator that may write to a tensor whose elements share memory (fill_)


def overlaps_itself(shape, strides) -> bool:
    """Whether a dimension is expanded. Overlaps that strides alone hide (``unfold``) pass, as in PyTorch."""
    for n, s in zip(shape, strides):
        if isinstance(s, int) and s == 0 and n > 1:
            return 0 not in shape
    return False


def refuse_overlap(op: OpOverload, shape, strides) -> None:
    """RuntimeError when ``op``, an in-place or out= form, may not write to memory laid out so."""
    if overlaps_itself(shape, strides) and OVERLAPPING not in op.definition.functional.tags:
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please clone() the "
            "tensor before performing the operation."
        )


@functools.cache
def layout_indices(op: OpOverload) -> tuple[int, ...]:
    """Positions of the tensor arguments of a pointwise operator that decide the dimension order of its result, the first one first."""
    names, arguments = op.definition.layout, op._schema.arguments
    if names is None:
        return tuple(i for i, a in enumerate(arguments) if a.is_tensor)
    at = {a.name: i for i, a in enumerate(arguments)}
    return tuple(at[n] for n in names)


def result_strides(shape, operands) -> tuple[int, ...]:
    """Strides of an elementwise result. ``operands``: (shape, strides) of the arguments that decide; without any it is row-major."""
    return elementwise_strides(shape, operands) if operands else contiguous_strides(shape)


def dense_like(shape, strides) -> tuple[int, ...]:
    """Strides of ``empty_like``: the dimension order of a tensor, without its gaps."""
    return elementwise_strides(shape, [(shape, strides)])


def strides_of(t) -> tuple[int, ...]:
    """Strides in elements of a tensor, its TensorMeta, or an ndarray."""
    if isinstance(t, np.ndarray):
        return tuple(s // t.itemsize for s in t.strides)
    return t._strides if isinstance(t, _C.TensorBase) else t.strides


def in_order(array: np.ndarray, strides) -> np.ndarray:
    """``array``, copied if it must be to have ``strides`` (in elements; those of a dense tensor)."""
    item, shape = array.itemsize, array.shape
    if all(n <= 1 or s == w * item for n, s, w in zip(shape, array.strides, strides)):
        return array
    order = sorted(range(len(shape)), key=lambda d: -strides[d])
    out = np.empty([shape[d] for d in order], array.dtype).transpose(np.argsort(order))
    out[...] = array
    return out
