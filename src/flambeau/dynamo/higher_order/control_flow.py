"""``cond``, ``while_loop``, ``scan`` and ``map`` in captured code: one node each, whose bodies are subgraphs.

A body is traced as the user wrote it; what it reads from outside, operands included, is lifted, and all bodies of a node get the same
operands in the same order. A body with side effects breaks the graph, since it is not run just once.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from flambeau import fx
from flambeau.aot import control_flow as library
from flambeau.aot.stacked_loop import while_loop_stack_output, while_loop_stack_output_op
from flambeau.aot.wrap import invoke_quant, invoke_quant_packed, local_map_hop, wrap
from flambeau.base.compiling import is_exporting

from ..exc import unsupported
from ..graph import tensor_queries
from ..variables.base import Variable
from ..variables.containers.dicts import DictVariable
from ..variables.containers.lists import ListVariable
from ..variables.containers.sequences import TupleVariable
from ..variables.tensors.checks import truth_tensor
from ..variables.tensors.graph_results import Opaque, wrap_result
from ..variables.tensors.tensor import TensorVariable
from ..variables.tensors.torch_functions import special
from ..variables.values.constant import ConstantVariable
from ..variables.values.symbolic import SymbolicVariable
from .subgraphs import Template, Traced, trace_body

__all__ = ["rebuilt"]


def handler(fn: Callable, *names: str):
    """Register ``f(tx, named arguments)`` for calls of the library's ``fn``."""

    def add(f):
        @special(fn.__name__)
        def _(tx, var, args, kwargs):
            if var.value is not fn:
                return None
            with tx.output.recorder.within_operator(fn):
                return f(tx, {**dict(zip(names, args)), **kwargs})

        return f

    return add


def traced(tx, what: str, run: Callable[[list[TensorVariable]], Variable], inputs: list[Any]) -> Traced:
    mark = tx.side_effects.mark()
    before = tensor_queries.grad_enabled()
    try:
        body = trace_body(tx, run, inputs)
    finally:
        tensor_queries.set_grad_enabled(before)
    if tx.side_effects.since(mark):
        unsupported("control-flow", f"{what} has side effects", "How often it runs is known only when the graph runs.")
    if "writes" in body.effects and any(n.meta.get("effects") for n in body.module.graph.nodes if reads_outside(n)):
        unsupported("control-flow", f"{what} writes to what it is given", "Write to a copy of it.")
    return body


def reads_outside(node) -> bool:
    return any(i.op == "placeholder" for i in node._inputs)


def shared_operands(bodies: list[Traced]) -> list[Any]:
    """The nodes outside that the bodies read, each once; every body gets all of them, behind its own inputs, in this order."""
    union = list(dict.fromkeys(n for b in bodies for n in b.lifted))
    for b in bodies:
        graph = b.module.graph
        old = [n for n in graph.nodes if n.op == "placeholder"]
        first = len(old) - len(b.lifted)
        at = dict(zip(b.lifted, old[first:]))
        anchor = next(n for n in graph.nodes if n.op != "placeholder")
        for k, outside in enumerate(union):
            with graph.inserting_before(anchor):
                fresh = graph.placeholder(f"operand_{k}")
            fresh.meta.update(outside.meta)
            if outside in at:
                at[outside].replace_all_uses_with(fresh)
        for n in old[first:]:
            graph.erase_node(n)
        b.module.recompile()
    return union


def rebuilt(template: Any, results: list[Variable]) -> Variable:
    """The variable that a body's result template describes."""
    if hasattr(template, "kind") and hasattr(template, "index") and not isinstance(template, tuple | list):
        return results[template.index]
    if isinstance(template, Opaque):
        return template.variable
    if isinstance(template, list):
        return ListVariable([rebuilt(t, results) for t in template])
    if isinstance(template, tuple):
        return TupleVariable([rebuilt(t, results) for t in template], cls=type(template))
    if isinstance(template, dict):
        return DictVariable({k: (ConstantVariable(k), rebuilt(t, results)) for k, t in template.items()})
    return ConstantVariable(template)


def node_of(tx, op, args: tuple, bodies: list[Traced], kwargs: dict[str, Any] | None = None) -> list[Variable]:
    """The node's results. ``args`` holds nodes and subgraphs' nodes, ``kwargs`` constants."""
    output = tx.output
    shown = fx.map_arg(args, lambda n: n.meta["val"] if n.meta["val"] is not None else owner(output, n))
    value = output.checked_fake(op.__name__, op, shown)
    node = output.recorder.create_node(tx, "call_function", op, args, kwargs or {})
    node.meta["val"] = node.meta["example_value"] = value
    node.meta["effects"] = frozenset().union(*(b.effects for b in bodies)) - {"writes"}
    out = wrap_result(tx, node, value)
    return out.items(tx) if isinstance(out, TupleVariable) else []


def owner(output, node):
    table = output.recorder.levels[-1].attributes if output.recorder.levels else output.recorder.attributes
    return table[node.target]


def undecided(tx, pred: Variable) -> Variable:
    """The predicate of a cond. One about sizes is a tensor in what is exported, so that both branches are there; elsewhere the branch is chosen and
    guarded."""
    v = pred.unwrap()
    if not isinstance(v, SymbolicVariable) or v.number.__sym__ != "bool":
        return pred
    return truth_tensor(tx, v) if is_exporting() else pred


