"""Iterators: over known elements, computed one at a time, generators of traced code, and those that existed before the call."""

from __future__ import annotations

import gc
import types
from collections.abc import Callable

from ..exc import UserRaises, unsupported
from ..reflect import name_of
from ..source import CallSource, ItemSource
from ..versions import PY313
from .base import Lazy, Variable, method_of
from .constant import ConstantVariable

__all__ = [
    "ArrayIteratorVariable",
    "ExistingIteratorVariable",
    "GeneratorVariable",
    "IteratorVariable",
    "UserIteratorVariable",
    "advance_iterator",
    "closes_with",
    "must_be_closed",
    "remaining",
]

LIST_ITERATOR = type(iter([]))


class IteratorVariable(Variable):
    """An iterator over known elements, or, with ``pull``, over what ``pull(tx)`` makes one at a time (None at the end).

    ``parts()`` tells how a computed one is made again as it is now: a callable and its arguments. ``drainable``: taking all elements
    ahead of time cannot be noticed."""

    mutable = True
    MOST = 100_000

    def __init__(
        self,
        elements=(),
        pull=None,
        drainable=False,
        cls=LIST_ITERATOR,
        parts: Callable[[], tuple[Callable, list[Variable]]] | None = None,
    ):
        super().__init__()
        self.elements = list(elements)
        self.position = 0
        self.pull = pull
        self.drainable = drainable or pull is None
        self.cls = cls
        self.parts = parts
        self.watch: Callable[[], None] | None = None  # looks at the dict or set whose elements these are
        self.over: Variable | None = None  # the list, dict or set that it iterates over as it is then

    def python_type(self):
        return self.cls

    def returned(self) -> Variable:
        """The value of ``yield from``."""
        return ConstantVariable(None)

    def truth(self, tx):
        return True

    def items(self, tx):
        out = []
        while (v := self.next(tx)) is not None:
            out.append(v)
            if len(out) > self.MOST:
                unsupported("long-loop", f"an iterator with more than {self.MOST} elements", "Loops are unrolled.")
        return out

    def next(self, tx) -> Variable | None:
        tx.side_effects.touch(self)
        if self.pull is not None:
            return self.pull(tx)
        if self.watch is not None:
            self.watch()
        if self.position >= len(self.elements):
            self.watch = None
            return None
        e = self.elements[self.position]
        self.position += 1
        return e.real(tx) if isinstance(e, Lazy) else e

    def length(self, tx):
        tx.raise_user(TypeError(f"object of type {name_of(self.python_type())!r} has no len()"))

    def getattr(self, tx, name):
        return method_of(tx, self, name)

    def hasattr(self, tx, name):
        return hasattr(self.cls, name)

    def call_method(self, tx, name, args, kwargs):
        if name == "__next__":
            v = self.next(tx)
            if v is None:
                tx.raise_user(StopIteration())
            return v
        if name == "__iter__":
            return self
        return super().call_method(tx, name, args, kwargs)

    def reconstruct(self, cg):
        if self.parts is not None:
            fn, args = self.parts()
            cg.call_function(fn, lambda: cg.all(args), len(args))
            return
        if cg.returning and self.cls is not LIST_ITERATOR:
            unsupported(
                "iterator",
                f"a {name_of(self.cls)} object leaves the function",
                "Only its elements are known while tracing.",
            )
        if not self.drainable:
            unsupported(
                "iterator",
                f"a {name_of(self.cls)} object is alive at a graph break",
                "Its elements are made one by one.",
            )
        if self.pull is not None:
            from ..executor import current

            self.elements, self.position = self.items(current()), 0
            self.pull = None

        if self.over is not None and self.position < len(self.elements):
            if self.watch is not None:
                self.watch()
            cg.call_function(iterator_at, lambda: cg.all([self.over, ConstantVariable(self.position)]), 2)
            return

        def push():
            rest = self.elements[self.position :]  # none where the list has become shorter than what was taken
            cg.all(rest)
            cg.emit("BUILD_LIST", len(rest))

        cg.call_function(iter, push, 1)


def iterator_at(over, position: int):
    """A list's, dict's or set's own iterator, behind so many elements: it notices what is done to them."""
    it = iter(over)
    if type(it) is LIST_ITERATOR:
        it.__setstate__(position)  # the list may have lost what was taken of it
    else:
        advance_iterator(it, position)
    return it


