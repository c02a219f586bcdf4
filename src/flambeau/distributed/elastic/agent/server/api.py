"""The agent: rounds of meeting, starting and watching, until all ranks of all machines have ended well or failed too often.

A round ends in one of three ways. A rank fails: its agent tells all others, and all start again, if they haven't ``max_restarts`` times already. A
machine leaves or joins: all start again, and that isn't counted. All ranks end well. Ranks that end *because* another has (the watch ends them) say
so; their agent waits until it hears of the cause, for as long as a machine may be silent, and counts it as a failure of its own otherwise.
"""

from __future__ import annotations

import logging
import signal
import socket
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

from ...events import Event, EventSource
from ...events import record as record_event
from ...multiprocessing.api import GRACE, SignalException
from ...rendezvous.dynamic_rendezvous import DynamicRendezvousHandler
from .round import Failure, Round, RoundOver
from .workers import RunResult, Worker, WorkerGroup, WorkerSpec, WorkerState

__all__ = [
    "DEFAULT_ROLE",
    "ElasticAgent",
    "RunResult",
    "SimpleElasticAgent",
    "Worker",
    "WorkerGroup",
    "WorkerSpec",
    "WorkerState",
]

DEFAULT_ROLE = "default"
_log = logging.getLogger(__name__)


class ElasticAgent(ABC):
    """What every agent does."""

    @abstractmethod
    def run(self, role: str = DEFAULT_ROLE) -> RunResult:
        """Run the ranks of this machine to their end."""

    @abstractmethod
    def get_worker_group(self, role: str = DEFAULT_ROLE) -> WorkerGroup:
        """The ranks of this machine in the current round."""


class _Signals:
    """Notes SIGTERM and its like instead of ending at once. Only the main thread can."""

    def __init__(self, numbers: Iterable[signal.Signals]):
        self.numbers, self.got = numbers, None
        self.before: dict = {}

    def __enter__(self):
        if threading.current_thread() is threading.main_thread():
            for number in self.numbers:
                self.before[number] = signal.signal(number, self._take)
        return self

    def _take(self, number, frame) -> None:
        self.got = signal.Signals(number)

    def check(self) -> None:
        if self.got is not None:
            raise SignalException(f"ended by {self.got.name}", self.got)

    def __exit__(self, *exc) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)


