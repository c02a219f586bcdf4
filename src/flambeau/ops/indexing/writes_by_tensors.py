"""Writes at indices that are tensors: ``x[i, j] = y`` and ``x[mask] = y``."""

from __future__ import annotations

import sys
import warnings

import numpy as np

from ... import _C
from ...base.records import replace
from ...base.shape_env import GuardOnDataDependentSymNode
from ...base.shapes import broadcast_shapes, same_shape
from ...base.user_line import is_user_frame
from ...core.declare import extern
from ...core.definition import TensorMeta
from ...core.layouts import dense_like, in_order, refuse_overlap, strides_of
from ...core.operator import namespace
from ...core.subscript import BYTES_MASK
from .tensor_subscripts import (
    batched_indices,
    batched_order,
    check_dtypes,
    check_masks,
    index_error,
    index_key,
    index_shape,
    shape_beside_masks,
    values_mismatch,
)

aten = namespace("aten")


def _put(array, indices, values) -> None:
    """Write elements of an array by index."""
    masked = len(indices) == 1 and _C.put_mask(array, indices[0], values)
    if not masked and not _C.put_at(array, indices, values):
        array[index_key(indices)] = values


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


def _check_beside_masks(self, indices, given) -> None:
    """Raise what values of another shape than is written raise, as far as sizes are known: how many places a mask holds isn't."""
    shape = shape_beside_masks(self, indices)
    wide = len(given) - len(shape)
    for n, m in zip(given, (*[1] * wide, *shape[max(-wide, 0) :])):
        try:
            fits = m is None or n == 1 or n == m
        except GuardOnDataDependentSymNode:  # told by the kernel
            continue
        if not fits:
            raise values_mismatch(given, ["?" if n is None else n for n in shape])


def _index_put_meta(self, indices, values, accumulate):
    check_dtypes(indices)
    check_masks(self, indices)
    if any(t is not None and t.dtype.name in ("bool", "uint8") for t in indices):
        _check_beside_masks(self, indices, tuple(values.shape))
    else:
        shape, given = index_shape(self, indices), tuple(values.shape)
        try:
            fits = same_shape(broadcast_shapes(shape, given), shape)
        except GuardOnDataDependentSymNode:  # told by the kernel
            fits = True
        except RuntimeError:
            fits = False
        if not fits:
            raise values_mismatch(given, shape)
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
            key = index_key(indices)
            # NumPy 2.4 reads beyond values of fewer dimensions than the one index of a vector.
            if out.ndim == len(key) == 1 and isinstance(key[0], np.ndarray) and key[0].dtype.kind != "b":
                values = np.broadcast_to(values, key[0].shape) if values.ndim < key[0].ndim else values
            np.add.at(out, key, values)
        else:
            _put(out, indices, values)
    except IndexError:
        raise index_error(self.shape, indices) from None
    except (TypeError, ValueError):
        raise values_mismatch(values.shape, out[index_key(indices)].shape) from None
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
        except (IndexError, TypeError, ValueError):
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
    lists, rank, batch_at, before = batched_indices(b, self, indices)
    masks = any(t is not None and t.dtype.name in ("bool", "uint8") for t in lists)
    shape = (aten.index.Tensor(self, lists) if masks else aten.index.Tensor.meta(self, lists)).shape
    order = batched_order(len(shape), rank, batch_at, before)
    want = [shape[d] for d in order]
    if b.mask[2]:
        values = aten.reshape.default(
            values, [values.shape[0], *[1] * (len(want) - len(values.shape)), *values.shape[1:]]
        )
    values = aten.permute.default(aten.expand.default(values, want), [order.index(d) for d in range(len(order))])
    return aten.index_put.default(self, lists, values, accumulate)
