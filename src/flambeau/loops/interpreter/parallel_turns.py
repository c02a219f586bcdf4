"""Whether the turns of the outermost loop may be spread over threads, and how: each has to write and read elements of its own of the arrays that are
written, and what is kept is combined from turn to turn (:mod:`..threads.recurrences`). What is decided here, :mod:`..threads.spreading` writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .. import turn_products
from ..faults import TOO_LONG
from ..operands import GivenArray, OverItems, Written
from ..threads.recurrences import Kind, Recurrence
from ..threads.spreading import BEGIN, Folded, Spread, Turns, identity
from ..values import CONFLICT, DONE, Call, PerhapsType, ScalarType, State, Symbolic, register_type

if TYPE_CHECKING:
    from .compiled import NumberResult
    from .compiler import RegionCompiler as Interpreter

__all__ = ["begin_anew", "lie_alike", "spread_of"]


LEAST = 8192  # instructions that a block of turns is worth


def begin_anew(run: Interpreter, state: State) -> None:
    """What is summed begins anew in each part of the turns but the first one."""
    e = run.e
    whole = e.cmp("eq", BEGIN, 0)
    for name, rule in run.recurrences.items():
        if rule.kind in (Kind.SUM, Kind.PRODUCT, Kind.XOR):
            dtype = state.locals[name].dtype
            t = register_type(dtype)
            e.set(name, t, e.select(whole, e.get(name, t), identity(dtype, rule.kind)))


def spread_of(run: Interpreter, results: list[NumberResult]) -> Spread | str:
    """How the turns of the outermost range are spread over threads, where each writes and reads elements of its own of the arrays that are
    written, and all else that is kept is combined from turn to turn (:mod:`..threads.recurrences`); else why not."""
    e = run.e
    reason = _in_order(run)
    if reason is not None:
        return reason
    folded = _folded(run, results)
    if isinstance(folded, str):
        return folded
    turns = _turns(run)
    if turns is None:
        return "it is no loop over a range or over arrays"
    loops = _loops_within(run)
    ordered = any(f.rule.kind in (Kind.SUM, Kind.PRODUCT) and f.dtype.kind in "fc" for f in folded)
    single = ordered and not run.reordered
    if single and not loops:
        return "its sums of floats are taken in the order of the turns, which are short"
    least = 1 if loops else max(LEAST // max(len(e.out), 1), 1)
    if turn_products.are_there(e, run.operands.written):
        least = turn_products.LEAST
    too_long, no_memory = (
        e.error("OverflowError", TOO_LONG) if folded else 0,
        e.error("MemoryError", "") if folded else 0,
    )
    return Spread(turns, least, single, e.results, folded, too_long, no_memory)


def _turns(run: Interpreter) -> Turns | None:
    """Where the kernel finds the number of turns."""
    trip = run.inputs.trip
    if isinstance(trip, OverItems):
        lengths = _lengths(run, trip.of)
        return lengths and Turns(lengths=lengths)
    ends = enumerate((trip.start, trip.stop))
    named = [f"symbol {id(n.token)}" if isinstance(n, Symbolic) else f"range {k}" for k, n in ends]
    first, last = (list(run.operands.ints).index(name) for name in named)
    return Turns((first, last), trip.step)


def _lengths(run: Interpreter, item) -> list[int] | None:
    """Where the sizes of the arrays that a loop runs over lie among those of all operands; None for other things."""
    if isinstance(item, Written):
        item = item.codes
    if isinstance(item, GivenArray):
        n = run.operands.array(item.token).n
        return [sum(2 * array.ndim for array in run.operands.arrays[:n])]
    if not isinstance(item, Call) or item.function not in (enumerate, zip):
        return None
    inner = [_lengths(run, i) for i in (item.arguments[:1] if item.function is enumerate else item.arguments)]
    return None if None in inner else [k for found in inner for k in found]


def _in_order(run: Interpreter) -> str | None:
    """Why the turns have to be taken in order, but for variables that are carried."""
    written, e = run.operands.written, run.e
    if run.containers.sites:
        return "it has a list, dict or set that changes"
    if run.region.exit is None and run.inlining.recursion.frames:
        return "it is a recursive function"
    if run.inputs.trip is None or (run.index is None and not isinstance(run.inputs.trip, OverItems)):
        return "it is no loop over a range or arrays, or its variable is assigned in it too"
    shared = [n for n in sorted(written) if not e.touched.get(n)]
    if shared:
        names = [
            k
            for k, v in run.variables.initial.items()
            if isinstance(v, GivenArray) and run.operands.array(v.token).n in shared
        ]
        return f"turns may write and read the same elements of {', '.join(names) or 'an array'}"
    if not written and not run.recurrences:
        return "its turns write nothing"
    if run.left_behind.makes_objects:
        return "an array or tuple that it makes is used later"
    if run.operands.drawn:
        return "it draws random numbers"
    if e.leaves_to_python:
        return "it calls NumPy"
    if run.own_cells:
        return "functions that it makes read variables that it assigns"
    if run.left or run.region.exit is None:
        return "it may be left before its end"
    if not run.iteration.alike:
        return "a variable changes its type in the first turn"
    if not run.inputs.rerunnable and any(fault.kind != "MemoryError" for fault in e.errors):
        return "something before it can't be done twice, should it end with an error"
    for name in sorted(run.carried):
        if isinstance(_carried_type(run, name), PerhapsType):
            return f"{name} has no value before the first turn"
        rule = run.recurrences.get(name)
        if rule is None:
            return f"{name} goes from turn to turn"
        if rule.kind is not Kind.LAST and not isinstance(_carried_type(run, name), ScalarType):
            return f"{name} goes from turn to turn, and is no number"
    return None


def _carried_type(run: Interpreter, name: str):
    return run.states[run.region.header].locals.get(name)


def _folded(run: Interpreter, results: list[NumberResult]) -> list[Folded] | str:
    """How the results of parts of the turns are combined; or why they can't be."""
    out: list[Folded] = []
    at = 0
    for name, dtype, weak in results:
        if name == DONE:
            break
        rule = run.recurrences.get(name)
        if rule is None:
            return f"{name} is assigned in some turns only"
        reason = _unfoldable(run, name, dtype, weak, rule)
        if reason:
            return f"{name} {reason}"
        out.append(Folded(at, name, dtype, weak, rule))
        at += (2 if dtype.kind == "c" else 1) + (weak is None)
    names = {f.name for f in out}
    if any(f.rule.kind is Kind.CHOSEN and f.rule.of not in names for f in out):
        return "an extremum whose place is wanted isn't used itself"
    return out


