"""``invoke_subgraph``: a body that several nodes call, traced, differentiated and compiled once.

``invoke_subgraph(body, name, *operands)`` runs ``body(*operands)``, which returns a tuple of tensors and has no effects (who makes the node sees to
that). Where a gradient is recorded the body is cut into a forward and a backward body, once for each description of its operands, and both
are nodes of the same operator; a body that can't be cut (it returns its operands, or draws) is decomposed.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from .. import _C
from ..autograd.function import Function
from ..base.records import slotted
from ..base.shapes import is_dense
from ..base.symint import is_symbolic
from ..core import modes
from ..core.higher_order import HigherOrderOperator
from ..core.operator import namespace
from ..fake import FakeTensorMode
from ..fx import GraphModule, Node
from ..proxy import ProxyTorchDispatchMode
from .facts import Computed
from .partitioners import min_cut_rematerialization_partition
from .tracing import trace, trace_subgraph

__all__ = ["invoke_subgraph"]

aten = namespace("aten")
invoke_subgraph = HigherOrderOperator("invoke_subgraph")


@invoke_subgraph.rule("eager")
def _(op, body, name, *operands):
    return tuple(body(*operands))


@invoke_subgraph.rule("vmap")
def _(op, body, name, *operands):
    return tuple(body(*operands))


@invoke_subgraph.rule("prepared")
def _(template):
    """The call in a compiled graph: straight to the body, whose results are dense and its own (:func:`apart`)."""
    (body, _, *slots), _ = template
    places = [getattr(s, "k", -1) for s in slots]
    if any(k < 0 for k in places):
        return None
    if places == list(range(len(places))):
        return lambda *given: list(body(*given[: len(places)]))
    return lambda *given: list(body(*[given[k] for k in places]))


@invoke_subgraph.rule(FakeTensorMode)
def _(op, mode, body, name, *operands):
    with mode:
        return tuple(body(*operands))


def describe(x: Any) -> Any:
    if isinstance(x, _C.TensorBase):
        return tuple(x._shape), tuple(x._strides), x._dtype, x._device, x._requires_grad
    return x


def remembered(mode, kind: str, body: Callable, operands, make: Callable[[], Any]) -> Any:
    """``make()`` once for each description of the operands, while the trace of ``mode`` lasts."""
    table = mode.__dict__.setdefault("regions", {})
    known = isinstance(body, GraphModule) and body.meta.get("functional")
    key = kind, id(body), None if known and kind == "node" else tuple(map(describe, operands))
    if key not in table:
        table[key] = body, make()  # with the body, so that the id stays its own
    return table[key][1]


@invoke_subgraph.rule(ProxyTorchDispatchMode)
def _(op, mode, body, name, *operands):
    def make() -> tuple[Node, str, list, GraphModule]:
        if isinstance(body, GraphModule) and body.meta.get("functional"):
            gm, lifted = body, []
        else:
            traced = trace_subgraph(mode, body, list(operands))
            lifted = traced.lifted
            gm = traced.module(lifted)
            apart(gm)
            gm.meta["functional"] = not lifted
        name = f"region_{sum(k.startswith('region_') for k in mode.constants)}"
        mode.constants[name] = gm
        node = mode.graph.create_node("get_attr", name, name=name)
        node.meta["val"] = None
        return node, name, lifted, gm

    graph, name, lifted, gm = remembered(mode, "node", body, operands, make)
    out = tuple(op(gm, name, *operands, *lifted))
    args = mode.argument((graph, name, *operands, *lifted))
    mode.track_result(out, mode.graph.create_node("call_function", op, args))
    return out


# -- derivatives --


@slotted(frozen=False)
class Cut:
    """``forward(*operands)`` gives ``n`` results and what ``backward`` gets before the cotangents, of which there is one for each of the results
    ``tangent_of``; ``kept``: operands (by number) and further results of ``forward`` (None), in the order in which ``backward`` wants them.
    ``grads``: which operands get a cotangent."""

    forward: GraphModule
    backward: GraphModule
    n: int
    tangent_of: list[int]
    kept: list[int | None]
    grads: list[bool]


def cut(body: Callable, operands) -> Cut | None:
    """The two halves of a body; None when it has to be decomposed."""
    if any(isinstance(x, _C.TensorBase) and (is_symbolic(x._shape) or is_symbolic(x._strides)) for x in operands):
        return None
    with modes.disabled("dispatch"):
        traced = trace(lambda *xs: list(body(*xs)), list(operands), joint=True)
        plain = all(type(o) is Computed for o in traced.outputs)
        if not traced.joint or traced.mutated or traced.random or traced.reshaped or not plain:
            return None
        inputs = (traced.fake_inputs, traced.fake_tangents)
        forward, backward = min_cut_rematerialization_partition(traced.gm, inputs, num_fwd_outputs=traced.num_forward)
    if [o.index for o in traced.outputs] != list(range(traced.num_forward)):
        return None
    given = [n for n in forward.graph.nodes if n.op == "placeholder"]
    results = list(forward.graph.output_node().args[0])
    if len(given) != len(operands):
        return None
    saved = results[traced.num_forward :]
    for s, taken in zip(saved, [n for n in backward.graph.nodes if n.op == "placeholder"]):
        viewed_again(backward, taken, s)
    roots = [root(s) for s in saved]
    if not all(
        is_dense(n.meta["val"]._shape, n.meta["val"]._strides) for n in (*results[: traced.num_forward], *roots)
    ):
        return None
    kept = [given.index(r) if r in given else None for r in roots]
    returns(forward, [*results[: traced.num_forward], *(r for r in roots if r not in given)])
    grads = backward.graph.output_node().args[0]
    returns(backward, [g for g in grads if g is not None])
    for gm in (forward, backward):
        apart(gm)
        gm.meta["functional"] = True
    return Cut(forward, backward, traced.num_forward, traced.tangent_of, kept, [g is not None for g in grads])


def root(n: Node) -> Node:
    """What a node is a view of, in the end."""
    while n.op == "call_function" and n.args and isinstance(n.args[0], Node):
        source = n.args[0] if n.target is operator.getitem else n
        if not getattr(getattr(source.target, "_schema", None), "is_view", False):
            break
        n = source.args[0]
    return n


def viewed_again(backward: GraphModule, taken: Node, saved: Node) -> None:
    """The backward body gets what ``saved`` is a view of in its place, and makes the view itself."""
    end = root(saved)
    chain = []
    while saved is not end:
        chain.append(saved)
        saved = saved.args[0]
    if not chain:
        return
    users = list(taken.users)
    taken.meta["val"] = end.meta["val"]
    first = next(n for n in backward.graph.nodes if n.op != "placeholder")
    made = taken
    with backward.graph.inserting_before(first):
        for n in reversed(chain):
            before = made
            made = backward.graph.node_copy(n, lambda x, before=before: before)
    for u in users:
        u.replace_input_with(taken, made)


def returns(gm: GraphModule, results: list) -> None:
    output = gm.graph.output_node()
    output.args = (tuple(results),)
    output.meta["val"] = tuple(n.meta["val"] if isinstance(n, Node) else n for n in results)


def apart(gm: GraphModule) -> None:
    """Every result of the body is a dense tensor in memory of its own, which callers need not check."""
    seen = {n for n in gm.graph.nodes if n.op == "placeholder"}
    output = gm.graph.output_node()
    results = []
    for n in output.args[0]:
        if isinstance(n, Node):
            value, source = n.meta["val"], root(n)
            if source in seen or not is_dense(value._shape, value._strides):
                with gm.graph.inserting_before(output), value.fake_mode:
                    n = gm.graph.call_function(aten.clone.default, (n,))
                    n.meta["val"] = aten.clone.default(value)
                source = n
            seen.add(source)
        results.append(n)
    returns(gm, results)
    gm.recompile()


def as_traced(ct, like):
    """The cotangent in the layout that the backward body was traced with: one that was expanded becomes dense."""
    if tuple(ct._strides) == tuple(like._strides):
        return ct
    return aten.copy_.default(aten.new_empty_strided.default(ct, list(like._shape), list(like._strides)), ct)


class RegionFunction(Function):
    @staticmethod
    def forward(ctx, halves, *operands):
        ctx.halves = halves
        out = invoke_subgraph(halves.forward, "forward", *operands)
        more = iter(out[halves.n :])
        ctx.save_for_backward(*(next(more) if i is None else operands[i] for i in halves.kept))
        return tuple(out[: halves.n])

    @staticmethod
    def backward(ctx, *cts):
        halves = ctx.halves
        given = [n.meta["val"] for n in halves.backward.graph.nodes if n.op == "placeholder"][len(halves.kept) :]
        tangents = [as_traced(cts[k], like) for k, like in zip(halves.tangent_of, given)]
        grads = invoke_subgraph(halves.backward, "backward", *ctx.saved_tensors, *tangents)
        left = iter(grads)
        return (None, *(next(left) if has else None for has in halves.grads))


@invoke_subgraph.rule("autograd")
def _(op, body, name, *operands):
    mode = next((m for m in modes.dispatch_stack() if isinstance(m, ProxyTorchDispatchMode)), None)
    halves = None
    if mode is not None:
        halves = remembered(mode, "halves", body, operands, lambda: cut(body, operands))
    return tuple(body(*operands)) if halves is None else RegionFunction.apply(halves, *operands)
