"""Reads and writes at indices that are tensors: ``x[i, j]`` and ``x[mask] = y``."""

from __future__ import annotations

import itertools
import math
import sys
import warnings

import numpy as np

from ... import _C
from ...base.errors import ShapeMismatch
from ...base.records import replace
from ...base.shape_env import (
    GuardOnDataDependentSymNode,
    data_dependent_size,
    is_user_frame,
)
from ...base.shapes import broadcast_shapes, contiguous_strides, same_shape
from ...core.declare import extern
from ...core.definition import TensorMeta
from ...core.layouts import dense_like, in_order, refuse_overlap, result_strides, strides_of
from ...core.operator import namespace
from ...core.subscript import BYTES_MASK

aten = namespace("aten")


def _index_shape(self, indices):
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
    out = broadcast_shapes(*shapes)
    rest = [n for e, n in enumerate(self.shape) if e not in positions]
    if not positions:  # masks of a number, if any
        return (*out, *self.shape)
    if positions == list(range(positions[0], positions[-1] + 1)):
        at = positions[0]
        return (*self.shape[:at], *out, *self.shape[positions[-1] + 1 :])
    return (*out, *rest)


def _index_strides(self, indices, shape):
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


_INDEX_DTYPES = ("int64", "int32", "uint8", "bool")

_NO_INDEX = "tensors used as indices must be long, int, byte or bool tensors"


def _index_meta(self, indices):
    _check_dtypes(indices)
    shape = _index_shape(self, indices)
    return TensorMeta(shape, _index_strides(self, indices, shape), self.dtype, self.device)


def _key(arrays):
    """NumPy's index for the arrays of an index operator: copies, for another thread may change an array between NumPy's check and its use.
    IndexError for a dtype that PyTorch doesn't index by, such as int16."""
    if any(a is not None and a.dtype.char not in "?Bilq" for a in arrays):
        raise IndexError(_NO_INDEX)
    return tuple(slice(None) if a is None else a.astype(bool if a.dtype == np.uint8 else a.dtype) for a in arrays)


def _put(array, indices, values) -> None:
    """Write elements of an array by index."""
    masked = len(indices) == 1 and _C.put_mask(array, indices[0], values)
    if not masked and not _C.put_at(array, indices, values):
        array[_key(indices)] = values


def _mask_error(shape, mask, where: int, at: int) -> IndexError:
    return IndexError(
        f"The shape of the mask {list(mask)} at index {where} does not match the shape of the indexed tensor {list(shape)} at index {at}"
    )


def _check_dtypes(indices) -> None:
    """IndexError for an index that is neither integers nor a mask."""
    if any(t is not None and t.dtype.name not in _INDEX_DTYPES for t in indices):
        raise IndexError(_NO_INDEX)


def _check_masks(self, indices) -> None:
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
                raise _mask_error(self.shape, t.shape, k, d + k)
        d += t.ndim if mask else 1


def _index_error(shape, indices) -> IndexError:
    """PyTorch's words where an index array lies outside, or a mask has another shape than, its dimensions of ``shape``."""
    d = 0
    if any(t is not None and t.dtype.name not in _INDEX_DTYPES for t in indices):
        return IndexError(_NO_INDEX)
    for at, t in enumerate(indices):
        if t is not None and t.dtype.kind == "b" or t is not None and t.dtype == np.uint8:
            if shape[d : d + t.ndim] != t.shape:
                where = next((e for e in range(t.ndim) if shape[d + e : d + e + 1] != t.shape[e : e + 1]), 0)
                return _mask_error(shape, t.shape, where, d + where)
            d += t.ndim
            continue
        if t is not None and t.size:
            worst = int(t.min()) if t.min() < -shape[d] else int(t.max())
            if not shape[d]:
                return IndexError("index is out of bounds for dimension with size 0")
            if not -shape[d] <= worst < shape[d]:
                return IndexError(f"index {worst} is out of bounds for dimension {at} with size {shape[d]}")
        d += 1
    shapes = [t.shape for t in indices if t is not None]
    return IndexError(
        f"shape mismatch: indexing tensors could not be broadcast together with shapes {', '.join(str(list(s)) for s in shapes)}"
    )


