"""How tensors go to other processes: their storages as descriptors of shared memory (core/shared.py), all else as a pickle.

For Python's multiprocessing (queues, pipes, arguments of a process) tensors and storages have reducers, and its resource sharer hands descriptors
over: the sender has to live until they are fetched. A DataLoader's workers send messages of their own (:func:`dumps`, :func:`send`,
:func:`receive`) over a socket that takes the descriptors along, so what has been sent arrives even from a process that has ended.
"""

from __future__ import annotations

import io
import os
import pickle
import socket
from multiprocessing import reduction

from .. import _C
from .shared import attach, descriptor_of, share, share_memory_
from .storage import Storage
from .tensor import Tensor

__all__ = ["dumps", "receive", "send"]

_INLINE = 1 << 16  # bytes of a storage that are copied with a message: to map them takes longer
_CHUNK = 200  # descriptors that go with one byte of a socket: the system takes 253


def _attached(handle, nbytes: int) -> Storage:
    return attach(handle.detach(), nbytes)


def _reduce_storage(storage: Storage):
    if storage.owner is None:
        return storage.__reduce_ex__(2)
    return _attached, (reduction.DupFd(descriptor_of(share(storage))), storage.nbytes())


def _checked(t):
    if t._grad_fn is not None:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support crossing process "
            "boundaries.  If you just want to transfer the data, call detach() on the tensor before serializing (e.g., putting it on the queue)."
        )


def _reduce_tensor(t):
    _checked(t)
    if t._array is not None:
        share_memory_(
            t
        )  # before the pickle refers to its storage: one that only this tensor has is moved without a look for others
    return t.__reduce_ex__(2)


class _Batch(reduction.ForkingPickler):
    """Pickles what a worker sends; ``storages`` are the shared ones, which the pickle knows by number."""

    def __init__(self, file):
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.storages: list[Storage] = []
        self._numbers: dict[Storage, int] = {}

    def persistent_id(self, obj):
        if isinstance(obj, _C.TensorBase):
            _checked(obj)
            if obj._array is not None and obj._array.nbytes > _INLINE:
                share_memory_(obj)
        elif type(obj) is Storage and (obj.is_shared() or obj.nbytes() > _INLINE and obj.owner is not None):
            if obj not in self._numbers:
                self._numbers[obj] = len(self.storages)
                self.storages.append(share(obj))
            return self._numbers[obj], obj.nbytes()
        return None

    def reducer_override(self, obj):
        return (
            obj.__reduce_ex__(pickle.HIGHEST_PROTOCOL) if isinstance(obj, _C.TensorBase | Storage) else NotImplemented
        )


class _Arrived(pickle.Unpickler):
    def __init__(self, file, descriptors: list[int]):
        super().__init__(file)
        self._descriptors = descriptors  # taken out as they are used
        self._storages: dict[int, Storage] = {}

    def persistent_load(self, pid):
        number, nbytes = pid
        if number not in self._storages:
            self._storages[number] = attach(self._descriptors.pop(0), nbytes)
        return self._storages[number]


def dumps(obj) -> tuple[bytes, list[Storage]]:
    """The message for ``obj``, and the storages in shared memory that go with it: they have to live until it is sent."""
    out = io.BytesIO()
    pickler = _Batch(out)
    pickler.dump(obj)
    return out.getvalue(), pickler.storages


def _socket_of(connection) -> socket.socket:
    return socket.socket(fileno=os.dup(connection.fileno()))


def send(connection, message: bytes, storages: list[Storage]) -> None:
    """Send what :func:`dumps` gave over a connection that is a socket (``Pipe(duplex=True)``)."""
    connection.send_bytes(len(storages).to_bytes(8, "little") + message)
    descriptors = [descriptor_of(s) for s in storages]
    if descriptors:
        with _socket_of(connection) as out:
            for at in range(0, len(descriptors), _CHUNK):
                reduction.sendfds(out, descriptors[at : at + _CHUNK])


def receive(connection):
    """The next object that :func:`send` sent. EOFError when the sender is gone."""
    message = memoryview(connection.recv_bytes())
    left, descriptors = int.from_bytes(message[:8], "little"), []
    try:
        if left:
            with _socket_of(connection) as source:
                while left:
                    descriptors += reduction.recvfds(source, min(left, _CHUNK))
                    left -= min(left, _CHUNK)
        return _Arrived(io.BytesIO(message[8:]), descriptors).load()
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


reduction.ForkingPickler.register(Storage, _reduce_storage)
# Other subclasses come by their ``__reduce_ex__`` to the storage; its move then looks for tensors over it.
for _cls in (Tensor, *Tensor.__subclasses__()):
    reduction.ForkingPickler.register(_cls, _reduce_tensor)
