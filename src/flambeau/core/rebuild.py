"""How pickles and files say "make this tensor": a function, a storage, and the place in it.

The functions and their arguments are those that PyTorch's pickles name, so plain pickles, copies, checkpoints and messages between processes share
them; they differ in how the storage is written. A place outside of its storage is refused before memory is touched.
"""

from __future__ import annotations

import collections
import math
import reprlib
import sys

import numpy as np

from .. import _C
from ..base import dtypes
from ..base.device import CPU, META
from ..base.dtypes import DType
from . import lazy, quantized
from .device_memory import on_device
from .storage import Storage, memory, span
from .tensor import Tensor, strided
from .typed_storage import TypedStorage

__all__ = ["codes_of", "make", "place", "reduced", "set_state"]


def _ints(name: str, values) -> tuple[int, ...]:
    if not isinstance(values, (tuple, list)) or not all(type(v) is int for v in values):
        raise RuntimeError(
            f"invalid checkpoint: {name} of a tensor must be a tuple of ints, got {reprlib.repr(values):.60}"
        )
    return tuple(values)


def _place(dtype, offset, size, stride) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Sizes and strides of a tensor, and the bytes that its storage has at least. RuntimeError for what is no tensor."""
    if not isinstance(dtype, DType):
        raise RuntimeError(f"invalid checkpoint: a tensor needs a dtype, got {type(dtype).__name__}")
    size, stride = _ints("size", size), _ints("stride", stride)
    if len(size) != len(stride) or min((*size, *stride, 0)) < 0 or type(offset) is not int or offset < 0:
        raise RuntimeError(
            f"invalid checkpoint: sizes {list(size)}, strides {list(stride)}, offset {offset} of a tensor"
        )
    last = 0 if 0 in size else 1 + offset + sum((n - 1) * s for n, s in zip(size, stride))
    return size, stride, last * dtype.itemsize


def make(storage, dtype: DType, offset: int, size, stride) -> Tensor:
    """A tensor over a part of a storage; on the meta device over one without data. RuntimeError when the part isn't inside it."""
    storage = getattr(storage, "_untyped_storage", storage)
    if not isinstance(storage, Storage):
        raise RuntimeError(f"invalid checkpoint: a tensor needs a storage, got {type(storage).__name__}")
    size, stride, needed = _place(dtype, offset, size, stride)
    item, nbytes = dtype.itemsize, span(storage)
    if needed > nbytes:
        raise RuntimeError(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset}, and itemsize {item} requiring a storage size of "
            f"{needed} are out of bounds for storage of size {nbytes}"
        )
    if storage.owner is None:
        return _C.without_data(Tensor, size, stride, dtype, storage.device, offset, storage)
    owned = memory(storage)
    at = offset * item if needed else min(offset * item, len(owned))
    out = _C.from_array(np.ndarray(size, dtype.np, owned, at, tuple(s * item for s in stride)))
    out._storage = storage
    return out


def _finish(tensor: Tensor, requires_grad, backward_hooks, metadata=None) -> Tensor:
    if metadata:
        if not isinstance(metadata, dict) or not metadata.keys() <= {"conj", "neg"}:
            raise RuntimeError(f"invalid checkpoint: metadata {reprlib.repr(metadata)} of a tensor")
        if metadata.get("conj") and not tensor._dtype.is_complex:
            raise RuntimeError(f"invalid checkpoint: a conjugated tensor of dtype {tensor._dtype}")
        tensor = lazy.make(tensor, bool(metadata.get("conj")), bool(metadata.get("neg")))
    if requires_grad:
        tensor.requires_grad_(True)
    if backward_hooks:
        tensor._backward_hooks = backward_hooks
    return tensor


def _rebuild_tensor(storage, storage_offset, size, stride):
    return make(storage, getattr(storage, "dtype", dtypes.uint8), storage_offset, size, stride)


def _rebuild_tensor_v2(storage, storage_offset, size, stride, requires_grad, backward_hooks, metadata=None):
    return _finish(_rebuild_tensor(storage, storage_offset, size, stride), requires_grad, backward_hooks, metadata)


def _rebuild_tensor_v3(storage, storage_offset, size, stride, requires_grad, backward_hooks, dtype, metadata=None):
    return _finish(make(storage, dtype, storage_offset, size, stride), requires_grad, backward_hooks, metadata)


