"""MPI through mpi4py: how it is started, and the engines over it.

MPI is started once a process, by PMI-1 from the server of the job (server.py), or by whatever started the ranks (mpiexec, srun). It is
never finalized, except under a starter that expects it: finalizing waits for all ranks.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import os
import sys
import time

import numpy as np

from .. import _exchange
from ..base.optional import optional
from .debug_level import DebugLevel, get_debug_level
from .elements import TYPES, address
from .engine import Engine, Kind, Pending, Transfer
from .errors import DistBackendError
from .exchange import SLOT, ExchangeEngine, described, wrong_length
from .reduce_op import RedOpType

__all__ = [
    "FileOfMpi",
    "MpiEngine",
    "WindowEngine",
    "available",
    "check",
    "engine_of",
    "is_foreign",
    "lacks_room",
    "start",
    "started_by",
]

# Variables of starters that give the ranks of a job to MPI themselves.
_STARTERS = ("PMI_RANK", "PMI_FD", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")


def available() -> bool:
    """Whether mpi4py is installed."""
    return importlib.util.find_spec("mpi4py") is not None


def started_by() -> str | None:
    """The variable by which mpiexec or srun gave this process a rank of MPI."""
    return next((name for name in _STARTERS if name in os.environ), None)


def check() -> None:
    """ModuleNotFoundError, with the command that installs it, where mpi4py is missing."""
    optional("mpi4py", "distributed", "a process group of several processes")


def _library():
    package = optional("mpi4py", "distributed", "a process group of several processes")
    package.rc.initialize = package.rc.finalize = False
    try:
        return importlib.import_module("mpi4py.MPI")
    except (ImportError, RuntimeError) as error:
        raise DistBackendError(
            f"mpi4py is installed and finds no MPI library ({error}): pip install 'flambeau[distributed]'"
        ) from error


def is_foreign(rank: int, size: int) -> bool:
    """Whether MPI runs in this process already, with other ranks: the program has imported ``mpi4py.MPI``, which starts it as a job of one rank."""
    MPI = sys.modules.get("mpi4py.MPI")  # noqa: N806
    return MPI is not None and MPI.Is_initialized() and (MPI.COMM_WORLD.rank, MPI.COMM_WORLD.size) != (rank, size)


def _free() -> int:
    """Bytes that are free in /dev/shm."""
    try:
        found = os.statvfs("/dev/shm")
    except OSError:
        return 0
    return found.f_bavail * found.f_frsize


def lacks_room(size: int) -> bool:
    """Whether /dev/shm is too small for MPI's own segments (MPICH and UCX take 4 to 8 MB a rank), which then end the process by a signal."""
    MPI = sys.modules.get("mpi4py.MPI")  # noqa: N806
    runs = started_by() is not None or (MPI is not None and MPI.Is_initialized())
    return not runs and _free() < (4 + 8 * int(os.environ.get("LOCAL_WORLD_SIZE", size))) << 20


def start(rank: int, size: int, host: str, port: int):
    """mpi4py's MPI, running, with COMM_WORLD of ``size`` ranks. DistBackendError where MPI has other ranks."""
    MPI = _library()  # noqa: N806
    if not MPI.Is_initialized():
        if started_by() is None:
            os.environ.update(PMI_PORT=f"{host}:{port}", PMI_ID=str(rank))
        try:
            MPI.Init_thread(MPI.THREAD_MULTIPLE)
        finally:
            if started_by() is None:
                os.environ.pop("PMI_PORT"), os.environ.pop("PMI_ID")
        if started_by() is not None:
            atexit.register(_finalize, MPI)
    if MPI.Query_thread() != MPI.THREAD_MULTIPLE:
        raise DistBackendError("this MPI library can't be called by several threads (MPI_THREAD_MULTIPLE)")
    world = MPI.COMM_WORLD
    if (world.rank, world.size) != (rank, size):
        raise DistBackendError(
            f"MPI was started once in this process, as rank {world.rank} of {world.size}; it can't be rank {rank} of {size} now"
        )
    return MPI


def _finalize(MPI) -> None:  # noqa: N803
    """mpiexec takes an end without MPI_Finalize for a failure. After an exception the others would be waited for."""
    if hasattr(sys, "last_value"):
        MPI.COMM_WORLD.Abort(1)
    if not MPI.Is_finalized():
        MPI.Finalize()


