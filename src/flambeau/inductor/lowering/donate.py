"""Calls that write into an input of the graph, or into an intermediate result, instead of into a copy of it, where the graph does nothing
else with that."""

from __future__ import annotations

import operator
from collections import Counter

from ...base.enums import Out
from ...base.expr import Expr
from ...core.operator import namespace
from ..ir.nodes import BufferKind, ExternCall, dense_strides, loads, stores
from ..passes.decompose import OpCall, OpProgram, rewritten
from .eager_call import call_schema

__all__ = ["donate", "pass_on", "spend", "writing_form"]

_FORMS: dict = {}
_WRITING: dict = {}


def writing_form(op, writing, operands) -> None:
    """``writing`` is ``op`` with one more argument, the positions of results that it writes into its operands and gives as None.
    ``operands(call arguments)``: result -> the operand that it is the new contents of. The last argument of both is a list of
    results for which they may use the operand up, empty by default."""
    _FORMS[op] = writing, operands
    _WRITING[op] = _WRITING[writing] = operands


def spend(steps, lowering) -> None:
    """Let calls take over the memory of intermediate results that nothing else reads. Such a result is allocated by itself, since the new
    contents may outlive the arena."""
    calls = [s for s in steps if isinstance(s, ExternCall) and _form(s) is not None]
    if not calls:
        return
    reading = Counter(name for s in steps for name in (loads(s) if isinstance(s, ExternCall) else set(s.args)))
    kept = {o[1].buffer for o in lowering.outputs if o[0] == Out.SLOT}
    for s in calls:
        writes = sum(name in stores(s) for name in loads(s))
        given = Counter(r.buffer for r in s.inputs)
        spent = []
        for j, slot in _form(s)(*s.data.template).items():
            region = s.inputs[slot.k]
            b = lowering.buffers[region.buffer]
            makers = sum(
                b.name in (stores(o) if isinstance(o, ExternCall) else {n.buffer for n in o.nodes}) for o in steps
            )
            # A kernel has what it stores among its arguments.
            readers = reading[b.name] - sum(
                not isinstance(o, ExternCall) and b.name in {n.buffer for n in o.nodes} for o in steps
            )
            whole = (region.shape, region.strides) == (b.shape, b.strides) == (b.shape, dense_strides(b.shape))
            if (
                b.kind not in (BufferKind.TEMP, BufferKind.OBJECT)
                or not whole
                or type(region.offset) is Expr
                or region.offset
            ):
                continue
            if writes or b.name in kept or given[b.name] != 1 or readers != 1 or makers != 1:
                continue
            if b.kind == BufferKind.TEMP:
                b.kind = BufferKind.OUTPUT
            spent.append(j)
        if spent:
            s.data.template = [*s.data.template[:-1], spent]  # their last argument
            s.data.prepare()


def pass_on(program: OpProgram) -> None:
    """Drop copies of results that nothing else reads: the result itself is the copy."""
    copy = namespace("aten").copy.default
    instead = {}
    for call in program.calls:
        if call.what != "call" or call.target is not copy or len(call.args) != 2 or call.kwargs:
            continue
        source = call.args[1]
        if (
            getattr(source, "target", None) is not operator.getitem
            or source.uses != 1
            or source.args[0].target not in _WRITING
        ):
            continue
        a, b = source.val, call.val
        if (a.shape, a.dtype, a.stride()) == (b.shape, b.dtype, b.stride()):
            instead[call] = source
            source.uses = call.uses
            if isinstance(call.args[0], OpCall):
                call.args[0].uses -= 1
    if instead:
        program.calls = [c for c in program.calls if c not in instead]
        for call in program.calls:
            call.args, call.kwargs = rewritten((call.args, call.kwargs), lambda c: instead.get(c, c))
        program.outputs = rewritten(program.outputs, lambda c: instead.get(c, c))


def _form(step: ExternCall):
    op = step.data.call.args[0] if getattr(getattr(step.data, "call", None), "func", None) is call_schema else None
    return _WRITING.get(op) if op is not None else None


def donate(program: OpProgram, output_aliases: dict[int, int]) -> set[int]:
    """Change the program where this is possible; the positions of outputs that lie in their inputs then. ``output_aliases``: see compile_graph."""
    if not any(call.target in _FORMS for call in program.calls if call.what == "call"):
        return set()
    inputs = [call for call in program.calls if call.what == "input"]
    copy = namespace("aten").copy.default
    done, over = set(), {}
    for position, k in output_aliases.items():
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
