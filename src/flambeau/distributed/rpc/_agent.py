"""A worker's agent: what it sends, who waits for what, and the threads that read.

All that one worker sends to another goes over one connection, in order, and is unpickled in order by the thread that reads it. That thread never
waits: calls run in a pool, and what it has to send itself is sent by a thread of its own (``_work.py``)."""

from __future__ import annotations

import contextlib
import enum
import pickle
import socket
import struct
import threading
import traceback
from collections.abc import Callable
from typing import Any

from ..store import Store
from . import _channel
from ._calls import answer
from ._contexts import Contexts
from ._ending import Counts
from ._requests import CallFuture, Failure, Requests
from ._wire import Outgoing, dumps, loads
from ._work import Work
from .options import WorkerInfo, get_rpc_timeout

__all__ = ["Agent", "Kind", "current"]

_HEAD = struct.Struct("<I")


class Kind(enum.Enum):
    """What a message is. The first ones are answered by REPLY or FAILURE."""

    CALL = enum.auto()  # a function and its arguments
    REMOTE = enum.auto()  # the same, whose value stays there
    FETCH = enum.auto()  # the value of a reference
    ADD = enum.auto()  # one more refers to it
    REPLY = enum.auto()
    FAILURE = enum.auto()
    DELETE = enum.auto()  # one less refers to it
    ACCEPTED = enum.auto()  # a reference that was lent has been counted
    RELEASE = enum.auto()  # a context of distributed autograd ends


