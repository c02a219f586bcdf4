"""``itertools``: each of its iterators takes from the others what the original takes, when it does. ``parts`` makes the original as it is then."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable

from ...bytecode.versions import PY312
from ...exc import UserRaises, unsupported
from ..base import HeldVariable, Variable
from ..containers.sequences import TupleVariable
from ..functions.handlers import handles
from ..operators import binary
from ..values.constant import ConstantVariable, is_none
from ..values.symbolic import specialized
from .protocol import MOST, IteratorVariable, all_of, held, pulled

__all__ = ["FunctionWithOptions", "behind", "bound", "own_error"]


def own_error(tx, fn, *args, **kwargs):
    """``fn`` of numbers that are known. What it says of wrong ones is the error of the program."""
    try:
        return fn(*args, **kwargs)
    except (TypeError, ValueError, OverflowError) as e:
        tx.raise_user(e.with_traceback(None))


def bound(args, kwargs, *names: str) -> list[Variable | None]:
    """Positional and keyword arguments by position; None for those that are missing."""
    return [*args, *(kwargs.get(n) for n in names[len(args) :])]


def behind(it, n: int):
    """The iterator without its first ``n`` elements."""
    for _ in range(n):
        next(it)
    return it


def next_or_end(tx, owner) -> Variable | None:
    """The next element of what ``owner`` goes through, which is over for it with an error, too."""
    try:
        return None if owner.it is None else owner.it.next(tx)
    except UserRaises:
        owner.it = None
        raise


def never(x) -> bool:
    return False


class ChainVariable(IteratorVariable):
    """``inner``: the iterator of the iterable that is gone through now."""

    def __init__(self, iterables: Variable):
        super().__init__(itertools.chain)
        self.iterables: Variable | None = iterables
        self.inner: Variable | None = None

    def advance(self, tx):
        for _ in range(MOST):
            if self.inner is not None:
                v = self.inner.next(tx)
                if v is not None:
                    return v
                self.inner = None
            if self.iterables is None:
                return None
            try:
                found = self.iterables.next(tx)
                self.inner = None if found is None else found.iter(tx)
            except UserRaises:
                self.iterables = None
                raise
            if found is None:
                self.iterables = None
                return None
        unsupported("long-loop", f"a chain of more than {MOST} iterables", "Loops are unrolled.")

    def parts(self):
        if self.iterables is None:
            return chained, [TupleVariable([]), *([] if self.inner is None else [held(self.inner)])]
        return chained, [held(self.iterables), *([] if self.inner is None else [held(self.inner)])]


def chained(iterables, *inner):
    return itertools.chain.from_iterable(iterables) if not inner else resumed_chain(inner[0], iterables)


def resumed_chain(inner, iterables):
    return itertools.chain.from_iterable(itertools.chain((inner,), iterables))


@handles(itertools.chain)
def _(tx, args, kwargs):
    return ChainVariable(TupleVariable(args).iter(tx))


@handles(itertools.chain.from_iterable)
def _(tx, args, kwargs):
    return ChainVariable(args[0].iter(tx))


class CountVariable(IteratorVariable):
    def __init__(self, at: Variable, step: Variable):
        super().__init__(itertools.count)
        self.at, self.step = at, step

    def advance(self, tx):
        at = self.at
        self.at = binary(tx, operator.add, at, self.step)
        return at

    def parts(self):
        return itertools.count, [self.at, self.step]


@handles(itertools.count)
def _(tx, args, kwargs):
    start, step = (v or ConstantVariable(n) for v, n in zip(bound(args, kwargs, "start", "step"), (0, 1)))
    if start.is_constant() and step.is_constant():
        own_error(tx, itertools.count, start.as_constant(), step.as_constant())
    return CountVariable(start, step)


class IsliceVariable(IteratorVariable):
    """``taken``: how many elements were; ``wanted``: the number of the next one that is."""

    def __init__(self, it: Variable, start: int, stop: int | None, step: int):
        super().__init__(itertools.islice)
        self.it: Variable | None = it
        self.taken, self.wanted, self.stop_at, self.step = 0, start, stop, step

    def advance(self, tx):
        stop = self.stop_at
        for _ in range(MOST):
            at_end = stop is not None and self.taken >= stop and self.taken >= self.wanted
            v = None if at_end or self.it is None else next_or_end(tx, self)
            if v is None:
                self.it = None
                return None
            self.taken += 1
            if self.taken > self.wanted:
                break
        else:
            unsupported("long-loop", f"an islice over more than {MOST} elements", "Loops are unrolled.")
        self.wanted += self.step
        if stop is not None:
            self.wanted = min(self.wanted, stop)
        return v

    def parts(self):
        if self.it is None:
            return itertools.islice, [TupleVariable([]), ConstantVariable(0)]
        at = self.taken
        stop = None if self.stop_at is None else max(self.stop_at - at, 0)
        bounds = [max(self.wanted - at, 0), stop, self.step]
        return itertools.islice, [held(self.it), *map(ConstantVariable, bounds)]


@handles(itertools.islice)
def _(tx, args, kwargs):
    bounds = [a.as_constant() for a in args[1:]]
    own_error(tx, itertools.islice, (), *bounds)
    start, stop, step = (None, *bounds, None) if len(bounds) == 1 else (*bounds, None)[:3]
    start, stop, step = (None if b is None else operator.index(b) for b in (start, stop, step))
    return IsliceVariable(args[0].iter(tx), start or 0, stop, step or 1)


class RepeatVariable(IteratorVariable):
    def __init__(self, value: Variable, left: int | None):
        super().__init__(itertools.repeat)
        self.value_again, self.left = value, left

    def advance(self, tx):
        if self.left is not None:
            if self.left <= 0:
                return None
            self.left -= 1
        return self.value_again

    def call_method(self, tx, name, args, kwargs):
        if name == "__length_hint__" and not args and self.left is not None:
            return ConstantVariable(self.left)
        return super().call_method(tx, name, args, kwargs)

    def parts(self):
        return itertools.repeat, [self.value_again, *([] if self.left is None else [ConstantVariable(self.left)])]


@handles(itertools.repeat)
def _(tx, args, kwargs):
    value, times = bound(args, kwargs, "object", "times")
    if value is None:
        tx.raise_user(TypeError("repeat() missing required argument 'object' (pos 1)"))
    left = None
    if times is not None:
        own_error(tx, itertools.repeat, None, specialized(tx, times).as_constant())
        left = max(operator.index(times.as_constant()), 0)
    return RepeatVariable(value, left)


class FunctionWithOptions:
    """A function of itertools with the arguments that aren't iterables."""

    def __init__(self, fn: Callable, *rest, **options):
        self.fn, self.rest, self.options = fn, rest, options

    def __call__(self, *pools):
        return self.fn(*pools, *self.rest, **self.options)


