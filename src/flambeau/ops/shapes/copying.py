"""Copies, conversions, concatenation, and what moves data without computing."""

from __future__ import annotations

import itertools
import math
import sys
import warnings

import numpy as np

from ... import _C
from ...base.dtypes import from_numpy, promote_types
from ...base.errors import ShapeMismatch
from ...base.memory_format import contiguous_format, format_strides, preserve_format
from ...base.records import replace
from ...base.shape_env import (
    GuardOnDataDependentSymNode,
    data_dependent_number,
    data_dependent_size,
    guard_or_false,
    is_user_frame,
)
from ...base.shapes import broadcast_shapes, contiguous_strides, normalize_dim, same_shape
from ...base.symint import is_symbolic
from ...core.declare import composite, explicit, extern, pointwise
from ...core.definition import TensorMeta
from ...core.device_memory import in_rows
from ...core.layouts import dense_like, image_format, in_order, refuse_overlap, result_strides, strides_of
from ...core.operator import namespace
from ...core.promotion import check_same_device
from ...core.sharding import Apart
from ...core.subscript import BYTES_MASK

aten = namespace("aten")


@pointwise(
    "clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
    promote="keep",
    inplace=False,
    tags=("sets_apart",),
)
def clone(s, self, memory_format):
    return self


clone.derivative(self=lambda ct: ct)


def _copy_dtype(args):
    return args[1] or args[0].dtype


@pointwise(
    "_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool non_blocking=False, "
    "MemoryFormat? memory_format=None) -> Tensor",
    promote="keep",
    out=_copy_dtype,
    variants="",
    inplace=False,
    tags=("pointwise", "crosses_devices"),
)
def _to_copy(s, self, dtype, *_):
    return self if dtype is None else s.cast(self, dtype)


def _returned(ct, like):
    """A cotangent in the dtype and on the device of the argument it goes to: of a real one its real part."""
    ct = aten.real.default(ct) if ct.dtype.is_complex and not like.dtype.is_complex else ct
    if ct.device != like.device:
        return aten._to_copy.default(ct, dtype=like.dtype, device=like.device)
    return aten._to_copy.default(ct, dtype=like.dtype)


_to_copy.derivative(self=lambda ct, self_like: _returned(ct, self_like))


@pointwise(
    "copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor",
    promote="keep",
    operands=("self",),
    out=lambda args: args[0].dtype,
    variants="method",
    tags=("pointwise", "crosses_devices"),
)
def copy(s, self, src, non_blocking):
    """``copy_`` is its in-place form: src broadcast to self and converted to its dtype."""
    return src


@copy.override("in_memory")
def _copied(self, src, non_blocking):
    """Row-major memory to other memory of its device: the driver's copy. (Between devices one stream would have to wait for the other.)"""
    alike = self._dtype is src._dtype and self._shape == src._shape and self._device == src._device
    if not (alike and self._storage is not src._storage and in_rows(self) and in_rows(src)):
        return False
    item = self._dtype.itemsize
    source, nbytes = src._storage.device_memory, self.numel() * item
    self._storage.device_memory.copy(self._offset * item, source, src._offset * item, nbytes)
    return True


copy.derivative(
    self=lambda ct: aten.zeros_like.default(ct),
    src=lambda ct, src_like: _returned(aten.sum_to_size.default(ct, list(src_like.shape)), src_like),
)


@pointwise(
    "fill.Scalar(Tensor self, Scalar value) -> Tensor",
    promote="keep",
    layout="self",
    operands=("self",),
    tags=("pointwise", "overlapping_writes"),
)
def fill(s, self, value):
    return s.where(True, value, self)


fill.derivative(self=lambda ct: aten.zeros_like.default(ct))


@pointwise(
    "zero(Tensor self) -> Tensor",
    promote="keep",
    variants="method",
    has_out=False,
    tags=("pointwise", "overlapping_writes"),
)
def zero(s, self):
    return s.where(True, 0, self)


@zero.override("in_memory")
def _zeroed(self):
    if not in_rows(self):
        return False
    item = self._dtype.itemsize
    self._storage.device_memory.fill(self._offset * item, self.numel() * item, 0)
    return True


zero.derivative(self=lambda ct: aten.zeros_like.default(ct))


