"""A loop of a frame that is traced becomes a native one: compiled, and put into the graph."""

from __future__ import annotations

from flambeau.loops import operator
from flambeau.loops.values import COLLECTED, RETURNED, Declined

from ...exc import Unsupported
from ...graph.effects import has_effects, written_inputs
from ...utils import counters
from ...variables.base import Variable
from .compiling import Compiled, compile_loop
from .described import is_whole_number
from .inputs import inputs_of
from .notes import LOG, NOTES, key_of, place_of, stays
from .placing import call_loop, place_results, returned
from .trips import Elements, Ends

__all__ = ["run_natively", "try_collecting", "try_function"]


def run_natively(tx, header: int, trip: Ends | Elements | None, vary: bool = False) -> bool:
    """``trip``: what a for loop runs over. ``vary``: whole numbers among the locals are operands."""
    operands = trip.operands if isinstance(trip, Elements) else {}
    where, key = place_of(tx, header), key_of(tx, header)
    site, one_graph = operator.SITES[key], tx.output.compiler.fullgraph or tx.output.modes.transforms
    if not site.native:
        return stays(where, "it met what native loops have no place for when it ran")
    if site.reshapes and one_graph:
        return stays(where, "it leaves an array in another shape, which breaks the graph")
    first = not has_effects(tx.output) and not written_inputs(tx.output.recorder.inputs)
    try:
        done, recorded = compile_loop(tx, header, operands, inputs_of(tx, header, operands, trip, first, vary))
    except Declined as reason:
        return stays(where, str(reason))
    except Unsupported as e:
        return stays(where, e.reason.reason)
    loop = Compiled(done, recorded, first, key, where)
    given = [operands[id(node)] for node in done.arrays]
    place_results(tx, loop, given, call_loop(tx, loop, given), header)
    counters["stats"]["native_loops"] += 1
    note = "native, on several threads" if done.in_order is None else f"native, on one thread: {done.in_order}"
    LOG("loop in %s is %s", where, note)
    NOTES[where] = note
    tx.ip = done.exit
    if trip is not None:
        tx.pop()  # what it runs over
    if done.returned is not None:
        insts = tx.insts
        tx.push(returned(tx, RETURNED, done.returned))
        tx.ip = next(i.index for i in insts if i.name == "RETURN_VALUE" and i.handler == insts[header].handler)
    return True


def try_collecting(tx, header: int, trip: Ends | Elements, collects: Variable) -> bool:
    """Run the loop of a comprehension natively, which fills ``collects``."""
    tx.locals[COLLECTED] = collects
    try:
        return run_natively(tx, header, trip)
    finally:
        tx.locals.pop(COLLECTED, None)


def try_function(tx) -> bool:
    """At the first instruction of a function: run all of it natively. In a function that another one calls, whole numbers are operands: the same
    code serves all calls. Where the code wants to know one (an axis), it is known."""
    vary = tx.parent is not None and any(map(is_whole_number, tx.locals.values()))
    return (vary and run_natively(tx, tx.ip, None, vary=True)) or run_natively(tx, tx.ip, None)
