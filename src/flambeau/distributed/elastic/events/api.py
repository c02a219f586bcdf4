"""Records of events, with PyTorch's fields."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import ClassVar, Self, TypeAlias

__all__ = ["Event", "EventMetadataValue", "EventSource", "NodeState", "RdzvEvent"]

EventMetadataValue: TypeAlias = str | int | float | bool | None


class EventSource(str, Enum):  # noqa: UP042
    """Who an event is of."""

    AGENT = "AGENT"
    WORKER = "WORKER"


class NodeState(str, Enum):  # noqa: UP042
    """How a machine's part of the job is."""

    INIT = "INIT"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"


@dataclass
class _Record:
    """What records of events share: they are written as JSON, enumerations by name."""

    _enums: ClassVar[dict[str, type[Enum]]] = {}

    def __str__(self) -> str:
        return self.serialize()

    @classmethod
    def deserialize(cls, data: str | Self) -> Self:
        """The record that :meth:`serialize` wrote; a record is given back. ValueError for what is no JSON, KeyError for an unknown state or source,
        TypeError for fields that it doesn't have."""
        if isinstance(data, cls):
            return data
        fields = json.loads(data)
        return cls(**{**fields, **{name: kind[fields[name]] for name, kind in cls._enums.items()}})

    def serialize(self) -> str:
        """JSON of all fields."""
        return json.dumps(asdict(self))


@dataclass
class Event(_Record):
    """Something that happened to an agent or a rank; ``metadata`` says more. ``timestamp``: seconds since 1970, 0 for none."""

    _enums: ClassVar = {"source": EventSource}
    name: str
    source: EventSource
    timestamp: int = 0
    metadata: dict[str, EventMetadataValue] = field(default_factory=dict)


@dataclass
class RdzvEvent(_Record):
    """Something that happened in a rendezvous; ``rank`` and ``local_id`` are None where the machine has none yet."""

    _enums: ClassVar = {"node_state": NodeState}
    name: str
    run_id: str
    message: str
    hostname: str
    pid: int
    node_state: NodeState
    master_endpoint: str = ""
    rank: int | None = None
    local_id: int | None = None
    error_trace: str = ""
