"""``torch.export.unflatten``: an exported program as a module whose submodules have the names that they had, each with its part of the graph.

What a submodule is called with and returns are the values that its part needs and that others need of it; where
``preserve_module_call_signature`` named it, what the program called it with and what it returned."""

from __future__ import annotations

import copy
from typing import Any

from .. import nn
from ..autograd.grad_mode import no_grad
from ..fx import Graph, Node, map_arg
from ..modules.module import Module
from .exported_module import check_overlap, flat_inputs
from .exported_program import ExportedProgram
from .graph_signature import InputKind, OutputKind
from .structure import Structure
from .submodule_graphs import InterpreterModule, Part, Scopes

__all__ = ["FlatArgsAdapter", "InterpreterModule", "UnflattenedModule", "unflatten"]


class FlatArgsAdapter:
    """Says what an unflattened module does with arguments of another structure than the exported ones; to be derived from."""

    def adapt(
        self, target_spec: Any, input_spec: Any, input_args: list[Any], metadata: Any = None, obj: Any = None
    ) -> list[Any]:
        """The leaves in the order of ``target_spec``; ``input_args`` are those of ``input_spec``."""
        raise NotImplementedError("a FlatArgsAdapter defines adapt(target_spec, input_spec, input_args)")


def unflatten(module: ExportedProgram, flat_args_adapter: FlatArgsAdapter | None = None) -> UnflattenedModule:
    """The program as a module with its submodules, whose tensors are copies of the program's.

    A submodule can be replaced by assignment; one whose arguments or result aren't single tensors has to be among
    ``preserve_module_call_signature`` of the export for that. A submodule that was called twice is one module, unless its calls ran different
    operators: then the further ones have the names ``name@1`` and so on. RuntimeError where a submodule of a kept signature uses or hands on
    more than that says."""
    if not isinstance(module, ExportedProgram):
        raise TypeError(f"unflatten takes an ExportedProgram, got {type(module).__name__}")
    return UnflattenedModule(module, flat_args_adapter)


class UnflattenedModule(Module):
    """What :func:`unflatten` returns. Called as the program is; ``graph`` has the calls of its submodules."""

    def __init__(self, export_module: ExportedProgram, flat_args_adapter: FlatArgsAdapter | None = None):
        super().__init__()
        self.graph_signature = export_module.graph_signature
        self.module_call_graph = export_module.module_call_graph
        self.flat_args_adapter, self.adapted = flat_args_adapter, False
        self._spec = export_module.call_spec
        self._check = export_module._checks.function()
        root = _parts(export_module)
        code = InterpreterModule(root.graph)
        code._class_name = "UnflattenedModule"
        code.real_recompile()
        self.graph, self._text, self._run = root.graph, code.print_readable(print_output=False), type(code).forward
        self._place(root, export_module)
        specs = enumerate(self.graph_signature.output_specs)
        self._writes = [(k, s) for k, s in specs if s.kind is not OutputKind.USER_OUTPUT]

    def _place(self, root: Part, program: ExportedProgram) -> None:
        """Put the submodules and tensors under their names."""
        made: dict[str, Module] = dict(root.made)
        for entry in self.module_call_graph:
            if entry.fqn and "@" not in entry.fqn:
                made[entry.fqn] = made[entry.same_as] if entry.same_as in made else made.get(entry.fqn) or Module()
        for name in sorted(made, key=lambda n: n.count(".")):
            owner, last = _owner(self, name)
            owner.add_module(last, made[name])
        for name, body in root.bodies.items():
            self.add_module(name, body)
        copies: dict[int, Any] = {}
        constants = {s.target for s in self.graph_signature.input_specs if s.kind is InputKind.CONSTANT_TENSOR}
        for name, t in {**program.state_dict, **program.constants}.items():
            owner, last = _owner(self, name)
            own = copies.get(id(t))
            if own is None:
                own = t.detach().clone()
                own = copies[id(t)] = nn.Parameter(own, t.requires_grad) if isinstance(t, nn.Parameter) else own
            if isinstance(t, nn.Parameter):
                owner.register_parameter(last, own)
            elif name in constants:
                setattr(owner, last, own)
            elif last not in owner._buffers:
                owner.register_buffer(last, own, persistent=name in program.state_dict)

    def print_readable(self, print_output: bool = True, **kwargs) -> str:
        """The code of the graph; printed unless ``print_output`` is False."""
        if print_output:
            print(self._text)
        return self._text

    def forward(self, *args, **kwargs):
        adapted = _adapted(self, args, kwargs) if self.flat_args_adapter is not None else None
        leaves = flat_inputs(self._spec.in_spec, args, kwargs) if adapted is None else adapted
        self._check(*leaves)
        outs = self._run(self, *leaves)
        if self._writes:
            _write(self, outs, leaves)
        return self._spec.out_spec.unflatten(outs[len(self._writes) :])


