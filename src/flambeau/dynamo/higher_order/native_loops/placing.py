"""The node of a compiled loop, and what the frame has behind it: arrays written over, locals, containers and what is returned."""

from __future__ import annotations

from flambeau.loops import operator
from flambeau.loops.region import find
from flambeau.loops.values import ContainerType, Known, TupleType

from ...guards.source import ConstSource, GetAttrSource
from ...variables.base import Variable
from ...variables.containers.lists import ListVariable
from ...variables.containers.sequences import TupleVariable
from ...variables.numpy.ndarray import as_ndarray
from ...variables.values.constant import ConstantVariable
from ...variables.values.graph_numbers import NumberVariable, complex_of
from ...variables.values.symbolic import SymbolicVariable
from .compiling import Compiled
from .grown import GrownVariable, grown

__all__ = ["call_loop", "place_results", "returned"]


def call_loop(tx, loop: Compiled, operands: list) -> list:
    """The node of the loop: its results, those written over first."""
    done, output = loop.done, tx.output
    site = ConstSource(operator.SITES[loop.key], f"loop {loop.key}")
    output.guard(GetAttrSource(site, "native"), "EQUALS_MATCH", True)
    output.guard(GetAttrSource(site, "reshapes"), "EQUALS_MATCH", operator.SITES[loop.key].reshapes)
    output.draws = output.draws or bool(done.drawn)
    given = list(operands)
    if loop.recorded is not None:  # a derivative needs them as they were
        for n in done.written:
            given[n] = output.call_in_graph(tx, "call_method", "clone", [operands[n]], {})
    cached = output.compiler.options.get("cache") is not False
    program = operator.program(done, loop.first, cached, loop.recorded, loop.key)
    return output.call_in_graph(
        tx,
        "call_function",
        operator.drawing_loop if done.drawn else operator.loop,
        [
            ListVariable(given),
            ListVariable([n if isinstance(n, Variable) else ConstantVariable(n) for n in done.ints]),
            ListVariable([x if isinstance(x, SymbolicVariable) else ConstantVariable(x) for x in done.floats]),
            ConstantVariable(program),
        ],
        {},
    ).items(tx)


def place_results(tx, loop: Compiled, operands: list, outs: list, header: int) -> None:
    """Arrays that were written over, and the locals behind the loop."""
    done = loop.done
    for n, new in zip(done.written, outs):
        operands[n].setitem(tx, ConstantVariable(...), as_ndarray(new, scalar=False))
    before = dict(tx.locals)
    for name in find(tx.insts, header).assigned(tx.insts):
        tx.locals.pop(name, None)
    rest = iter(outs[len(done.written) :])
    for name, n in done.same:
        tx.locals[name] = operands[n]
    for name, _ in done.fresh:
        tx.locals[name] = as_ndarray(next(rest), scalar=False)
    for name, dtype, weak in done.results:
        out = next(rest)
        if dtype.kind == "c":
            out = tx.output.call_in_graph(tx, "call_function", complex_of, [out, next(rest)], {})
        if weak is None and loop.recorded is not None and dtype.kind == "f":
            next(rest)  # whose number it is doesn't matter where gradients go through it: NumPy's
            tx.locals[name] = as_ndarray(out)
        elif weak is not False:
            kind = {"b": bool, "i": int, "u": int, "f": float, "c": complex}[dtype.kind]
            tx.locals[name] = NumberVariable(out.node, out.val, kind, next(rest).node if weak is None else None)
        else:
            tx.locals[name] = as_ndarray(out)
    for made in done.grown:
        name = made.name
        if not made.given:
            tx.locals[name] = GrownVariable()
        grown(tx.realize(before[name]) if made.given else tx.locals[name], next(rest), made.kind, name in done.behind)
    for name, of in done.held:
        tx.locals[name] = before[of]
    for name, t in done.tuples:
        tx.locals[name] = returned(tx, name, t)


def returned(tx, name: str, t):
    """What the loop returns from the function."""
    if isinstance(t, TupleType):
        items = [returned(tx, f"{name}.{k}", item) for k, item in enumerate(t.items)]
        return ListVariable(items) if t.listed else TupleVariable(items)
    if isinstance(t, ContainerType):
        return tx.locals[name]
    if isinstance(t, Known):
        return t.origin if t.origin is not None else tx.wrap_known(t.value)
    return tx.locals.pop(name)