@composite(
    "contiguous(Tensor(a) self, *, MemoryFormat memory_format=contiguous_format) -> Tensor(a)", variants="method"
)
def contiguous(self, memory_format):
    if memory_format is preserve_format:
        if self.is_contiguous():
            return self
        raise RuntimeError("preserve memory format is unsupported by the contiguous operator")
    return self if self.is_contiguous(memory_format) else aten.clone.default(self, memory_format=memory_format)


_C.made_by_numbers(contiguous, "order")


def _is_nothing(t) -> bool:
    """Whether a tensor has the shape (0,), which is passed over. One whose size depends on data isn't taken to have it."""
    return len(t.shape) == 1 and guard_or_false(t.shape[0] == 0)


def _cat_meta(tensors, dim):
    if not tensors:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")

    real = [t for t in tensors if not _is_nothing(t)] or list(tensors)
    first = real[0]
    ndim = len(first.shape)
    if ndim == 0:
        raise RuntimeError("zero-dimensional tensor (at position 0) cannot be concatenated")
    d = normalize_dim(dim, ndim)
    for k, t in enumerate(real):
        if len(t.shape) != ndim:
            raise RuntimeError(f"Tensors must have same number of dimensions: got {ndim} and {len(t.shape)}")
        for e in range(ndim):
            if e != d and t.shape[e] != first.shape[e]:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {d}. Expected size {first.shape[e]} but got size {t.shape[e]} for tensor "
                    f"number {k} in the list."
                )
    check_same_device(real)
    shape = tuple(sum(t.shape[d] for t in real) if e == d else n for e, n in enumerate(first.shape))
    dtype = first.dtype
    for t in tensors:
        dtype = promote_types(dtype, t.dtype)
    formats = {image_format(tuple(t.shape), strides_of(t)) for t in real}
    strides = format_strides(shape, formats.pop() if len(formats) == 1 else contiguous_format)
    return TensorMeta(shape, strides, dtype, first.device)


def _are_rows(arrays, dim: int) -> bool:
    """Whether the arrays are of one kind, so many that looking at each for itself would take longer than to move them."""
    a = arrays[0] if len(arrays) > 4 else None
    if a is None or not 0 < a.ndim < 4 or not -a.ndim <= dim < a.ndim or not a.size or not a.flags.c_contiguous:
        return False
    facts = [(b.shape, b.strides, b.dtype) for b in arrays]
    return facts.count((a.shape, a.strides, a.dtype)) == len(facts)


class _Like:
    """Shape, strides and dtype of an ndarray as the shape rule wants them."""

    __slots__ = ("device", "dtype", "shape", "strides")

    def __init__(self, array):
        self.shape, self.strides, self.dtype, self.device = (
            array.shape,
            strides_of(array),
            from_numpy(array.dtype),
            None,
        )


@extern(
    "cat(Tensor[] tensors, int dim=0) -> Tensor",
    meta=_cat_meta,
    variants="function",
    has_out=True,
    out_rules="casts outside joins",
)
def cat(arrays, dim):
    if _are_rows(arrays, dim):
        return np.concatenate(arrays, axis=dim)
    meta = _cat_meta([_Like(a) for a in arrays], dim)
    # NOTE: NumPy has no common dtype of bfloat16 and int64, and would keep the order of transposed parts.
    parts = [a.astype(meta.dtype.np, copy=False) for a in arrays if a.shape != (0,)] or arrays
    return in_order(np.concatenate(parts, axis=dim).astype(meta.dtype.np, copy=False), meta.strides)


def _cat_pieces(tensors, dim):
    """Each tensor, and where along which dimension of the result it lies."""
    real = [t for t in tensors if not _is_nothing(t)]
    d, at = normalize_dim(dim, len(real[0].shape)), 0
    for t in real:
        yield t, d, at
        at += t.shape[d]


cat.override("pieces", _cat_pieces)
cat.override("streamed", lambda tensors, dim: sum([math.prod(t.shape) * t.dtype.itemsize for t in tensors]))


def _cat_vjp(ct, tensors_like, dim):
    out, at = [], 0
    d = normalize_dim(dim, ct.ndim)
    for t in tensors_like:
        n = t.shape[d] if t.ndim == ct.ndim else 0
        out.append(
            aten.slice.Tensor(ct, d, at, at + n)
            if n or t.ndim == ct.ndim
            else aten.new_zeros.default(ct, list(t.shape))
        )
        at += n
    return out


