"""Writing checkpoints: the pickler that names things as PyTorch does and puts storages beside the pickle."""

from __future__ import annotations

import io
import os
import pickle
import struct
import sys

from .. import _C
from ..base.device import Device
from ..base.dtypes import DType
from ..base.shapes import Size
from ..core.pickling import public_path
from ..core.quantized import QScheme
from ..core.sparse import is_sparse
from ..core.storage import Storage, seen, span
from ..core.tensor import Layout
from ..core.typed_storage import TypedStorage
from . import rebuild
from .archive import ArchiveWriter
from .names import global_name
from .rebuild import BY_DTYPE, UNTYPED, StorageType

__all__ = ["write", "write_stream"]

MAGIC = 0x1950A86A20F9469CFC6C
PROTOCOL = 1001


def _public(function: _C.Function) -> tuple[str, str] | None:
    """PyTorch's module that has the function, and its name there; None of methods, which globals can't name."""
    place, path = public_path(function) or ("", ".")
    return None if "." in path else ("torch" + place.removeprefix("flambeau"), path)


class Pickler(pickle._Pickler):
    """``storages`` becomes {key: (storage, kind)} of the storages that were met, in order. ``more`` ends each storage's id."""

    dispatch = pickle._Pickler.dispatch.copy()

    def __init__(self, file, protocol: int = 2, more: tuple = ()):
        super().__init__(file, protocol)
        self.storages: dict[str, tuple[Storage, StorageType]] = {}
        self._keys: dict[int, str] = {}
        self._more = more

    def persistent_id(self, obj):
        """Of storages: ("storage", class, key, device, elements), as in PyTorch's files."""
        if isinstance(obj, TypedStorage):
            return self._stored(obj.untyped(), BY_DTYPE.get(obj.dtype, UNTYPED))
        return self._stored(obj, UNTYPED) if type(obj) is Storage else None

    def _stored(self, storage: Storage, kind: StorageType):
        key = self._keys.setdefault(id(storage), str(len(self._keys)))
        if self.storages.setdefault(key, (storage, kind))[1] is not kind:
            raise RuntimeError("Cannot save multiple tensors or storages that view the same data as different types")
        item = 1 if kind.dtype is None else kind.dtype.itemsize
        nbytes = span(storage)
        return "storage", kind, key, str(storage.device), nbytes // item, *self._more

    def save(self, obj, save_persistent_id=True):
        if type(obj) is Size:
            return self.save_reduce(Size, (tuple(obj),), obj=obj)
        if type(obj) is Device:
            return self.save_reduce(Device, (obj.type,) if obj.index is None else (obj.type, obj.index), obj=obj)
        if type(obj) is Layout:
            return self.save_reduce(rebuild._get_layout, (repr(obj),), obj=obj)
        if isinstance(obj, DType | StorageType | QScheme) or isinstance(obj, type) and global_name(obj) is not None:
            return (
                self.save_global(obj) if self.memo.get(id(obj)) is None else self.write(self.get(self.memo[id(obj)][0]))
            )
        if isinstance(obj, _C.Function) and self.memo.get(id(obj)) is None and _public(obj) is not None:
            return self.save_global(obj)
        if isinstance(obj, _C.TensorBase) and self.memo.get(id(obj)) is None and is_sparse(obj):
            return self.save_reduce(*rebuild.sparse_parts(obj), obj=obj)
        return super().save(obj, save_persistent_id)

    def save_global(self, obj, name=None):
        named = _public(obj) if isinstance(obj, _C.Function) else global_name(obj)
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

    def contents(self):
        """(key, whole elements as bytes, number of elements) of the storages."""
        for key, (storage, kind) in self.storages.items():
            item = 1 if kind.dtype is None else kind.dtype.itemsize
            held = seen(storage)
            yield key, held[: held.nbytes // item * item], held.nbytes // item


def write(obj, f, protocol: int = 2) -> None:
    """Write ``obj`` to ``f``, a path or a binary file, as a zip archive."""
    data = io.BytesIO()
    pickler = Pickler(data, protocol)
    pickler.dump(obj)
    out = ArchiveWriter(f)
    try:
        out.record("data.pkl", data.getbuffer())
        out.record(".format_version", b"1")
        out.record(".storage_alignment", b"64")
        out.record("byteorder", sys.byteorder.encode())
        for key, held, _ in pickler.contents():
            out.record(f"data/{key}", held)
        out.close()
    except BaseException:
        out.abandon()
        raise


def _write_parts(obj, out, protocol: int) -> None:
    system = {
        "protocol_version": PROTOCOL,
        "little_endian": sys.byteorder == "little",
        "type_sizes": {"short": 2, "int": 4, "long": 4},
    }
    for part in (MAGIC, PROTOCOL, system):
        pickle.dump(part, out, protocol)
    pickler = Pickler(out, protocol, more=(None,))  # a storage is no view of another
    pickler.dump(obj)
    pickle.dump(sorted(pickler.storages), out, protocol)
    contents = {key: (held, count) for key, held, count in pickler.contents()}
    for key in sorted(contents):
        held, count = contents[key]
        out.write(struct.pack("<q", count))
        out.write(held.data)


def write_stream(obj, f, protocol: int = 2) -> None:
    """Write ``obj`` to ``f`` in the format before PyTorch 1.6: a row of pickles, and the storages after them."""
    if not isinstance(f, (str, os.PathLike)):
        return _write_parts(obj, f, protocol)
    with open(f, "wb") as out:
        return _write_parts(obj, out, protocol)
