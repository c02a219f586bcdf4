"""Processes that are started together and watched. They end with this process, and each is the head of a process group, so that what it has started
is ended with it."""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .errors import ErrorHandler, ProcessFailure
from .logs import DefaultLogsSpecs, LogsDest, LogsSpecs, Std, to_map
from .output import Output, is_consequence, last_traceback

__all__ = [
    "GRACE",
    "DefaultLogsSpecs",
    "LogsDest",
    "LogsSpecs",
    "MultiprocessContext",
    "PContext",
    "RunProcsResult",
    "SignalException",
    "Std",
    "SubprocessContext",
    "to_map",
]

GRACE = 3  # seconds between SIGTERM and SIGKILL
_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


class SignalException(Exception):
    """The agent was told by ``sigval`` to end."""

    def __init__(self, msg: str, sigval: signal.Signals):
        super().__init__(msg)
        self.sigval = sigval


@dataclass
class RunProcsResult:
    """What processes returned, those that failed, and files of their streams, by local rank."""

    return_values: dict[int, Any] = field(default_factory=dict)
    failures: dict[int, ProcessFailure] = field(default_factory=dict)
    stdouts: dict[int, str] = field(default_factory=dict)
    stderrs: dict[int, str] = field(default_factory=dict)

    def is_failed(self) -> bool:
        """Whether a process failed."""
        return bool(self.failures)


def _die_with_parent() -> None:
    _libc.prctl(_PDEATHSIG, signal.SIGKILL)


def _is_stopped(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] in "Tt"
    except OSError:
        return False


class PContext(ABC):
    """Processes by local rank. ``start`` them, then ``poll`` or ``wait``, at last ``close``."""

    def __init__(
        self,
        name: str,
        entrypoint: Callable | str,
        args: dict[int, tuple],
        envs: dict[int, dict[str, str]],
        logs_specs: LogsSpecs,
        log_line_prefixes: dict[int, str] | None = None,
    ):
        self.name, self.entrypoint, self.args, self.envs = name, entrypoint, args, envs
        self.logs_specs, self.prefixes = logs_specs, log_line_prefixes or {}
        self.dest = logs_specs.reify(envs)
        self.codes: dict[int, int] = {}  # exit statuses of those that have ended
        self.returned: dict[int, Any] = {}
        self.failures: dict[int, ProcessFailure] = {}

    @abstractmethod
    def start(self) -> None:
        """Start all."""

    @abstractmethod
    def pids(self) -> dict[int, int]:
        """Process numbers of those that were started."""

    @abstractmethod
    def _poll(self, local: int) -> int | None:
        """The exit status of one; None while it runs."""

    @abstractmethod
    def _told(self, local: int) -> str:
        """What one that failed wrote of its error."""

    def _environment(self, local: int) -> dict[str, str]:
        return {**os.environ, "TORCHELASTIC_ERROR_FILE": self.dest.error_files.get(local, ""), **self.envs[local]}

    def poll(self) -> dict[int, int]:
        """Exit statuses of those that have ended; the others are let alone."""
        for local in self.pids():
            if local not in self.codes:
                code = self._poll(local)
                if code is not None:
                    self.codes[local] = code
                    if code != 0:
                        self.failures[local] = self._failure(local, code)
        return self.codes

    def _failure(self, local: int, code: int) -> ProcessFailure:
        failure = ProcessFailure(local, self.pids()[local], code, self.dest.error_files.get(local, ""))
        text = last_traceback(self._told(local))
        if isinstance(failure.message, str) and code > 0 and text:
            failure.message = text
        return failure

    def is_done(self) -> bool:
        return len(self.poll()) == len(self.args)

    def is_consequence(self, local: int) -> bool:
        """Whether one that failed says that another rank is the cause."""
        failure = self.failures[local]
        return failure.exitcode > 0 and (is_consequence(failure.traceback()) or is_consequence(self._told(local)))

    def result(self) -> RunProcsResult:
        return RunProcsResult(dict(self.returned), dict(self.failures), self.dest.stdouts, self.dest.stderrs)

    def wait(self, timeout: float = -1, period: float = 1) -> RunProcsResult | None:
        """The result when all have ended well, or one has failed; then the others are ended. None after ``timeout`` seconds (-1: never)."""
        end = time.monotonic() + timeout
        while True:
            done = self.is_done()
            if done or self.failures:
                self.close()
                return self.result()
            if 0 <= timeout and time.monotonic() >= end:
                return None
            time.sleep(min(period, 0.05))

    def _signal(self, number: int) -> None:
        for pid in (pid for local, pid in self.pids().items() if local not in self.poll()):
            with contextlib.suppress(ProcessLookupError):
                # A process that was stopped would take SIGTERM only when it goes on.
                os.killpg(pid, signal.SIGKILL if _is_stopped(pid) else number)

    def close(self, death_sig: signal.Signals | None = None, timeout: float = GRACE) -> None:
        """End those that run: by ``death_sig`` (SIGTERM), and by SIGKILL after ``timeout`` seconds. They count as no failures."""
        before = dict(self.failures)
        self._signal(death_sig or signal.SIGTERM)
        end = time.monotonic() + timeout
        while time.monotonic() < end and len(self.poll()) < len(self.pids()):
            time.sleep(0.02)
        self._signal(signal.SIGKILL)
        while len(self.poll()) < len(self.pids()):
            time.sleep(0.02)
        self.failures = before


