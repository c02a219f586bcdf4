"""``torch.multiprocessing``: Python's, with tensors passed through shared memory, and ``spawn``."""

from __future__ import annotations

import multiprocessing
import pickle
import signal
import sys
import tempfile
import traceback
from multiprocessing import *  # noqa: F403
from multiprocessing import (  # noqa: F401
    AuthenticationError,
    BufferTooShort,
    Process,
    ProcessError,
    TimeoutError,
    connection,
    parent_process,
    queues,
    reducer,
)

from ..core import sending as _sending  # noqa: F401  (how tensors are sent)


def get_all_sharing_strategies() -> set[str]:
    return {"file_descriptor"}


def get_sharing_strategy() -> str:
    return "file_descriptor"


def set_sharing_strategy(new_strategy: str) -> None:
    """Descriptors are the only strategy; "file_system" is accepted and means them too. ValueError for others."""
    if new_strategy not in ("file_system", "file_descriptor"):
        raise ValueError(f"unknown sharing strategy {new_strategy!r}")


class ProcessException(Exception):
    def __init__(self, msg: str, error_index: int, pid: int):
        super().__init__(msg)
        self.msg, self.error_index, self.pid = msg, error_index, pid

    def __reduce__(self):
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """A spawned process raised; the message holds its traceback."""


class ProcessExitedException(ProcessException):
    """A spawned process died; ``exit_code`` and ``signal_name`` say how."""

    def __init__(self, msg, error_index, error_pid, exit_code: int, signal_name: str | None = None):
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name


def _body(fn, index, args, error_file):
    try:
        fn(index, *args)
    except KeyboardInterrupt:
        return
    except Exception:
        with open(error_file, "wb") as file:
            pickle.dump(traceback.format_exc(), file)
        sys.exit(1)


class ProcessContext:
    """Processes that :func:`start_processes` started."""

    def __init__(self, processes, error_files):
        self.processes, self.error_files = processes, error_files
        self.sentinels = {p.sentinel: k for k, p in enumerate(processes)}

    def pids(self) -> list[int]:
        return [p.pid for p in self.processes]

    def join(self, timeout=None, grace_period=None) -> bool:
        """Wait for one or more to end; True when all have. The first failure ends the others and is raised."""
        if not self.sentinels:
            return True
        failed = None
        for sentinel in connection.wait(self.sentinels, timeout=timeout):
            k = self.sentinels.pop(sentinel)
            self.processes[k].join()
            if self.processes[k].exitcode != 0:
                failed = k
                break
        if failed is None:
            return not self.sentinels
        for p in self.processes:
            if p.is_alive():
                p.terminate()
            p.join()
        process = self.processes[failed]
        try:
            with open(self.error_files[failed], "rb") as file:
                text = pickle.load(file)
        except (OSError, EOFError):
            code = process.exitcode
            name = signal.Signals(-code).name if code < 0 else None
            how = f"terminated with signal {name}" if name else f"terminated with exit code {code}"
            raise ProcessExitedException(f"process {failed} {how}", failed, process.pid, code, name) from None
        raise ProcessRaisedException(
            f"\n\n-- Process {failed} terminated with the following error:\n{text}", failed, process.pid
        )


SpawnContext = ProcessContext


def start_processes(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    """Run ``fn(i, *args)`` in ``nprocs`` processes."""
    context = multiprocessing.get_context(start_method)
    folder = tempfile.mkdtemp(prefix="flambeau-spawn-")
    processes, files = [], []
    for k in range(nprocs):
        files.append(f"{folder}/{k}")
        process = context.Process(target=_body, args=(fn, k, args, files[-1]), daemon=daemon)
        process.start()
        processes.append(process)
    out = ProcessContext(processes, files)
    if not join:
        return out
    while not out.join():
        continue
    return None


def spawn(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    return start_processes(fn, args, nprocs, join, daemon, start_method="spawn")