def _rebuild_qtensor(storage, storage_offset, size, stride, quantizer_params, requires_grad, backward_hooks):
    """A quantised tensor. RuntimeError where the codes lie outside of their storage, or can't be read as ``quantizer_params`` says."""
    kind = getattr(storage, "dtype", None)
    if kind not in quantized.CODES:
        raise RuntimeError(f"invalid checkpoint: a quantised tensor over a storage of {kind}")
    if kind is quantized.PACKED:
        size = _ints("size", size)
        if storage_offset or any(n < 0 for n in size):
            raise RuntimeError(f"invalid checkpoint: a tensor of {kind} of sizes {size} from {storage_offset!r} on")
        codes = make(storage, quantized.CODES[kind], 0, ((math.prod(size) + 1) // 2,), (1,))
        return quantized.make(quantized.checked(codes, quantizer_params, tuple(size)))
    codes = make(storage, quantized.CODES[kind], storage_offset, size, stride)
    return quantized.make(quantized.checked(codes, quantizer_params))


def _rebuild_meta_tensor_no_storage(dtype, size, stride, requires_grad):
    size, stride, needed = _place(dtype, 0, size, stride)
    if max(needed, math.prod(size)) > sys.maxsize:
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(size)} and strides={list(stride)}")
    return _finish(_C.without_data(Tensor, size, stride, dtype, META, 0, None), requires_grad, None)


def _rebuild_wrapper_subclass(cls, dtype, size, stride, storage_offset, device, requires_grad):
    size, stride = _ints("size", size), _ints("stride", stride)
    return Tensor._make_wrapper_subclass(
        cls,
        size,
        strides=stride,
        storage_offset=storage_offset,
        dtype=dtype,
        device=device,
        requires_grad=requires_grad,
    )


def _rebuild_from_type_v2(func, new_type, args, state):
    out = func(*args)
    if type(out) is not new_type:
        out = out.as_subclass(new_type)
    set_state(out, state)
    return out


def set_state(obj, state) -> None:
    """What ``__getstate__`` gave: a dict of attributes, or a pair of it and the slots."""
    own = getattr(type(obj), "__setstate__", None)
    if own is not None and own is not Tensor.__setstate__:
        own(obj, state)
        return
    attributes, slots = state if isinstance(state, tuple) else (state, None)
    obj.__dict__.update(attributes or {})
    for name, value in (slots or {}).items():
        setattr(obj, name, value)


def place(t: Tensor) -> tuple[Storage, int, tuple[int, ...]]:
    """(storage, offset and strides in elements) of a tensor with data; a copy's where elements don't lie at multiples of their size."""
    storage, array, item = t._storage, t._array, t._dtype.itemsize
    if array is None:  # on a device
        return storage, t._offset, tuple(t._strides)
    offset = array.__array_interface__["data"][0] - storage.owner.__array_interface__["data"][0] if array.size else 0
    if offset % item or any(s % item for s in array.strides):
        copied = _C.from_array(np.ascontiguousarray(array))
        return copied._storage, 0, tuple(copied._strides)
    return storage, offset // item, tuple(t._strides)


def codes_of(t: Tensor) -> tuple:
    """The storage of a quantised tensor's codes, with its dtype, the place in it, shape and strides."""
    affine = quantized.parts(t)
    storage, offset, strides = place(affine.codes)
    if affine.packed is not None:
        strides = tuple(t._strides)
    return TypedStorage(wrap_storage=storage, dtype=t._dtype), offset, tuple(t._shape), strides


def _plain(t: Tensor):
    """How to make ``t`` as an object of class Tensor without attributes."""
    hooks: collections.OrderedDict = collections.OrderedDict()
    held, metadata = t, ()
    affine = quantized.parts(t)
    if affine is not None:
        return _rebuild_qtensor, (*codes_of(t), quantized.described(affine), False, hooks)
    plain = t._plain()
    if plain is not None:
        held, metadata = plain, ({name: True for name, on in (("conj", t.is_conj()), ("neg", t.is_neg())) if on},)
    if held._array is None and not on_device(held):
        if t._device != META:
            raise RuntimeError(f"can't pickle a {type(t).__name__} without data")
        return _rebuild_meta_tensor_no_storage, (t._dtype, tuple(t._shape), tuple(t._strides), t._requires_grad)
    storage, offset, strides = place(held)
    where = (offset, tuple(t._shape), strides, t._requires_grad, hooks)
    if t._dtype in dtypes.LATE:
        return _rebuild_tensor_v3, (storage, *where, t._dtype, *metadata)
    return _rebuild_tensor_v2, (TypedStorage(wrap_storage=storage, dtype=t._dtype), *where, *metadata)


def _rebuild_sparse(record, size, requires_grad):
    """A sparse tensor from a record of its parts, which was this process's or another's of flambeau: nothing is checked."""
    out = _C.without_data(Tensor, size, (0,) * len(size), record.values._dtype, CPU, 0, None)
    out._payload = record
    return out.requires_grad_(True) if requires_grad else out


def reduced(t: Tensor, protocol: int):
    """``__reduce_ex__`` of tensors: the place in the storage, the class and the attributes. Gradient, history and hooks stay behind."""
    if t._array is None and hasattr(type(t), "__tensor_flatten__"):
        shape, strides = tuple(t._shape), tuple(t._strides)
        function = _rebuild_wrapper_subclass
        args = (type(t), t._dtype, shape, strides, t._offset, t._device, t._requires_grad)
    elif t.layout is not strided:
        function, args = _rebuild_sparse, (t._payload, tuple(t._shape), t._requires_grad)
    else:
        function, args = _plain(t)
    state = t.__getstate__()
    if type(t) is Tensor and not state:
        return function, args
    return _rebuild_from_type_v2, (function, type(t), args, state or {})


Tensor.__reduce_ex__ = reduced