def _unfoldable(run: Interpreter, name: str, dtype: np.dtype, weak: bool | None, rule: Recurrence) -> str | None:
    kind = rule.kind
    if kind is Kind.LAST:
        return None
    carried = _carried_type(run, name)
    if carried.dtype != dtype:
        return "changes its type"
    if kind in (Kind.SUM, Kind.PRODUCT):
        if dtype.kind == "b" or (
            kind is Kind.PRODUCT and (dtype.kind == "c" or (dtype.kind == "i" and weak is not False))
        ):
            return "is a product of Python's integers, or of complex numbers"
        if dtype.kind in "fc" and not (rule.once or run.reordered):
            return "is a sum of floats, which is taken in its order (fastmath or parallel=True allows another one)"
    if kind in (Kind.LARGEST, Kind.SMALLEST) and (dtype.kind == "c" or not (rule.strict or dtype.kind in "iu")):
        return "is an extremum of which the last of equals is taken"
    if kind in (Kind.AND, Kind.OR, Kind.XOR) and dtype.kind not in "bui":
        return "is no integer"
    if kind is Kind.CONSTANT and (weak is not True or dtype.kind not in "bi"):
        return "may be NumPy's or Python's"
    return None


def _loops_within(run: Interpreter) -> bool:
    """Whether a turn has loops of its own."""
    return bool(run.e.element_loops) or _has_loops_of_turns(run)


def _has_loops_of_turns(run: Interpreter) -> bool:
    """Whether a turn has loops of its own in the bytecode."""
    region, insts = run.region, run.machine.insts
    places = [k for start, end in region.blocks.items() for k in range(start, end)]
    inside = [insts[k] for k in places if k not in run.closed_loops]
    return any(
        (i.name == "FOR_ITER" and i.index != region.header)
        or (i.target is not None and region.header < i.target < i.index)
        for i in inside
    )


def lie_alike(run: Interpreter) -> bool:
    """Whether nothing has to be converted between FOR_ITER, where the loop is over a range or an array, and what follows it."""
    header = run.region.header
    before, after = run.states.get(header), run.states.get(header + 1)
    if run.inputs.trip is None or before is None or after is None:
        return False

    def alike(a, b) -> bool:
        return a == b or (isinstance(a, ScalarType) and isinstance(b, ScalarType) and a.dtype == b.dtype)

    return all(t is CONFLICT or alike(before.locals.get(name), t) for name, t in after.locals.items())
