"""Writes of the traced function to objects that existed before it. While tracing they stay on the variables; captured code replays them.

Replay is in three steps: everything that is to be written is pushed first (reading old state), then the writes happen, then the
frame goes on. The order between different objects is not observable; within one object the final state is what is written.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator
from typing import Any

from . import trace_logs
from .exc import unsupported
from .guards import type_item
from .reflect import dict_of, instance_dict, mro_of
from .variables.base import Variable
from .variables.dicts import DictVariable
from .variables.exceptions import ExceptionVariable
from .variables.existing_iterators import ExistingIteratorVariable, advance_iterator
from .variables.functions import CellVariable
from .variables.lists import ListVariable
from .variables.objects import ObjectVariable
from .variables.sets import SetVariable
from .variables.tensor import TensorVariable
from .world import C_DESCRIPTORS

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
    told = False  # to the log

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
        if trace_logs.SIDE_EFFECTS.on and not self.told:
            self.told = True  # the code is written twice
            trace_logs.tell_writes(self)
        writes: list[Callable[[], None]] = []
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
                self._one(cg, v, writes)
        for globals, value, name in self.global_writes.values():
            self._global(cg, globals, name, value, writes)
        for (cls, name), value in self.class_writes.items():
            self._class(cg, cls, name, value, writes)

        def emit():
            for w in writes:
                w()

        return emit

    def _keep(self, cg, push: Callable[[], Any]) -> str:
        push()
        t = cg.temp()
        cg.emit("STORE_FAST", t)
        return t

    def _class(self, cg, cls, name, value, writes):
        t = self._keep(cg, lambda: cg(value))
        writes.append(lambda: (cg.emit("LOAD_FAST", t), cg.load_const(cls), cg.emit("STORE_ATTR", name)))

    def _one(self, cg, v, writes):
        if v.holder is not None and v.holder.source is not None:
            target = self._keep(cg, lambda: v.holder.source.load(cg))
            write, new = v.holder.write_back(cg, lambda push: self._keep(cg, push))
            writes.append(lambda: self._call(cg, write, [target, new], []))
            return
        if isinstance(v, CellVariable):
            if v.contents is None:
                writes.append(lambda: self._clear_cell(cg, v))
                return
            t = self._keep(cg, lambda: cg(v.contents))
            if v.root_name is not None:
                writes.append(lambda: (cg.emit("LOAD_FAST", t), cg.store_local(v.root_name)))
            else:
                target = self._keep(cg, lambda: v.source.load(cg))
                writes.append(
                    lambda: (
                        cg.emit("LOAD_FAST", t),
                        cg.emit("LOAD_FAST", target),
                        cg.emit("STORE_ATTR", "cell_contents"),
                    )
                )
        elif isinstance(v, ExistingIteratorVariable):
            target, taken = self._keep(cg, lambda: v.source.load(cg)), v.taken
            if taken:
                writes.insert(0, lambda: self._call(cg, advance_iterator, [target], [taken]))
        elif isinstance(v, TensorVariable):
            target = self._keep(cg, lambda: v.source.load(cg))
            for name, value in v.written.items():
                t = self._keep(cg, lambda value=value: cg(value))
                writes.append(
                    lambda t=t, name=name: (
                        cg.emit("LOAD_FAST", t),
                        cg.emit("LOAD_FAST", target),
                        cg.emit("STORE_ATTR", name),
                    )
                )
        elif isinstance(v, ObjectVariable):
            target = self._keep(cg, lambda: v.source.load(cg))
            if isinstance(v, ExceptionVariable) and (v.raised or v.traceback is not None):
                tb = self._keep(
                    cg,
                    lambda: v.push_tracebacks(
                        cg, lambda: (cg.emit("LOAD_FAST", target), cg.load_attr("__traceback__"))
                    ),
                )
                writes.append(
                    lambda: (
                        cg.emit("LOAD_FAST", tb),
                        cg.emit("LOAD_FAST", target),
                        cg.emit("STORE_ATTR", "__traceback__"),
                    )
                )
            for name, value in v.written.items():
                self._attribute(cg, v, target, name, value, writes)
        elif isinstance(v, ListVariable):
            target = self._keep(cg, lambda: v.source.load(cg))
            elements = v.elements if v.dirty else v.elements[len(v.elements) - v.appended :]
            if not v.dirty and not elements:
                return

            def push():
                cg.all(elements)
                cg.emit("BUILD_LIST", len(elements))

            t = self._keep(cg, push)
            if v.dirty and v.cls is list:

                def write():
                    cg.emit("LOAD_FAST", t)
                    cg.emit("LOAD_FAST", target)
                    cg.load_const(None)
                    cg.load_const(None)
                    cg.emit("BUILD_SLICE", 2)
                    cg.emit("STORE_SUBSCR")

                writes.append(write)
            else:
                if v.dirty:
                    writes.append(lambda: self._method(cg, target, "clear"))
                writes.append(lambda: self._method(cg, target, "extend", t))
        elif isinstance(v, SetVariable):
            target = self._keep(cg, lambda: v.source.load(cg))

            def push_set():
                cg.all(v.entries.values())
                cg.emit("BUILD_SET", len(v.entries))

            t = self._keep(cg, push_set)
            writes.append(lambda: self._method(cg, target, "clear"))
            writes.append(lambda: self._method(cg, target, "update", t))
        elif isinstance(v, DictVariable):
            target = self._keep(cg, lambda: v.source.load(cg))
            if v.dirty:
                t = self._keep(cg, lambda: v._push_plain(cg))
                writes.append(lambda: self._method(cg, target, "clear"))
                writes.append(lambda: self._method(cg, target, "update", t))
                return
            for k in v.written:
                kv, value = v.entries[k]
                tk, tv = self._keep(cg, lambda kv=kv: cg(kv)), self._keep(cg, lambda value=value: cg(value))

                def write_item(tk=tk, tv=tv):
                    for n in (tv, target, tk):
                        cg.emit("LOAD_FAST", n)
                    cg.emit("STORE_SUBSCR")

                writes.append(write_item)

    def _attribute(self, cg, v, target, name, value, writes):
        # The hooks were traced already, so they don't run again: what is replayed is what happened to the instance itself.
        hooked = any(type_item(v.cls, n) is not dict_of(object)[n] for n in ("__setattr__", "__delattr__"))
        found = type_item(v.cls, name)
        in_dict = not isinstance(found, C_DESCRIPTORS) and hasattr(type(found), "__set__")
        if in_dict:  # a property of this name is passed by
            table = self._keep(cg, lambda: cg.call_function(instance_dict, lambda: cg.emit("LOAD_FAST", target), 1))
        if value is None or name in v.reinserted:
            if in_dict:
                writes.append(lambda: self._call(cg, dict.pop, [table], [name, None]))
            else:
                writes.append(lambda: self._call(cg, object.__delattr__ if hooked else delattr, [target], [name]))
        if value is None:
            return
        t = self._keep(cg, lambda: cg(value))
        if in_dict:
            writes.append(lambda: self._call(cg, dict.__setitem__, [table], [name], [t]))
        elif hooked:
            writes.append(lambda: self._call(cg, object.__setattr__, [target], [name], [t]))
        else:
            writes.append(lambda: (cg.emit("LOAD_FAST", t), cg.emit("LOAD_FAST", target), cg.emit("STORE_ATTR", name)))

    def _call(self, cg, fn, first, consts, last=()):
        def push():
            for n in first:
                cg.emit("LOAD_FAST", n)
            for c in consts:
                cg.load_const(c)
            for n in last:
                cg.emit("LOAD_FAST", n)

        cg.call_function(fn, push, len(first) + len(consts) + len(last))
        cg.emit("POP_TOP")

    def _method(self, cg, target: str, name: str, *args: str) -> None:
        cg.push_callable(lambda: (cg.emit("LOAD_FAST", target), cg.load_attr(name)))
        for a in args:
            cg.emit("LOAD_FAST", a)
        cg.call(len(args))
        cg.emit("POP_TOP")

    def _clear_cell(self, cg, v):
        if v.root_name is not None:
            from bytecode import CellVar, FreeVar

            cg.emit("DELETE_DEREF", CellVar(v.root_name) if v.root_name in cg.cells else FreeVar(v.root_name))

    def _global(self, cg, globals, name, value, writes):
        if value is None:
            writes.append(lambda: self._call(cg, dict.pop, [], [globals, name, None]))
            return
        t = self._keep(cg, lambda: cg(value))
        if globals is cg.globals:
            writes.append(lambda: (cg.emit("LOAD_FAST", t), cg.emit("STORE_GLOBAL", name)))
        else:

            def write():
                cg.emit("LOAD_FAST", t)
                cg.load_const(globals)
                cg.load_const(name)
                cg.emit("STORE_SUBSCR")

            writes.append(write)
