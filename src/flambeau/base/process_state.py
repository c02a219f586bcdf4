"""The state of the process that a trace depends on: one table, from which captured code is guarded and the keys of graphs on disk are made.

A row is state that decides, unasked, what operators do or what a trace of them holds. What a program asks for itself (``torch.get_num_threads()``)
is no row: captured code asks again at each call, and the answer is part of the graph.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _C
from . import dtypes
from .device import current_device
from .records import slotted
from .switches import SWITCHES

__all__ = ["TABLE", "State", "autocast_settings", "key"]


@slotted
class State:
    """One row. ``read()``: what the process holds now; its ``repr`` tells all of it and is the same in every process.

    How captured code compares it: by ``field``, a number of the dispatch state (the depth, for a stack), or ``held``, the dict and the key that it
    lies under. ``beyond_depth``: the depth doesn't tell all of it, so where it isn't 0 what ``read`` gives is compared as well.
    """

    name: str
    read: Callable[[], Any]
    field: str | None = None
    held: tuple[dict, str] | None = None
    beyond_depth: bool = False


def _flag(name: str, field: str) -> State:
    return State(name, lambda: bool(_C.tls(field)), field=field)


def _switch(name: str, key: str) -> State:
    return State(name, lambda: SWITCHES[key], held=(SWITCHES, key))


def _classes(stack: str) -> tuple[str, ...]:
    return tuple(f"{type(mode).__module__}.{type(mode).__qualname__}" for mode in _C.stack(stack))


def autocast_settings() -> tuple | None:
    """(device, dtype, whether it is on, whether casts may be kept) of the innermost autocast block; None outside of all."""
    blocks = [m for m in _C.stack("function_modes") if getattr(m, "is_autocast", False)]
    return (blocks[-1].device, blocks[-1].dtype, blocks[-1].enabled, blocks[-1].cache) if blocks else None


TABLE = (
    _flag("grad mode", "grad_enabled"),
    _flag("inference mode", "inference"),
    _flag("classes that override functions are off", "function_disabled"),
    State("transforms", lambda: _C.tls("transforms"), field="transforms"),
    # Capture traces function modes, so their attributes are guarded like those of any object.
    State("function modes", lambda: _classes("function_modes"), field="function_modes"),
    State("autocast", autocast_settings, field="function_modes", beyond_depth=True),
    State("dispatch modes", lambda: _classes("dispatch_modes"), field="dispatch_modes", beyond_depth=True),
    State("default device", current_device, field="devices", beyond_depth=True),
    State("default dtype", dtypes.get_default_dtype, held=(vars(dtypes), "_default")),
    _switch("deterministic algorithms", "deterministic"),
    _switch("float32 matrix products", "float32_matmul_precision"),
    _switch("anomaly mode", "anomaly"),
    _switch("anomaly mode looks for nan", "anomaly_check_nan"),
)


def key() -> tuple[tuple[str, str], ...]:
    """The table as it stands now: a plain value for keys, in memory and on disk."""
    return tuple((row.name, repr(row.read())) for row in TABLE)