class ArrayIteratorVariable(IteratorVariable):
    """Over a tensor's or an array's first dimension. ``over``: it, as long as nothing was taken."""

    def __init__(self, over: Variable):
        super().__init__()
        self.over: Variable | None = over

    def fill(self, tx) -> None:
        if self.over is not None:
            self.elements, self.over = self.over.items(tx), None

    def next(self, tx):
        self.fill(tx)
        return super().next(tx)

    def reconstruct(self, cg):
        from ..executor import current

        self.fill(current())
        super().reconstruct(cg)


class UserIteratorVariable(IteratorVariable):
    """An object of a user's class with ``__next__``."""

    def __init__(self, owner: Variable):
        super().__init__(pull=self._pull, cls=owner.python_type())
        self.owner = owner

    def _pull(self, tx):
        try:
            return self.owner.call_special(tx, "__next__")
        except UserRaises as e:
            if isinstance(e.exception, StopIteration):
                return None
            raise

    def length(self, tx):
        return self.owner.length(tx)

    def getattr(self, tx, name):
        return self.owner.getattr(tx, name)

    def reconstruct(self, cg):
        cg(self.owner)


class Count:
    """itertools.count that tells where it is."""

    def __init__(self, at=0, step=1):
        self.at, self.step = at, step

    def __iter__(self):
        return self

    def __next__(self):
        now, self.at = self.at, self.at + self.step
        return now


def remaining(it) -> tuple | None:
    """What an iterator over a list, tuple, range, string, dict or set still gives, found without taking it; None for other iterators."""
    if type(it) not in PEEKABLE:
        return None
    _, (over,), *at = it.__reduce__()  # a dict's or set's gives a list of what is left; changed meanwhile, it raises
    return tuple(over[at[0] :]) if at else tuple(over)


def advance_iterator(it, n: int) -> None:
    for _ in range(n):
        next(it)


KEYED = frozenset(map(type, map(iter, ({}, {}.values(), {}.items(), set()))))
PEEKABLE = KEYED | {type(iter([])), type(iter(())), type(iter(range(0))), type(iter("")), type(iter("é"))}


class ExistingIteratorVariable(IteratorVariable):
    """An iterator that existed before the call. Elements that can be found without taking them are guarded and known; taking them is
    replayed. Otherwise each step of a loop over it is a graph break of its own."""

    def __init__(self, value, source):
        super().__init__(cls=type(value))
        self.value, self.source = value, source
        self.known: list | None = None

    def reloadable(self):
        return True

    def next(self, tx):
        if not tx.output.unroll or type(self.value) not in PEEKABLE:
            unsupported("iterate", f"iterating over a {name_of(self.cls)}", "Its elements are not known while tracing.")
        if self.known is None:
            left = CallSource(self.source, remaining, "remaining")
            try:
                values = remaining(self.value)
            except RuntimeError as e:
                unsupported("iterate", f"iterating over a {self.cls.__name__}", str(e))
            tx.output.guard(left, "LENGTH", len(values))
            self.known = [Lazy(v, ItemSource(left, i)) for i, v in enumerate(values)]
        for o in gc.get_referents(self.value):
            if id(tx.output.by_id.get(id(o))) in tx.side_effects.modified:
                unsupported("iterate", f"iterating over a {self.cls.__name__}", "What it iterates over was written.")
        tx.root.unrolled = True
        tx.side_effects.touch(self)
        if self.position >= len(self.known):
            return None
        self.position += 1
        return self.known[self.position - 1].real(tx)

    def call_method(self, tx, name, args, kwargs):
        if name in ("__next__", "__iter__"):
            return super().call_method(tx, name, args, kwargs)
        unsupported("iterator", f"call_method {self!r} {name}")


