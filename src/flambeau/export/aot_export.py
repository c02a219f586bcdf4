"""``torch._functorch.aot_autograd``: exported graphs for compilers that take parameters and buffers as plain arguments.

The graph is :func:`export`'s. Its placeholders are ``arg0_1`` and so on: parameters, buffers, then the user's inputs; constants stay attributes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

from ..fx import GraphModule
from ..modules.module import Module
from .decompositions import without_switches
from .graph_signature import ExportBackwardSignature, ExportGraphSignature, InputKind, OutputKind
from .tracing import export

__all__ = ["GraphSignature", "aot_export_joint_simple", "aot_export_module"]


@dataclasses.dataclass
class GraphSignature:
    """What the arguments and results of the graph are, by name."""

    parameters: list[str]
    buffers: list[str]
    user_inputs: list[str]
    user_outputs: list[str]
    inputs_to_parameters: dict[str, str]
    inputs_to_buffers: dict[str, str]
    buffers_to_mutate: dict[str, str]
    parameters_to_mutate: dict[str, str]
    user_inputs_to_mutate: dict[str, str]
    in_spec: Any
    out_spec: Any
    backward_signature: ExportBackwardSignature | None = None
    input_tokens: list[str] = dataclasses.field(default_factory=list)
    output_tokens: list[str] = dataclasses.field(default_factory=list)


def aot_export_module(
    mod: Module,
    args: Iterable[Any],
    *,
    decompositions: dict | None = None,
    trace_joint: bool,
    output_loss_index: int | None = None,
    pre_dispatch: bool = False,
    dynamic_shapes: bool | None = None,
    kwargs: dict[str, Any] | None = None,
) -> tuple[GraphModule, GraphSignature]:
    """(the graph of ``mod(*args, **kwargs)``, its signature). Mutated buffers and inputs are the first results. ``pre_dispatch`` makes no difference.

    RuntimeError for one tensor that is given twice and written. NotImplementedError for ``trace_joint``: forward and backward in one graph."""
    if trace_joint or output_loss_index is not None:
        raise NotImplementedError("aot_export_module: trace_joint, forward and backward in one graph, is not built")
    if dynamic_shapes:
        raise NotImplementedError("aot_export_module: dynamic_shapes is not built; use torch.export.export")
    args = tuple(args)
    program = export(mod, args, kwargs).run_decompositions()
    if decompositions:
        # Composites are gone, so that the table is the caller's alone.
        program = program.run_decompositions(decompositions)
    gm, signature = without_switches(program.graph_module), program.graph_signature
    _refuse_duplicates(args, signature)
    names = _renamed(gm, program)
    return gm, _described(gm, program, names)


def _refuse_duplicates(args: tuple, signature: ExportGraphSignature) -> None:
    given = [id(a) for a in args]
    written = {s.target for s in signature.output_specs if s.kind is OutputKind.USER_INPUT_MUTATION}
    inputs = [s.arg.name for s in signature.input_specs if s.kind is InputKind.USER_INPUT]
    for name, x in zip(inputs, given):
        if name in written and given.count(x) > 1:
            raise RuntimeError(
                "Encountered duplicated inputs that are mutated in the graph, but at least one input/output is used more than once: "
                f"argument {name}"
            )


def _renamed(gm: GraphModule, program) -> dict[str, str]:
    """{old name of a placeholder: its name now}. Constants become attributes."""
    names, specs = {}, program.graph_signature.input_specs
    placeholders = [n for n in gm.graph.nodes if n.op == "placeholder"]
    count = 0
    for node, spec in zip(placeholders, specs, strict=True):
        if spec.kind is InputKind.CONSTANT_TENSOR:
            attribute = spec.target.replace(".", "_")
            gm.register_buffer(attribute, program.constants[spec.target])
            with gm.graph.inserting_before(node):
                node.replace_all_uses_with(gm.graph.get_attr(attribute))
            gm.graph.erase_node(node)
            continue
        names[node.name] = f"arg{count}_1"
        node.name = node.target = names[node.name]
        count += 1
    gm.recompile()
    return names


def _described(gm: GraphModule, program, names: dict[str, str]) -> GraphSignature:
    signature = program.graph_signature
    inputs = {
        kind: {names[s.arg.name]: s.target for s in signature.input_specs if s.kind is kind}
        for kind in (InputKind.PARAMETER, InputKind.BUFFER, InputKind.USER_INPUT)
    }
    results = [names.get(s.arg.name, s.arg.name) for s in signature.output_specs]

    def mutated(kind: OutputKind) -> dict[str, str]:
        pairs = zip(results, signature.output_specs)
        return {name: names.get(s.target, s.target) for name, s in pairs if s.kind is kind}

    return GraphSignature(
        parameters=list(inputs[InputKind.PARAMETER].values()),
        buffers=list(inputs[InputKind.BUFFER].values()),
        user_inputs=list(inputs[InputKind.USER_INPUT]),
        user_outputs=[n for n, s in zip(results, signature.output_specs) if s.kind is OutputKind.USER_OUTPUT],
        inputs_to_parameters=inputs[InputKind.PARAMETER],
        inputs_to_buffers=inputs[InputKind.BUFFER],
        buffers_to_mutate=mutated(OutputKind.BUFFER_MUTATION),
        parameters_to_mutate=mutated(OutputKind.PARAMETER_MUTATION),
        user_inputs_to_mutate=mutated(OutputKind.USER_INPUT_MUTATION),
        in_spec=program.call_spec.in_spec,
        out_spec=program.call_spec.out_spec,
    )


class _Function(Module):
    def __init__(self, fn: Callable):
        super().__init__()
        self.fn = fn

    def forward(self, *args):
        return self.fn(*args)


def aot_export_joint_simple(
    func: Callable,
    args: Iterable[Any],
    *,
    trace_joint: bool,
    num_params_buffers: int = 0,
    decompositions: dict | None = None,
) -> GraphModule:
    """The graph of ``func(*args)``, which returns a list or tuple and writes nothing. RuntimeError when it does otherwise; NotImplementedError
    for ``trace_joint``."""
    args = tuple(args)
    gm, signature = aot_export_module(_Function(func), args, decompositions=decompositions, trace_joint=trace_joint)
    if signature.user_inputs_to_mutate:
        given = [id(a) for a in args]
        if len(set(given)) < len(given):
            raise RuntimeError("Encountered duplicated inputs that are mutated in the graph")
        raise RuntimeError("aot_export_joint_simple does not support input mutations.")
    return gm