@extern("index.Tensor(Tensor self, Tensor?[] indices) -> Tensor", meta=_index_meta, variants="")
def index_tensor(self, indices):
    try:
        out = np.asarray(self[_key(indices)], order="C")
    except IndexError:
        raise _index_error(self.shape, indices) from None
    return in_order(out, _index_strides(self, indices, out.shape))


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
    _check_masks(self, indices)
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
    shape = _index_shape(self, indices)
    if _index_strides(self, indices, shape) != contiguous_strides(shape):
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


def _mismatch(given, shape) -> ShapeMismatch:
    return ShapeMismatch(
        f"shape mismatch: value tensor of shape {list(given)} cannot be broadcast to indexing result of shape {list(shape)}"
    )


def _warn_of_bytes(indices) -> bool:
    """Whether there is a mask of bytes among them, which the program's line is warned of."""
    found = any(t is not None and t.dtype.name == "uint8" for t in indices)
    if found:
        # How many frames of the library are between depends on what is known of the call.
        level, frame = 1, sys._getframe()
        while frame is not None and not is_user_frame(frame):
            level, frame = level + 1, frame.f_back
        warnings.warn(BYTES_MASK, stacklevel=level)
    return found


def _index_put_meta(self, indices, values, accumulate):
    _check_dtypes(indices)
    _check_masks(self, indices)
    if not any(t is not None and t.dtype.name in ("bool", "uint8") for t in indices):
        shape, given = _index_shape(self, indices), tuple(values.shape)
        try:
            fits = same_shape(broadcast_shapes(shape, given), shape)
        except GuardOnDataDependentSymNode:  # told by the kernel
            fits = True
        except RuntimeError:
            fits = False
        if not fits:
            raise _mismatch(given, shape)
    return TensorMeta(tuple(self.shape), dense_like(tuple(self.shape), strides_of(self)), self.dtype, self.device)


@extern(
    "index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
    meta=_index_put_meta,
    variants="function method",
    inplace=True,
    same_dtype=(
        0,
        2,
        "Index put requires the source and destination dtypes match, got {} for the destination and {} for the source.",
    ),
    tags=("overlapping_writes",),
)
def index_put(self, indices, values, accumulate):
    _warn_of_bytes(indices)
    out = in_order(self.copy(), dense_like(self.shape, strides_of(self)))
    try:
        if accumulate:
            key = _key(indices)
            # NumPy 2.4 reads beyond values of fewer dimensions than the one index of a vector.
            if out.ndim == len(key) == 1 and isinstance(key[0], np.ndarray) and key[0].dtype.kind != "b":
                values = np.broadcast_to(values, key[0].shape) if values.ndim < key[0].ndim else values
            np.add.at(out, key, values)
        else:
            _put(out, indices, values)
    except IndexError:
        raise _index_error(self.shape, indices) from None
    except ValueError:
        raise _mismatch(values.shape, out[_key(indices)].shape) from None
    return out


@aten.index_put_.default.override("eager")
def _index_put_in_place(self, indices, values, accumulate):
    """Into the memory itself: NumPy looks at all indices before it writes the first element."""
    op = aten.index_put_.default
    if _warn_of_bytes(indices):
        indices = [None if t is None else aten.ne.Scalar(t, 0) if t._dtype.name == "uint8" else t for t in indices]
    if self._dtype is not values._dtype or accumulate or self._array.dtype != values._array.dtype:
        made = index_put(self, indices, values, accumulate)
        self._check_writable()
        refuse_overlap(op, self._shape, self._strides)
        np.copyto(self._array, made._array)
    else:
        self._check_writable()
        refuse_overlap(op, self._shape, self._strides)
        arrays = [None if t is None else t._array for t in indices]
        try:
            _put(self._array, arrays, values._array)
        except (IndexError, ValueError):
            index_put(self, indices, values)  # words the error
            raise
    self._bump_version()
    return self