class SubprocessContext(PContext):
    """Programs. Lines of their output get ``log_line_prefixes`` in front."""

    def __init__(self, name, entrypoint, args, envs, logs_specs, log_line_prefixes=None):
        super().__init__(name, entrypoint, args, envs, logs_specs, log_line_prefixes)
        self._processes: dict[int, subprocess.Popen] = {}
        self._outputs: dict[int, Output] = {}

    def start(self) -> None:
        shown = self.logs_specs._local_ranks_filter
        for local, args in self.args.items():
            process = subprocess.Popen(
                [str(self.entrypoint), *map(str, args)],
                env=self._environment(local),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                process_group=0,
                preexec_fn=_die_with_parent,
            )
            self._processes[local] = process
            output = self._outputs[local] = Output(self.prefixes.get(local, ""))
            dest, is_shown = self.dest, not shown or local in shown
            for stream, to, alone, both in (
                (process.stdout, sys.stdout, dest.stdouts, dest.tee_stdouts),
                (process.stderr, sys.stderr, dest.stderrs, dest.tee_stderrs),
            ):
                file = alone.get(local, "")
                output.follow(
                    stream, to if is_shown and not file else None, file or both.get(local, ""), to is sys.stderr
                )

    def pids(self) -> dict[int, int]:
        return {local: process.pid for local, process in self._processes.items()}

    def _poll(self, local):
        code = self._processes[local].poll()
        if code is not None:
            self._outputs[local].join()
        return code

    def _told(self, local):
        return self._outputs[local].text()


def _call(local: int, fn: Callable, args: tuple, env: dict, streams: tuple[str, str], pipe) -> None:
    """A process of MultiprocessContext."""
    os.setpgid(0, 0)
    _die_with_parent()
    os.environ.update(env)
    for number, path in zip((1, 2), streams):
        if path:
            with open(path, "ab", buffering=0) as file:
                os.dup2(file.fileno(), number)
    handler = ErrorHandler()
    handler.initialize()
    try:
        pipe.send(fn(*args))
    except SystemExit:
        raise
    except BaseException as error:
        handler.record_exception(error)
        raise


class MultiprocessContext(PContext):
    """One function in several processes, by ``multiprocessing``. Its results come back; its output goes where this process's goes."""

    def __init__(self, name, entrypoint, args, envs, start_method, logs_specs, log_line_prefixes=None):
        super().__init__(name, entrypoint, args, envs, logs_specs, log_line_prefixes)
        if any([*self.dest.tee_stdouts.values(), *self.dest.tee_stderrs.values()]):
            raise NotImplementedError("tee is built for programs only: a function's output goes on, or to files")
        self._context = multiprocessing.get_context(start_method)
        self._processes: dict[int, Any] = {}
        self._pipes: dict[int, Any] = {}

    def start(self) -> None:
        for local, args in self.args.items():
            ours, theirs = self._context.Pipe(False)
            streams = (self.dest.stdouts.get(local, ""), self.dest.stderrs.get(local, ""))
            given = (local, self.entrypoint, tuple(args), self._environment(local), streams, theirs)
            process = self._context.Process(target=_call, args=given, name=f"{self.name}_{local}")
            process.start()
            theirs.close()
            self._processes[local], self._pipes[local] = process, ours

    def pids(self) -> dict[int, int]:
        return {local: process.pid for local, process in self._processes.items()}

    def _poll(self, local):
        process = self._processes[local]
        alive = process.is_alive()
        # A large result fills the pipe: the process can't end before it is read.
        self._take_result(local)
        if alive:
            return None
        process.join()
        return process.exitcode

    def _take_result(self, local: int) -> None:
        pipe = self._pipes[local]
        if local not in self.returned and not pipe.closed and pipe.poll():
            try:
                self.returned[local] = pipe.recv()
            except EOFError:
                pipe.close()

    def _told(self, local):
        failure = self.failures.get(local)
        return failure.traceback() if failure is not None else ""

    def is_consequence(self, local: int) -> bool:
        # The watch ends a process with status 1 and says nothing to Python.
        failure = self.failures[local]
        silent = failure.exitcode == 1 and not os.path.exists(failure.error_file)
        return silent or super().is_consequence(local)

    def _signal(self, number: int) -> None:
        for local, process in self._processes.items():
            with contextlib.suppress(ProcessLookupError):
                # Its own group is made by the process itself, a moment after its start.
                if local not in self.poll() and os.getpgid(process.pid) != process.pid:
                    process.kill()
        super()._signal(number)
