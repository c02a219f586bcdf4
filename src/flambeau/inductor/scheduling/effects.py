"""What launches read and write, those of several steps (rows.py, planes.py, tables.py) among them."""

from __future__ import annotations

from ..ir.nodes import ExternCall, loads, stores

__all__ = ["NamedMemory", "effects", "flat"]


def flat(launches) -> list:
    """The members of chains and tables in the place of these."""
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


class NamedMemory:
    """Buffers as sets of bits, each with memory of its own. ``inplace``: output buffer -> the input whose memory it takes."""

    def __init__(self, inplace: dict[str, str]):
        self.inplace, self.bits, self.used = inplace, {}, 0

    def bit(self, name: str) -> int:
        name = self.inplace.get(name, name)
        if name not in self.bits:
            self.bits[name] = 1 << self.used
            self.used += 1
        return self.bits[name]

    def of(self, names) -> int:
        out = 0
        for name in names:
            out |= self.bit(name)
        return out
