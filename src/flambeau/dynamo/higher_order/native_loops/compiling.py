"""A loop compiled by :mod:`flambeau.loops`, with a tape where a gradient is asked for."""

from __future__ import annotations

import functools
from typing import Any

from flambeau.loops.compile import compile_region
from flambeau.loops.operands import Inputs
from flambeau.loops.values import DONE, Declined

from ....base.records import slotted
from ...bytecode.instructions import live_locals
from ..compiled_regions import CompiledRegions
from .shared_memory import refuse_shared_memory

__all__ = ["Compiled", "compile_loop"]


@slotted(frozen=False)
class Compiled:
    """A loop that flambeau.loops has compiled, with what is around it in the program."""

    done: Any
    recorded: Any
    """The same loop with a tape, where a gradient is asked for."""
    first: bool
    """Whether nothing has happened in the graph before it."""
    key: str
    where: str


def compile_loop(tx, header: int, operands: dict, inputs: Inputs):
    """(the loop, the same with a tape or None). Declined for one that stays Python."""
    options = tx.output.compiler.options
    fast, spread, reordered = (
        bool(options.get("fastmath")),
        options.get("parallel") is not False,
        options.get("parallel"),
    )

    def compiled(spread, tape=False, inputs=inputs):
        live = functools.partial(live_locals, tx.code)
        return compile_region(tx.insts, header, inputs, live, fast, spread, tape, reordered is True)

    if tx.parent is not None and inputs.trip is None and not inputs.collects:
        key = tx.code, header, fast, spread, reordered, inputs.rerunnable, inputs.reshapes
        tx.output.regions = tx.output.regions or CompiledRegions()
        done = tx.output.regions.compiled(key, inputs, lambda heard: compiled(spread, inputs=heard))
    else:
        done = compiled(spread)
    if not done.arrays and not done.grown and all(name == DONE for name, *_ in done.results):
        raise Declined("it computes nothing")
    refuse_shared_memory([operands[id(node)] for node in done.arrays], done.written)
    asked = any(operands[id(node)].val.requires_grad for node in done.arrays)
    if not asked and not tx.output.modes.transforms:
        return done, None
    try:
        return _with_tape(done, lambda tape: compiled(False, tape))
    except Declined:
        if asked:
            raise
    return done, None


def _with_tape(done, compiled):
    """(the loop, the same with a tape), which are called with the same numbers. Declined where a gradient can't be taken."""
    if done.drawn:
        raise Declined("a gradient is asked for, and the loop draws random numbers")
    if any(weak is True and dtype.kind == "f" for _, dtype, weak in done.results):
        raise Declined("a gradient is asked for, and the loop computes a float of Python's")
    done, recorded = compiled(False), compiled(True)
    if any(len(getattr(done, what)) != len(getattr(recorded, what)) for what in ("arrays", "ints", "floats")):
        raise Declined("a gradient is asked for, and the loop reads other numbers then")
    return done, recorded