cat.derivative(tensors=_cat_vjp)
cat.override(
    "lower",
    lambda lowering, val, tensors, dim: lowering.concatenate([t for t in tensors if not _is_nothing(t)], dim, val),
)


cat.override("sharding", Apart("dim", linear=True))


@cat.override("batch")
def _cat_batch(b, tensors, dim):
    pairs = list(zip(tensors, b.mask[0]))
    empty = [tuple(t.shape[m:]) == (0,) for t, m in pairs]
    if all(empty):
        empty = [False] * len(pairs)
    # Empty vectors are skipped, as in the operator itself, and remain operands for their history.
    parts = [aten.reshape.default(t, [0]) if e else b.all(t, m) for (t, m), e in zip(pairs, empty)]
    return aten.cat.default(parts, dim + 1 if dim >= 0 else dim)


@composite("stack(Tensor[] tensors, int dim=0) -> Tensor", variants="function", out_rules="casts outside joins")
def stack(tensors, dim):
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    shape = tensors[0].shape
    shapes = [t.shape for t in tensors]
    alike = not is_symbolic(shape) and shapes.count(shape) == len(shapes)
    for k, t in enumerate(() if alike else tensors):
        if not same_shape(t.shape, shape):
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(shape)} at entry 0 and {list(t.shape)} at entry {k}"
            )
    d = normalize_dim(dim, len(shape) + 1)
    if d < len(shape) and all(image_format(tuple(t.shape), strides_of(t)) is not contiguous_format for t in tensors):
        joined = aten.cat.default(list(tensors), d)  # images stay in their memory format
        return aten.view.default(joined, [*shape[:d], len(tensors), *shape[d:]])
    return aten.cat.default([aten.unsqueeze.default(t, d) for t in tensors], d)


def _number(self):
    kind = "float" if self.dtype.is_floating_point else "bool" if self.dtype.name == "bool" else "int"
    return data_dependent_number("aten._local_scalar_dense.default", kind)


@explicit(
    "_local_scalar_dense(Tensor self) -> Scalar",
    meta=_number,
    eager=lambda a: a.item() if a.dtype.kind != "V" else float(a.reshape(())),
    has_out=False,
    tags=("data",),
)
def _local_scalar_dense(self):
    return _number(self)


_local_scalar_dense.override("lower", lambda lowering, val, self: lowering.item(val, self))


@composite("repeat(Tensor self, SymInt[] repeats) -> Tensor", variants="method")
def repeat(self, repeats):
    pad = len(repeats) - self.ndim
    if pad < 0:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    shape = [1] * pad + list(self.shape)
    x = aten.reshape.default(self, [m for n in shape for m in (1, n)])
    x = aten.expand.default(x, [m for r, n in zip(repeats, shape) for m in (r, n)])
    return aten._unsafe_view.default(
        aten.clone.default(x, memory_format=contiguous_format), [r * n for r, n in zip(repeats, shape)]
    )


@explicit(
    "lift_fresh(Tensor(a) self) -> Tensor(a)",
    meta=lambda self: TensorMeta(tuple(self.shape), self.stride(), self.dtype, self.device),
    has_out=False,
)
def lift_fresh(self):
    """Marks a tensor that came from Python data, so that modes see it come into being."""
    return self


lift_fresh.derivative(self=lambda ct: ct)


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


def _keep_dtype(args):
    _one_value(len(args[1].shape))
    return "keep"


def _one_value(ndim: int) -> None:
    if ndim:
        raise RuntimeError(f"fill_ only supports 0-dimension value tensor but got tensor with {ndim} dimensions.")


@pointwise(
    "fill.Tensor(Tensor self, Tensor value) -> Tensor",
    promote=_keep_dtype,
    operands=("self",),
    out=lambda args: args[0].dtype,
    tags=("pointwise", "overlapping_writes", "aliased_operands"),
)
def fill_tensor(s, self, value):
    return value


fill_tensor.derivative(self=lambda ct: aten.zeros_like.default(ct), value=lambda ct: ct)


@fill_tensor.override("batch")
def _fill_batch(b, self, value):
    self = b.all(self, b.mask[0])
    if not b.mask[1]:
        return aten.fill.Tensor(self, value)
    # A value for each example is no single value any more.
    _one_value(len(value.shape) - 1)
    return aten.copy.default(self, aten.reshape.default(value, [value.shape[0], *[1] * (len(self.shape) - 1)]))