class FileOfMpi:
    """MPICH's file in /dev/shm, which it leaves behind when a rank is killed: the name goes once all ranks have it mapped."""

    @staticmethod
    def remove() -> None:
        with open("/proc/self/maps") as maps:
            paths = {line.split(None, 5)[5].strip() for line in maps if "/dev/shm/mpich" in line}
        for path in paths:
            if not path.endswith("(deleted)"):
                with contextlib.suppress(OSError):
                    os.unlink(path)


# ---- waiting -----------------------------------------------------------------------------------------------


class _Request(Pending):
    """A request of MPI's. MPI works on it only while it is asked, and a call that waits spins: it is asked with pauses that grow."""

    def __init__(self, MPI, request, array, ranks: tuple[int, ...], peers, what: str):  # noqa: N803
        self.MPI, self.request, self.array, self.ranks, self.peers, self.what = MPI, request, array, ranks, peers, what
        self.status = MPI.Status()

    def done(self) -> bool:
        if self.request is None:
            return True
        try:
            arrived = self.request.Test(self.status)
        except self.MPI.Exception as error:
            raise DistBackendError(f"{self.what}: {error}") from error
        if arrived:
            self.request, self.source = None, self.status.Get_source()
        return arrived

    def wait(self, timeout: float) -> None:
        end, pause, spins, left = time.monotonic() + timeout, 2e-5, 50, None
        while not self.done():
            if spins:
                spins -= 1
                continue
            time.sleep(pause)
            pause = min(pause * 1.3, 1e-3)
            gone = set(_exchange.left())
            for peer in self.peers:
                if self.ranks[peer] in gone:
                    # What it sent before may still be on its way.
                    end = min(end, time.monotonic() + 2.0) if left is None else end
                    left = self.ranks[peer]
            if time.monotonic() > end:
                why = f"timed out after {timeout:g} s" if left is None else f": rank {left} has left the job"
                raise DistBackendError(f"{self.what} {why}")


class _Messages(Engine):
    """Messages between two ranks, by MPI."""

    def __init__(self, MPI, comm, ranks: tuple[int, ...]):  # noqa: N803
        self.MPI, self.comm, self.ranks, self.rank, self.size = MPI, comm, ranks, comm.rank, comm.size

    def _request(self, request, array, peers, what: str) -> _Request:
        return _Request(self.MPI, request, array, self.ranks, peers, what)

    def send(self, array, to, tag):
        request = self.comm.Isend([array.reshape(-1).view(np.uint8), self.MPI.BYTE], to, tag)
        return self._request(request, array, [to], f"send to rank {self.ranks[to]}")

    def receive(self, array, source, tag):
        MPI = self.MPI  # noqa: N806
        place = MPI.ANY_SOURCE if source is None else source
        request = self.comm.Irecv([array.reshape(-1).view(np.uint8), MPI.BYTE], place, tag)
        peers = range(self.size) if source is None else [source]
        return self._request(
            request,
            array,
            [p for p in peers if p != self.rank] if source is not None else [],
            f"recv from rank {source}",
        )

    def close(self) -> None:
        # Freeing a communicator is a collective that would wait for the others: it ends with the process.
        self.comm = None