class SimpleElasticAgent(ElasticAgent):
    """An agent whose subclass starts, watches and stops the ranks. ``exit_barrier_timeout``: seconds that it waits for the ranks of other machines
    when its own have ended well (None: for ever). ``shutdown_timeout``: seconds that ranks have between SIGTERM and SIGKILL."""

    def __init__(self, spec: WorkerSpec, exit_barrier_timeout: float | None = None, shutdown_timeout: float = GRACE):
        self._spec, self._group = spec, WorkerGroup(spec)
        self._exit_barrier_timeout, self._shutdown_timeout = exit_barrier_timeout, shutdown_timeout
        self._restarts = 0
        self._signals = _Signals(())
        self.signals: tuple[signal.Signals, ...] = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        self.say: Callable[[str], Any] = _log.info

    def get_worker_group(self, role: str = DEFAULT_ROLE) -> WorkerGroup:
        return self._group

    @abstractmethod
    def _start_workers(self, worker_group: WorkerGroup) -> dict[int, Any]:
        """Start the ranks of a round; {local rank: process number}."""

    @abstractmethod
    def _stop_workers(self, worker_group: WorkerGroup, death_sig: signal.Signals = signal.SIGTERM) -> None:
        """End the ranks that run."""

    @abstractmethod
    def _monitor_workers(self, worker_group: WorkerGroup) -> RunResult:
        """How the ranks are. FAILED says that one of them failed by itself, UNHEALTHY that all that failed did because of others."""

    def _shutdown(self, death_sig: signal.Signals = signal.SIGTERM) -> None:
        """End all and free what the agent has."""
        self._stop_workers(self._group, death_sig)

    # ---- the rounds ----------------------------------------------------------------------------------------

    def run(self, role: str = DEFAULT_ROLE) -> RunResult:
        """The result of the last round. SignalException for a signal of ``signals``; errors of the rendezvous. Ranks have ended on return."""
        handler = self._spec.rdzv_handler
        self._signals = _Signals(self.signals)
        with self._signals:
            try:
                return self._run()
            except SignalException as error:
                # The others hear of it at once, not by silence.
                getattr(handler, "leave", handler.shutdown)()
                self._shutdown(error.sigval)
                raise
            finally:
                self._shutdown()
                getattr(handler, "leave", handler.shutdown)()

    def _run(self) -> RunResult:
        spec = self._spec
        if isinstance(spec.rdzv_handler, DynamicRendezvousHandler):
            spec.rdzv_handler.waiting = self._signals.check
        while True:
            self._signals.check()
            failure = None
            try:
                current = self._rendezvous()
                self._start(current)
                result, failure = self._watch(current)
            except RoundOver as over:
                self.say(f"{over}: all ranks start again")
                result = None
            if result is not None and failure is None:
                self._note("succeeded")
                self._end(current)
                return result
            if failure is not None:
                self._restarts = current.restarts + 1
                if self._restarts > spec.max_restarts:
                    spec.rdzv_handler.set_closed()
            # The cause stands behind what the others write of it.
            self._stop_workers(self._group)
            if failure is not None:
                self.say(self._description(failure, current))
                if self._restarts > spec.max_restarts:
                    return self._failed(failure)
                self.say(f"starting all ranks again ({self._restarts} of {spec.max_restarts})")

    def _end(self, current: Round) -> None:
        """The job has ended; or this machine's part of it only, which the others don't take for a loss."""
        handler = self._spec.rdzv_handler
        if current.are_all_done():
            handler.set_closed()
        elif isinstance(handler, DynamicRendezvousHandler):
            handler.leave(finished=True)

    def _rendezvous(self) -> Round:
        """Meet the other agents; this machine's ranks have their numbers then."""
        spec, group = self._spec, self._group
        info = spec.rdzv_handler.next_rendezvous()
        current = Round(info, spec, self._restarts)

        def check() -> None:
            self._signals.check()
            self._check_round()

        group.workers = current.agree(check)
        self._restarts = current.restarts
        place = info.bootstrap_store_info
        group.store, group.group_rank, group.group_world_size = info.store, info.rank, info.world_size
        group.master_addr = spec.master_addr or (place.master_addr if place else None)
        group.master_port = spec.master_port or (place.master_port if place else None)
        return current

    def _check_round(self) -> None:
        if getattr(self._spec.rdzv_handler, "is_round_over", bool)():
            raise RoundOver("a machine has left, or joins")

    def _start(self, current: Round) -> None:
        for local, number in self._start_workers(self._group).items():
            self._group.workers[local].id = number
        self._group.state = WorkerState.HEALTHY
        if current.machines > 1:
            self.say(
                f"machine {current.rank} of {current.machines}: {len(self._group.workers)} of {current.size} ranks started"
            )

    def _watch(self, current: Round) -> tuple[RunResult, Failure | None]:
        """(the ranks' result, what failed first in the job). RoundOver when others meet anew."""
        handler, own_end, blamed = self._spec.rdzv_handler, None, None
        while True:
            self._signals.check()
            result = self._monitor_workers(self._group)
            failure = current.failure()
            if failure is not None:
                return result, failure
            if result.state == WorkerState.FAILED:
                return result, current.report(self._first(result, current))
            if result.state == WorkerState.SUCCEEDED:
                if own_end is None:
                    own_end = time.monotonic()
                    current.done()
                if current.are_all_done() or self._is_overdue(own_end):
                    return result, None
            if getattr(handler, "is_round_over", bool)():
                # What failed may have been told meanwhile, by one that meets anew already.
                failure = current.failure()
                if failure is None and getattr(handler, "is_static", False):
                    failure = current.report(self._lost(current))
                if failure is not None:
                    return result, failure
                raise RoundOver("a machine has left, or joins")
            if result.state == WorkerState.UNHEALTHY:
                blamed = blamed or time.monotonic()
                if time.monotonic() - blamed > self._silence():
                    return result, current.report(self._first(result, current))
            elif handler.num_nodes_waiting() > 0 and not current.is_anyone_done():
                raise RoundOver("a machine joins")
            time.sleep(self._spec.monitor_interval)

    def _is_overdue(self, own_end: float) -> bool:
        limit = self._exit_barrier_timeout
        if limit is None or time.monotonic() - own_end < limit:
            return False
        self.say(f"the ranks of other machines haven't ended within {limit:g} s; this one doesn't wait for them")
        return True

    def _silence(self) -> float:
        """Seconds by which a dead machine is surely noticed, by one that is slow itself, too."""
        settings = getattr(self._spec.rdzv_handler, "settings", None)
        if settings is None or settings.max_nodes == 1:
            return 0.0
        return 2 * settings.silence + settings.keep_alive_interval.total_seconds()

    # ---- failures ------------------------------------------------------------------------------------------

    def _first(self, result: RunResult, current: Round) -> Failure:
        """The rank of this machine that failed first, the cause before its consequences."""
        rank, failure = next(iter(result.failures.items()))
        error = failure.traceback() if "Traceback (most recent call last)" in failure.traceback() else ""
        return Failure(
            rank=rank,
            size=current.size,
            local_rank=failure.local_rank,
            host=socket.gethostname(),
            pid=failure.pid,
            code=failure.exitcode,
            error=error,
            timestamp=failure.timestamp,
        )

    def _lost(self, current: Round) -> Failure:
        return Failure(
            -1, current.size, -1, socket.gethostname(), -1, 1, "", int(time.time()), "a machine has left the job"
        )

    def _description(self, failure: Failure, current: Round) -> str:
        if failure.message:
            return f"{failure.message}; the other ranks were ended"
        how = (
            f"was killed by {signal.Signals(-failure.code).name}"
            if failure.code < 0
            else f"exited with status {failure.code}"
        )
        elsewhere = f" on {failure.host}" if current.machines > 1 else ""
        who = f"rank {failure.rank} of {failure.size} (process {failure.pid}{elsewhere})"
        return f"{who} {how}; the other ranks were ended\n{failure.error}"

    def _failed(self, failure: Failure) -> RunResult:
        """The result of a job that failed: the first failure first."""
        self._note("failed")
        own = self._monitor_workers(self._group).failures
        failures = {failure.rank: failure.process_failure(own.get(failure.rank))}
        return RunResult(
            WorkerState.FAILED, failures={**failures, **{r: f for r, f in own.items() if r != failure.rank}}
        )

    def _note(self, state: str) -> None:
        """An event, for those that log events."""
        spec = self._spec
        metadata = {
            "run_id": spec.rdzv_handler.get_run_id(),
            "role": spec.role,
            "hostname": socket.gethostname(),
            "group_rank": self._group.group_rank,
            "group_world_size": self._group.group_world_size,
            "restarts": self._restarts,
        }
        event = Event(f"torchelastic.agent.{state}", EventSource.AGENT, int(time.time()), metadata)
        record_event(event, spec.event_log_handler)
