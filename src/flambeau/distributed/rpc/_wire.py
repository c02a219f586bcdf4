"""Messages: pickles in which the memory of tensors goes beside, and references and histories of tensors are told to the agent."""

from __future__ import annotations

import io
import pickle
import threading
from typing import Any

import numpy as np

from ... import _C
from ...modules.parameter import Parameter
from ..elements import bytes_of, contiguous

__all__ = ["Outgoing", "dumps", "loads", "reading"]


class Outgoing:
    """Where a message goes, and what its tensors and references do on the way. ``context``: the distributed backward that follows it."""

    def __init__(self, agent, to: int, context=None):
        self.agent, self.to, self.context = agent, to, context


class _Reading(threading.local):
    agent: Any = None
    source = -1
    context: Any = None


# The message that this thread unpickles.
reading = _Reading()


class _Pickler(pickle.Pickler):
    def __init__(self, file, outgoing: Outgoing, buffers: list):
        super().__init__(file, 5, buffer_callback=buffers.append)
        self._outgoing = outgoing

    def reducer_override(self, obj):
        if isinstance(obj, _C.TensorBase) and type(obj) in _PLAIN and obj._array is not None:
            array = contiguous(obj._array)
            key = None
            if self._outgoing.context is not None and obj.requires_grad:
                key = self._outgoing.context.sent(obj, self._outgoing.to)
            memory = pickle.PickleBuffer(bytes_of(array))
            facts = (array.dtype, tuple(obj.shape), obj.requires_grad, type(obj) is Parameter, key)
            return _tensor, (memory, *facts)
        of_kind = getattr(type(obj), "__rpc_reduce__", None)
        return NotImplemented if of_kind is None else of_kind(obj, self._outgoing)


_PLAIN = (type(_C.from_array(np.zeros(1))), Parameter)


def _tensor(memory, dtype, shape, requires_grad: bool, parameter: bool, key):
    array = np.frombuffer(memory, np.uint8).view(dtype).reshape(shape)
    t = _C.from_array(array)
    t = Parameter(t, requires_grad) if parameter else t.requires_grad_(requires_grad)
    if key is not None and reading.context is not None:
        reading.context.received(t, reading.source, key)
    return t


def dumps(obj, outgoing: Outgoing) -> tuple[bytes, list]:
    """The head and the buffers of a message."""
    out, buffers = io.BytesIO(), []
    _Pickler(out, outgoing, buffers).dump(obj)
    return out.getvalue(), buffers


def loads(head, buffers: list, agent, source: int, context=None) -> Any:
    before = reading.agent, reading.source, reading.context
    reading.agent, reading.source, reading.context = agent, source, context
    try:
        return pickle.loads(head, buffers=buffers)
    finally:
        reading.agent, reading.source, reading.context = before