def _values_vjp(ct, values_like, indices):
    """Of a mask alone the number of places is that of the values, so that it needn't be counted: a compiled backward has its sizes."""
    alone = len(indices) == 1 and indices[0].dtype.name == "bool" and values_like.ndim == ct.ndim - indices[0].ndim + 1
    if alone and values_like.shape[0] != 1:
        places = aten.nonzero_static.default(indices[0], size=values_like.shape[0])
        indices = list(aten.unbind.int(places, 1))
    return aten.index.Tensor(ct, indices)


@index_put.override("lower")
def _lower_index_put(lowering, val, self, indices, values, accumulate):
    mask = indices[0] if len(indices) == 1 else None
    if mask is not None and mask.dtype.name in ("bool", "uint8"):
        made = lowering.for_all(val, self, mask, values, accumulate)
        if made is not None:
            return made
    if val.dtype.is_complex:
        raise NotImplementedError("writes of complex numbers by index")
    return lowering.put(self, indices, values, accumulate, val)


index_put.derivative(
    self=lambda ct, indices, values_like, accumulate: (
        ct if accumulate else aten.index_put.default(ct, indices, aten.new_zeros.default(ct, list(values_like.shape)))
    ),
    values=lambda ct, values_like, indices: _values_vjp(ct, values_like, indices),
)


def _place(b, self, indices):
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


def _order(ndim, rank, batch_at, before):
    """Permutation of the batched result to (batch, example's result)."""
    if before:  # (batch, indexed, before, after) -> (batch, before, indexed, after)
        return [0, *range(1 + rank, 1 + rank + before), *range(1, 1 + rank), *range(1 + rank + before, ndim)]
    return [batch_at, *(d for d in range(ndim) if d != batch_at)]


@index_tensor.override("batch")
def _index_batch(b, self, indices):
    lists, rank, batch_at, before = _place(b, self, indices)
    out = aten.index.Tensor(self, lists)
    order = _order(out.ndim, rank, batch_at, before)
    return out if order == list(range(out.ndim)) else aten.permute.default(out, order)


@index_put.override("batch")
def _index_put_batch(b, self, indices, values, accumulate):
    self = b.all(self, b.mask[0])
    mask = indices[0]
    if (
        len(indices) == 1
        and mask.dtype.name == "bool"
        and values.numel() == (values.shape[0] if b.mask[2] else 1)
        and not accumulate
    ):
        # One value wherever the mask is set: nothing depends on how many places there are.
        mask, lead = b.all(mask, b.mask[1][0]), self.shape[0]
        mask = aten.reshape.default(mask, [*mask.shape, *[1] * (len(self.shape) - len(mask.shape))])
        return aten.where.self(
            mask, aten.reshape.default(values, [lead if b.mask[2] else 1, *[1] * (len(self.shape) - 1)]), self
        )
    b = replace(b, mask=(True, *b.mask[1:]))
    lists, rank, batch_at, before = _place(b, self, indices)
    masks = any(t is not None and t.dtype.name in ("bool", "uint8") for t in lists)
    shape = (aten.index.Tensor(self, lists) if masks else aten.index.Tensor.meta(self, lists)).shape
    order = _order(len(shape), rank, batch_at, before)
    want = [shape[d] for d in order]
    if b.mask[2]:
        values = aten.reshape.default(
            values, [values.shape[0], *[1] * (len(want) - len(values.shape)), *values.shape[1:]]
        )
    values = aten.permute.default(aten.expand.default(values, want), [order.index(d) for d in range(len(order))])
    return aten.index_put.default(self, lists, values, accumulate)
