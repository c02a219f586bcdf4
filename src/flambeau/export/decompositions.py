"""``ExportedProgram.run_decompositions``: the graph run again, without writes in place and with operators replaced."""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import Callable
from typing import Any

from ..aot.facts import Computed, Traced
from ..aot.tracing import trace
from ..autograd.grad_mode import _set_grad_enabled
from ..base.public import public_in
from ..base.symint import NUMBERS
from ..core.operator import OpOverload, decomposed, namespace
from ..fake import FakeTensor
from ..fx import GraphModule, Interpreter
from ..fx.traceback import preserve_node_meta
from ..ops.family_index import FAMILIES
from ..proxy import current_proxy_mode
from ..proxy.tracing import ASSERT_SCALAR
from .graph_signature import ExportGraphSignature, InputKind, InputSpec, OutputKind, OutputSpec, TensorArgument
from .module_calls import argument

__all__ = ["CustomDecompTable", "decompose", "default_decompositions", "outputs", "spread", "without_switches"]


@public_in("export.decomp_utils")
class CustomDecompTable(dict):
    """Operators and the functions that replace them."""

    def __init__(self) -> None:
        super().__init__()

    def materialize(self) -> dict:
        """The table as a plain dict."""
        return dict(self)


def default_decompositions() -> CustomDecompTable:
    """All composites of ATen, each with what it is made of: take out those that are to stay, add others."""
    aten, table = namespace("aten"), CustomDecompTable()
    for names in FAMILIES.values():
        for name in names.split():
            getattr(aten, name)
    for name in dir(aten):
        packet = getattr(aten, name)
        for op in (getattr(packet, overload) for overload in packet.overloads()):
            if decomposed(op):
                table[op] = functools.partial(_opened, op)
    return table


def _opened(op: OpOverload, *args, **kwargs) -> Any:
    return op.definition.fn(*op.full(*args, **kwargs))


def decompose(
    gm: GraphModule, signature: ExportGraphSignature, table: dict[Any, Callable] | None
) -> tuple[GraphModule, ExportGraphSignature, list[Any]]:
    """The graph without writes, its signature, and what it takes for granted of symbolic sizes beyond the program's constraints."""
    nodes = [n for n in gm.graph.nodes if n.op == "placeholder"]
    fakes = [n.meta["val"] for n in nodes]
    mode = next((v.fake_mode for v in fakes if isinstance(v, FakeTensor)), None)
    env = mode.shape_env if mode is not None else None

    def run(*inputs):
        return list(_Again(gm).run(*inputs))

    with preserve_node_meta(), contextlib.nullcontext([]) if env is None else env.assuming() as assumed:
        traced = trace(
            run,
            fakes,
            joint=False,
            decompositions=table,
            names=[n.name for n in nodes],
            fake_mode=mode,
            whole=True,
            keeps=None if table is None else lambda op: op not in table and op.overloadpacket not in table,
        )
    spread(traced)
    traced.gm._class_name = type(traced.gm).__name__ = "GraphModule"
    written = [signature.input_specs[i] for i in traced.mutated]
    new = outputs(traced.gm, written)
    specs = [*new[: len(written)], *map(copy.copy, signature.output_specs)]
    for spec, made in zip(specs[len(written) :], new[len(written) :]):
        spec.arg = made.arg if isinstance(made.arg, TensorArgument) else spec.arg
    return traced.gm, ExportGraphSignature(copy.deepcopy(signature.input_specs), specs), assumed


class _Again(Interpreter):
    """Runs a graph; what is traced meanwhile has the lines of its nodes."""

    def run_node(self, n):
        mode = current_proxy_mode()
        if mode is not None:
            mode.stack = n.meta.get("stack")
        return super().run_node(n)

    def call_function(self, target, args, kwargs):
        if target is ASSERT_SCALAR and isinstance(args[0], NUMBERS):
            current_proxy_mode().insert_check(*args)  # of numbers that this run has made anew
            return None
        return super().call_function(target, args, kwargs)


def spread(traced: Traced) -> None:
    """One output of the graph for each mutation and each leaf that the program returns."""
    out = traced.gm.graph.output_node()
    values, n = out.args[0], len(traced.mutated)
    leaves = [values[o.index] if isinstance(o, Computed) else o.value for o in traced.outputs]
    out.args = ((*values[:n], *leaves),)


_MUTATIONS = {
    InputKind.BUFFER: OutputKind.BUFFER_MUTATION,
    InputKind.PARAMETER: OutputKind.PARAMETER_MUTATION,
    InputKind.USER_INPUT: OutputKind.USER_INPUT_MUTATION,
}


def outputs(gm: GraphModule, written: list[InputSpec]) -> list[OutputSpec]:
    """What the outputs of a graph are: first the new values of what is ``written``."""
    values = gm.graph.output_node().args[0]
    out = [
        OutputSpec(_MUTATIONS[spec.kind], TensorArgument(v.name), spec.target or spec.arg.name)
        for spec, v in zip(written, values)
    ]
    return out + [OutputSpec(OutputKind.USER_OUTPUT, argument(v), None) for v in values[len(written) :]]


def without_switches(gm: GraphModule) -> GraphModule:
    """The graph without the nodes that switch grad mode; itself where it has none."""
    if not any(n.target is _set_grad_enabled for n in gm.graph.nodes):
        return gm
    made = copy.deepcopy(gm)
    for n in [n for n in made.graph.nodes if n.target is _set_grad_enabled]:
        made.graph.erase_node(n)
    made.recompile()
    return made
