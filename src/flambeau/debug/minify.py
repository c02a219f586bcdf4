"""Make a failing graph small: fewer operators, and concrete values in the place of those that are not needed to make it fail.

A candidate is described by the node whose value is wanted and the nodes that are kept; what kept nodes read from others becomes an input
with the value that it had. The search is ddmin over the kept nodes (Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing
Input", 2002), after the shortest failing prefix was found by bisection.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flambeau as torch
from flambeau.fx import Graph, GraphModule, Interpreter

from .compare import clone_inputs

__all__ = ["extract", "first", "minify", "node_values", "prefix_leaves"]


class _Recording(Interpreter):
    """Keeps a copy of every value as it was when it was made: later operators may write to it."""

    def __init__(self, gm):
        super().__init__(gm)
        self.values: dict[Any, Any] = {}

    def run_node(self, n):
        out = super().run_node(n)
        self.values[n] = out.detach().clone() if isinstance(out, torch.Tensor) else out
        return out


def node_values(gm: GraphModule, inputs) -> dict[Any, Any]:
    """The value of each node when the graph runs on copies of ``inputs``."""
    run = _Recording(gm)
    with torch.no_grad():
        run.run(*clone_inputs(inputs))
    return run.values


def extract(gm: GraphModule, wanted: list, keep: set, values: dict) -> tuple[GraphModule, list[Any]]:
    """A graph that computes the nodes ``wanted`` with the operators in ``keep``, and its inputs taken from ``values``."""
    graph, copies, inputs = Graph(), {}, []
    needed, stack = set(), list(wanted)
    while stack:
        n = stack.pop()
        if n not in needed:
            needed.add(n)
            if n in keep:
                stack.extend(n.all_input_nodes)
    order = [n for n in gm.graph.nodes if n in needed]
    for n in order:
        if n.op != "get_attr" and n not in keep:
            copies[n] = graph.placeholder(n.name)
            copies[n].meta = dict(n.meta)
            inputs.append(values[n])
    for n in order:
        if n not in copies:
            copies[n] = graph.node_copy(n, copies.__getitem__)
    graph.output(tuple(copies[n] for n in wanted))
    return GraphModule(gm, graph), inputs


def prefix_leaves(nodes: list) -> list:
    """Those of ``nodes`` that no other of them reads: a graph that computes them computes all."""
    read = {m for n in nodes for m in n.all_input_nodes}
    return [n for n in nodes if n not in read]


def _calls(gm) -> list:
    return [n for n in gm.graph.nodes if n.op.startswith("call")]


def first(nodes: list, fails: Callable[[int], bool]) -> int | None:
    """The least ``k`` for which ``fails(k)`` holds, by bisection (when it holds for k it is taken to hold for all later ones);
    None when it doesn't hold for the last."""
    if not nodes or not fails(len(nodes) - 1):
        return None
    lo, hi = 0, len(nodes) - 1
    while lo < hi:
        mid = (lo + hi) // 2
        if fails(mid):
            hi = mid
        else:
            lo = mid + 1
    return lo


def minify(gm: GraphModule, inputs, fails: Callable, report: Callable[[str], None] = lambda text: None):
    """``(smaller graph module, its inputs)`` for which ``fails(gm, inputs)`` still holds.

    RuntimeError when it doesn't hold for the graph that was given. ``report`` gets a line for each step.
    """
    inputs = list(inputs)
    if not fails(gm, clone_inputs(inputs)):
        raise RuntimeError("the graph does not fail, so there is nothing to make smaller")
    values = node_values(gm, inputs)
    calls = _calls(gm)
    tensors = [n for n in calls if isinstance(values.get(n), torch.Tensor)]

    def candidate(wanted, keep) -> bool:
        small, args = extract(gm, wanted, keep, values)
        return fails(small, clone_inputs(args))

    def usable(n) -> bool:  # as an input of the script
        return isinstance(values.get(n), (torch.Tensor, int, float, bool))

    at = first(tensors, lambda k: candidate(prefix_leaves(tensors[: k + 1]), set(calls)))
    if at is None or not candidate([tensors[at]], set(calls)):
        report("only the whole graph fails: nothing was taken away")
        return gm, inputs
    target = tensors[at]
    keep = _reachable(target, set(calls))
    report(f"{len(calls)} operators; the first {len(keep)} that lead to {target.name} fail")
    width = max(len(keep) // 2, 1)
    while True:
        ordered = [n for n in calls if n in keep and n is not target]
        shrunk = False
        for i in range(0, len(ordered), width):
            less = keep - set(ordered[i : i + width])
            # A node with several results can't be an input: keep it as long as somebody kept reads it.
            less = _reachable(
                target, less | {n for m in less for n in m.all_input_nodes if n in keep and not usable(n)}
            )
            if len(less) < len(keep) and candidate([target], less):
                keep, shrunk = less, True
                report(f"{len(keep)} operators")
                break
        if not shrunk:
            if width == 1:
                break
            width = max(width // 2, 1)
    return extract(gm, [target], keep, values)


def _reachable(target, keep: set) -> set:
    """Those of ``keep`` that ``target`` is computed from through others of them."""
    out, stack = set(), [target]
    while stack:
        n = stack.pop()
        if n in keep and n not in out:
            out.add(n)
            stack.extend(n.all_input_nodes)
    return out
