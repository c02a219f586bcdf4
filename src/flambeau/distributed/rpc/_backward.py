"""The backward of distributed autograd.

Tensors that crossed to another worker within a context are *sends* there and leaves here. The worker that starts the backward first asks which
sends each part of the graph leads to, and then has the parts run, each once all parts that contribute to its gradient have: a part is one root or
send with what lies below it on its worker. Gradients go by the worker that started."""

from __future__ import annotations

import itertools
from typing import Any

from ...autograd import grad
from ...autograd.graph import get_gradient_edge
from ...core.bindings import function
from ._agent import Agent, Kind, current
from ._contexts import Context

__all__ = ["run_backward"]

ones_like = function("ones_like")
# Of backwards that this worker started.
_numbers = itertools.count()
# Of a send: its worker and number; roots have worker -1.
Key = tuple[int, int]


class _Pass:
    """One backward on one worker: gradients of what arrived from others."""

    def __init__(self):
        self.gradients: dict[Key, Any] = {}


def _leaves(t) -> list:
    """Leaves that ``t`` depends on."""
    if t.is_leaf:
        return [t]
    out, seen, stack = [], set(), [get_gradient_edge(t).node]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            out.append(node.variable)
        stack += [n for n, _ in node.next_functions if n is not None]
    return out


def _arrived(context: Context) -> dict[int, Any]:
    """What arrived from other workers, by the tensor's identity."""
    with context.lock:
        return {id(r.tensor): r for r in context.arrived}


def _below(context: Context, t) -> list[Key]:
    """The sends of other workers that ``t`` depends on."""
    known = _arrived(context)
    return [known[id(leaf)].key for leaf in _leaves(t) if id(leaf) in known]


def _differentiate(context: Context, number: int, t, gradient) -> None:
    """The gradients of ``t`` on this worker."""
    leaves, known = _leaves(t), _arrived(context)
    if t.is_leaf:
        found = [gradient]
    else:
        found = grad([t], leaves, [gradient], retain_graph=True, allow_unused=True)
    with context.lock:
        state = context.passes.setdefault(number, _Pass())
        for leaf, g in zip(leaves, found):
            if g is None:
                continue
            place, key = (state.gradients, known[id(leaf)].key) if id(leaf) in known else (context.gradients, leaf)
            before = place.get(key)
            place[key] = g if before is None else before + g


# ---- what the worker that starts asks of the others


def _explore(number: int, key: Key) -> list[Key]:
    context = current().contexts.get(number)
    return _below(context, context.sends[key])


def _run(number: int, backward: int, key: Key, gradient) -> None:
    context = current().contexts.get(number)
    _differentiate(context, backward, context.sends[key], gradient)


def _take(number: int, backward: int, key: Key) -> Any:
    context = current().contexts.get(number)
    with context.lock:
        return context.passes[backward].gradients.pop(key, None)


def _end(number: int, backward: int) -> None:
    context = current().contexts.get(number)
    with context.lock:
        context.passes.pop(backward, None)


def _ask(agent: Agent, rank: int, *call):
    function, *args = call
    return agent.request(rank, Kind.CALL, None, (function, tuple(args), {}))


def run_backward(agent: Agent, context: Context, roots: list) -> None:
    """Add the gradients of the sum of ``roots`` to those of the context, on all workers."""
    for t in roots:
        if not t.requires_grad:
            raise RuntimeError("requires_grad not set on root")
        if t.numel() != 1:
            raise RuntimeError("The root must be a scalar: grad can be implicitly created only for scalar outputs")
    number = agent.rank << 32 | next(_numbers)
    nodes: list[Key] = [(-1, k) for k in range(len(roots))]
    below: dict[Key, list[Key]] = {n: _below(context, t) for n, t in zip(nodes, roots)}
    # Who holds what arrived: the worker of the node that leads to it.
    holder: dict[Key, int] = {key: agent.rank for n in nodes for key in below[n]}
    front = list(dict.fromkeys(key for n in nodes for key in below[n]))
    while front:
        asked = [(key, _ask(agent, key[0], _explore, context.id, key)) for key in front]
        front = []
        for key, future in asked:
            below[key] = future.wait()
            for k in below[key]:
                holder[k] = key[0]
                if k not in below and k not in front:
                    front.append(k)
    missing = {key: sum(key in ks for ks in below.values()) for key in below}
    for t in roots:
        _differentiate(context, number, t, ones_like(t.detach()))
    done = list(nodes)
    while done:
        ready = []
        for n in done:
            for key in dict.fromkeys(below[n]):
                missing[key] -= 1
                if not missing[key]:
                    ready.append(key)
        taken = [(key, _ask(agent, holder[key], _take, context.id, number, key)) for key in ready]
        given = [(key, future.wait()) for key, future in taken]
        running = [_ask(agent, key[0], _run, context.id, number, key, g) for key, g in given if g is not None]
        for future in running:
            future.wait()
        done = ready
    for rank in {agent.rank, *holder.values(), *(key[0] for key in holder)}:
        _ask(agent, rank, _end, context.id, number).wait()


def backward_of(number: int, value: Any) -> None:
    """The backward from one tensor of this worker; its own for -1."""
    if number < 0:
        value.backward()
    else:
        agent = current()
        run_backward(agent, agent.contexts.get(number), [value])
