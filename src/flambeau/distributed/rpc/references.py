"""References to values of other workers, counted by the worker that owns the value.

Every reference outside of its owner is one of the owner's count, and takes itself off when it ends. A reference that a worker which isn't the owner
hands on to a third one is held (lent) until that one has been counted."""

from __future__ import annotations

import weakref
from typing import Any

from ...base.public import public_in
from ..futures import Future
from ._agent import Agent, Kind, current
from ._backward import backward_of
from ._calls import execute
from ._counted import Entry, Id
from ._requests import CallFuture
from ._wire import Outgoing, reading
from .functions import Unfinished, is_async
from .options import WorkerInfo

__all__ = ["RRef", "invoke", "remote_call"]


def _shown(number: Id) -> str:
    return f"GloballyUniqueId(created_on={number.rank}, local_id={number.number})"


@public_in("distributed.rpc")
class RRef:
    """A reference to a value that one worker owns. ``RRef(value)`` makes one of this worker's; ``rpc.remote`` one of another's.

    References go in arguments and results of calls, and nowhere else can they be pickled."""

    def __init__(self, value: Any, type_hint: Any = None):
        future: Future = Future()
        future.set_result(value)
        agent = current()
        self._set(agent, agent.references.new_id(), agent.rank, Entry(future), None)

    def _set(self, agent: Agent, number: Id, owner: int, entry: Entry | None, made: CallFuture | None) -> RRef:
        self._agent, self._id, self._owner, self._entry, self._made = agent, number, owner, entry, made
        if entry is None:
            end = weakref.finalize(self, agent.later, agent.send, owner, Kind.DELETE, 0, number)
            end.atexit = False
        return self

    @classmethod
    def _of(cls, agent: Agent, number: Id, owner: int, entry: Entry | None = None, made=None) -> RRef:
        return cls.__new__(cls)._set(agent, number, owner, entry, made)

    def is_owner(self) -> bool:
        """Whether the value is this worker's."""
        return self._entry is not None

    def owner(self) -> WorkerInfo:
        return self._agent.workers[self._owner]

    def owner_name(self) -> str:
        return self.owner().name

    def confirmed_by_owner(self) -> bool:
        """Whether the owner knows of it."""
        return self._made is None or self._made.done() and self._made._inner.exception() is None

    def local_value(self) -> Any:
        """The value, of this worker; waits until it is there. RuntimeError on other workers."""
        if self._entry is None:
            raise RuntimeError(
                f"For {self!r}, can't call localValue() on user {self._agent.info}. Call it on owner {self.owner()}"
            )
        return self._entry.future.wait()

    def to_here(self, timeout: float = -1.0) -> Any:
        """A copy of the value; on the owner the value. Raises what the call raised that makes it, RuntimeError after ``timeout`` seconds."""
        if self._entry is not None:
            return self.local_value()
        context = self._agent.contexts.current
        return self._agent.request(self._owner, Kind.FETCH, self._id, None, timeout, context).wait()

    def rpc_sync(self, timeout: float = -1.0) -> _Proxy:
        """``rref.rpc_sync().method(...)`` calls the value's method on its owner and waits."""
        return _Proxy(self, lambda *call: _ask(self, call, timeout).wait())

    def rpc_async(self, timeout: float = -1.0) -> _Proxy:
        """As ``rpc_sync``; a Future."""
        return _Proxy(self, lambda *call: _ask(self, call, timeout))

    def remote(self, timeout: float = -1.0) -> _Proxy:
        """As ``rpc_sync``; an RRef of the result."""
        return _Proxy(self, lambda *call: remote_call(self._agent, self._owner, call, timeout))

    def backward(self, dist_autograd_ctx_id: int = -1, retain_graph: bool = False) -> None:
        """The backward from the value, a tensor: of distributed autograd where a context is named, else the owner's own."""
        agent = self._agent
        if self._entry is not None:
            backward_of(dist_autograd_ctx_id, self.local_value())
        else:
            agent.request(self._owner, Kind.CALL, None, (_backward, (self, dist_autograd_ctx_id), {})).wait()

    def _get_future(self) -> Future:
        """Completed when the owner knows of it."""
        if self._made is not None:
            return self._made
        done: Future = Future()
        done.set_result(None)
        return done

    def __repr__(self) -> str:
        kind = "OwnerRRef" if self._entry is not None else "UserRRef"
        return f"{kind}({_shown(self._id)})"

    def __reduce_ex__(self, protocol):
        raise RuntimeError("Can not pickle rref in python pickler, rref can only be pickled when using RPC")

    def __rpc_reduce__(self, outgoing: Outgoing):
        references = self._agent.references
        if self._entry is not None:
            references.count(self._id, self._entry)
            return _arrive, (self._id, self._owner, True, None)
        if outgoing.to == self._owner:
            # Taking this one off the count is sent behind, so the entry is there still.
            return _arrive, (self._id, self._owner, False, None)
        return _arrive, (self._id, self._owner, False, (self._agent.rank, references.lend(self)))


def _arrive(number: Id, owner: int, counted: bool, lender: tuple[int, int] | None) -> RRef:
    agent = reading.agent
    if owner == agent.rank:
        entry = agent.references.discount(number) if counted else agent.references.entry(number)
        return RRef._of(agent, number, owner, entry)
    if lender is not None:
        agent.later(_accept_loan, agent, number, owner, lender)
    return RRef._of(agent, number, owner)


def _accept_loan(agent: Agent, number: Id, owner: int, lender: tuple[int, int]) -> None:
    rank, token = lender
    counted = agent.request(owner, Kind.ADD, number, timeout=0)
    counted.when_done(lambda _: agent.later(agent.send, rank, Kind.ACCEPTED, 0, token))


class _Proxy:
    """Methods of a reference's value."""

    def __init__(self, rref: RRef, ask):
        self._rref, self._ask = rref, ask

    def __getattr__(self, name: str):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: self._ask(invoke, (self._rref, name, args, kwargs), {})


def _ask(rref: RRef, call: tuple, timeout: float) -> CallFuture:
    agent = rref._agent
    return agent.request(rref._owner, Kind.CALL, None, call, timeout, agent.contexts.current)


def invoke(rref: RRef, name: str, args: tuple, kwargs: dict) -> Any:
    """A method of a reference's value, on its owner."""
    method = getattr(rref.local_value(), name)
    out = method(*args, **kwargs)
    return Unfinished(out) if is_async(method) else out


def _backward(rref: RRef, context_id: int) -> None:
    backward_of(context_id, rref.local_value())


def remote_call(agent: Agent, to: int, call: tuple, timeout: float = -1.0) -> RRef:
    """A reference to what the call gives on worker ``to``."""
    number, context = agent.references.new_id(), agent.contexts.current
    if to == agent.rank:
        entry = Entry(Future())
        agent.run(execute, agent, call, context, entry.fill)
        return RRef._of(agent, number, to, entry)
    made = agent.request(to, Kind.REMOTE, number, call, timeout, context)
    return RRef._of(agent, number, to, None, made)
