"""What agents note: ``record(event, destination)`` logs an event as JSON."""

from __future__ import annotations

import logging
import os
import socket

from .api import Event, EventMetadataValue, EventSource, NodeState, RdzvEvent

__all__ = [
    "Event",
    "EventMetadataValue",
    "EventSource",
    "NodeState",
    "RdzvEvent",
    "construct_and_record_rdzv_event",
    "get_logging_handler",
    "record",
    "record_rdzv_event",
]

_HANDLERS: dict[str, logging.Handler] = {"null": logging.NullHandler()}
_loggers: dict[str, logging.Logger] = {}


def get_logging_handler(destination: str = "null") -> logging.Handler:
    """The handler of a destination: ``null``, or ``console`` (standard error). ValueError for others."""
    if destination == "console":
        return _HANDLERS.setdefault("console", logging.StreamHandler())
    if destination not in _HANDLERS:
        raise ValueError(f"unknown destination of events {destination!r}: null or console")
    return _HANDLERS[destination]


def _logger(destination: str) -> logging.Logger:
    if destination not in _loggers:
        logger = logging.getLogger(f"torchelastic-events-{destination}")
        logger.setLevel(os.environ.get("LOGLEVEL", "INFO"))
        logger.propagate = False
        logger.addHandler(get_logging_handler(destination))
        _loggers[destination] = logger
    return _loggers[destination]


def record(event: Event, destination: str = "null") -> None:
    """Log an event."""
    _logger(destination).info(event.serialize())


def record_rdzv_event(event: RdzvEvent) -> None:
    """Log an event of a rendezvous, which nobody prints by default."""
    _logger("null").info(event.serialize())


def construct_and_record_rdzv_event(
    run_id: str,
    message: str,
    node_state: NodeState,
    name: str = "",
    hostname: str = "",
    pid: int | None = None,
    master_endpoint: str = "",
    local_id: int | None = None,
    rank: int | None = None,
) -> None:
    """Log an event of this process in a rendezvous."""
    record_rdzv_event(
        RdzvEvent(
            name=name,
            run_id=run_id,
            message=message,
            hostname=hostname or socket.getfqdn(),
            pid=pid or os.getpid(),
            node_state=node_state,
            master_endpoint=master_endpoint,
            rank=rank,
            local_id=local_id,
        )
    )
