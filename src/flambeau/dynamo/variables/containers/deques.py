"""``collections.deque``."""

from __future__ import annotations

import collections
import operator

from ...exc import unsupported
from ...guards.source import GetAttrSource, ItemSource
from ...tracing.wrapping import exactly, pin
from ..base import Lazy, Variable
from ..functions.handlers import handles
from ..iterators.container_iterators import DequeIteratorVariable
from ..iterators.protocol import each
from ..values.constant import ConstantVariable
from .lists import ListVariable
from .slices import SliceVariable

__all__ = ["DequeVariable", "combined_deque"]


class DequeVariable(ListVariable):
    """A deque; one with ``maxlen`` drops elements at the other end. ``state``: another number whenever elements come, go or move to another
    place, which its iterators refuse."""

    cls = collections.deque

    def __init__(self, elements, source=None, cls=None, maxlen: int | None = None):
        super().__init__(elements, source, cls)
        self.maxlen = maxlen
        self.state = 0
        if maxlen is not None:
            del self.elements[: max(len(self.elements) - maxlen, 0)]

    def reconstruct(self, cg):
        def push():
            cg.all(self.elements)
            cg.emit("BUILD_LIST", len(self.elements))
            cg.load_const(self.maxlen)

        cg.call_function(collections.deque, push, 2)

    def plain_class(self):
        return collections.deque

    def rewritten(self):
        return self.dirty and (self.holder or self).source is not None

    def getattr(self, tx, name):
        return ConstantVariable(self.maxlen) if name == "maxlen" else super().getattr(tx, name)

    def iter(self, tx):
        self.realized(tx)
        return DequeIteratorVariable(self, self.elements)

    def changed(self, tx, only_append=False):
        super().changed(tx, only_append)
        self.state += 1

    def getitem(self, tx, key):
        if isinstance(key, SliceVariable):
            tx.raise_user(TypeError("sequence index must be integer, not 'slice'"))
        return super().getitem(tx, key)

    def make(self, values):
        return collections.deque(values, self.maxlen)

    def setitem(self, tx, key, value):
        if isinstance(key, SliceVariable):
            tx.raise_user(TypeError("sequence index must be integer, not 'slice'"))
        before = self.state
        i, n = self._index(tx, key), self.length(tx)
        if not -n <= i < n:
            tx.raise_user(IndexError("deque index out of range"))
        super().setitem(tx, key, value)
        self.state = before  # its iterators don't mind

    def delitem(self, tx, key):
        if isinstance(key, SliceVariable):
            tx.raise_user(TypeError("sequence index must be integer, not 'slice'"))
        i, n = self._index(tx, key), self.length(tx)
        if not -n <= i < n:
            tx.raise_user(IndexError("deque index out of range"))
        super().delitem(tx, key)

    def _put(self, tx, values, left: bool) -> None:
        for v in values:
            self.realized(tx)
            self.changed(tx)
            self.elements.insert(0 if left else len(self.elements), v)
            if self.maxlen is not None and len(self.elements) > self.maxlen:
                self.elements.pop(-1 if left else 0)

    def call_method(self, tx, name, args, kwargs):
        none = ConstantVariable(None)
        if name in ("append", "appendleft") and len(args) == 1:
            self._put(tx, args, name == "appendleft")
            return none
        if name in ("extend", "extendleft", "__iadd__") and len(args) == 1:
            self._put(tx, self.items(tx) if args[0] is self else each(tx, args[0]), name == "extendleft")
            return self if name == "__iadd__" else none
        if name in ("pop", "popleft") and not args:
            self.realized(tx)
            if not self.elements:
                tx.raise_user(IndexError("pop from an empty deque"))
            self.changed(tx)
            return self.elements.pop(0 if name == "popleft" else -1)
        if name == "rotate" and not kwargs:
            n = args[0].as_constant() if args else 1
            # Python looks at the number whatever there is to move.
            tx.evaluated(collections.deque().rotate, n)
            n = operator.index(n)
            self.realized(tx)
            if len(self.elements) > 1 and n % len(self.elements):
                self.changed(tx)
                n %= len(self.elements)
                self.elements[:] = self.elements[-n:] + self.elements[:-n]
            return none
        if name == "insert" and self.maxlen is not None and len(self.items(tx)) == self.maxlen:
            tx.raise_user(IndexError("deque already at its maximum size"))
        if name == "remove" and len(args) == 1:
            i = self._first(tx, args[0])
            if i is None:
                tx.raise_user(ValueError(f"{args[0].as_constant()!r} is not in deque"))
            self.changed(tx)
            del self.elements[i]
            return none
        if name in ("copy", "__copy__") and not args:
            return DequeVariable(self.items(tx), maxlen=self.maxlen)
        if name in ("sort", "__setitem__", "__delitem__"):
            unsupported("sequence-method", f"calling {name} of {self!r}", f"deque.{name} is not traced.")
        return super().call_method(tx, name, args, kwargs)


def combined_deque(tx, fn, a: Variable, b: Variable) -> Variable:
    """``+``, ``*`` and their in-place forms, one of the operands being a deque."""
    if not isinstance(a, DequeVariable) and fn is operator.mul:
        a, b = b, a
    if fn is operator.iadd:
        return a.call_method(tx, "extend", [b], {}) and a
    if not isinstance(a, DequeVariable):
        unsupported("operator", f"{fn.__name__} of {a!r} and {b!r}", "This combination of operands is not traced.")
    if fn is operator.add:
        if not isinstance(b, DequeVariable):
            text = f'can only concatenate deque (not "{b.python_type_name()}") to deque'
            tx.raise_user(TypeError(text))
        return DequeVariable(a.items(tx) + b.items(tx), maxlen=a.maxlen)
    try:
        elements = a.items(tx) * b.as_constant()
    except TypeError as e:
        tx.raise_user(e.with_traceback(None))
    if fn is operator.mul:
        return DequeVariable(elements, maxlen=a.maxlen)
    a.changed(tx)
    a.elements[:] = elements if a.maxlen is None else elements[max(len(elements) - a.maxlen, 0) :]
    return a


@handles(collections.deque)
def _(tx, args, kwargs):
    iterable = args[0] if args else kwargs.get("iterable")
    maxlen = (args[1] if len(args) > 1 else kwargs.get("maxlen", ConstantVariable(None))).as_constant()
    if maxlen is not None and type(maxlen) is not int:
        tx.raise_user(TypeError("an integer is required"))
    if maxlen is not None and maxlen < 0:
        tx.raise_user(ValueError("maxlen must be non-negative"))
    return DequeVariable([] if iterable is None else [*each(tx, iterable)], maxlen=maxlen)


@exactly(collections.deque)
def _(tx, value, source):
    pin(tx, source, "TYPE_MATCH", collections.deque)
    tx.wrap(value.maxlen, GetAttrSource(source, "maxlen"))
    tx.output.guard(source, "LENGTH", len(value))
    elements = [Lazy(v, ItemSource(source, i)) for i, v in enumerate(value)]
    return DequeVariable(elements, source, cls=collections.deque, maxlen=value.maxlen)
