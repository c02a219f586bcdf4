"""Views given by strides: one map from the memory of a tensor, whatever chain of views it stands for, and its transpose."""

from __future__ import annotations

import numpy as np

from ... import _C
from ...base.dtypes import int64
from ...base.errors import NotFunctional
from ...base.kernels import Sharing
from ...base.shapes import contiguous_strides, is_dense
from ...base.symint import is_symbolic
from ...core.declare import composite, extern
from ...core.definition import TensorMeta
from ...core.operator import namespace

aten = namespace("aten")


def _extent(size, stride, offset):
    """First and last element reached, (0, -1) for none."""
    if any(n == 0 for n in size):
        return 0, -1
    ends = [(n - 1) * s for n, s in zip(size, stride)]
    return offset + sum(e for e in ends if e < 0), offset + sum(e for e in ends if e > 0)


def _within(array, low, size, stride, offset):
    item = array.itemsize
    return np.lib.stride_tricks.as_strided(array[offset - low :], size, [s * item for s in stride])


def _overlaps(size, stride) -> bool:
    reach = 0
    for s, n in sorted((abs(s), n) for n, s in zip(size, stride) if n != 1):
        if n == 0:
            return False
        if s <= reach:
            return True
        reach += (n - 1) * s
    return False


def _covers(shape, stride, size, view_stride, offset) -> bool:
    """Whether a tensor of this shape and stride has all elements of a view from ``offset`` after its first. Of symbolic sizes that is assumed."""
    if is_symbolic((*shape, *stride, *size, *view_stride, offset)) or 0 in size:
        return True
    (low, high), (first, last) = _extent(shape, stride, 0), _extent(size, view_stride, offset)
    if 0 in shape or first < low or last > high:
        return False
    if is_dense(tuple(shape), tuple(stride)):
        return True
    return bool(np.isin(_offsets(size, view_stride, offset), _offsets(shape, stride, 0)).all())


def _offsets(size, stride, offset):
    """Where elements lie in memory, numbers known."""
    places = np.array([offset])
    for n, s in zip(size, stride):
        places = (places[:, None] + s * np.arange(n)).reshape(-1)
    return places


@extern(
    "_as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt offset, SymInt[] self_stride) -> Tensor(a)",
    meta=lambda self, size, stride, offset, self_stride: TensorMeta(
        tuple(size), tuple(stride), self.dtype, self.device, self._offset + offset
    ),
    variants="",
    tags=("reads_memory",),
)
def strided_view(self, size, stride, offset, self_stride):
    """The elements from ``offset`` after the first of ``self`` on, all in elements. ``self_stride``: the strides of self, for the derivative."""
    raise NotImplementedError("a view needs the tensor, not its array")


@strided_view.override("eager")
def _view(self, size, stride, offset, self_stride):
    total = self._storage.nbytes() // self._dtype.itemsize
    low, high = _extent(size, stride, self._offset + offset)
    if low < 0 or high >= total:
        raise RuntimeError(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {self._offset + offset}, and itemsize "
            f"{self._dtype.itemsize} requiring a storage size of {(high + 1) * self._dtype.itemsize} are out of bounds for storage of "
            f"size {total * self._dtype.itemsize}"
        )
    out = _C.strided(self, tuple(size), tuple(stride), offset)
    _C.note_view(out, self, aten._as_strided.default, (size, stride, offset, self_stride))
    return out


_C.made_by_numbers(strided_view, "strides")
strided_view.override("numbers", True)


@strided_view.override("lower")
def _lower_view(lowering, val, self, size, stride, offset, self_stride):
    """The same memory, where it reaches that far: a graph knows no more of a storage than its tensors cover."""
    return lowering.other_view(self, size, stride, offset, self_stride)


@strided_view.override("write_back")
def _write_back(base, contents, size, stride, offset, self_stride):
    """``base`` with ``contents`` at the places of the view."""
    if _overlaps(size, stride):
        raise NotFunctional(
            f"of a write to an as_strided view of size {list(size)} and stride {list(stride)}, whose elements overlap, what is left depends on "
            "the order of the loop"
        )
    if not _covers(base.shape, self_stride, size, stride, offset):
        raise NotFunctional(
            f"a write to an as_strided view of size {list(size)}, stride {list(stride)} and offset {offset} reaches elements of the storage "
            "that its tensor hasn't"
        )
    place = [list(base.shape), self_stride, size, stride, offset]
    written = aten._as_strided_scatter.default(aten.ones_like.default(contents), *place)
    return aten.where.self(aten.ne.Scalar(written, 0), aten._as_strided_scatter.default(contents, *place), base)