class Agent:
    """``workers`` and ``addresses`` by rank; ``listener``: the socket at this one's address."""

    def __init__(
        self, rank: int, workers: list[WorkerInfo], addresses, listener, secret: bytes, threads: int, store: Store
    ):
        self.rank, self.workers, self.info = rank, workers, workers[rank]
        self.by_name = {w.name: w for w in workers}
        self.addresses, self.listener, self.secret, self.store = addresses, listener, secret, store
        self.closing = False
        self.lost: dict[int, str] = {}
        self.contexts = Contexts(self)
        # Set by init_rpc, a references.References.
        self.references: Any = None
        self.handlers: dict[Kind, Callable] = {}  # (agent, source, number, note, body, context) -> None; _asked.py
        self._channels: dict[int, _channel.Channel] = {}
        self._accepted: list[_channel.Channel] = []
        self._opening = [threading.Lock() for _ in workers]
        self._lock = threading.Lock()
        self._requests = Requests(self._lock)
        self._sent = self._received = 0
        self.work = Work(self._lock, self.info.name, threads, lambda: self.closing or bool(self.lost))
        self.run, self.later = self.work.run, self.work.later
        for target in (self._accept, self._requests.watch_deadlines):
            threading.Thread(target=target, daemon=True, name=f"rpc-{target.__name__}").start()

    # ---- names

    def worker(self, to) -> WorkerInfo:
        """The worker of a name, a rank or a WorkerInfo. RuntimeError when there is none."""
        if isinstance(to, WorkerInfo):
            to = to.name
        if isinstance(to, str) and to in self.by_name:
            return self.by_name[to]
        if isinstance(to, int) and 0 <= to < len(self.workers):
            return self.workers[to]
        if not isinstance(to, (str, int)):
            raise ValueError(f"Cannot get WorkerInfo from name {to}")
        what = "name" if isinstance(to, str) else "id"
        raise RuntimeError(f"name:{self.info.name},rank:{self.rank} could not find destination {what} {to}")

    # ---- messages out

    def _channel_to(self, rank: int) -> _channel.Channel:
        with self._opening[rank]:
            found = self._channels.get(rank)
            if found is None:
                found = self._channels[rank] = _channel.connect(self.addresses[rank], self.secret, self.rank, rank)
                # Nothing comes this way, but its end.
                threading.Thread(target=self._read, args=(found,), daemon=True, name="rpc-read").start()
            return found

    def send(self, rank: int, kind: Kind, number: int = 0, note: Any = None, body: Any = None, context=None) -> None:
        """RuntimeError when the worker is gone; whatever pickling raises."""
        if self.closing:
            raise RuntimeError("RPC was shut down")
        payload, buffers = dumps(body, Outgoing(self, rank, context))
        head = pickle.dumps((kind.value, number, -1 if context is None else context.id, note))
        message = _HEAD.pack(len(head)) + head + payload
        with self._lock:
            self._sent += 1
        if rank == self.rank:
            self._arrived(bytearray(message), [bytearray(memoryview(b).cast("B")) for b in buffers], rank)
            return
        try:
            if rank in self.lost:
                raise ConnectionError(self.lost[rank])
            self._channel_to(rank).send(message, buffers)
        except OSError as error:
            with self._lock:
                self._sent -= 1
            raise RuntimeError(f"{self.workers[rank]} can't be reached: {error}") from error

    def request(self, rank: int, kind: Kind, note=None, body=None, timeout: float = -1.0, context=None) -> CallFuture:
        """Send what is answered. The future fails after ``timeout`` seconds (the default for -1, never for 0)."""
        future = CallFuture(self.run)
        number = self._requests.add(future, rank, get_rpc_timeout() if timeout < 0 else timeout)
        try:
            self.send(rank, kind, number, note, body, context)
        except BaseException as error:
            self._requests.take(number)
            if not isinstance(error, RuntimeError):
                raise
            future.settle(error=error)
        return future

    def reply(self, to: int, number: int, value: Any, context=None) -> None:
        """Answer a request; a value that can't be pickled is a failure."""
        try:
            self.send(to, Kind.REPLY, number, None, value, context)
        except RuntimeError as error:
            if to not in self.lost and not self.closing:
                self.fail(to, number, error)
        except Exception as error:
            self.fail(to, number, error)

    def fail(self, to: int, number: int, error: BaseException) -> None:
        failure = Failure(error, self.info)
        try:
            pickle.dumps(failure.type)
        except Exception:
            # A class that the other worker can't name.
            failure.type = None
        with contextlib.suppress(RuntimeError):
            self.send(to, Kind.FAILURE, number, failure.text, failure.type)

    # ---- messages in

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._greet, args=(sock,), daemon=True, name="rpc-read").start()

    def _greet(self, sock: socket.socket) -> None:
        try:
            channel = _channel.accept(sock, self.secret, self.rank)
        except (OSError, EOFError):
            # Not one of ours.
            return
        with self._lock:
            self._accepted.append(channel)
        self._read(channel)

    def _read(self, channel: _channel.Channel) -> None:
        try:
            while True:
                head, buffers = channel.receive()
                self._arrived(head, buffers, channel.rank)
        except (OSError, EOFError) as error:
            self._lose(channel.rank, str(error))

    def _lose(self, rank: int, why: str) -> None:
        with self._lock:
            if self.closing:
                return
            self.lost[rank] = why
            futures = self._requests.take_those_of(rank)
        for future in futures:
            future.settle(error=RuntimeError(f"{self.workers[rank]} can't be reached: {why}"))

    def _arrived(self, message: bytearray, buffers: list, source: int) -> None:
        with self._lock:
            self._received += 1
            self.work.active += 1
        try:
            view = memoryview(message)
            end = _HEAD.size + _HEAD.unpack_from(view)[0]
            value, number, context_id, note = pickle.loads(view[_HEAD.size : end])
            kind, context = Kind(value), self.contexts.of(context_id)
            if kind in (Kind.REPLY, Kind.FAILURE):
                self._answered(kind, number, note, view[end:], buffers, source, context)
                return
            try:
                body = loads(view[end:], buffers, self, source, context)
            except Exception as error:
                self._unreadable(kind, source, number, note, error)
                return
            if kind is Kind.CALL:
                self.run(answer, self, source, number, body, context)
            else:
                self._handle(kind, source, number, note, body, context)
        finally:
            with self._lock:
                self.work.active -= 1

    def _unreadable(self, kind: Kind, source: int, number: int, note, error: Exception) -> None:
        if kind is Kind.REMOTE:
            self._handle(kind, source, number, note, error, None)
        else:
            self.later(self.fail, source, number, error)

    def _handle(self, kind: Kind, source: int, number: int, note, body, context) -> None:
        try:
            self.handlers[kind](self, source, number, note, body, context)
        except RuntimeError as error:
            if number:
                self.later(self.fail, source, number, error)
            elif not self.closing:
                traceback.print_exception(error)

    def _answered(self, kind: Kind, number: int, note, payload, buffers, source: int, context) -> None:
        future = self._requests.take(number)
        try:
            value = loads(payload, buffers, self, source, context)
        except Exception as error:
            kind, value = Kind.FAILURE, type(error)
            note = note or f"On {self.info}: the answer can't be unpickled: {error!r}"
        if future is None:
            return
        if kind is Kind.REPLY:
            future.settle(value)
        else:
            future.settle(error=Failure.exception(value, note))

    # ---- the end

    def counts(self) -> Counts:
        with self._lock:
            return Counts(self.work.busy() + len(self._requests), self._sent, self._received)

    def close(self) -> None:
        """Close all connections; who waits for an answer gets a RuntimeError."""
        with self._lock:
            self.closing = True
            futures = self._requests.close()
            channels = [*self._channels.values(), *self._accepted]
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for channel in channels:
            channel.close()
        for future in futures:
            future.settle(error=RuntimeError("RPC was shut down"))
        self.work.close()


class _Process:
    agent: Agent | None = None


def current() -> Agent:
    """This process's agent. RuntimeError before init_rpc."""
    if _Process.agent is None:
        raise RuntimeError("RPC has not been initialized. Call torch.distributed.rpc.init_rpc first.")
    return _Process.agent


def use(agent: Agent | None) -> None:
    _Process.agent = agent


def is_set() -> bool:
    return _Process.agent is not None