class MpiEngine(_Messages):
    """MPI's own collectives: ranks on several machines, or without room for a window. Reductions of what MPI has no sums for are made here of
    pieces that MPI carries."""

    name = "MPI"
    sequence = 0

    def _compare(self, t: Transfer, wait) -> None:
        """In debug mode ranks tell each other what they are about to do. DistBackendError, on all of them, when that isn't the same: MPI itself would
        abort, or wait for ever."""
        count = -1 if t.kind is Kind.ALL_TO_ALL else t.count
        mine = np.array([self.sequence, t.kind, t.type, t.op, t.root, count], np.int64)
        every = np.empty((self.size, mine.size), np.int64)
        wait(self.comm.Iallgather([mine, self.MPI.INT64_T], [every, self.MPI.INT64_T]))
        if (every != every[0]).any():
            lines = [
                f"  rank {rank}: in operation {row[0]}: {described(*map(int, row[1:]))}"
                for rank, row in zip(self.ranks, every)
            ]
            raise DistBackendError("\n".join(["ranks called different collectives", *lines]))

    def run(self, transfer, timeout):
        t, MPI = transfer, self.MPI  # noqa: N806
        end = time.monotonic() + timeout
        self.sequence += 1

        def wait(request):
            self._request(
                request,
                None,
                [p for p in range(self.size) if p != self.rank],
                described(t.kind, t.type, t.op, t.root, t.count),
            ).wait(max(0.0, end - time.monotonic()))

        def raw(array):
            return [array.reshape(-1).view(np.uint8), MPI.BYTE]

        if get_debug_level() is DebugLevel.DETAIL:
            self._compare(t, wait)
        if t.kind is Kind.BARRIER:
            wait(self.comm.Ibarrier())
        elif t.kind is Kind.BROADCAST:
            wait(self.comm.Ibcast(raw((t.sends or t.receives)[0]), t.root))
        elif t.kind in (Kind.ALL_REDUCE, Kind.REDUCE):
            self._reduce(t, wait)
        elif t.kind is Kind.REDUCE_SCATTER:
            pieces = [np.empty_like(t.receives[0]) for _ in range(self.size)]
            self._exchange(t.sends, pieces, wait)
            self._combine(t, t.receives[0], pieces)
        elif t.kind is Kind.ALL_TO_ALL:
            self._compare_lengths(t, wait)
            self._exchange(t.sends, t.receives, wait)
        elif t.kind in (Kind.ALL_GATHER, Kind.GATHER):
            every = t.kind is Kind.ALL_GATHER or self.rank == t.root
            out = np.empty((self.size, t.sends[0].nbytes), np.uint8) if every else None
            if t.kind is Kind.ALL_GATHER:
                wait(self.comm.Iallgather(raw(t.sends[0]), [out, MPI.BYTE]))
            else:
                wait(self.comm.Igather(raw(t.sends[0]), [out, MPI.BYTE] if every else None, t.root))
            for to, part in zip(t.receives, out if every else ()):
                to.reshape(-1).view(np.uint8)[:] = part
        else:  # SCATTER
            stacked = np.concatenate([a.reshape(-1).view(np.uint8) for a in t.sends]) if self.rank == t.root else None
            wait(self.comm.Iscatter(None if stacked is None else [stacked, MPI.BYTE], raw(t.receives[0]), t.root))

    def _compare_lengths(self, t: Transfer, wait) -> None:
        """DistBackendError, on all ranks, where a piece isn't as long as its receiver expects: MPI would abort, or leave bytes as they were."""
        MPI = self.MPI  # noqa: N806
        given = np.array([a.nbytes for a in t.sends], np.int64)
        told = np.empty_like(given)
        wait(self.comm.Ialltoall([given, MPI.INT64_T], [told, MPI.INT64_T]))
        wrong = [k for k, a in enumerate(t.receives) if a.nbytes != told[k]]
        mine = (
            [self.size, self.rank, 0, 0]
            if not wrong
            else [wrong[0], self.rank, told[wrong[0]], t.receives[wrong[0]].nbytes]
        )
        every = np.empty((self.size, 4), np.int64)
        wait(self.comm.Iallgather([np.array(mine, np.int64), MPI.INT64_T], [every, MPI.INT64_T]))
        first = min(map(tuple, every.tolist()))
        if first[0] < self.size:
            raise DistBackendError(wrong_length(self.ranks, *first))

    def _exchange(self, sends, receives, wait) -> None:
        """Each rank's pieces to all others."""
        given = np.concatenate([a.reshape(-1).view(np.uint8) for a in sends])
        counts = ([a.nbytes for a in sends], [a.nbytes for a in receives])
        taken = np.empty(sum(counts[1]), np.uint8)
        wait(self.comm.Ialltoallv([given, counts[0], self.MPI.BYTE], [taken, counts[1], self.MPI.BYTE]))
        at = 0
        for to in receives:
            to.reshape(-1).view(np.uint8)[:] = taken[at : at + to.nbytes]
            at += to.nbytes

    def _combine(self, t: Transfer, out, parts) -> None:
        if not _exchange.reduce(t.type, t.op, address(out), tuple(map(address, parts)), out.size):
            raise DistBackendError(f"{described(t.kind, t.type, t.op, t.root, t.count)}: there is no such reduction")

    def _reduce(self, t: Transfer, wait) -> None:
        """Of equal pieces, one a rank: each rank reduces one, then all are gathered. All ranks get the same bits."""
        given = t.sends[0].reshape(-1)
        width = -(-given.size // self.size)
        padded = np.zeros((self.size, width), given.dtype)
        padded.reshape(-1)[: given.size] = given
        parts = [np.empty(width, given.dtype) for _ in range(self.size)]
        self._exchange(list(padded), parts, wait)
        own = np.empty(width, given.dtype)
        self._combine(t, own, parts)
        out = np.empty((self.size, width), given.dtype)
        wait(self.comm.Iallgather([own.view(np.uint8), self.MPI.BYTE], [out.view(np.uint8), self.MPI.BYTE]))
        if t.receives:
            t.receives[0].reshape(-1)[:] = out.reshape(-1)[: given.size]


class WindowEngine(ExchangeEngine):
    """A window of MPI's that the ranks of one machine share."""

    name = "MPI window"

    def __init__(self, MPI, comm, ranks: tuple[int, ...]):  # noqa: N803
        self.messages = _Messages(MPI, comm, ranks)
        self.MPI, self.comm = MPI, comm
        self.windows = []
        slot = max(SLOT, 128 * comm.size)
        parts, own = self._window(_exchange.part_bytes(slot))
        own[:] = 0
        comm.Barrier()
        super().__init__(comm.rank, parts, ranks, False, slot)
        self.regions: dict[int, int] = {}

    def _window(self, nbytes: int):
        """(address of each rank's part, this rank's part as bytes)"""
        nbytes = -(-nbytes // 4096) * 4096
        window = self.MPI.Win.Allocate_shared(nbytes, 1, comm=self.comm)
        self.windows.append(window)
        buffers = [window.Shared_query(k)[0] for k in range(self.comm.size)]
        own = np.frombuffer(buffers[self.comm.rank], np.uint8)
        return tuple(np.frombuffer(b, np.uint8).__array_interface__["data"][0] for b in buffers), own

    def send(self, array, to, tag):
        return self.messages.send(array, to, tag)

    def receive(self, array, source, tag):
        return self.messages.receive(array, source, tag)

    def shared(self, nbytes):
        if not _room(self.comm, self.MPI, nbytes):
            return None
        bases, own = self._window(nbytes)
        self.exchange.add_region(bases, nbytes)
        return own[:nbytes]

    def close(self) -> None:
        # Tensors may still lie in the windows, and freeing one is a collective: they end with the process.
        self.comm = None
        self.messages.close()


def _room(comm, MPI, nbytes: int) -> bool:  # noqa: N803
    """Whether /dev/shm of every rank's machine has room for ``nbytes`` of each rank: a window beyond that is a signal when it is written."""
    limit = os.environ.get("FLAMBEAU_SHM_LIMIT")
    free = min(_free(), int(limit)) if limit else _free()
    mine = np.array([int(free > 1.1 * nbytes * comm.size)], np.int64)
    comm.Allreduce(MPI.IN_PLACE, [mine, MPI.INT64_T], MPI.MIN)
    return bool(mine[0])


def engine_of(MPI, ranks: tuple[int, ...]) -> Engine:  # noqa: N803
    """The engine of the group of these ranks of COMM_WORLD: by window where all are on one machine that has room. The members must all call."""
    world = MPI.COMM_WORLD
    if ranks == tuple(range(world.size)):
        comm = world.Dup()
    else:
        comm = world.Create_group(world.group.Incl(ranks), _tag(ranks))
    comm.Set_errhandler(MPI.ERRORS_RETURN)
    node = comm.Split_type(MPI.COMM_TYPE_SHARED, comm.rank)
    together = np.array([int(node.size == comm.size)], np.int64)
    comm.Allreduce(MPI.IN_PLACE, [together, MPI.INT64_T], MPI.MIN)
    node.Free()
    if together[0] and _room(comm, MPI, _exchange.part_bytes(SLOT)):
        return WindowEngine(MPI, comm, ranks)
    return MpiEngine(MPI, comm, ranks)


def _tag(ranks: tuple[int, ...]) -> int:
    """The members of one group meet under one tag."""
    return sum((k + 1) * r for k, r in enumerate(ranks)) % 30000


# Reductions that MPI is never asked for: the sums are exchange.c's, of every dtype and in one order.
assert RedOpType.SUM == 0 and len(TYPES) == 15
