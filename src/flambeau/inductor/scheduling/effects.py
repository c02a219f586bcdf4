"""What launches read and write, chains of steps (rows.py, planes.py) among them."""

from __future__ import annotations

from ..ir.nodes import ExternCall, loads, stores

__all__ = ["effects", "flat"]


def flat(launches) -> list:
    """The members of chains in the place of the chains."""
    return [m for s in launches for m in getattr(s, "steps", [s])]


def effects(step) -> tuple[set[str], set[str]]:
    """(buffers that a launch reads, buffers that it writes), without those that live inside of it."""
    if isinstance(step, ExternCall):
        return set(loads(step)), set(stores(step))
    steps = getattr(step, "steps", None)
    if steps is not None:
        parts = [effects(s) for s in steps]
        writes = set().union(*(w for _, w in parts))
        return set().union(*(r for r, _ in parts)) - writes, writes - step.locals.keys()
    written = {n.buffer for n in step.nodes}
    return set(step.args) - written, {a for a in step.args if a in written}
