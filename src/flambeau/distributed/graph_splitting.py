"""Splits a captured graph at the boundaries of buckets, so that the backward of its last part, and with it the last parameters' gradients, is done
before the backward of the parts before it begins. As PyTorch's DDPOptimizer, which the specification describes."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable

from .. import _C
from ..base.logs import artifact
from ..dynamo.config import config
from ..dynamo.wrapped_backends import around
from ..fx import GraphModule
from ..fx.passes.split_module import split_module
from .buckets import FIRST_BUCKET_BYTES, nbytes
from .noted_gradients import around_backward
from .reducer import Reducer

__all__ = ["around_capture"]

_log = artifact("ddp_graphs", "")
_SPLIT = (True, "ddp_optimizer")
_NOTED = ("python_reducer",)
_WHOLE = (False, "no_optimization")


def around_capture(reducer: Reducer, cap: int):
    """A context in which graphs are split for buckets of ``cap`` bytes, or tell the reducer of gradients, as ``torch._dynamo.config.optimize_ddp``
    says."""
    mode = config.optimize_ddp
    if mode in _NOTED:
        return around_backward(reducer)
    if mode in _SPLIT:
        return around(lambda backend: functools.partial(compile_split, backend, cap))
    if mode in _WHOLE:
        return contextlib.nullcontext()
    raise NotImplementedError(
        f"torch._dynamo.config.optimize_ddp = {mode!r} isn't built: True (graphs split at the boundaries of buckets), 'python_reducer' "
        "(whole graphs whose backward starts the reductions) or False (whole graphs)"
    )


def _parameters(gm: GraphModule, examples) -> dict:
    """{input node: bytes} of what gets gradients: leaves that need them."""
    inputs = [n for n in gm.graph.nodes if n.op == "placeholder"]
    return {
        n: nbytes(x)
        for n, x in zip(inputs, examples, strict=True)
        if isinstance(x, _C.TensorBase) and x.requires_grad and x.is_leaf
    }


def _assign(gm: GraphModule, sizes: dict, cap: int) -> dict:
    """{node: its part}, parts numbered in the order of the graph. Buckets are filled from the end of the graph, where gradients come first."""
    limits = [min(cap, FIRST_BUCKET_BYTES), cap]
    buckets: list[tuple[list, set]] = [([], set())]
    for node in reversed(gm.graph.nodes):
        if node.op in ("placeholder", "get_attr", "output"):
            continue
        nodes, held = buckets[-1]
        if held and sum(sizes[p] for p in held) >= limits[min(len(buckets) - 1, 1)]:
            nodes, held = [], set()
            buckets.append((nodes, held))
        nodes.append(node)
        held.update(n for n in node.all_input_nodes if n in sizes)
    if len(buckets) > 1 and not buckets[-1][1]:  # what comes before the first parameter belongs to its part
        nodes, _ = buckets.pop()
        buckets[-1][0].extend(nodes)
    if _log.on:
        for k, (nodes, held) in enumerate(buckets):
            _log(
                "bucket %d: %d bytes of %d parameters, %d nodes", k, sum(sizes[p] for p in held), len(held), len(nodes)
            )
    return {n: len(buckets) - 1 - k for k, (nodes, _) in enumerate(buckets) for n in nodes}


def compile_split(backend: Callable, cap: int, gm: GraphModule, examples) -> Callable:
    """The graph's parts, each compiled by the backend."""
    if any(not isinstance(x, _C.TensorBase) for x in examples):
        _log("not split: sizes of the graph are symbols")
        return backend(gm, examples)
    parts = _assign(gm, _parameters(gm, examples), cap)
    if len(set(parts.values())) < 2:
        _log("not split: one bucket holds all parameters")
        return backend(gm, examples)
    whole = split_module(gm, None, parts.__getitem__, keep_original_order=True, tuple_return=True)
    given = dict(zip((n for n in gm.graph.nodes if n.op == "placeholder"), examples, strict=True))
    named = {n.name: x for n, x in given.items()}
    values = {n.name: n.meta.get("val") for n in gm.graph.nodes}
    compiled = {}
    for node in whole.graph.nodes:
        if node.op != "call_module":
            continue
        part = getattr(whole, node.target)
        part.meta.update(gm.meta)
        inputs = [p.name for p in part.graph.nodes if p.op == "placeholder"]
        compiled[node.target] = backend(part, [named[name] if name in named else values[name] for name in inputs])
    _log("split into %d graphs", len(compiled))
    return _Chain(whole, compiled)


class _Chain:
    """Runs compiled parts one after the other, as the graph around them says."""

    def __init__(self, whole: GraphModule, compiled: dict):
        self.whole, self.steps = whole, []
        for node in whole.graph.nodes:
            fn = compiled[node.target] if node.op == "call_module" else node.target
            self.steps.append((node, node.op, fn))

    def __call__(self, *inputs):
        values: dict = {}
        given = iter(inputs)
        for node, op, fn in self.steps:
            if op == "placeholder":
                values[node] = next(given)
            elif op == "get_attr":
                found = self.whole
                for name in fn.split("."):
                    found = getattr(found, name)
                values[node] = found
            elif op == "output":
                return _filled(node.args[0], values)
            else:
                values[node] = fn(*_filled(node.args, values), **_filled(node.kwargs, values))
        raise AssertionError("a graph without an output")


def _filled(args, values: dict):
    if isinstance(args, tuple | list):
        return (
            type(args)(_filled(a, values) for a in args)
            if type(args) in (tuple, list)
            else tuple(_filled(a, values) for a in args)
        )
    if isinstance(args, dict):
        return {k: _filled(a, values) for k, a in args.items()}
    try:
        return values.get(args, args)
    except TypeError:
        return args
