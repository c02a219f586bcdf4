"""Closure cells: their contents are variables, and writes to those that existed before are replayed."""

from __future__ import annotations

import types

from ..base import Lazy, Variable

__all__ = ["CellVariable"]


class CellVariable(Variable):
    """A closure cell. ``root_name``: it is a cell of the traced frame itself, reachable there by name."""

    mutable = True

    def __init__(self, contents: Variable | None = None, source=None, root_name=None):
        super().__init__(source)
        self.contents = contents
        self.root_name = root_name
        self.dirty = False
        self.escapes = False
        self.filled_by: Variable | None = None  # the class whose methods have it, which puts itself there

    def get(self, tx) -> Variable | None:
        v = self.contents
        if isinstance(v, Lazy):
            v = self.contents = v.real(tx)
        return v

    def set(self, tx, value: Variable | None) -> None:
        self.contents = value
        self.dirty = True
        tx.side_effects.touch(self)

    def reconstruct(self, cg):
        if self.root_name is not None:
            cg.load_closure(self.root_name)
        elif self.filled_by is not None:
            cg(self.filled_by)
            cg.emit("POP_TOP")
            if id(self) in cg.temps:  # else it is only counted
                cg.emit("LOAD_FAST", cg.temps[id(self)])
        elif self.contents is None:
            cg.call_function(types.CellType, None, 0)
        else:
            cg.call_function(types.CellType, lambda: cg(self.contents), 1)

    def replay(self, replay):
        cg = replay.cg
        if self.contents is None:
            if self.root_name is not None:
                replay.later(lambda r: cg.delete_closure(self.root_name))
            return
        t = replay.value(self.contents)
        if self.root_name is not None:
            replay.later(lambda r: (r.load(t), cg.store_local(self.root_name)))
        else:
            target = replay.target(self)
            replay.later(lambda r: r.store_attr(target, "cell_contents", t))
