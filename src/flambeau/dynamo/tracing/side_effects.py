"""Writes of the traced function to objects that existed before it. While tracing they stay on the variables; captured code replays them.

Replay is in three steps: everything that is to be written is pushed first (reading old state), then the writes happen, then the
frame goes on. The order between different objects is not observable; within one object the final state is what is written.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator
from typing import Any

from ..exc import unsupported
from ..rules.reflect import dict_of, mro_of
from ..variables.base import Variable
from ..variables.containers.dicts import DictVariable
from ..variables.functions.cells import CellVariable
from . import trace_logs
from .replay import Replay

__all__ = ["SideEffects"]


def _elements(o) -> Iterator:
    """What a container holds, past the methods of its class."""
    if isinstance(o, dict):
        return iter(dict.values(o))
    base = next((c for c in (list, set, collections.deque) if isinstance(o, c)), tuple)
    return base.__iter__(o if o is not None else ())


def refuse_shared_dict(var: Variable) -> None:
    unsupported("shared-dict", f"the dict of {var!r}", "It is written, and known under another name as well.")


class SideEffects:
    logged = False

    def __init__(self):
        self.modified: dict[int, Variable] = {}
        self.global_writes: dict[tuple[int, str], tuple[dict, Variable | None, str]] = {}
        self.class_writes: dict[tuple[type, str], Variable] = {}
        self.newest_touch = -1
        self.tables: dict[int, list[Variable]] = {}  # by the id of the dict that they keep their contents in
        self.shared: set[int] = set()  # variables that have one together
        self.oldest_touched: int | None = None

    def touch(self, var: Variable) -> None:
        """``var`` is written to. ``oldest_touched`` lets eagerly run generators notice that they are not pure."""
        if id(var) in self.shared:
            refuse_shared_dict(var)
        age = var.born if var.source is None else -1  # what existed before the call is older than all that was made
        if self.oldest_touched is None or age < self.oldest_touched:
            self.oldest_touched = age
        if var.source is not None or isinstance(var, CellVariable):
            self.modified.setdefault(id(var), var)

    def add_call(self, result: Variable) -> None:
        """Captured code makes a call whose effect is seen outside; ``result`` is what comes of it, and makes it when it is rebuilt."""
        self.modified[id(result)] = result
        self.oldest_touched = -1

    def remember(self, var: Variable) -> None:
        if var.source is not None:
            self.modified.setdefault(id(var), var)

    def meet(self, var: Variable, table: dict) -> None:
        """``var`` is a dict, or an object whose attributes are in it: what shares one may be read only."""
        known = self.tables.setdefault(id(table), [])
        known.append(var)
        if len(known) > 1:
            self.shared.update(map(id, known))
            for v in known:
                if id(v) in self.modified:
                    refuse_shared_dict(v)

    def mark(self):
        """A point in the trace, for :meth:`since`."""
        before, self.oldest_touched = self.oldest_touched, None
        return before, Variable().born

    def since(self, mark) -> bool:
        """Whether something older than the mark was written since."""
        before, born = mark
        touched, self.oldest_touched = self.oldest_touched, before
        if touched is not None and (before is None or touched < before):
            self.oldest_touched = touched
        return touched is not None and touched < born

    def store_global(self, globals: dict, name: str, value: Variable | None) -> None:
        self.global_writes[id(globals), name] = (globals, value, name)
        self.oldest_touched = -1

    def store_on_class(self, cls: type, name: str, value: Variable) -> None:
        self.class_writes[cls, name] = value
        self.oldest_touched = -1

    def on_class(self, cls: type, name: str) -> Variable | None:
        """What was written under a name to the class of the MRO in which it is found now."""
        for c in mro_of(cls) if self.class_writes else ():
            if (c, name) in self.class_writes:
                return self.class_writes[c, name]
            if name in dict_of(c):
                return None
        return None

    def any(self) -> bool:
        return bool(self.global_writes or self.class_writes) or any(
            not isinstance(v, CellVariable) or v.source is not None for v in self.modified.values()
        )

    def drops_finalizers(self, originals: dict[int, Any], by_id: dict[int, Variable]) -> bool:
        """Whether something with ``__del__`` may leave a container or a global that existed before: it would run where the writes are replayed.
        ``originals``: objects by id, as the keys of ``by_id`` are."""
        ids = {id(v): i for i, v in by_id.items()}
        for v in self.modified.values():
            o = originals.get(ids.get(id(v.holder or v)))
            if isinstance(v, DictVariable) or getattr(v, "dirty", False):
                if any(hasattr(type(x), "__del__") for x in _elements(o)):
                    return True
        return any(
            name in globals and hasattr(type(globals[name]), "__del__")
            for globals, _, name in self.global_writes.values()
        )

    def codegen(self, cg, flush_cells: Callable[[CellVariable], bool]) -> Callable[[], None]:
        """Push what will be written into temporaries; the returned function emits the writes."""
        if trace_logs.SIDE_EFFECTS.on and not self.logged:
            self.logged = True  # the code is written twice
            trace_logs.tell_writes(self)
        replay = Replay(cg)
        done: set[int] = set()
        while True:
            todo = [
                v
                for v in self.modified.values()
                if id(v) not in done and (not isinstance(v, CellVariable) or v.source is not None or flush_cells(v))
            ]
            if not todo:
                break
            for v in todo:
                done.add(id(v))
                if v.holder is not None and v.holder.source is not None:
                    v.holder.replay_contents(replay)
                else:
                    v.replay(replay)
        for globals, value, name in self.global_writes.values():
            _global(replay, globals, name, value)
        for (cls, name), value in self.class_writes.items():
            _class(replay, cls, name, value)
        return replay.emit


def _class(replay: Replay, cls: type, name: str, value: Variable) -> None:
    t, cg = replay.value(value), replay.cg
    replay.later(lambda r: (r.load(t), cg.load_const(cls), cg.emit("STORE_ATTR", name)))


def _global(replay: Replay, globals: dict, name: str, value: Variable | None) -> None:
    cg = replay.cg
    if value is None:
        replay.later(lambda r: r.call(dict.pop, [], [globals, name, None]))
        return
    t = replay.value(value)
    if globals is cg.globals:
        replay.later(lambda r: (r.load(t), cg.emit("STORE_GLOBAL", name)))
    else:
        replay.later(lambda r: (r.load(t), cg.load_const(globals), cg.load_const(name), cg.emit("STORE_SUBSCR")))
