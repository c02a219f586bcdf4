"""Where native loops begin: at ranges, arrays, while loops and comprehensions of a frame that is traced."""

from __future__ import annotations

from flambeau.base.weak import remembered

from ...bytecode.instructions import decode
from ...config import config
from ...variables.base import Variable
from ...variables.containers.ranges import RangeVariable
from ...variables.iterators.protocol import IteratorVariable
from . import late
from .trips import Elements, Ends, ends_of, may_have_elements
from .worth import MANY, TOO_MANY, WORTH, is_worth_it, left_to_python, recurses, work_of

__all__ = ["loop_starts", "trip_of", "try_arrays", "try_range", "try_while"]


@remembered
def loop_starts(code) -> frozenset[int]:
    """Instructions that are jumped back to, other than those of for loops: where while loops start."""
    insts = decode(code)
    return frozenset(
        i.target for i in insts if i.target is not None and i.target < i.index and insts[i.target].name != "FOR_ITER"
    )


def trip_of(tx, v: Variable) -> Ends | Elements | None:
    """Of a range, or of arrays; None for what is empty, or no native loop's."""
    if isinstance(v, RangeVariable):
        return ends_of(v)
    return late.elements_of(tx, v) if may_have_elements(v) else None


def try_range(tx, v: RangeVariable) -> bool:
    """At GET_ITER of a range: run the loop natively when it is long. True when that happened; the range is gone and control is behind
    the loop then."""
    header = tx.ip
    if not config.native_loops or tx.insts[header].name != "FOR_ITER":
        return False
    ends = ends_of(v)
    if ends is None:
        return False
    worth = work_of(tx, header, ends.about)
    if not is_worth_it(tx, header, worth, ends.about):
        return False
    reads = late.reads_arrays(tx, header)
    if not reads and ends.about < WORTH and worth < TOO_MANY and not recurses(tx, header):
        return False
    return late.run_natively(tx, header, ends) or (reads and left_to_python(tx, header, ends.about))


def try_arrays(tx, v: Variable) -> bool:
    """The same for an array, or enumerate() or zip() of arrays of which nothing has been taken."""
    header = tx.ip
    if not config.native_loops or tx.insts[header].name != "FOR_ITER":
        return False
    if isinstance(v, IteratorVariable) and any(v is other for other in (*tx.locals.values(), *tx.stack[:-1])):
        return False  # what is left of it may be asked for later
    found = trip_of(tx, v)
    if found is None or not is_worth_it(tx, header, work_of(tx, header, found.about), found.about):
        return False
    return late.run_natively(tx, header, found)


def try_while(tx, again: bool = False) -> bool:
    """At the start of a while loop's body, when its condition has just been found true, or is a true constant. ``again``: not for the first turn.
    A loop over numbers alone is worth it once it has had many turns; what they came to is what the native loop begins with."""
    header = tx.ip
    if not config.native_loops or (again and header not in tx.turns):
        return False
    if not again and late.reads_arrays(tx, header):
        tx.turns.pop(header, None)
    else:
        tx.turns[header] = tx.turns.get(header, 0) + 1
        if tx.turns[header] != MANY:
            return False
    return late.run_natively(tx, header, None)