class AccumulateVariable(IteratorVariable):
    """``total`` None: nothing has been taken. ``fresh``: an initial total, which comes first."""

    def __init__(self, it: Variable, fn: Variable | None, initial: Variable | None):
        super().__init__(itertools.accumulate)
        self.it, self.fn, self.total, self.fresh = it, fn, initial, initial is not None

    def advance(self, tx):
        if self.fresh:
            self.fresh = False
            return self.total
        v = self.it.next(tx)
        if v is None:
            return None
        if self.total is None:
            self.total = v
        elif self.fn is None:
            self.total = binary(tx, operator.add, self.total, v)
        else:
            self.total = self.fn.call(tx, [self.total, v], {})
        return self.total

    def parts(self):
        fn = self.fn or ConstantVariable(None)
        if self.total is None:
            return itertools.accumulate, [held(self.it), fn]
        return accumulating, [ConstantVariable(not self.fresh), held(self.it), fn, self.total]


def accumulating(begun: bool, it, fn, total):
    return behind(itertools.accumulate(it, fn, initial=total), int(begun))


@handles(itertools.accumulate)
def _(tx, args, kwargs):
    iterable, fn = bound(args, kwargs, "iterable", "func")
    initial = kwargs.get("initial")
    return AccumulateVariable(iterable.iter(tx), None if is_none(fn) else fn, None if is_none(initial) else initial)


class CompressVariable(IteratorVariable):
    def __init__(self, data: Variable, selectors: Variable):
        super().__init__(itertools.compress)
        self.data, self.selectors = data, selectors

    def advance(self, tx):
        for v in pulled(tx, self.data):
            s = self.selectors.next(tx)
            if s is None:
                return None
            if tx.truth(s):
                return v
        return None

    def parts(self):
        return itertools.compress, [held(self.data), held(self.selectors)]


@handles(itertools.compress)
def _(tx, args, kwargs):
    data, selectors = bound(args, kwargs, "data", "selectors")
    return CompressVariable(data.iter(tx), selectors.iter(tx))


class CycleVariable(IteratorVariable):
    """``saved``: the elements of the first round, which goes on while ``it`` is not None."""

    def __init__(self, it: Variable):
        super().__init__(itertools.cycle)
        self.it: Variable | None = it
        self.saved: list[Variable] = []
        self.at = 0

    def advance(self, tx):
        if self.it is not None:
            v = self.it.next(tx)
            if v is not None:
                self.saved.append(v)
                return v
            self.it = None
        if not self.saved:
            return None
        v = self.saved[self.at]
        self.at = (self.at + 1) % len(self.saved)
        return v

    def parts(self):
        n, saved = (len(self.saved) if self.it is not None else self.at), TupleVariable(self.saved)
        return cycling, [ConstantVariable(n), saved, *([] if self.it is None else [held(self.it)])]


def cycling(n: int, saved, *it):
    return behind(itertools.cycle(itertools.chain(saved, *it)), n)


@handles(itertools.cycle)
def _(tx, args, kwargs):
    return CycleVariable(args[0].iter(tx))