@strided_view.override("batch")
def _batched(b, self, size, stride, offset, self_stride):
    outer = self.stride()[0]
    view = aten._as_strided.default(self, [b.size, *size], [outer, *stride], offset, [outer, *self_stride])
    shape = tuple(self.shape)
    if not _overlaps(shape, self.stride()) or _overlaps(shape[1:], self_stride):
        return view
    # The examples share memory (one was expanded), but not their derivatives.
    place = (list(self_stride), list(size), list(stride), offset)
    of_self = _gather_batched(b, aten.ones_like.default(self), *place)
    return aten.where.self(aten.ne.Scalar(of_self, 0), _gather_batched(b, self, *place), aten.detach.default(view))


strided_view.derivative(
    self=lambda ct, self_like, size, stride, offset, self_stride: aten._as_strided_scatter.default(
        ct, list(self_like.shape), self_stride, size, stride, offset
    )
)


def _room(self_size, self_stride, size, stride, offset) -> int:
    """How many elements of memory an example needs for both: examples laid out that far apart don't meet."""
    (low, high), (first, last) = _extent(self_size, self_stride, 0), _extent(size, stride, offset)
    return max(high, last) - min(low, first) + 1


@extern(
    "_as_strided_scatter(Tensor grad, SymInt[] self_size, SymInt[] self_stride, SymInt[] size, SymInt[] stride, SymInt offset) -> Tensor",
    meta=lambda grad, self_size, self_stride, size, stride, offset: TensorMeta(
        tuple(self_size), contiguous_strides(tuple(self_size)), grad.dtype, grad.device
    ),
    variants="",
)
def strided_scatter(grad, self_size, self_stride, size, stride, offset):
    """The transpose of the view: what reaches each element of self. Elements of a self that overlaps share it equally."""
    low = min(_extent(self_size, self_stride, 0)[0], _extent(size, stride, offset)[0])
    high = max(_extent(self_size, self_stride, 0)[1], _extent(size, stride, offset)[1], low)
    memory = np.zeros(high - low + 1, grad.dtype)
    if _overlaps(size, stride):
        np.add.at(memory, _within(np.arange(memory.size), low, size, stride, offset), grad)
    elif grad.size:
        _within(memory, low, size, stride, offset)[...] = grad
    if _overlaps(self_size, self_stride):
        counts = np.zeros(memory.size, np.int64)
        np.add.at(counts, _within(np.arange(memory.size), low, self_size, self_stride, 0), 1)
        memory = memory / np.maximum(counts, 1).astype(memory.dtype)
    if not all(self_size):
        return np.zeros(tuple(self_size), grad.dtype)
    return np.ascontiguousarray(_within(memory, low, self_size, self_stride, 0)).reshape(tuple(self_size))


def _moved(values, source, target, shared):
    """What ``values``, laid out in a memory of zeros as ``source`` (size, stride, offset), leave where ``target`` looks. Elements of ``shared``, one of
    the two, that overlap share what is there."""
    low = min(_extent(*source)[0], _extent(*target)[0])
    room = max(_extent(*source)[1], _extent(*target)[1], low) - low + 1
    memory = aten.new_zeros.default(values, [room])
    at = {layout: _places(values, low, *layout) for layout in (source, target)}
    memory = aten.index_add.default(memory, 0, at[source], aten.reshape.default(values, [-1]))
    if _overlaps(*shared[:2]):
        each = aten.new_full.default(values, [at[shared].shape[0]], 1)
        counts = aten.index_add.default(aten.new_zeros.default(values, [room]), 0, at[shared], each)
        memory = aten.div.Tensor(memory, aten.where.ScalarOther(aten.ne.Scalar(counts, 0), counts, 1))
    return aten.reshape.default(aten.index_select.default(memory, 0, at[target]), list(target[0]))


def _layout(size, stride, offset):
    return tuple(size), tuple(stride), offset


@strided_scatter.override("by_parts")
def _scatter_by_parts(grad, self_size, self_stride, size, stride, offset):
    own = _layout(self_size, self_stride, 0)
    return _moved(grad, _layout(size, stride, offset), own, own)