@handler(library.cond, "pred", "true_fn", "false_fn", "operands")
def _(tx, given):
    pred = given["pred"]
    operands = given["operands"].items(tx) if "operands" in given else []
    pred = undecided(tx, pred)
    if not isinstance(pred, TensorVariable):
        return (given["true_fn"] if tx.truth(pred) else given["false_fn"]).call(tx, operands, {})
    if pred.val.numel() != 1:
        tx.raise_user(RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred.val}."))
    bodies = [
        traced(tx, f"{name} of cond", lambda _, f=given[name]: f.call(tx, operands, {}), [])
        for name in ("true_fn", "false_fn")
    ]
    if bodies[0].template != bodies[1].template:
        unsupported(
            "control-flow",
            f"the branches of cond return {bodies[0].template} and {bodies[1].template}",
            "Both have to return tensors of one structure.",
        )
    union = shared_operands(bodies)
    graphs = [tx.output.recorder.add_subgraph(b.module, f"cond_{which}") for b, which in zip(bodies, ("true", "false"))]
    results = node_of(tx, library.cond_op, (pred.node, *graphs, tuple(union)), bodies)
    return rebuilt(bodies[0].template, results)


@handler(library.while_loop, "cond_fn", "body_fn", "carried_inputs")
def _(tx, given):
    return looped(tx, library.while_loop_op, given)


@handler(while_loop_stack_output, "cond_fn", "body_fn", "carried_inputs", "additional_inputs")
def _(tx, given):
    more = given.pop("additional_inputs").items(tx) if "additional_inputs" in given else []
    return looped(tx, while_loop_stack_output_op, given, more)


def looped(tx, op, given, more: Sequence[Variable] = ()) -> Variable:
    """A node of one of the loops of unknown length; both functions get ``more`` behind what is carried."""
    template = Template(tx, callables=False)
    shape = template.of(given["carried_inputs"])
    carried = template.operands
    name = op.__name__
    values = [v.val for v in carried]

    def run(fn, variables):
        return fn.call(tx, [*rebuilt(shape, variables).items(tx), *more], {})

    test = traced(tx, f"cond_fn of {name}", lambda vs: run(given["cond_fn"], vs), values)
    body = traced(tx, f"body_fn of {name}", lambda vs: run(given["body_fn"], vs), values)
    if any(v.requires_grad for v in body.values):
        tx.output.shapes.shape_env()  # the derivative keeps what every turn began with, as many as there are
    union = shared_operands([test, body])
    graphs = [tx.output.recorder.add_subgraph(b.module) for b in (test, body)]
    args = (*graphs, tuple(v.node for v in carried), tuple(union))
    with tx.output.shapes.data_sizes() if op is while_loop_stack_output_op else contextlib.nullcontext():
        return rebuilt(tuple(shape), node_of(tx, op, args, [test, body]))


def scanned(tx, combine, init: Variable, xs: Variable, dim: int, reverse: bool):
    before = Template(tx, callables=False)
    init_shape = before.of(init)
    rows = Template(tx, callables=False)
    xs_shape = rows.of(xs)
    slices = [
        x if not dim else x.call_method(tx, "movedim", [ConstantVariable(dim), ConstantVariable(0)], {})
        for x in rows.operands
    ]
    if any(isinstance(s.val.shape[0], int) and not s.val.shape[0] for s in slices if s.val.ndim):
        unsupported("control-flow", "map or scan over nothing", "What the body returns is known from a first row.")
    firsts = [tx.output.eval_fake(lambda x: x[0], [s.val]) for s in slices]
    n = len(before.operands)

    def run(variables):
        return combine(rebuilt(init_shape, variables[:n]), rebuilt(xs_shape, variables[n:]))

    body = traced(tx, "combine_fn of scan", run, [*(v.val for v in before.operands), *firsts])
    union = shared_operands([body])
    graph = tx.output.recorder.add_subgraph(body.module)
    args = (graph, tuple(v.node for v in before.operands), tuple(s.node for s in slices), tuple(union), reverse)
    results = node_of(tx, library.scan_op, args, [body])
    carry, y = body.template
    return rebuilt((carry, y), results)


@handler(library.scan, "combine_fn", "init", "xs")
def _(tx, given):
    fn = given["combine_fn"]
    dim, reverse = (given[k].as_constant() if k in given else d for k, d in (("dim", 0), ("reverse", False)))
    return scanned(tx, lambda c, x: fn.call(tx, [c, x], {}), given["init"], given["xs"], dim, reverse)


@special("map")
def _(tx, var, args, kwargs):
    if var.value is not library.map:
        return None
    fn, xs, *rest = args

    def combine(carry, x):
        return tx.make_tuple([tx.make_tuple([]), fn.call(tx, [x, *rest], kwargs)])

    return scanned(tx, combine, tx.make_tuple([]), xs, 0, False).items(tx)[1]


@special("wrap", "invoke_quant", "invoke_quant_packed", "local_map_hop")
def _(tx, var, args, kwargs):
    op = var.value
    if op is not wrap and op not in (invoke_quant, invoke_quant_packed, local_map_hop):
        return None
    if not args:
        tx.raise_user(TypeError(f"{op.__name__}() missing 1 required positional argument: 'func'"))
    fn, *given = args
    # The function has the keyword arguments of wrap, the node those of the operators.
    inside, kept = (kwargs, {}) if op is wrap else ({}, {k: v.as_proxy() for k, v in kwargs.items()})
    with tx.output.recorder.within_operator(op):
        body = traced(tx, f"the function under {op.__name__}", lambda _: fn.call(tx, given, inside), [])
    graph = tx.output.recorder.add_subgraph(body.module, f"{op.__name__}_body")
    results = node_of(tx, op, (graph, *body.lifted), [body], kept)
    return rebuilt(body.template, results)