class WhileVariable(IteratorVariable):
    """``takewhile`` and ``dropwhile``; ``over``: an element was refused."""

    def __init__(self, cls: type, fn: Variable, it: Variable):
        super().__init__(cls)
        self.fn, self.it, self.over = fn, it, False

    def advance(self, tx):
        takes = self.cls is itertools.takewhile
        if self.over:
            return None if takes else self.it.next(tx)
        for v in pulled(tx, self.it):
            holds = tx.truth(self.fn.call(tx, [v], {}))
            self.over = not holds
            if holds == takes:
                return v
            if takes:
                return None
        return None

    def parts(self):
        if not self.over:
            return self.cls, [self.fn, held(self.it)]
        if self.cls is itertools.takewhile:
            return itertools.takewhile, [self.fn, TupleVariable([])]
        return itertools.dropwhile, [HeldVariable(never), held(self.it)]


@handles(itertools.takewhile)
def _(tx, args, kwargs):
    return WhileVariable(itertools.takewhile, args[0], args[1].iter(tx))


@handles(itertools.dropwhile)
def _(tx, args, kwargs):
    return WhileVariable(itertools.dropwhile, args[0], args[1].iter(tx))


class FilterFalseVariable(IteratorVariable):
    def __init__(self, fn: Variable, it: Variable):
        super().__init__(itertools.filterfalse)
        self.fn, self.it = fn, it

    def advance(self, tx):
        plain = is_none(self.fn) or (self.fn.can_constant() and self.fn.as_constant() is bool)
        for v in pulled(tx, self.it):
            if not tx.truth(v if plain else self.fn.call(tx, [v], {})):
                return v
        return None

    def parts(self):
        return itertools.filterfalse, [self.fn, held(self.it)]


@handles(itertools.filterfalse)
def _(tx, args, kwargs):
    return FilterFalseVariable(args[0], args[1].iter(tx))


class StarmapVariable(IteratorVariable):
    def __init__(self, fn: Variable, it: Variable):
        super().__init__(itertools.starmap)
        self.fn, self.it = fn, it

    def advance(self, tx):
        v = self.it.next(tx)
        return None if v is None else self.fn.call(tx, all_of(tx, v), {})

    def parts(self):
        return itertools.starmap, [self.fn, held(self.it)]


@handles(itertools.starmap)
def _(tx, args, kwargs):
    return StarmapVariable(args[0], args[1].iter(tx))


class PairwiseVariable(IteratorVariable):
    def __init__(self, it: Variable):
        super().__init__(itertools.pairwise)
        self.it: Variable | None = it
        self.before: Variable | None = None

    def advance(self, tx):
        before = self.before
        if before is None:
            before = self.before = next_or_end(tx, self)
        v = None if before is None else next_or_end(tx, self)
        if v is None:
            self.it = self.before = None
            return None
        self.before = v
        return TupleVariable([before, v])

    def parts(self):
        if self.it is None:
            return itertools.pairwise, [TupleVariable([])]
        return pairs_behind, [held(self.it), *([] if self.before is None else [self.before])]


def pairs_behind(it, *before):
    return itertools.pairwise(itertools.chain(before, it))


@handles(itertools.pairwise)
def _(tx, args, kwargs):
    return PairwiseVariable(args[0].iter(tx))


class ZipLongestVariable(IteratorVariable):
    """``its``: None for those that have ended."""

    def __init__(self, its: list[Variable | None], fill: Variable):
        super().__init__(itertools.zip_longest)
        self.its, self.fill = its, fill

    def advance(self, tx):
        if not any(self.its):
            return None
        row: list[Variable] = []
        for k, it in enumerate(self.its):
            try:
                v = None if it is None else it.next(tx)
            except UserRaises:
                self.its = [None] * len(self.its)
                raise
            if v is None and it is not None:
                self.its[k] = None
                if not any(self.its):
                    return None
            row.append(self.fill if v is None else v)
        return TupleVariable(row)

    def parts(self):
        none = TupleVariable([])
        return longest, [self.fill, *(none if it is None else held(it) for it in self.its)]


def longest(fill, *its):
    return itertools.zip_longest(*its, fillvalue=fill)


@handles(itertools.zip_longest)
def _(tx, args, kwargs):
    return ZipLongestVariable([a.iter(tx) for a in args], kwargs.get("fillvalue", ConstantVariable(None)))


class BatchedVariable(IteratorVariable):
    def __init__(self, it: Variable, n: int, strict: bool):
        super().__init__(itertools.batched)
        self.it: Variable | None = it
        self.n, self.strict = n, strict

    def advance(self, tx):
        row: list[Variable] = []
        while self.it is not None and len(row) < self.n:
            v = next_or_end(tx, self)
            if v is None:
                self.it = None
            else:
                row.append(v)
        if row and len(row) < self.n and self.strict:
            tx.raise_user(ValueError("batched(): incomplete batch"))
        return TupleVariable(row) if row else None

    def parts(self):
        return FunctionWithOptions(itertools.batched, self.n, **({"strict": True} if self.strict else {})), [
            TupleVariable([]) if self.it is None else held(self.it)
        ]


if PY312:

    @handles(itertools.batched)
    def _(tx, args, kwargs):
        iterable, n = bound(args, kwargs, "iterable", "n")
        own_error(tx, itertools.batched, (), n.as_constant())
        strict = "strict" in kwargs and bool(tx.truth(kwargs["strict"]))
        return BatchedVariable(iterable.iter(tx), n.as_constant(), strict)
