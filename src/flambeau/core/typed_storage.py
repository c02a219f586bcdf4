"""A storage with the dtype of its elements. ``tensor.storage()`` returns one, and pickles of tensors refer to one."""

from __future__ import annotations

import re

import numpy as np

from .. import _C
from ..base import dtypes
from ..base.dtypes import DType
from ..base.public import public_in
from .storage import Storage, seen

__all__ = ["TypedStorage"]


@public_in("storage")
class TypedStorage:
    """The elements of a storage, with a dtype: what ``tensor.storage()`` gives. Indexing reads and writes elements."""

    def __init__(self, *args, wrap_storage=None, dtype=None, device=None, _internal=False):
        own = getattr(type(self), "dtype", None)
        self.dtype = own if isinstance(own, DType) else dtype or dtypes.get_default_dtype()
        if wrap_storage is None:
            if args and not isinstance(args[0], (int, np.integer)):
                array = np.array(args[0], dtype=self.dtype.np)
            else:
                array = np.empty(args[0] if args else 0, dtype=self.dtype.np)
            wrap_storage = _C.from_array(array)._storage
        self._untyped_storage = wrap_storage

    @property
    def _elements(self) -> np.ndarray:
        held = seen(self._untyped_storage)
        return held[: len(held) // self.dtype.itemsize * self.dtype.itemsize].view(self.dtype.np)

    def untyped(self):
        return self._untyped_storage

    def _numpy(self):
        return self._elements

    @property
    def device(self):
        return self._untyped_storage.device

    @property
    def _cdata(self) -> int:
        return self._untyped_storage._cdata

    is_cuda = property(lambda self: self._untyped_storage.is_cuda)
    is_sparse = False

    def size(self) -> int:
        return self._untyped_storage.nbytes() // self.dtype.itemsize

    __len__ = size
    _size = size

    def nbytes(self) -> int:
        return self._untyped_storage.nbytes()

    def element_size(self) -> int:
        return self.dtype.itemsize

    def data_ptr(self) -> int:
        return self._untyped_storage.data_ptr()

    def tolist(self) -> list:
        return self._elements.tolist()

    def __iter__(self):
        return iter(self.tolist())

    def __getitem__(self, index):
        found = self._elements[index]
        return found.item() if found.ndim == 0 else type(self)(found, dtype=self.dtype)

    def __setitem__(self, index, value):
        changed = self._elements
        changed[index] = value
        if self._untyped_storage.device_memory is not None:
            self._untyped_storage.device_memory.write(0, changed.view(np.uint8))
        self._untyped_storage._note_written()

    def clone(self):
        return type(self)(wrap_storage=self._untyped_storage.clone(), dtype=self.dtype)

    def fill_(self, value):
        self[:] = value
        return self

    def copy_(self, source, non_blocking=None):
        """Take over the bytes of another storage, of any dtype."""
        self._untyped_storage.copy_(source.untyped(), non_blocking)
        return self

    def cpu(self):
        return self.to("cpu")

    def to(self, device, non_blocking: bool = False):
        """Itself, or a copy on the device."""
        moved = self._untyped_storage.to(device)
        return self if moved is self._untyped_storage else type(self)(wrap_storage=moved, dtype=self.dtype)

    def type(self, dtype=None, non_blocking: bool = False):
        """The name of the class for elements of this dtype."""
        if dtype is not None:
            raise NotImplementedError(
                f"TypedStorage.type({dtype!r}) is not built: .float(), .int() and their kin make a storage of another dtype"
            )
        return f"torch.{self.pickle_storage_type()}"

    def pickle_storage_type(self) -> str:
        return f"{self.dtype.scalar_type}Storage"

    def resizable(self) -> bool:
        return self._untyped_storage.resizable()

    def resize_(self, size: int):
        self._untyped_storage.resize_(size * self.dtype.itemsize)

    def is_pinned(self, device=None) -> bool:
        return self._untyped_storage.is_pinned(device)

    @property
    def filename(self):
        return self._untyped_storage.filename

    def is_shared(self) -> bool:
        return self._untyped_storage.is_shared()

    def share_memory_(self):
        self._untyped_storage.share_memory_()
        return self

    def __repr__(self):
        held = "..." if self._untyped_storage.owner is None else "\n".join(f" {x}" for x in self.tolist())
        return held + f"\n[torch.storage.TypedStorage(dtype={self.dtype}, device={self.device}) of size {self.size()}]"

    def __reduce__(self):
        return _typed, (self._untyped_storage, self.dtype)


def _cast(target: DType):
    def cast(self) -> TypedStorage:
        """The elements as numbers of another dtype; of the same one, the storage itself. The elements of an untyped one are its bytes."""
        if isinstance(self, TypedStorage):
            if self.dtype is target:
                return self
            elements = self._elements
        else:
            elements = seen(self)
        return TypedStorage(elements.astype(target.np), dtype=target)

    return cast


# ``storage.float()``, ``storage.complex_double()``, ...
for _dtype in dtypes.ALL:
    if _dtype not in dtypes.LATE:
        for _owner in (TypedStorage, Storage):
            setattr(_owner, re.sub("(?<=[a-z])(?=[A-Z])", "_", _dtype.scalar_type).lower(), _cast(_dtype))


def _typed(storage, dtype: DType) -> TypedStorage:
    return TypedStorage(wrap_storage=storage, dtype=dtype)
