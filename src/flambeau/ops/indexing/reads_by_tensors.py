"""Reads at indices that are tensors: ``x[i, j]`` and ``x[mask]``."""

from __future__ import annotations

import itertools
import math

import numpy as np

from ... import _C
from ...base.shapes import contiguous_strides
from ...core.declare import extern
from ...core.definition import TensorMeta
from ...core.layouts import in_order
from ...core.operator import namespace
from .tensor_subscripts import (
    batched_indices,
    batched_order,
    check_dtypes,
    check_masks,
    index_error,
    index_key,
    index_shape,
    index_strides,
)

aten = namespace("aten")


def _index_meta(self, indices):
    check_dtypes(indices)
    shape = index_shape(self, indices)
    return TensorMeta(shape, index_strides(self, indices, shape), self.dtype, self.device)


@extern("index.Tensor(Tensor self, Tensor?[] indices) -> Tensor", meta=_index_meta, variants="")
def index_tensor(self, indices):
    try:
        out = np.asarray(self[index_key(indices)], order="C")
    except IndexError:
        raise index_error(self.shape, indices) from None
    return in_order(out, index_strides(self, indices, out.shape))


@index_tensor.override("counted")
def _taken(self, indices):
    """The elements of a row-major tensor that one mask of its first dimensions selects."""
    masked = indices[0] is not None and indices[0].dtype.name == "bool" and not any(x is not None for x in indices[1:])
    return _C.take_mask if masked and self._strides == contiguous_strides(self._shape) else None


@index_tensor.override("by_parts")
def _index_by_parts(self, indices):
    """Masks as the places where they hold."""
    if not any(t is not None and t.dtype.name in ("bool", "uint8") for t in indices):
        return NotImplemented
    check_masks(self, indices)
    lists = []
    for t in indices:
        if t is None or t.dtype.name not in ("bool", "uint8"):
            lists.append(t)
        else:
            lists += aten.unbind.int(aten.nonzero.default(t), 1) if t.ndim else [None]
    return NotImplemented if any(t is not None and not t.ndim for t in indices) else aten.index.Tensor(self, lists)


def _index_coords(self, indices):
    """Where each element of the result is read, as an index operator says it: shape, coordinates, and what ``load`` reads. None where the
    result isn't row-major."""
    shape = index_shape(self, indices)
    if index_strides(self, indices, shape) != contiguous_strides(shape):
        return None
    positions = [d for d, t in enumerate(indices) if t is not None]
    ndim = max(len(indices[d].shape) for d in positions)
    at = positions[0] if positions == list(range(positions[0], positions[-1] + 1)) else 0
    rest = [d for d in range(len(self.shape)) if d not in positions]

    def fn(i, load, h):
        mine, others = i[at : at + ndim], iter((*i[:at], *i[at + ndim :]))
        return tuple(
            next(others) if d in rest else load(d, *mine[ndim - len(indices[d].shape) :])
            for d in range(len(self.shape))
        )

    return shape, fn, indices.__getitem__


def _index_bytes(self, indices) -> int:
    """The size of the result, 0 where it depends on data or nobody knows it before looking at the index."""
    given = [t for t in indices if t is not None]
    if any(t.dtype.np.kind == "b" or 0 in t.shape for t in given) or len(indices) > len(self.shape):
        return 0
    rows = math.prod(map(max, itertools.zip_longest(*(reversed(t.shape) for t in given), fillvalue=1)))
    kept = [n for d, n in enumerate(self.shape) if d >= len(indices) or indices[d] is None]
    return rows * math.prod(kept) * self.dtype.itemsize


index_tensor.override("coords", _index_coords)

index_tensor.override("streamed", _index_bytes)

index_tensor.override("lower", lambda lowering, val, self, indices: lowering.take(self, indices, val))

index_tensor.derivative(
    self=lambda ct, self_like, indices: aten.index_put.default(
        aten.new_zeros.default(ct, list(self_like.shape)), indices, ct, True
    )
)


@index_tensor.override("batch")
def _index_batch(b, self, indices):
    lists, rank, batch_at, before = batched_indices(b, self, indices)
    out = aten.index.Tensor(self, lists)
    order = batched_order(out.ndim, rank, batch_at, before)
    return out if order == list(range(out.ndim)) else aten.permute.default(out, order)
