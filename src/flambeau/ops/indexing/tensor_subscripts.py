"""Subscripts that are tensors: the shape and strides of what they select, what is wrong with them, and where they lie in batches."""

from __future__ import annotations

import math

import numpy as np

from ...base.errors import ShapeMismatch
from ...base.shape_checks import data_dependent_size
from ...base.shape_env import GuardOnDataDependentSymNode
from ...base.shapes import broadcast_shapes, contiguous_strides
from ...core.layouts import result_strides, strides_of
from ...core.operator import namespace

aten = namespace("aten")
_INDEX_DTYPES = ("int64", "int32", "uint8", "bool")

NO_INDEX = "tensors used as indices must be long, int, byte or bool tensors"


def index_shape(self, indices):
    """(shape of the result, dtype) of advanced indexing; masks need values."""
    shapes, positions = [], []
    d = 0
    for t in indices:
        if t is None:
            d += 1
            continue
        if t.dtype.name in ("bool", "uint8"):
            count = data_dependent_size("index", math.prod(t.shape))
            positions += range(d, d + t.ndim)
            shapes.append((count,))
            d += t.ndim
            continue
        positions.append(d)
        shapes.append(tuple(t.shape))
        d += 1
    if d > len(self.shape):
        raise _too_many(len(self.shape), d)
    out = _together(shapes)
    rest = [n for e, n in enumerate(self.shape) if e not in positions]
    if not positions:  # masks of a number, if any
        return (*out, *self.shape)
    if positions == list(range(positions[0], positions[-1] + 1)):
        at = positions[0]
        return (*self.shape[:at], *out, *self.shape[positions[-1] + 1 :])
    return (*out, *rest)


def _together(shapes) -> tuple:
    """The shape of several index tensors together."""
    try:
        return broadcast_shapes(*shapes)
    except GuardOnDataDependentSymNode:
        raise
    except RuntimeError:
        raise indices_mismatch(shapes) from None


def shape_beside_masks(self, indices) -> list:
    """The shape of the result of advanced indexing with a mask among the indices; None for sizes that depend on how many places masks hold."""
    positions, rank, d = [], 1, 0
    for t in indices:
        mask = t is not None and t.dtype.name in ("bool", "uint8")
        if t is not None:
            positions += range(d, d + t.ndim) if mask else [d]
            rank = max(rank, 1 if mask else t.ndim)
        d += t.ndim if mask else 1
    rest = [n for e, n in enumerate(self.shape) if e not in positions]
    adjacent = positions and positions == list(range(positions[0], positions[-1] + 1))
    at = positions[0] if adjacent else 0
    return [*rest[:at], *[None] * rank, *rest[at:]]


def index_strides(self, indices, shape):
    """Strides of the result of advanced indexing: those of an elementwise operation on ``self``, which doesn't move along the indexed
    dimensions, and the index tensors, which move along no other."""
    positions, wide, d = [], [], 0
    for t in indices:
        mask = t is not None and str(t.dtype).endswith(("bool", "uint8"))
        if t is not None:
            positions += range(d, d + (len(t.shape) if mask else 1))
            wide.append(((shape[0],), (1,)) if mask else (tuple(t.shape), strides_of(t)))
        d += len(t.shape) if mask else 1
    if not positions:  # a mask without dimensions
        return contiguous_strides(shape)
    rank = max(len(s) for s, _ in wide)
    own = [(n, s) for e, (n, s) in enumerate(zip(self.shape, strides_of(self))) if e not in positions]
    before = positions[0] if positions == list(range(positions[0], positions[-1] + 1)) else 0
    after = len(own) - before
    operands = [(shape, (*[s for _, s in own[:before]], *[0] * rank, *[s for _, s in own[before:]]))]
    for size, strides in wide:
        strides = [0] * (rank - len(size)) + [s if n != 1 else 0 for n, s in zip(size, strides)]
        operands.append((shape, (*[0] * before, *strides, *[0] * after)))
    return result_strides(shape, operands)


def index_key(arrays):
    """NumPy's index for the arrays of an index operator: copies, for another thread may change an array between NumPy's check and its use.
    IndexError for a dtype that PyTorch doesn't index by, such as int16."""
    if any(a is not None and a.dtype.char not in "?Bilq" for a in arrays):
        raise IndexError(NO_INDEX)
    return tuple(slice(None) if a is None else a.astype(bool if a.dtype == np.uint8 else a.dtype) for a in arrays)


def _too_many(dimensions: int, given: int) -> IndexError:
    return IndexError(f"too many indices for tensor of dimension {dimensions} (got {given})")


def mask_error(shape, mask, where: int, at: int) -> IndexError:
    return IndexError(
        f"The shape of the mask {list(mask)} at index {where} does not match the shape of the indexed tensor {list(shape)} at index {at}"
    )


