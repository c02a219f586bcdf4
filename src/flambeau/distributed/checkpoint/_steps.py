"""Steps that all ranks take together: what one of them raises, all raise."""

from __future__ import annotations

import traceback
from collections.abc import Callable

from .. import objects, world

__all__ = ["CheckpointException", "Ranks"]


class CheckpointException(BaseException):
    """Some ranks failed: ``failures`` is {rank: (exception, its frames)}."""

    def __init__(self, msg: str, failures: dict):
        super().__init__(msg, failures)
        self._failures = failures

    @property
    def failures(self) -> dict:
        return self._failures

    def __str__(self) -> str:
        text = f"CheckpointException ranks:{self._failures.keys()}\n"
        for rank, (error, trace) in self._failures.items():
            text += f"Traceback (most recent call last): (RANK {rank})\n{trace}"
            text += "".join(traceback.format_exception_only(type(error), error))
        return text


class Ranks:
    """The ranks that save or load, or this process alone."""

    def __init__(self, process_group, no_dist: bool):
        self.group = None if no_dist or not world.is_initialized() else world.of(process_group)
        self.rank = 0 if self.group is None else self.group.rank()

    def all(self, what: str, step: Callable) -> list:
        """``step()`` on each rank, the results of all. CheckpointException on all when one raises."""
        failed, result = None, None
        try:
            result = step()
        except Exception as error:
            failed = (error, "".join(traceback.format_tb(error.__traceback__)))
        if self.group is None:
            every = [(result, failed)]
        else:
            every = [None] * self.group.size()
            objects.all_gather_object(every, (result, _sendable(failed)), self.group)
        failures = {rank: f for rank, (_, f) in enumerate(every) if f is not None}
        if failures:
            raise CheckpointException(what, failures) from (failed[0] if failed else None)
        return [r for r, _ in every]


def _sendable(failed):
    """An exception whose class may not be known elsewhere, as one that is."""
    if failed is None or type(failed[0]).__module__ == "builtins":
        return failed
    return RuntimeError(f"{type(failed[0]).__name__}: {failed[0]}"), failed[1]
