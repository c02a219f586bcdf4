"""Methods of the storage (the native class ``_C.UntypedStorage``) that are written in Python."""

from __future__ import annotations

import numpy as np

from .. import _C
from ..base.device import CPU, META

__all__ = ["Storage"]

Storage = _C.UntypedStorage


def _bytes(self) -> np.ndarray:
    """The memory as uint8, shared."""
    if self.owner is None:
        raise RuntimeError("a storage without data (meta, fake, wrapper) has no bytes")
    return self.owner.reshape(-1).view(np.uint8)


def tolist(self) -> list:
    return _bytes(self).tolist()


def clone(self):
    """A copy of the memory."""
    return _C.from_array(_bytes(self).copy()).untyped_storage()


def is_shared(self) -> bool:
    """Whether other processes can map this memory."""
    return self.__dict__.get("_shared") is not None


Storage.device = property(lambda self: META if self.owner is None else CPU)
Storage.is_cuda = property(lambda self: False)
Storage.tolist, Storage.clone, Storage.is_shared = tolist, clone, is_shared
Storage.element_size = lambda self: 1
Storage.untyped = lambda self: self
Storage.is_pinned = lambda self, device=None: False
