"""``owner[key]`` and ``owner[key] = value``, of arrays, tuples, text and containers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.records import slotted
from .. import arrays, byte_strings, gathers, numpy_functions, places, text
from ..binary_operators import binary_name
from ..containers import Containers, list_functions
from ..inlining import Inlining
from ..machine import InterpreterPart, Machine
from ..values import ArrayView, Container, Declined, Expression, Known, Scalar, Slice, Tuple
from ..variables import Variables

__all__ = ["Subscripts"]


@slotted
class Taken:
    """``view`` is ``owner[key]``; it keeps its identity while it is looked up by it."""

    view: Any
    owner: ArrayView
    key: Any


class Subscripts(InterpreterPart):
    """``taken``: what subscripts of the block at hand have given, by its identity."""

    def __init__(self, machine: Machine, variables: Variables, inlining: Inlining, containers: Containers):
        super().__init__(machine)
        self.variables, self.inlining, self.containers = variables, inlining, containers
        self.taken: dict[int, Taken] = {}

    def begin_block(self) -> None:
        self.taken = {}

    def BINARY_SUBSCR(self, inst):
        key, owner = self.machine.pop(), self.machine.pop()
        return self._push_item(owner, key)

    def BINARY_SLICE(self, inst):
        stop, start, owner = self.machine.pop(), self.machine.pop(), self.machine.pop()
        return self._push_item(owner, Slice(start, stop, Known(None)))

    def _push_item(self, owner, key):
        """Push ``owner[key]``; the edge into the function that makes a part of a list."""
        own = list_functions.part(owner, key)
        if own is not None:
            return self.inlining.enter_own(own)
        self.stack.append(self.subscript(owner, key))
        return None

    def subscript(self, owner, key):
        if isinstance(owner, Container):
            return self.containers.subscript(owner, key)
        words = text.of(self.e, owner)
        if words is not None:
            return text.subscript(self.e, words, key)
        if byte_strings.is_bytes(owner):
            return byte_strings.subscript(self.e, owner.value, key)
        if isinstance(owner, Tuple) and isinstance(key, Scalar) and isinstance(key.const, int):
            if not -len(owner.items) <= key.const < len(owner.items):
                raise Declined("a subscript past the end of a tuple")
            return owner.items[key.const]
        if isinstance(owner, Tuple) and isinstance(key, Scalar):
            return places.chosen(self.e, owner.items, key, "list" if owner.listed else "tuple")
        if isinstance(owner, Tuple) and isinstance(key, Slice):
            ends = [
                None if k == Known(None) else getattr(k, "const", None) or 0 for k in (key.start, key.stop, key.step)
            ]
            if all(k == Known(None) or type(getattr(k, "const", None)) is int for k in (key.start, key.stop, key.step)):
                return Tuple(owner.items[slice(*ends)], owner.listed)
        if isinstance(owner, Expression):
            owner = self.variables.passing(owner)
        if not isinstance(owner, ArrayView):
            raise Declined(f"a subscript of a {type(owner).__name__.lower()}")
        key = self.indices(key)
        if gathers.advanced(key):
            later = _written_under_same_key(self.machine.insts, self.machine.at)
            return gathers.read(self.e, owner, self.settled(key), f"gather@{self.machine.at}", later)
        out = arrays.subscript(self.e, owner, key)
        self.taken[id(out)] = Taken(out, owner, key)
        return out

    def indices(self, key):
        """A key whose lists are arrays, as NumPy takes them."""
        if not isinstance(key, Tuple):
            return key
        if key.listed:
            return numpy_functions.array(self.e, f"indices@{self.machine.at}", key)
        made = []
        for d, item in enumerate(key.items):
            listed = isinstance(item, Tuple)
            made.append(numpy_functions.array(self.e, f"indices{d}@{self.machine.at}", item) if listed else item)
        return Tuple(tuple(made))

    def settled(self, key):
        """A key whose arrays are in memory."""
        if isinstance(key, Tuple):
            return Tuple(tuple(map(self.settled, key.items)))
        return self.variables.passing(key) if isinstance(key, Expression) else key

    def STORE_SUBSCR(self, inst):
        key, owner, value = self.machine.pop(), self.machine.pop(), self.machine.pop()
        self.store_subscript(owner, key, value)

    def STORE_SLICE(self, inst):
        stop, start, owner, value = self.machine.pop(), self.machine.pop(), self.machine.pop(), self.machine.pop()
        self.store_subscript(owner, Slice(start, stop, Known(None)), value)

    def DELETE_SUBSCR(self, inst):
        key, c = self.machine.pop(), self.machine.pop()
        if not isinstance(c, Container) or c.kind != "dict":
            raise Declined("del of an item")
        self.containers.remove(c, key, True)

    def store_subscript(self, owner, key, value):
        if isinstance(owner, Container):
            self.containers.store_subscript(owner, key, value)
            return
        if not isinstance(owner, ArrayView):
            raise Declined(f"an item of a {type(owner).__name__.lower()} is set")
        key = self.indices(key)
        if isinstance(value, Tuple) and not gathers.advanced(key) and self._store_row(owner, key, value):
            return
        if isinstance(value, Tuple):
            value = numpy_functions.array(self.e, f"items@{self.machine.at}", value, Known(owner.dtype))
        if gathers.advanced(key):
            self.variables.about_to_write(owner)
            if isinstance(value, Scalar) and isinstance(key, (ArrayView, Expression)) and key.dtype == np.bool_:
                arrays.assign_where(self.e, owner, key, value, self.variables.passing)
            else:
                gathers.write(
                    self.e, owner, self.settled(key), value, self.variables.passing, f"scatter@{self.machine.at}"
                )
            return
        if isinstance(value, Scalar):
            self.variables.about_to_write(owner)
            arrays.store_element(self.e, owner, key, value)
            return
        taken = self.taken.get(id(value))
        if taken is not None and taken.owner is owner and _same_key(taken.key, key):
            return  # a[k] += b: the view has been written already
        target = arrays.subscript(self.e, owner, key)
        if isinstance(target, Scalar):
            raise Declined("an array is stored as an element")
        self.store(target, value)

    def _store_row(self, owner: ArrayView, key, value: Tuple) -> bool:
        """``owner[key] = (a, b, ...)``, where that is one dimension: without an array between."""
        keys = key.items if isinstance(key, Tuple) else (key,)
        if not all(isinstance(k, Scalar) for k in keys) or owner.ndim - len(keys) != 1:
            return False
        numbers = numpy_functions.row(self.e, value, owner.dtype)
        if numbers is None:
            return False
        target = arrays.subscript(self.e, owner, key)
        self.variables.about_to_write(target)
        arrays.assign_numbers(self.e, target, numbers)
        return True

    def store(self, target: ArrayView, value) -> None:
        self.variables.about_to_write(target)
        if value != target:
            arrays.assign(self.e, target, value)


# Of a statement between a read and its write: nothing is called, and nothing is written.
_PLAIN = frozenset(("LOAD_FAST", "LOAD_CONST", "BINARY_SUBSCR", "BINARY_OP", "UNARY_NEGATIVE", "NOP"))


def _written_under_same_key(insts, at: int) -> bool:
    """Whether what is read by the subscript at ``at`` goes into a statement ``x[key] = ...`` by the same variable."""
    key = insts[at - 1]
    for i in range(at + 1, len(insts)):
        if insts[i].name == "STORE_SUBSCR":
            last = insts[i - 1]
            return key.name == last.name == "LOAD_FAST" and key.argval == last.argval
        if insts[i].name not in _PLAIN or (insts[i].name == "BINARY_OP" and binary_name(insts[i]).endswith("=")):
            return False
    return False


def _same_key(a, b) -> bool:
    """Whether two subscripts are the same values."""
    if isinstance(a, Slice) and isinstance(b, Slice):
        return all(_same_key(x, y) for x, y in ((a.start, b.start), (a.stop, b.stop), (a.step, b.step)))
    if isinstance(a, Tuple) and isinstance(b, Tuple):
        return len(a.items) == len(b.items) and all(map(_same_key, a.items, b.items))
    return a is b or (isinstance(a, Known) and a == b)
