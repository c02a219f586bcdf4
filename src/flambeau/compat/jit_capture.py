"""Capturing a function for ``torch.jit.trace``: an fx graph of ATen operators as the program calls them."""

from __future__ import annotations

import contextlib
import inspect
import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

from .. import fx
from ..autograd import grad_mode
from ..autograd.grad_mode import no_grad
from ..base import pytree
from ..core.tensor import Tensor
from ..modules.module import Module
from ..proxy import make_fx

__all__ = ["Captured", "capture", "parameter_names"]


class Captured(NamedTuple):
    """A function's graph, and what it returned."""

    graph: fx.GraphModule
    result: Any


def capture(func: Callable, args: tuple, kwargs: dict, strict: bool) -> Captured:
    """``func`` at these arguments as a graph that takes the tensors in them, in the order of the tree, by the names of the parameters. Composites
    (``linear``, ``batch_norm``) are one node each."""
    leaves, spec = pytree.tree_flatten((args, kwargs))
    # One that is given twice is two arguments.
    seen: set[int] = set()
    tensors = []
    for x in leaves:
        if isinstance(x, Tensor):
            tensors.append(x.detach().requires_grad_(x.requires_grad) if id(x) in seen else x)
            seen.add(id(x))

    def flat(*given):
        rest = iter(given)
        a, k = pytree.tree_unflatten([next(rest) if isinstance(x, Tensor) else x for x in leaves], spec)
        out = func(*a, **k)
        if isinstance(out, dict) and strict:
            raise RuntimeError(
                "Encountering a dict at the output of the tracer might cause the trace to be incorrect, this is only valid if the container "
                "structure does not change based on the module's inputs. Consider using a constant container instead (e.g. for `list`, use a "
                "`tuple` instead. for `dict`, use a `NamedTuple` instead). If you absolutely need this and know the side effects, pass "
                "strict=False to trace() to allow this behavior."
            )
        results.append(out)
        return out

    results: list = []
    names = _tensor_names(parameter_names(func), args, kwargs)
    flat.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in names]
    )
    with no_grad(), _scopes(getattr(func, "__self__", func)):
        graph = make_fx(flat, pre_dispatch=True)(*tensors)
    for node, given in zip(graph.graph.find_nodes(op="placeholder"), tensors):
        node.meta["requires_grad"] = given.requires_grad
    # A trace runs in the grad mode of its caller.
    switches = graph.graph.find_nodes(op="call_function", target=grad_mode._set_grad_enabled)
    for node in switches:
        graph.graph.erase_node(node)
    if switches:
        graph.recompile()
    return Captured(graph, results[0])


def _scopes(func):
    """A block in which nodes note the module that they are called in."""
    if not isinstance(func, Module):
        return contextlib.nullcontext()
    from ..export.module_calls import ModuleCalls

    return ModuleCalls(func).followed()


def _tensor_names(names: list[str], args: tuple, kwargs: dict) -> list[str]:
    """A name for each tensor in the arguments: of its parameter, with a number behind it where that holds several."""
    out: dict[str, None] = {}
    for i, (name, value) in enumerate([*zip(itertools.chain(names, itertools.repeat("")), args), *kwargs.items()]):
        tensors = [x for x in pytree.tree_leaves(value) if isinstance(x, Tensor)]
        for k in range(len(tensors)):
            wanted = name or f"arg{i}"
            wanted = wanted if isinstance(value, Tensor) else f"{wanted}_{k}"
            while wanted in out:
                wanted += "_"
            out[wanted] = None
    return list(out)


def parameter_names(func) -> list[str]:
    """The positional parameters of a function or of a module's forward."""
    try:
        parameters = inspect.signature(func.forward if isinstance(func, Module) else func).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
