"""Functions under ``nested_compile_region``: each call is a node ``invoke_subgraph`` whose body equal calls share, so that it is compiled once.

The body is traced like any inlined code, into a graph of its own; what it reads from outside is lifted. When what it did can't be a body (it
wrote, drew, changed something of the program, returned what it was given, has sizes that vary) its nodes are moved into the graph around it, and
nothing differs from ordinary inlining.
"""

from __future__ import annotations

import operator
import types
from typing import Any

from flambeau import _C, fx
from flambeau.aot.regions import describe, invoke_subgraph
from flambeau.base.shapes import is_dense

from ..exc import UserRaises
from ..graph.captured_graph import CapturedGraph
from ..rules.reflect import name_of
from ..variables.base import Variable
from ..variables.tensors.graph_results import Opaque, wrap_result
from ..variables.tensors.tensor import TensorVariable
from .control_flow import rebuilt
from .subgraphs import Level, Slot, Template, as_results

__all__ = ["NestedRegionVariable", "call_region"]


def call_region(tx, run, args: list[Variable], kwargs: dict[str, Variable]) -> Variable:
    """``run(tx, args, kwargs)``, which inlines the function, as a region."""
    output = tx.output
    level = Level(CapturedGraph())
    mark = output.side_effects.mark()
    try:
        with output.recorder.entered(level):
            result = run(tx, args, kwargs)
    except UserRaises:
        output.side_effects.since(mark)
        opened(output, level)
        raise
    changed = output.side_effects.since(mark)
    template = Template(tx, callables=False)
    shape = (
        as_results(template.of(result)) if not changed and output.shapes.env is None and may_be_body(level) else None
    )
    if shape is None or not plain(shape) or not apart(level, template.operands):
        opened(output, level)
        return result
    with output.recorder.entered(level):
        level.graph.output(tuple(output.recorder.lift(v.node) for v in template.operands))
    values = tuple(v.val for v in template.operands)
    body, name = shared(output, level)
    node = output.recorder.create_node(tx, "call_function", invoke_subgraph, (body, name, *level.lifted), {})
    node.meta["val"] = node.meta["example_value"] = values
    node.meta["effects"] = frozenset()
    results = wrap_result(tx, node, values).items(tx)
    return rebuilt(shape, results)


class NestedRegionVariable(Variable):
    """A function that became a region while tracing."""

    def __init__(self, maker: types.FunctionType, fn: Variable):
        super().__init__()
        self.maker, self.fn = maker, fn

    def python_type(self):
        return types.FunctionType

    def truth(self, tx):
        return True

    def call(self, tx, args, kwargs):
        return call_region(tx, self.fn.call, args, kwargs)

    def getattr(self, tx, name):
        return self.fn if name == "__wrapped__" else self.fn.getattr(tx, name)

    def reconstruct(self, cg):
        cg.call_function(self.maker, lambda: cg(self.fn), 1)


def may_be_body(level: Level) -> bool:
    calls = [n for n in level.graph.nodes if n.op.startswith("call")]
    return bool(calls) and not any(n.meta.get("effects", True) for n in calls if n.target is not operator.getitem)


def plain(shape: Any) -> bool:
    """Whether a result consists of tensors and constants."""
    if isinstance(shape, (list, tuple)):
        return all(map(plain, shape))
    if isinstance(shape, dict):
        return all(map(plain, shape.values()))
    return not isinstance(shape, Opaque)


def apart(level: Level, results: list[TensorVariable]) -> bool:
    """Whether the results are dense tensors that the body made, in memory of their own."""
    if not results or any(type(v) is not TensorVariable or v.node.graph is not level.graph for v in results):
        return False
    memory = {id(n.meta["val"]._storage) for n in level.lifted if isinstance(n.meta["val"], _C.TensorBase)}
    own = [id(v.val._storage) for v in results]
    dense = all(is_dense(v.val._shape, v.val._strides) for v in results)
    return dense and len(set(own)) == len(own) and memory.isdisjoint(own)


def opened(output, level: Level) -> None:
    """Move the nodes of the level to the graph being made; variables that stand for them stay valid."""
    outside = {inside: node for node, inside in level.lifted.items()}
    names = {}
    table = output.recorder.levels[-1].attributes if output.recorder.levels else output.recorder.attributes
    for name, module in level.attributes.items():
        names[name] = f"body_{len(table)}"
        table[names[name]] = module
    for n in list(level.graph.nodes):
        if n.op == "placeholder":
            continue
        for old in list(n._inputs):
            if old in outside:
                n.replace_input_with(old, output.recorder.lift(outside[old]))
        if n.op == "get_attr":
            n.target = names[n.target]
        output.recorder.graph.adopt(n)
        if output.recorder.first_call is None and not output.recorder.levels:
            output.recorder.first_call = n


def shared(output, level: Level) -> tuple[Any, str]:
    """The get_attr node and the name of the body: an equal one that the graph has already, or this."""
    found = getattr(output.recorder.graph, "bodies", None)
    if found is None:
        found = output.recorder.graph.bodies = {}
    key = signature(level)
    if key not in found:
        module = fx.GraphModule(level.attributes, level.graph)
        node = output.recorder.add_subgraph(module)
        found[key] = node, key
    return found[key][0], found[key][0].target


class Same:
    """An object in a signature: equal to itself alone."""

    def __init__(self, value: Any):
        self.value = value

    def __hash__(self):
        return id(self.value)

    def __eq__(self, other):
        return isinstance(other, Same) and other.value is self.value


def signature(level: Level) -> tuple:
    """What two bodies have in common when one can stand for the other: operations, constants, and shapes of what goes in."""
    number = {n: i for i, n in enumerate(level.graph.nodes)}

    def part(x):
        if isinstance(x, fx.Node):
            return Slot("node", number[x])
        if isinstance(x, (tuple, list)):
            return name_of(type(x)), tuple(map(part, x))
        if isinstance(x, dict):
            return "dict", tuple((k, part(v)) for k, v in x.items())
        if isinstance(x, slice):
            return "slice", part(x.start), part(x.stop), part(x.step)
        if type(x) in (int, bool, str, type(None)):
            return type(x), x
        if type(x) in (float, complex):
            return type(x), repr(x)
        return Same(x)

    rows = []
    for n in level.graph.nodes:
        if n.op == "placeholder":
            value = n.meta.get("val")
            rows.append((n.op, describe(value) if isinstance(value, _C.TensorBase) else Same(n)))
        elif n.op == "get_attr":
            rows.append((n.op, Same(level.attributes[n.target])))
        else:
            target = n.target if isinstance(n.target, str) else Same(n.target)
            rows.append((n.op, target, part(n._args), part(n._kwargs)))
    return tuple(rows)
