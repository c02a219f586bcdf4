"""What is set of a rendezvous: its job, how many machines it takes, and its time limits."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field

from ....base.public import public_in
from .api import RendezvousParameters

__all__ = ["RendezvousSettings", "RendezvousTimeout", "settings_of"]


@public_in("distributed.elastic.rendezvous.dynamic_rendezvous")
class RendezvousTimeout:
    """Time limits: ``join`` to be enough machines (10 min), ``last_call`` for more than the least (30 s), ``close`` (30 s) and ``heartbeat`` (5 s)
    for one request. ValueError for one that isn't positive."""

    _DEFAULTS = {"join": 600, "last_call": 30, "close": 30, "heartbeat": 5}

    def __init__(
        self,
        join: datetime.timedelta | None = None,
        last_call: datetime.timedelta | None = None,
        close: datetime.timedelta | None = None,
        heartbeat: datetime.timedelta | None = None,
    ):
        given = {"join": join, "last_call": last_call, "close": close, "heartbeat": heartbeat}
        self._limits: dict[str, datetime.timedelta] = {}
        for name, limit in given.items():
            value = datetime.timedelta(seconds=self._DEFAULTS[name]) if limit is None else limit
            if value <= datetime.timedelta(0):
                raise ValueError(f"The {name} timeout ({value}) must be positive.")
            self._limits[name] = value

    @property
    def join(self) -> datetime.timedelta:
        """For enough machines to come."""
        return self._limits["join"]

    @property
    def last_call(self) -> datetime.timedelta:
        """For more machines than the least."""
        return self._limits["last_call"]

    @property
    def close(self) -> datetime.timedelta:
        """For a request that ends the job."""
        return self._limits["close"]

    @property
    def heartbeat(self) -> datetime.timedelta:
        """For a request that says that this machine lives."""
        return self._limits["heartbeat"]


@public_in("distributed.elastic.rendezvous.dynamic_rendezvous")
@dataclass(frozen=True)
class RendezvousSettings:
    """A machine is dead when ``keep_alive_max_attempt`` times ``keep_alive_interval`` have gone without a sign of it."""

    run_id: str
    min_nodes: int
    max_nodes: int
    timeout: RendezvousTimeout = field(default_factory=RendezvousTimeout)
    keep_alive_interval: datetime.timedelta = datetime.timedelta(seconds=5)
    keep_alive_max_attempt: int = 3

    @property
    def silence(self) -> float:
        """Seconds after which a machine that says nothing is dead."""
        return self.keep_alive_interval.total_seconds() * self.keep_alive_max_attempt


def settings_of(params: RendezvousParameters) -> RendezvousSettings:
    """What the options of ``params`` set, which ``create_handler`` lists. ValueError for what isn't positive."""

    def limit(name: str) -> datetime.timedelta | None:
        seconds = params.get_as_int(f"{name}_timeout")
        return None if seconds is None else datetime.timedelta(seconds=seconds)

    timeout = RendezvousTimeout(*map(limit, ("join", "last_call", "close", "heartbeat")))
    interval = params.get_as_int("keep_alive_interval", 5)
    attempts = params.get_as_int("keep_alive_max_attempt", 3)
    if not interval or not attempts or interval < 0 or attempts < 0:
        raise ValueError("keep_alive_interval and keep_alive_max_attempt must be positive")
    return RendezvousSettings(
        params.run_id, params.min_nodes, params.max_nodes, timeout, datetime.timedelta(seconds=interval), attempts
    )
