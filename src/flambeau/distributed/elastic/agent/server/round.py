"""What the agents of one round tell each other by its store: who has which ranks, which rank failed first, and which machines are done."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from dataclasses import dataclass

from ....errors import DistError, DistStoreError
from ...multiprocessing.errors import ProcessFailure
from ...rendezvous import RendezvousConnectionError, RendezvousInfo
from .workers import Worker, WorkerSpec

__all__ = ["Failure", "Round", "RoundOver"]


class RoundOver(Exception):
    """A machine left the round, or joins."""


@dataclass
class Failure:
    """The rank that failed first, as its agent tells it to all others."""

    rank: int
    size: int
    local_rank: int
    host: str
    pid: int
    code: int
    error: str
    timestamp: int
    message: str = ""  # of a failure that is no rank's

    def process_failure(self, own: ProcessFailure | None) -> ProcessFailure:
        """As an entry of RunResult; ``own`` where the rank is one of this machine."""
        if own is not None:
            return own
        failure = ProcessFailure(self.local_rank, self.pid, self.code, "")
        failure.message = self.error or failure.message
        failure.timestamp, failure.host = self.timestamp, self.host
        return failure


class Round:
    """One round, of the machine ``info.rank``. ``restarts``: how often ranks were started again before it, the same on all machines."""

    def __init__(self, info: RendezvousInfo, spec: WorkerSpec, restarts: int):
        self.info, self.spec, self.restarts = info, spec, restarts
        self.rank, self.machines = info.rank, info.world_size

    def _ask(self, call: Callable):
        try:
            return call(self.info.store)
        except DistStoreError:
            raise
        except DistError as error:
            raise RendezvousConnectionError(f"The store of the rendezvous is lost: {error}") from error

    def agree(self, check: Callable[[], None]) -> list[Worker]:
        """The ranks of this machine, when all machines have said how many they have. ``check`` is called meanwhile, and may raise."""
        own = {"ranks": self.spec.local_world_size, "role": self.spec.role, "restarts": self.restarts}
        self._ask(lambda store: store.set(f"machine/{self.rank}", json.dumps(own)))
        keys = [f"machine/{k}" for k in range(self.machines)]
        while True:
            try:
                self._ask(lambda store: store.wait(keys, datetime.timedelta(seconds=0.2)))
                break
            except DistStoreError:
                check()
        told = [json.loads(value) for value in self._ask(lambda store: store.multi_get(keys))]
        self.restarts = max(machine["restarts"] for machine in told)
        alike = [machine["ranks"] if machine["role"] == self.spec.role else 0 for machine in told]
        self.size, role_size = sum(machine["ranks"] for machine in told), sum(alike)
        first = sum(machine["ranks"] for machine in told[: self.rank])
        role_first = sum(alike[: self.rank])
        return [
            Worker(local, first + local, role_first + local, self.size, role_size)
            for local in range(self.spec.local_world_size)
        ]

    def report(self, failure: Failure) -> Failure:
        """Tell all machines that this failed; the failure that was told first."""
        value = json.dumps(vars(failure))
        return Failure(**json.loads(self._ask(lambda store: store.compare_set("failure", "", value))))

    def failure(self) -> Failure | None:
        """What failed first, if anything did."""
        return self._ask(
            lambda store: Failure(**json.loads(store.get("failure"))) if store.check(["failure"]) else None
        )

    def done(self) -> None:
        """The ranks of this machine have ended well."""
        self._ask(lambda store: store.multi_set(["done", f"done/{self.rank}"], ["1", "1"]))

    def is_anyone_done(self) -> bool:
        """Whether the ranks of a machine have ended well."""
        return self._ask(lambda store: store.check(["done"]))

    def are_all_done(self) -> bool:
        """Whether those of all machines have."""
        return self._ask(lambda store: store.check([f"done/{k}" for k in range(self.machines)]))