class GeneratorVariable(IteratorVariable):
    """A generator of traced code: its frame, suspended between values."""

    def __init__(self, frame, cls=types.GeneratorType):
        super().__init__(cls=cls)
        del self.pull  # below: a bound method would keep the generator alive
        self.drainable = False
        self.frame = frame
        frame.output.generators.add(self)

    def __del__(self):
        """Variables are referred to like what they stand for, so the last reference to the generator goes where the program's does."""
        if self.frame.must_be_closed():
            self.frame.output.generator_dropped = True

    def pull(self, tx):
        return self.frame.resume(tx, ConstantVariable(None))

    def returned(self):
        return self.frame.result if self.frame.result is not None else ConstantVariable(None)

    def send(self, tx, value: Variable) -> Variable:
        if not (self.frame.started or self.frame.finished) and not (
            value.is_constant() and value.as_constant() is None
        ):
            tx.raise_user(TypeError("can't send non-None value to a just-started generator"))
        tx.side_effects.touch(self)
        v = self.frame.resume(tx, value)
        if v is None:
            self.stop(tx)
        return v

    def stop(self, tx):
        value = self.returned()
        self.frame.result = None
        from .exceptions import ExceptionVariable

        nothing = value.is_constant() and value.as_constant() is None
        shown = value.as_constant() if value.can_constant() else None
        e = StopIteration(*([] if nothing else [shown]))
        raise UserRaises(e, ExceptionVariable(e, args=[] if nothing else [value]))

    def throw(self, tx, exc: Variable) -> Variable:
        tx.side_effects.touch(self)
        v = self.frame.throw(tx, exc)
        if v is None:
            self.stop(tx)
        return v

    def close(self, tx) -> Variable:
        """What ``close()`` returns: since CPython 3.13 the value that the generator returns then."""
        none = ConstantVariable(None)
        if self.frame.finished:
            return none
        if not self.frame.started:
            self.frame.finished = True
            return none
        from .exceptions import ExceptionVariable

        try:
            self.throw(tx, ExceptionVariable(GeneratorExit()))
        except UserRaises as e:
            if isinstance(e.exception, StopIteration) and PY313:
                return e.variable.getattr(tx, "value")
            if isinstance(e.exception, GeneratorExit | StopIteration):
                return none
            raise
        tx.raise_user(RuntimeError("generator ignored GeneratorExit"))

    def call_method(self, tx, name, args, kwargs):
        if name == "send" and len(args) == 1:
            return self.send(tx, args[0])
        if name == "throw" and args:
            return self.throw(tx, _thrown(tx, *args))
        if name == "close":
            return self.close(tx)
        if name == "__next__":
            return self.send(tx, ConstantVariable(None))
        return super().call_method(tx, name, args, kwargs)

    def reconstruct(self, cg):
        if self.cls is not types.GeneratorType and cg.returning:
            unsupported("iterator", f"a {name_of(self.cls)} object leaves the function", "It is traced as a generator.")
        self.frame.reconstruct_generator(cg)


def _thrown(tx, exc: Variable, value: Variable | None = None, traceback: Variable | None = None) -> Variable:
    """The exception that ``throw(exc)`` or ``throw(type, value)`` raises: the value itself where it is one of this type."""
    from .exceptions import ExceptionVariable

    exc = tx.realize(exc)
    if isinstance(exc, ExceptionVariable):
        return exc
    value = None if value is None else tx.realize(value)
    if value is None or (value.is_constant() and value.as_constant() is None):
        return exc.call(tx, [], {})
    if isinstance(value, ExceptionVariable):
        cls = exc.as_constant() if exc.is_constant() or hasattr(exc, "value") else None
        if isinstance(cls, type) and issubclass(value.python_type(), cls):
            return value
    if issubclass(value.python_type(), tuple):
        return exc.call(tx, value.items(tx), {})
    return exc.call(tx, [value], {})


def closes_with(v: Variable, tx, depth: int = 5) -> bool:
    """Whether dropping the value, or what only it holds, runs code: see ``must_be_closed``."""
    if must_be_closed(v):
        return True
    if not depth or not any(g.frame.must_be_closed() for g in tx.output.generators):
        return False
    parts = [x for x in vars(v.unwrap()).values()]
    for x in parts:
        inner = x.values() if isinstance(x, dict) else x if isinstance(x, list | tuple) else (x,)
        if any(isinstance(i, Variable) and closes_with(i, tx, depth - 1) for i in inner):
            return True
    return False


def must_be_closed(v: Variable) -> bool:
    """Whether dropping the value runs code: a generator suspended inside try or with, or one that existed before."""
    v = v.unwrap()
    if isinstance(v, Lazy | ExistingIteratorVariable):
        return type(v.value) is types.GeneratorType and v.value.gi_suspended
    return isinstance(v, GeneratorVariable) and v.frame.must_be_closed()
