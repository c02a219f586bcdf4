"""What went wrong in a process, written to a file that the agent reads: ``record``, and the errors made of it."""

from __future__ import annotations

import datetime
import functools
import json
import os
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from .error_handler import ErrorHandler

__all__ = ["ChildFailedError", "ErrorHandler", "ProcessFailure", "get_error_handler", "record"]

_NOTHING = "<N/A>"


def get_error_handler() -> ErrorHandler:
    """The handler that ``record`` uses."""
    return ErrorHandler()


@dataclass
class ProcessFailure:
    """A process that failed: what ``error_file`` says of it, or its exit status. ``message`` is a text, or PyTorch's record of an exception."""

    local_rank: int
    pid: int
    exitcode: int
    error_file: str
    error_file_data: dict = field(init=False)
    message: str | dict = field(init=False)
    timestamp: int = field(init=False)
    host: str = field(init=False, repr=False, default_factory=socket.gethostname)

    def __post_init__(self):
        self.timestamp = int(time.time())
        try:
            with open(self.error_file) as file:
                self.error_file_data = json.load(file)
            self.message, self.timestamp = self._read(self.error_file_data)
        except (OSError, ValueError, KeyError, TypeError):
            self.error_file, self.error_file_data = _NOTHING, {"message": "<NONE>"}
            self.message = (
                f"Signal {-self.exitcode} ({self.signal_name()}) received by PID {self.pid}"
                if self.exitcode < 0
                else "To enable traceback see: torch.distributed.elastic.multiprocessing.errors.record"
            )

    @staticmethod
    def _read(data: dict) -> tuple[str | dict, int]:
        message = data["message"]
        return message, int(message["extraInfo"]["timestamp"] if isinstance(message, dict) else data["timestamp"])

    def signal_name(self) -> str:
        """The signal that killed it."""
        return signal.Signals(-self.exitcode).name if self.exitcode < 0 else _NOTHING

    def timestamp_isoformat(self) -> str:
        """When it failed, in local time: ``2026-01-31_12:00:00``."""
        return datetime.datetime.fromtimestamp(self.timestamp).isoformat(sep="_")

    def traceback(self) -> str:
        """The text that tells most of the failure."""
        return self.message["extraInfo"]["py_callstack"] if isinstance(self.message, dict) else self.message


class ChildFailedError(Exception):
    """``ChildFailedError(name, failures)``: processes of the job ``name`` failed; ``failures`` are theirs by global rank."""

    def __init__(self, name: str, failures: dict[int, ProcessFailure]):
        self.name, self.failures = name, failures
        super().__init__(self.format_msg())

    def get_first_failure(self) -> tuple[int, ProcessFailure]:
        """(rank, failure) of the earliest."""
        rank = min(self.failures, key=lambda r: self.failures[r].timestamp)
        return rank, self.failures[rank]

    def format_msg(self, boarder_delim: str = "=", section_delim: str = "-") -> str:
        """A report: the other failures, the first one last."""
        first = self.get_first_failure()[0]
        others = "\n".join(self._section(k, r) for k, r in enumerate(self.failures) if r != first)
        position = list(self.failures).index(first)
        border, line = boarder_delim * 60, section_delim * 60
        return "\n".join(
            [
                f"\n{border}\n{self.name} FAILED\n{line}",
                f"Failures:\n{others or '  <NO_OTHER_FAILURES>'}",
                f"{line}\nRoot Cause (first observed failure):\n{self._section(position, first)}\n{border}",
            ]
        )

    def _section(self, index: int, rank: int) -> str:
        failure = self.failures[rank]
        killed = f" ({failure.signal_name()})" if failure.exitcode < 0 else ""
        rows = {
            "time": failure.timestamp_isoformat(),
            "host": failure.host,
            "rank": f"{rank} (local_rank: {failure.local_rank})",
            "exitcode": f"{failure.exitcode} (pid: {failure.pid}){killed}",
            "error_file": failure.error_file,
            "traceback": failure.traceback().rstrip().replace("\n", "\n    "),
        }
        return "\n".join([f"[{index}]:", *(f"  {name:<10}: {text}" for name, text in rows.items())])


def record(fn: Callable, error_handler: ErrorHandler | None = None) -> Callable:
    """A function that does as ``fn``, and writes what it raises to the file that ``TORCHELASTIC_ERROR_FILE`` names, for the agent that started this
    process. Of a ChildFailedError the first failure's file is passed on. SystemExit isn't an error."""
    handler = error_handler or get_error_handler()

    @functools.wraps(fn)
    def wrapped(*args, **kwargs):
        handler.initialize()
        try:
            return fn(*args, **kwargs)
        except SystemExit:
            raise
        except ChildFailedError as error:
            _, failure = error.get_first_failure()
            if failure.error_file != _NOTHING and os.path.exists(failure.error_file):
                handler.dump_error_file(failure.error_file, failure.exitcode)
            else:
                handler.record_exception(error)
            raise
        except Exception as error:
            handler.record_exception(error)
            raise

    return wrapped