def _adapted(module: UnflattenedModule, args: tuple, kwargs: dict) -> list[Any] | None:
    """The leaves of arguments of another structure."""
    leaves, spec = Structure.flatten((args, kwargs))
    wanted = module._spec.in_spec
    if spec == wanted:
        return None
    module.adapted = True
    adapted = module.flat_args_adapter.adapt(wanted, spec, leaves)
    if len(adapted) != wanted.num_leaves:
        raise RuntimeError(f"the flat_args_adapter gave {len(adapted)} leaves, the program takes {wanted.num_leaves}")
    return adapted


def _write(module: UnflattenedModule, outs: tuple, leaves: list[Any]) -> None:
    """The writes of a program without writes in place."""
    signature = module.graph_signature
    inputs = [s for s in signature.input_specs if s.kind is InputKind.USER_INPUT]
    by_name = {s.arg.name: v for s, v in zip(inputs, leaves)}
    check_overlap(signature, by_name)
    with no_grad():
        for k, s in module._writes:
            if s.kind is OutputKind.USER_INPUT_MUTATION:
                by_name[s.target].copy_(outs[k])
            else:
                getattr(*_owner(module, s.target)).copy_(outs[k])


def _owner(root: Module, name: str) -> tuple[Module, str]:
    """The module that holds ``name``, made where there is none, and the last part of the name."""
    *path, last = name.split(".")
    for part in path:
        if part not in root._modules:
            root.add_module(part, Module())
        root = root._modules[part]
    return root, last


def _parts(program: ExportedProgram) -> Part:
    """The graph of the program's own operators and the calls of its submodules."""
    tensors, leaves = {}, []
    names: dict[int, list[str]] = {}
    for name, t in {**program.state_dict, **program.constants}.items():
        names.setdefault(id(t), []).append(name)
    gm = copy.deepcopy(program.graph_module)
    graph = gm.graph
    named = _written_in_place(graph)
    placeholders = [n for n in graph.nodes if n.op == "placeholder"]
    for n, s in zip(placeholders, program.graph_signature.input_specs, strict=True):
        if s.kind is InputKind.USER_INPUT:
            leaves.append(n)
        else:
            tensors[n] = names[id(program.tensor_of(s))]
    root = Part(gm, Scopes(graph), tensors)
    root.by_name.update(named)
    root.signatures.update((m.fqn, m.signature) for m in program.module_call_graph if m.fqn and m.signature)
    for n in leaves:
        root.values[n] = root.placeholder(n.name, n.meta.get("val"))
    root.fill([n for n in graph.nodes if n.op not in ("placeholder", "output")])
    root.graph.output(map_arg(graph.output_node().args[0], root.value))
    return root


def _written_in_place(graph: Graph) -> dict[str, Node]:
    """The values by name. Behind an operator that writes in place, its argument means the written value, in the graphs of other modules too."""
    named = {}
    for n in graph.nodes:
        inplace = getattr(n.target, "kind", None) == "inplace" and isinstance(n.args[0], Node)
        if inplace:
            n.replace_all_uses_with(n.args[0])
        named[n.name] = n.args[0] if inplace else n
    return named
