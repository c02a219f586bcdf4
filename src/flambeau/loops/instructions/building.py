"""Tuples, lists, dicts, sets and slices that instructions make, fill and unpack; comprehensions and generators that are collected."""

from __future__ import annotations

import itertools

from .. import arrays, generators
from ..containers import Containers, list_functions
from ..emitter import constant
from ..machine import InterpreterPart, Machine
from ..values import COLLECTED, ArrayView, Container, Declined, Known, Scalar, Slice, Tuple
from ..variables import Variables

__all__ = ["Building"]


class Building(InterpreterPart):
    def __init__(self, machine: Machine, variables: Variables, containers: Containers):
        super().__init__(machine)
        self.variables, self.containers = variables, containers

    def BUILD_TUPLE(self, inst):
        self.stack.append(Tuple(tuple(self.machine.taken(inst.arg))))

    def BUILD_LIST(self, inst):
        insts = self.machine.insts
        following = {i.name for i in insts[inst.index + 1 : inst.index + 3]}
        if (inst.arg == 0 and "LIST_EXTEND" not in following) or self._is_changed(insts[inst.index + 1]):
            made = self.containers.create(self.machine.at, "list")
            for item in self.machine.taken(inst.arg):
                self.containers.append(made, item)
            self.stack.append(made)
            return
        self.stack.append(Tuple(tuple(self.machine.taken(inst.arg)), listed=True))

    def _is_changed(self, store) -> bool:
        """Whether the variable that an instruction stores into is a list that grows or shrinks."""
        insts, name = self.machine.insts, store.argval
        return store.name == "STORE_FAST" and any(
            i.name == "LOAD_FAST" and i.argval == name and j.argval in list_functions.CHANGING
            for i, j in itertools.pairwise(insts)
        )

    def BUILD_MAP(self, inst):
        items = self.machine.taken(2 * inst.arg)
        self._dict(items[::2], items[1::2])

    def BUILD_CONST_KEY_MAP(self, inst):
        keys = self.machine.pop().items
        self._dict(keys, self.machine.taken(inst.arg))

    def _dict(self, keys, values) -> None:
        made = self.containers.create(self.machine.at, "dict")
        for key, value in zip(keys, values):
            self.containers.put(made, key, value)
        self.stack.append(made)

    def BUILD_SET(self, inst):
        items = self.machine.taken(inst.arg)
        made = self.containers.create(self.machine.at, "set")
        for item in items:
            self.containers.put(made, item, None)
        self.stack.append(made)

    # ---- comprehensions ----
    def _collected(self, inst) -> Container:
        """What a comprehension fills: on the stack where it lies within the loop, else what the loop was given."""
        c = self.stack[-inst.arg] if inst.arg <= len(self.stack) else self.variables.read(COLLECTED)
        if not isinstance(c, Container):
            raise Declined("a comprehension of other things than numbers")
        self.containers.changes(c)
        return c

    def LIST_APPEND(self, inst):
        value = self.machine.pop()
        self.containers.append(self._collected(inst), value)

    def YIELD_VALUE(self, inst):
        self.containers.changes(self.variables.read(COLLECTED))
        self.containers.append(self.variables.read(COLLECTED), self.machine.pop())
        # This is what is sent.
        self.stack.append(Known(None))

    def IS_SUMMED(self, inst):
        """An element is about to be added to the sum that sum() makes."""
        x = self.stack[-1]
        if generators.COMPENSATED and not (isinstance(x, Scalar) and (x.weak is False or x.kind in "biu")):
            raise Declined("a sum of Python's floats, which keeps what rounding loses")

    def SET_ADD(self, inst):
        value = self.machine.pop()
        self.containers.put(self._collected(inst), value, None)

    def MAP_ADD(self, inst):
        value, key = self.machine.pop(), self.machine.pop()
        self.containers.put(self._collected(inst), key, value)

    # ---- parts ----
    def LIST_EXTEND(self, inst):
        more, made = self.machine.pop(), self.stack[-inst.arg]
        if not isinstance(more, Tuple) or not isinstance(made, Tuple):
            raise Declined("a list that is extended by this value")
        self.stack[-inst.arg] = Tuple((*made.items, *more.items), made.listed)

    def BUILD_SLICE(self, inst):
        step = self.machine.pop() if inst.arg == 3 else Known(None)
        stop, start = self.machine.pop(), self.machine.pop()
        self.stack.append(Slice(start, stop, step))

    def UNPACK_SEQUENCE(self, inst):
        v = self.machine.pop()
        if isinstance(v, ArrayView):
            e, n = self.e, v.sizes[0]
            e.check(e.cmp("eq", n, inst.arg), "ValueError", f"expected {inst.arg} values to unpack, got {{0}}", n)
            v = Tuple(tuple(arrays.subscript(e, v, constant(k)) for k in range(inst.arg)))
        if not isinstance(v, Tuple) or len(v.items) != inst.arg:
            raise Declined("unpacking of this value")
        self.stack.extend(reversed(v.items))
