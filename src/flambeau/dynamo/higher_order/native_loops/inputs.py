"""How :mod:`flambeau.loops` asks for what a loop reads: locals, globals, cells, attributes and functions of the frame."""

from __future__ import annotations

import functools

import numpy as np

from flambeau.loops import operator
from flambeau.loops.inlining import Callee
from flambeau.loops.operands import Inputs
from flambeau.loops.values import COLLECTED, Declined, NoValue, Symbolic

from ...bytecode.instructions import decode, live_locals
from ...config import config
from ...rules.trace_rules import inline_reason
from ...variables.functions.nested_functions import NestedFunctionVariable
from ...variables.functions.python_functions import UserFunctionVariable
from ...variables.values.constant import ConstantVariable
from .described import container, describe, is_whole_number
from .elements import told
from .notes import key_of
from .shared_memory import guarded_number
from .trips import Elements, Ends

__all__ = ["inputs_of"]


def inputs_of(tx, header: int, operands: dict, trip: Ends | Elements | None, first: bool, vary: bool) -> Inputs:
    """How flambeau.loops asks for what the loop reads."""
    live = live_locals(tx.code, header)
    count = trip and trip.turns()

    def described(v):
        return describe(tx, operands, v)

    def local(name):
        missing = name not in tx.locals or tx.locals[name] is None
        if missing or (name not in live and name != COLLECTED):
            raise NoValue
        v = tx.realize(tx.locals[name])
        if vary and is_whole_number(v):
            return Symbolic(ConstantVariable(v.as_constant()), np.dtype(np.int64))
        return container(v, described) or described(v)

    def function(known):
        f = known.origin
        nested = isinstance(f, NestedFunctionVariable)
        if not nested and (not isinstance(f, UserFunctionVariable) or not inline_reason(f.fn).inlined):
            raise Declined(f"a call of {getattr(known.value, '__qualname__', known.value)}")
        frame = tx.frame_of(f, {})
        named = f.code.co_varnames[: f.code.co_argcount]
        defaults = f.defaults(tx)
        return Callee(
            f.code,
            frame.insts,
            lambda name: described(frame.load_global(name)),
            lambda name: described(_in_cell(frame, name)),
            {
                name: functools.partial(described, v)
                for name, v in (*zip(named[len(named) - len(defaults) :], defaults), *f.kwdefaults(tx).items())
            },
        )

    return Inputs(
        local=local,
        load_global=lambda name: described(tx.load_global(name)),
        deref=lambda name: described(_in_cell(tx, name)),
        attribute=lambda known, name: described(known.origin.getattr(tx, name)),
        function=function,
        trip=told(trip),
        constants=tx.code.co_consts,
        rerunnable=first,
        turns=None if count is None else lambda period: _remainder(count, period),
        nested=decode,
        collects=COLLECTED in tx.locals,
        live=live_locals,
        tells_wrapping=config.numpy_floating_point_errors == "exact",
        reshapes=operator.SITES[key_of(tx, header)].reshapes,
    )


def _in_cell(frame, name: str):
    """What a variable holds that functions share."""
    if name not in frame.cells:
        raise Declined(f"a function within shares {name}, an argument")
    return frame.cells[name].get(frame)


def _remainder(count, period: int) -> int:
    return guarded_number(count % period)