def _places(like, low, size, stride, offset):
    """The places of a view's elements in memory that begins at ``low``, as a line."""
    at = aten.full.default([1], offset - low, dtype=int64, device=like.device)
    for n, step in zip(size, stride):
        steps = aten.mul.Tensor(aten.arange.default(n, device=like.device), step)
        at = aten.reshape.default(aten.add.Tensor(aten.unsqueeze.default(at, -1), steps), [-1])
    return at


@strided_scatter.override("lower")
def _lower_scatter(h, val, grad, self_size, self_stride, size, stride, offset):
    sharing = Sharing.MADE if _overlaps(self_size, self_stride) else Sharing.NONE
    return h.restride(val, grad, (stride, offset), (self_stride, 0), sharing)


@strided_scatter.override("batch")
def _scatter_batched(b, grad, self_size, self_stride, size, stride, offset):
    room = _room(self_size, self_stride, size, stride, offset)
    return aten._as_strided_scatter.default(
        grad, [b.size, *self_size], [room, *self_stride], [b.size, *size], [room, *stride], offset
    )


strided_scatter.derivative(
    grad=lambda ct, self_size, self_stride, size, stride, offset: aten._as_strided_gather.default(
        ct, self_stride, size, stride, offset
    )
)


@extern(
    "_as_strided_gather(Tensor self, SymInt[] self_stride, SymInt[] size, SymInt[] stride, SymInt offset) -> Tensor",
    meta=lambda self, self_stride, size, stride, offset: TensorMeta(
        tuple(size), contiguous_strides(tuple(size)), self.dtype, self.device
    ),
    variants="",
)
def strided_gather(self, self_stride, size, stride, offset):
    """The values of the view, of a tensor that would be laid out by ``self_stride``."""
    low = min(_extent(self.shape, self_stride, 0)[0], _extent(size, stride, offset)[0])
    high = max(_extent(self.shape, self_stride, 0)[1], _extent(size, stride, offset)[1], low)
    memory = np.zeros(high - low + 1, self.dtype)
    if self.size:
        if _overlaps(self.shape, self_stride):
            at = _within(np.arange(memory.size), low, self.shape, self_stride, 0)
            counts = np.zeros(memory.size, np.int64)
            np.add.at(memory, at, self)
            np.add.at(counts, at, 1)
            memory = memory / np.maximum(counts, 1).astype(memory.dtype)
        else:
            _within(memory, low, self.shape, self_stride, 0)[...] = self
    if not all(size):
        return np.zeros(tuple(size), self.dtype)
    return np.ascontiguousarray(_within(memory, low, size, stride, offset)).reshape(tuple(size))


@strided_gather.override("by_parts")
def _gather_by_parts(self, self_stride, size, stride, offset):
    own = _layout(self.shape, self_stride, 0)
    return _moved(self, own, _layout(size, stride, offset), own)


@strided_gather.override("lower")
def _lower_gather(h, val, self, self_stride, size, stride, offset):
    sharing = Sharing.SOURCE if _overlaps(self.shape, self_stride) else Sharing.NONE
    return h.restride(val, self, (self_stride, 0), (stride, offset), sharing)


@strided_gather.override("batch")
def _gather_batched(b, self, self_stride, size, stride, offset):
    room = _room(tuple(self.shape)[1:], self_stride, size, stride, offset)
    return aten._as_strided_gather.default(self, [room, *self_stride], [b.size, *size], [room, *stride], offset)


strided_gather.derivative(
    self=lambda ct, self_like, self_stride, size, stride, offset: aten._as_strided_scatter.default(
        ct, list(self_like.shape), self_stride, size, stride, offset
    )
)


@composite("as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a)")
def as_strided(self, size, stride, storage_offset):
    """The elements of the memory of ``self`` from ``storage_offset`` (that of self when None) on. RuntimeError outside the memory."""
    if len(size) != len(stride):
        raise RuntimeError("mismatch in length of strides and shape")
    for s in stride:
        if s < 0:
            raise RuntimeError(
                f"as_strided: Negative strides are not supported at the moment, got strides: {list(stride)}"
            )
    offset = 0 if storage_offset is None else storage_offset - self.storage_offset()
    return aten._as_strided.default(self, size, stride, offset, self.stride())
