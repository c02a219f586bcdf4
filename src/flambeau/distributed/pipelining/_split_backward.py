"""A backward in two parts: the gradients of the inputs now, those of the parameters later (the zero-bubble schedules).

A node on a path from the roots to an input from which a parameter's path leaves is a *fork*. The first part keeps the gradients that come to the
forks; the second starts from them. Where a parameter is reached from a fork along both ways (it is used twice), that would count its gradient twice:
such graphs are not split."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...autograd import backward, grad
from ...autograd.graph import GradientEdge, get_gradient_edge

__all__ = ["Later", "input_gradients", "weight_gradients"]


class _Fork(NamedTuple):
    edges: tuple[GradientEdge, ...]
    leaves: tuple[Any, ...]


class Later(NamedTuple):
    """What the second part starts from: (edges or tensors, gradients, leaves)."""

    passes: list[tuple[list, list, list | None]]


def _next(node) -> list:
    return [n for n, _ in node.next_functions if n is not None]


def _order(roots: list) -> list:
    """Nodes below the roots, each behind those that it leads to."""
    out, seen, stack = [], set(), [(r, False) for r in roots]
    while stack:
        node, left = stack.pop()
        if left:
            out.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack += [(n, False) for n in _next(node)]
    return out


def _forks(roots: list, inputs: list) -> tuple[list[_Fork], bool]:
    """The forks, and whether the graph can be split at them."""
    ends = {get_gradient_edge(t).node for t in inputs}
    order = _order([t.grad_fn for t in roots])
    below: dict[Any, set] = {}
    # Leaves that a node of a path reaches along paths.
    on_path: dict[Any, set] = {}
    forks, split = [], True
    entries: dict[Any, set[int]] = {}
    for node in order:
        for n, k in node.next_functions:
            if n is not None:
                entries.setdefault(n, set()).add(k)
    for t in roots:
        edge = get_gradient_edge(t)
        entries.setdefault(edge.node, set()).add(edge.output_nr)
    for node in order:
        following = _next(node)
        leaf = hasattr(node, "variable")
        if node in ends:
            on_path[node] = below[node] = set()
            continue
        below[node] = {node} if leaf else set().union(*(below[n] for n in following))
        paths = [n for n in following if n in on_path]
        if not paths:
            continue
        along = set().union(*(on_path[n] for n in paths))
        aside = set().union(*(below[n] for n in following if n not in on_path)) - ends
        if aside:
            split = split and not aside & along
            forks.append(_Fork(tuple(GradientEdge(node, k) for k in sorted(entries[node])), tuple(aside)))
        on_path[node] = along | aside
    return forks, split and all(get_gradient_edge(t).node in on_path for t in roots)


def input_gradients(roots: list, gradients: list, inputs: list) -> tuple[list, Later]:
    """The gradients of ``inputs`` (None where there is none), and what the second part needs."""
    if not inputs:
        return [], Later([(roots, gradients, None)] if roots else [])
    # Inputs that are handed on as they are have no node.
    for t, g in zip(roots, gradients):
        if t.is_leaf:
            backward(t, g)
    inner = [(t, g) for t, g in zip(roots, gradients) if not t.is_leaf]
    if not inner:
        return [t.grad for t in inputs], Later([])
    roots, gradients = map(list, zip(*inner))
    forks, split = _forks(roots, inputs)
    if not split:
        backward(roots, gradients)
        return [t.grad for t in inputs], Later([])
    edges = [e for fork in forks for e in fork.edges]
    found = list(grad(roots, [*inputs, *edges], gradients, retain_graph=True, allow_unused=True))
    own, rest = found[: len(inputs)], found[len(inputs) :]
    passes = []
    for fork in forks:
        here, rest = rest[: len(fork.edges)], rest[len(fork.edges) :]
        given = [(e, g) for e, g in zip(fork.edges, here) if g is not None]
        if given:
            leaves = [leaf.variable for leaf in fork.leaves]
            passes.append(([e for e, _ in given], [g for _, g in given], leaves))
    return [_sum(t.grad, g) for t, g in zip(inputs, own)], Later(passes)


def _sum(a, b):
    return b if a is None else a if b is None else a + b


def weight_gradients(later: Later) -> None:
    """Accumulate the gradients of the parameters."""
    for roots, gradients, leaves in later.passes:
        backward(roots, gradients, inputs=leaves, retain_graph=leaves is not None)
