"""Where the output of ranks goes: to this process's, to files, or both."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from enum import IntFlag

from ....base.public import public_in

__all__ = ["DefaultLogsSpecs", "LogsDest", "LogsSpecs", "Std", "to_map"]


@public_in("distributed.elastic.multiprocessing.api")
class Std(IntFlag):
    """Streams of a process."""

    NONE = 0
    OUT = 1
    ERR = 2
    ALL = OUT | ERR

    @classmethod
    def from_str(cls, vm: str) -> Std | dict[int, Std]:
        """``"3"`` for all ranks, ``"0:1,1:2"`` by local rank. ValueError for others."""
        if re.fullmatch("[0-3]", vm):
            return cls(int(vm))
        if re.fullmatch(r"\d:[0-3](,\d:[0-3])*", vm):
            return {int(k): cls(int(v)) for k, v in (part.split(":") for part in vm.split(","))}
        raise ValueError(f"{vm}: expected a number of streams (0 to 3) or LOCAL_RANK:STREAMS,...")


def to_map(val_or_map: Std | dict[int, Std], local_world_size: int) -> dict[int, Std]:
    """The streams of each local rank; NONE where a dict has none."""
    given = val_or_map if isinstance(val_or_map, dict) else dict.fromkeys(range(local_world_size), val_or_map)
    return {local: given.get(local, Std.NONE) for local in range(local_world_size)}


@public_in("distributed.elastic.multiprocessing.api")
@dataclass
class LogsDest:
    """Files by local rank, empty where there is none: of streams that go to the file alone, or to both (``tee``), and of errors (``record``)."""

    stdouts: dict[int, str] = field(default_factory=dict)
    stderrs: dict[int, str] = field(default_factory=dict)
    tee_stdouts: dict[int, str] = field(default_factory=dict)
    tee_stderrs: dict[int, str] = field(default_factory=dict)
    error_files: dict[int, str] = field(default_factory=dict)


@public_in("distributed.elastic.multiprocessing.api")
class LogsSpecs(ABC):
    """What is wanted of the output. ``redirects`` go to files alone, ``tee`` to both; of ranks out of ``local_ranks_filter`` nothing is passed on."""

    def __init__(
        self,
        log_dir: str | None = None,
        redirects: Std | dict[int, Std] = Std.NONE,
        tee: Std | dict[int, Std] = Std.NONE,
        local_ranks_filter: set[int] | None = None,
    ):
        self._root_log_dir, self._redirects, self._tee = log_dir, redirects, tee
        self._local_ranks_filter = local_ranks_filter

    @abstractmethod
    def reify(self, envs: dict[int, dict[str, str]]) -> LogsDest:
        """The files of one start of the ranks, whose variables are ``envs``."""

    @property
    @abstractmethod
    def root_log_dir(self) -> str:
        """The folder of all files."""


@public_in("distributed.elastic.multiprocessing.api")
class DefaultLogsSpecs(LogsSpecs):
    """``DIR/attempt_N/RANK/`` has ``stdout.log``, ``stderr.log`` and ``error.json``; N counts the starts. Without ``log_dir`` in a folder of the
    system's for temporary files, which is removed at the end unless streams go there."""

    def __init__(self, log_dir=None, redirects=Std.NONE, tee=Std.NONE, local_ranks_filter=None):
        super().__init__(log_dir, redirects, tee, local_ranks_filter)
        self._starts, self._made = 0, False

    @property
    def root_log_dir(self) -> str:
        if self._root_log_dir is None:
            self._root_log_dir, self._made = tempfile.mkdtemp(prefix="flambeau_launch_"), True
        return self._root_log_dir

    def reify(self, envs: dict[int, dict[str, str]]) -> LogsDest:
        attempt = os.path.join(self.root_log_dir, f"attempt_{self._starts}")
        self._starts += 1
        redirects, tee = to_map(self._redirects, len(envs)), to_map(self._tee, len(envs))
        dest = LogsDest()
        for local, env in envs.items():
            folder = os.path.join(attempt, env.get("RANK", str(local)))
            os.makedirs(folder, exist_ok=True)
            dest.error_files[local] = os.path.join(folder, "error.json")
            rows = (
                (Std.OUT, "stdout.log", dest.stdouts, dest.tee_stdouts),
                (Std.ERR, "stderr.log", dest.stderrs, dest.tee_stderrs),
            )
            for stream, name, alone, both in rows:
                path = os.path.join(folder, name)
                both[local] = path if stream in tee[local] else ""
                alone[local] = path if stream in redirects[local] and stream not in tee[local] else ""
        return dest

    def close(self) -> None:
        """Remove a folder that has error files only."""
        if self._made and not (self._redirects or self._tee) and self._root_log_dir is not None:
            shutil.rmtree(self._root_log_dir, ignore_errors=True)
            self._root_log_dir, self._made = None, False
