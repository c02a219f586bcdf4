"""Calls that write into an input of the graph instead of into a copy of it, where the graph does nothing else with that input."""

from __future__ import annotations

import operator

from ..core.operator import namespace
from .opening import Program

__all__ = ["donate", "writing_form"]

_FORMS: dict = {}


def writing_form(op, writing, operands) -> None:
    """``writing`` is ``op`` with one more argument, the positions of results that it writes into its operands and gives as None.
    ``operands(call arguments)``: result -> the operand that it is the new contents of."""
    _FORMS[op] = writing, operands


def donate(program: Program, onto: dict[int, int]) -> set[int]:
    """Change the program where this is possible; the positions of outputs that lie in their inputs then. ``onto``: see compile_graph."""
    if not any(call.target in _FORMS for call in program.calls if call.what == "call"):
        return set()
    inputs = [call for call in program.calls if call.what == "input"]
    copy = namespace("aten").copy.default
    done, over = set(), {}
    for position, k in onto.items():
        out, given, reads = program.outputs[position], inputs[k], 1
        passed = []
        if getattr(out, "target", None) is copy and out.args[0] is given and len(out.args) == 2 and not out.kwargs:
            passed.append(out)
            out, reads = out.args[1], 2
        if getattr(out, "target", None) is not operator.getitem:
            continue
        call, j = out.args
        if call.target not in _FORMS or given.uses != reads or any(c.uses != 1 for c in (out, *passed)):
            continue
        same = (out.val.shape, out.val.dtype) == (given.val.shape, given.val.dtype)
        if not same or _FORMS[call.target][1](*call.args).get(j) is not given:
            continue
        over.setdefault(id(call), (call, []))[1].append(j)
        program.outputs[position] = None
        done.add(position)
        gone = {id(c) for c in (out, *passed)}
        program.calls = [c for c in program.calls if id(c) not in gone]
        given.uses = 1
    for call, results in over.values():
        call.target = _FORMS[call.target][0]
        call.args = [*call.args, sorted(results)]
        call.val = [None if j in results else v for j, v in enumerate(call.val)]
    return done