def check_dtypes(indices) -> None:
    """IndexError for an index that is neither integers nor a mask."""
    if any(t is not None and t.dtype.name not in _INDEX_DTYPES for t in indices):
        raise IndexError(NO_INDEX)


def check_masks(self, indices) -> None:
    """IndexError for a mask that has another shape than the dimensions that it stands for, as far as sizes are known."""
    d = 0
    for t in indices:
        mask = t is not None and t.dtype.name in ("bool", "uint8")
        for k, (n, m) in enumerate(zip(self.shape[d:], t.shape) if mask else ()):
            try:
                differ = n != m
            except GuardOnDataDependentSymNode:
                continue
            if differ:
                raise mask_error(self.shape, t.shape, k, d + k)
        d += t.ndim if mask else 1


def index_error(shape, indices) -> IndexError:
    """PyTorch's words where an index array lies outside, or a mask has another shape than, its dimensions of ``shape``."""
    d = 0
    if any(t is not None and t.dtype.name not in _INDEX_DTYPES for t in indices):
        return IndexError(NO_INDEX)
    count = sum(t.ndim if t is not None and (t.dtype.kind == "b" or t.dtype == np.uint8) else 1 for t in indices)
    if count > len(shape):
        return _too_many(len(shape), count)
    for at, t in enumerate(indices):
        if t is not None and t.dtype.kind == "b" or t is not None and t.dtype == np.uint8:
            if shape[d : d + t.ndim] != t.shape:
                where = next((e for e in range(t.ndim) if shape[d + e : d + e + 1] != t.shape[e : e + 1]), 0)
                return mask_error(shape, t.shape, where, d + where)
            d += t.ndim
            continue
        if t is not None and t.size:
            worst = int(t.min()) if t.min() < -shape[d] else int(t.max())
            if not shape[d]:
                return IndexError("index is out of bounds for dimension with size 0")
            if not -shape[d] <= worst < shape[d]:
                return IndexError(f"index {worst} is out of bounds for dimension {at} with size {shape[d]}")
        d += 1
    return indices_mismatch([t.shape for t in indices if t is not None])


def indices_mismatch(shapes) -> IndexError:
    return IndexError(
        f"shape mismatch: indexing tensors could not be broadcast together with shapes {', '.join(str(list(s)) for s in shapes)}"
    )


def values_mismatch(given, shape) -> ShapeMismatch:
    return ShapeMismatch(
        f"shape mismatch: value tensor of shape {list(given)} cannot be broadcast to indexing result of shape {list(shape)}"
    )


def batched_indices(b, self, indices):
    """How mapped indexing is done on whole batches: (index list, permutation that brings its result to (batch, *example's result)).

    The batch of ``self`` is a leading dimension: passed over (None), or, when an index is mapped too, indexed by an arange.
    """
    mask = b.mask[1] if isinstance(b.mask[1], tuple) else (False,) * len(indices)
    if any(t is not None and m and t.dtype.name in ("bool", "uint8") for t, m in zip(indices, mask)):
        raise RuntimeError(
            "vmap: We do not support batching operators that can output dynamic shape: indexing by a mask that is mapped over has "
            "another shape for each example. Use torch.where instead"
        )
    wide = [len(t.shape) - m for t, m in zip(indices, mask) if t is not None]
    rank = max(
        1 if t is not None and t.dtype.name in ("bool", "uint8") else n
        for n, t in zip(wide, [t for t in indices if t is not None])
    )
    at = [k for k, t in enumerate(indices) if t is not None]
    adjacent = at == list(range(at[0], at[-1] + 1))
    before = at[0] if adjacent else 0
    lists = [
        t if t is None or not m else aten.reshape.default(t, [b.size, *[1] * (rank - len(t.shape) + 1), *t.shape[1:]])
        for t, m in zip(indices, mask)
    ]
    mapped_index = any(mask)
    if not b.mask[0]:  # the batch is the first dimension of the indices
        batch_at = before if adjacent else 0
    elif not mapped_index:
        lists = [None, *lists]
        batch_at = 0 if adjacent else rank
    else:
        lists = [aten.reshape.default(aten.arange.default(b.size, device=self.device), [b.size, *[1] * rank]), *lists]
        batch_at = 0
    moved = (
        b.mask[0] and mapped_index and before > 0
    )  # the arange is apart from the others: NumPy puts what is indexed in front
    return lists, rank, batch_at, before if moved else 0


def batched_order(ndim, rank, batch_at, before):
    """Permutation of the batched result to (batch, example's result)."""
    if before:  # (batch, indexed, before, after) -> (batch, before, indexed, after)
        return [0, *range(1 + rank, 1 + rank + before), *range(1, 1 + rank), *range(1 + rank + before, ndim)]
    return [batch_at, *(d for d in range(ndim) if d != batch_at)]
