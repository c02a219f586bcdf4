"""``product`` and its kin: iterators of itertools that take all of their inputs when they are made."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from ..base import HeldVariable, Variable
from ..containers.sequences import TupleVariable
from ..functions.handlers import HANDLERS, handles
from ..values.constant import ConstantVariable
from .itertools_lazy import FunctionWithOptions, bound, own_error
from .protocol import IteratorVariable, all_of

__all__: list[str] = []


class RowsVariable(IteratorVariable):
    """``product`` and its kin, which take all of their inputs when they are made. ``make()`` gives the original over them."""

    def __init__(self, cls: type, make: Callable, pools: list[Variable]):
        super().__init__(cls)
        self.make, self.pools = make, pools
        self.rows, self.position = make(*(p.elements for p in pools)), 0

    def advance(self, tx):
        row = next(self.rows, None)
        self.position += 1
        return None if row is None else TupleVariable(row)

    def parts(self):
        return rows_behind, [ConstantVariable(self.position), HeldVariable(self.make), *self.pools]


def rows_behind(n: int, make, *pools):
    rows = make(*pools)
    for _ in range(n):
        next(rows, None)
    return rows


@handles(itertools.product)
def _(tx, args, kwargs):
    repeat = kwargs["repeat"].as_constant() if kwargs else 1
    own_error(tx, itertools.product, repeat=repeat)
    make = FunctionWithOptions(itertools.product, repeat=repeat)
    return RowsVariable(itertools.product, make, [TupleVariable(all_of(tx, a)) for a in args])


def _chosen(fn):
    def handler(tx, args, kwargs):
        iterable, r = bound(args, kwargs, "iterable", "r")
        if iterable is None:
            return None
        make = FunctionWithOptions(fn, *([] if r is None else [r.as_constant()]))
        if fn is not itertools.permutations and not (r is not None and hasattr(r.as_constant(), "__index__")):
            # What is no number is looked at first.
            own_error(tx, make, ())
        pool = TupleVariable(all_of(tx, iterable))
        own_error(tx, make, ())
        return RowsVariable(fn, make, [pool])

    HANDLERS[fn] = handler


for _fn in (itertools.combinations, itertools.permutations, itertools.combinations_with_replacement):
    _chosen(_fn)
