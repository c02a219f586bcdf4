"""An exported program as a module."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _C, nn
from ..autograd.grad_mode import enable_grad, is_grad_enabled, no_grad
from ..fx import Graph, GraphModule
from .decompositions import without_switches
from .graph_signature import ExportGraphSignature, InputKind, OutputKind
from .structure import Structure

if TYPE_CHECKING:
    from .exported_program import ExportedProgram

__all__ = ["ExportedModule", "check_overlap", "flat_inputs"]


class ExportedModule(nn.Module):
    """An exported program as a module: parameters, buffers and constants under their names, writes to buffers and inputs are done."""

    def __init__(self, program: ExportedProgram, check_guards: bool = True):
        super().__init__()
        self._program = program
        self._check = program._checks.function() if check_guards else None
        gm = program.graph_module
        self._run = gm.forward
        plain = without_switches(gm)
        self._without_grad = (
            plain.forward if plain is not gm else None
        )  # where the caller records nothing, nothing is switched on
        signature = program.graph_signature
        kinds = {s.target: s for s in signature.input_specs}
        places: dict[int, nn.Parameter] = {}
        for name, t in {**program.state_dict, **program.constants}.items():
            owner, last = self._owner(name)
            spec = kinds.get(name)
            if isinstance(t, nn.Parameter):
                owner.register_parameter(last, places.setdefault(id(t), t))
            elif spec is not None and spec.kind is InputKind.CONSTANT_TENSOR:
                setattr(owner, last, t)
            else:
                owner.register_buffer(last, t, persistent=name in program.state_dict)
        self._places = [(self._owner(s.target) if s.target is not None else None) for s in signature.input_specs]
        self._writes = [(k, s) for k, s in enumerate(signature.output_specs) if s.kind is not OutputKind.USER_OUTPUT]

    def _owner(self, name: str) -> tuple[nn.Module, str]:
        owner: nn.Module = self
        *path, last = name.split(".")
        for part in path:
            if part not in owner._modules:
                owner.add_module(part, nn.Module())
            owner = owner._modules[part]
        return owner, last

    @property
    def graph(self) -> Graph:
        return self._program.graph

    @property
    def code(self) -> str:
        return self._program.graph_module.code

    @property
    def graph_module(self) -> GraphModule:
        return self._program.graph_module

    def print_readable(self, print_output: bool = True, **kwargs) -> str:
        return self._program.graph_module.print_readable(print_output)

    def forward(self, *args, **kwargs):
        p = self._program
        leaves = flat_inputs(p.call_spec.in_spec, args, kwargs)
        if self._check is not None:
            self._check(*leaves)
        given = iter(leaves)
        inputs = [next(given) if at is None else getattr(*at) for at in self._places]
        by_name = {s.arg.name: v for s, v in zip(p.graph_signature.input_specs, inputs)}
        if self._writes:
            check_overlap(p.graph_signature, by_name)
        if self._without_grad is None:
            outs = self._run(*inputs)
        elif not is_grad_enabled():
            outs = self._without_grad(*inputs)
        else:
            with enable_grad():  # a switch of the graph ends with the call
                outs = self._run(*inputs)
        if self._writes:
            with no_grad():
                for k, spec in self._writes:
                    target = by_name[spec.target] if spec.kind is OutputKind.USER_INPUT_MUTATION else None
                    (target if target is not None else getattr(*self._owner(spec.target))).copy_(outs[k])
        return p.call_spec.out_spec.unflatten(outs[len(self._writes) :])

    def extra_repr(self) -> str:
        return f"exported, {len(self.graph.nodes)} nodes"


def flat_inputs(spec: Structure, args: tuple, kwargs: dict) -> list[Any]:
    """The leaves of a call. ValueError when its structure isn't that of the example."""
    leaves = spec.flatten_like((args, kwargs))
    if leaves is None:
        _, got = Structure.flatten((args, kwargs))
        raise ValueError(
            f"Trying to flatten user inputs with exported input tree spec: \n{spec}\nbut actually got inputs with tree spec of: \n{got}.\n"
            "Please check that the inputs have the same number and type of args and kwargs as the ones you used when tracing."
        )
    return leaves


def check_overlap(signature: ExportGraphSignature, by_name: dict[str, Any]) -> None:
    """ValueError when a tensor that the program writes to shares memory with another input: the graph takes them for separate."""
    for name in signature.user_inputs_to_mutate.values():
        for other, t in by_name.items():
            if other != name and isinstance(t, _C.TensorBase) and np.may_share_memory(by_name[name]._array, t._array):
                raise ValueError(
                    f"the exported program writes to {name}, which shares its memory with {other}: pass a clone"
                )
