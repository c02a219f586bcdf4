"""``tee`` and ``groupby``: iterators of itertools that have what they take in common."""

from __future__ import annotations

import copy
import itertools

from ...exc import unsupported
from ..base import Variable
from ..containers.sequences import TupleVariable
from ..functions.handlers import handles
from ..operators import same_or_equal
from ..values.constant import ConstantVariable, is_none
from .itertools_lazy import behind, bound, own_error
from .protocol import MOST, IteratorVariable, held

__all__: list[str] = []


class TeeSource(Variable):
    """What the copies of one ``tee`` have in common: the iterator, and the elements that were taken of it."""

    mutable = True

    def __init__(self, it: Variable):
        super().__init__()
        self.it = it
        self.taken: list[Variable] = []

    def element(self, tx, i: int) -> Variable | None:
        if i == len(self.taken):
            v = self.it.next(tx)
            if v is None:
                return None
            self.taken.append(v)
        return self.taken[i]

    def reconstruct(self, cg):
        cg.call_function(shared_tee, lambda: cg.all([held(self.it), *self.taken]), 1 + len(self.taken))


def shared_tee(it, *taken):
    return itertools.tee(itertools.chain(taken, it), 1)[0]


class TeeVariable(IteratorVariable):
    def __init__(self, source: TeeSource, at: int):
        super().__init__(type(itertools.tee(())[0]))
        self.shared, self.at = source, at

    def advance(self, tx):
        v = self.shared.element(tx, self.at)
        if v is not None:
            self.at += 1
        return v

    def call_method(self, tx, name, args, kwargs):
        if name == "__copy__" and not args:
            return TeeVariable(self.shared, self.at)
        return super().call_method(tx, name, args, kwargs)

    def parts(self):
        return tee_at, [self.shared, ConstantVariable(self.at)]


def tee_at(shared, n: int):
    return behind(copy.copy(shared), n)


@handles(itertools.tee)
def _(tx, args, kwargs):
    n = args[1].as_constant() if len(args) > 1 else 2
    own_error(tx, itertools.tee, (), n)
    it = args[0].iter(tx)
    if isinstance(it, TeeVariable):
        first = it if KEEPS_FIRST else TeeVariable(it.shared, it.at)
    elif it.hasattr(tx, "__copy__"):
        return None
    else:
        first = TeeVariable(TeeSource(it.iter(tx)), 0)  # which the original asks again
    return TupleVariable([first, *(TeeVariable(first.shared, first.at) for _ in range(n - 1))][:n])


KEEPS_FIRST = (lambda t: itertools.tee(t)[0] is t)(itertools.tee(())[0])
"""Whether the first copy of what is a copy already is itself, as in older versions."""


class GroupByVariable(IteratorVariable):
    """``value`` and ``key``: the last element that was taken, and its key; ``target``: that of the group that was given last."""

    def __init__(self, it: Variable, fn: Variable | None):
        super().__init__(itertools.groupby)
        self.it, self.fn = it, fn
        self.value_now: Variable | None = None
        self.key: Variable | None = None
        self.target: Variable | None = None
        self.group: object = None  # tells the group that was given last from others

    def step(self, tx) -> bool:
        v = self.it.next(tx)
        if v is None:
            return False
        key = v if self.fn is None else self.fn.call(tx, [v], {})
        self.value_now, self.key = v, key
        return True

    def advance(self, tx):
        self.group = None
        for _ in range(MOST):
            if self.key is not None and (self.target is None or not same_or_equal(tx, self.target, self.key)):
                break
            if not self.step(tx):
                return None
        else:
            unsupported("long-loop", f"a group of more than {MOST} elements", "Loops are unrolled.")
        self.target, self.group = self.key, object()
        return TupleVariable([self.key, GroupVariable(self)])

    def parts(self):
        if self.key is not None:
            unsupported(
                "iterator", "a groupby object that has begun leaves captured code", "Its keys are known already."
            )
        return itertools.groupby, [held(self.it), self.fn or ConstantVariable(None)]


class GroupVariable(IteratorVariable):
    """A group, which ends when its groupby goes on to the next one."""

    def __init__(self, owner: GroupByVariable):
        super().__init__(type(next(itertools.groupby((1,)))[1]))
        self.owner, self.target, self.group = owner, owner.target, owner.group

    def advance(self, tx):
        owner = self.owner
        if owner.group is not self.group:
            return None
        if owner.value_now is None and not owner.step(tx):
            return None
        if not same_or_equal(tx, self.target, owner.key):
            return None
        v, owner.value_now = owner.value_now, None
        return v


@handles(itertools.groupby)
def _(tx, args, kwargs):
    iterable, fn = bound(args, kwargs, "iterable", "key")
    return GroupByVariable(iterable.iter(tx), None if is_none(fn) else fn)
