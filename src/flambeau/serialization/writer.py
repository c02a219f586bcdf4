"""Writing checkpoints: the pickler that names things as PyTorch does and puts storages beside the pickle."""

from __future__ import annotations

import collections
import io
import pickle

import numpy as np

from .. import _C
from ..base.device import Device
from ..base.dtypes import DType
from ..base.shapes import Size
from ..core.tensor import Layout, Tensor, strided
from ..modules.parameter import Parameter
from . import rebuild
from .archive import ArchiveWriter
from .names import SAFE, StorageType, global_name

__all__ = ["write"]

_STORAGE = {value.name: value for value in SAFE.values() if isinstance(value, StorageType)}


class _Persistent:
    """A storage on its way into the pickle."""

    __slots__ = ("id",)

    def __init__(self, id):
        self.id = id


class Pickler(pickle._Pickler):
    """``memory`` becomes {key: array} of the storages that were met, in order."""

    dispatch = pickle._Pickler.dispatch.copy()

    def __init__(self, file, protocol: int = 2):
        super().__init__(file, protocol)
        self.memory: dict[str, np.ndarray] = {}
        self._keys: dict[int, str] = {}
        self._alive: list = []

    def persistent_id(self, obj):
        return obj.id if type(obj) is _Persistent else None

    def _storage(self, t: Tensor, kind: StorageType) -> tuple[_Persistent, int, tuple]:
        """(reference to the storage, offset, strides): all views of a memory refer to one storage."""
        storage, array = t._storage, t._array
        owner = storage.owner
        item = t.dtype.itemsize
        # Memory that isn't one row of bytes, or that the view isn't aligned in, is written as a copy of the view.
        shared = owner is not None and owner.flags.c_contiguous and owner.nbytes % item == 0
        offset = array.__array_interface__["data"][0] - owner.__array_interface__["data"][0] if shared else 0
        if not shared or offset % item or offset < 0:
            owner = np.ascontiguousarray(array)
            self._alive.append(owner)
            storage, offset, strides = owner, 0, tuple(s // item for s in owner.reshape(tuple(t.shape)).strides)
        else:
            strides = tuple(t.stride())
        key = self._keys.get(id(storage))
        if key is None:
            key = self._keys[id(storage)] = str(len(self._keys))
            self.memory[key] = owner.reshape(-1).view(np.uint8)
            self._alive.append(storage)
        nbytes = owner.nbytes
        numel = nbytes if kind.dtype is None else nbytes // item
        return _Persistent(("storage", kind, key, "cpu", numel)), offset // item, strides

    def reducer_override(self, obj):
        return NotImplemented

    def save(self, obj, save_persistent_id=True):
        if type(obj) is Size:
            return self.save_reduce(Size, (tuple(obj),), obj=obj)
        if type(obj) is Device:
            return self.save_reduce(Device, (obj.type,) if obj.index is None else (obj.type, obj.index), obj=obj)
        if type(obj) is Layout:
            return self.save_reduce(rebuild._get_layout, (repr(obj),), obj=obj)
        if isinstance(obj, DType | StorageType) or isinstance(obj, type) and global_name(obj) is not None:
            return (
                self.save_global(obj) if self.memo.get(id(obj)) is None else self.write(self.get(self.memo[id(obj)][0]))
            )
        if isinstance(obj, _C.TensorBase) and self.memo.get(id(obj)) is None:
            made = self._tensor(obj)
            if made is not None:
                return self.save_reduce(*made, obj=obj)
        return super().save(obj, save_persistent_id)

    def _tensor(self, t):
        hooks = collections.OrderedDict()
        state = t.__dict__
        if isinstance(t, Parameter) and type(t) is Parameter:
            data = t.data
            if state:
                return rebuild._rebuild_parameter_with_state, (data, t.requires_grad, hooks, dict(state))
            return rebuild._rebuild_parameter, (data, t.requires_grad, hooks)
        if t._array is None:
            if t.layout is not strided:
                p = t._payload
                held = tuple(part for _, part in p.named_parts())
                data = (*held, t.shape, p.coalesced) if t.is_sparse else (*held, t.shape)
                return rebuild._rebuild_sparse_tensor, (t.layout, data)
            if t.is_conj() or t.is_neg():
                return self._tensor(t.detach().clone().requires_grad_(t.requires_grad))
            if t.device.type != "meta":
                return None
            return rebuild._rebuild_meta_tensor_no_storage, (
                t.dtype,
                tuple(t.shape),
                tuple(t.stride()),
                t.requires_grad,
            )
        plain = self._plain(t, hooks)
        if type(t) is Tensor and not state:
            return plain
        if type(t) is Tensor or type(t).__reduce_ex__ is Tensor.__reduce_ex__:
            return rebuild._rebuild_from_type_v2, (plain[0], type(t), plain[1], dict(state))
        return None

    def _plain(self, t, hooks):
        name = rebuild.storage_name(t.dtype)
        requires_grad = t.requires_grad
        if name is None:
            stored, offset, strides = self._storage(t, _STORAGE["UntypedStorage"])
            return rebuild._rebuild_tensor_v3, (stored, offset, tuple(t.shape), strides, requires_grad, hooks, t.dtype)
        stored, offset, strides = self._storage(t, _STORAGE[name])
        return rebuild._rebuild_tensor_v2, (stored, offset, tuple(t.shape), strides, requires_grad, hooks)

    def save_global(self, obj, name=None):
        named = global_name(obj)
        if named is None:
            return super().save_global(obj, name)
        module, name = named
        if self.proto >= 4:
            self.save(module)
            self.save(name)
            self.write(pickle.STACK_GLOBAL)
        else:
            self.write(pickle.GLOBAL + module.encode() + b"\n" + name.encode() + b"\n")
        self.memoize(obj)

    def save_function(self, obj):
        return self.save_global(obj)

    dispatch[type(lambda: None)] = save_function


def write(obj, f, protocol: int = 2) -> None:
    """Write ``obj`` to ``f``, a path or a binary file."""
    data = io.BytesIO()
    pickler = Pickler(data, protocol)
    pickler.dump(obj)
    out = ArchiveWriter(f)
    try:
        out.record("data.pkl", data.getbuffer())
        out.record(".format_version", b"1")
        out.record(".storage_alignment", b"64")
        out.record("byteorder", b"little")
        for key, array in pickler.memory.items():
            out.record(f"data/{key}", array)
    finally:
        out.close()
