"""``torch.compile(verify=True)``: each compiled graph runs beside the same graph run operator by operator, at every call."""

from __future__ import annotations

import copy
import functools

import flambeau as torch
from flambeau.base import pytree
from flambeau.dynamo.config import config
from flambeau.fx import GraphModule

from .compare import AccuracyError, clone_inputs, difference, reference, run_plainly
from .minify import extract, first, node_values, prefix_leaves

__all__ = ["first_difference", "verified"]


def verified(compiler_fn, gm: GraphModule, inputs, **kwargs):
    """``compiler_fn(gm, inputs)``, checked at each call: results and what is written into the inputs must agree with the plain graph on
    copies of the inputs and with the same random numbers. AccuracyError names the first operator that differs and the user's line."""
    given, gm = gm, GraphModule(gm, copy.deepcopy(gm.graph))  # a compiler may change what it is given
    compiled = compiler_fn(given, inputs, **kwargs)

    @functools.wraps(compiled)
    def run(*args):
        kept = clone_inputs(args)
        state = torch.random.get_rng_state()
        out = compiled(*args)
        after = torch.random.get_rng_state()
        torch.random.set_rng_state(state)
        want, written = run_plainly(gm, kept)
        torch.random.set_rng_state(state)
        judge = reference(gm, kept)
        got = pytree.tree_flatten(out)[0]
        text = difference(got, want, judge, config.repro_tolerance)
        if text is None:
            text = difference(args, written, None, config.repro_tolerance)
            text = text and f"what was written into the inputs, {text}"
        if text is not None:
            torch.random.set_rng_state(state)
            raise AccuracyError(
                f"verify: compiled code differs from plain code: {text}\n{_blame(gm, kept, compiler_fn)}"
            )
        torch.random.set_rng_state(after)
        return out

    return run


def _blame(gm, inputs, compiler_fn) -> str:
    node = first_difference(gm, inputs, compiler_fn)
    if node is None:
        return "No single operator differs when the graph is compiled only up to it: the difference comes from compiling them together."
    text = f"The first operator that differs is {node.format_node()}"
    return f"{text}\n{node.stack_trace}" if node.stack_trace else text


def first_difference(gm: GraphModule, inputs, compiler_fn):
    """The first node whose value differs when the graph is compiled up to it, or None. Costs a compilation for each step of a bisection."""
    values = node_values(gm, inputs)
    calls = {n for n in gm.graph.nodes if n.op.startswith("call")}
    tensors = [n for n in gm.graph.nodes if n in calls and isinstance(values.get(n), torch.Tensor)]

    def differs(k: int) -> bool:
        wanted = prefix_leaves(tensors[: k + 1])
        part, args = extract(gm, wanted, calls, values)
        judge = reference(part, args)
        got = pytree.tree_flatten(compiler_fn(part, args)(*clone_inputs(args)))[0]
        return difference(got, [values[n] for n in wanted], judge, config.repro_tolerance) is not None

    at = first(tensors, differs)
    return None if at is None else tensors[at]
