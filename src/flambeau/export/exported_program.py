"""``ExportedProgram``: a graph, what its inputs and outputs are, the tensors of the module, and what a call is held to."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from ..base import pytree
from ..fx import Graph, GraphModule
from .constraints import Checks
from .decompositions import CustomDecompTable, decompose, default_decompositions
from .exported_module import ExportedModule
from .graph_signature import ExportGraphSignature, InputKind, OutputKind
from .module_calls import ModuleCallEntry, ModuleCallSignature
from .structure import Structure

__all__ = [
    "CallSpec",
    "ExportedModule",
    "ExportedProgram",
    "ModuleCallEntry",
    "ModuleCallSignature",
    "default_decompositions",
]


@dataclasses.dataclass
class CallSpec:
    """Structures of (args, kwargs) and of the result."""

    in_spec: Structure | None
    out_spec: Structure | None


class ExportedProgram:
    """What ``export`` returns. The graph takes the tensors of the module (parameters, buffers, constants) and the leaves of the user's
    arguments, and returns new values of what was written, then the leaves of the result; ``graph_signature`` says which is which."""

    def __init__(
        self,
        gm: GraphModule,
        signature: ExportGraphSignature,
        state: dict[str, Any],
        constants: dict[str, Any],
        ranges: dict[Any, Any],
        checks: Checks,
        call_spec: CallSpec,
        example_inputs: tuple | None,
        modules: list[ModuleCallEntry] | None = None,
    ):
        self._gm, self._signature = gm, signature
        self._state, self._constants = state, constants
        self._ranges, self._checks, self._call_spec = ranges, checks, call_spec
        self._example_inputs = example_inputs
        self._modules = modules or []

    def _exchange(self, fn: Callable[[Any], Any]) -> None:
        """Hold ``fn(tensor)`` for each tensor."""
        self._state, self._constants = ({k: fn(t) for k, t in held.items()} for held in (self._state, self._constants))
        self._example_inputs = pytree.tree_map(fn, self._example_inputs)

    @property
    def graph_module(self) -> GraphModule:
        return self._gm

    @property
    def graph(self) -> Graph:
        return self._gm.graph

    @property
    def graph_signature(self) -> ExportGraphSignature:
        return self._signature

    @property
    def state_dict(self) -> dict[str, Any]:
        """Parameters and persistent buffers by name."""
        return self._state

    @property
    def constants(self) -> dict[str, Any]:
        """Other tensors of the module: buffers that aren't persistent, plain attributes, tensors the program made."""
        return self._constants

    tensor_constants = constants

    @property
    def range_constraints(self) -> dict[Any, Any]:
        """symbol (or expression of a derived dimension) -> its range."""
        return self._ranges

    @property
    def call_spec(self) -> CallSpec:
        return self._call_spec

    @property
    def example_inputs(self) -> tuple | None:
        """(args, kwargs) that the program was exported with; None in a loaded one."""
        return self._example_inputs

    @property
    def module_call_graph(self) -> list[ModuleCallEntry]:
        """The program, then each of its submodules; a signature where ``preserve_module_call_signature`` kept it."""
        s = self._signature
        inputs = [i.arg for i in s.input_specs if i.kind is InputKind.USER_INPUT]
        outputs = [o.arg for o in s.output_specs if o.kind is OutputKind.USER_OUTPUT]
        spec = self._call_spec
        whole = ModuleCallEntry("", ModuleCallSignature(inputs, outputs, spec.in_spec, spec.out_spec))
        return [whole, *self._modules]

    @property
    def dialect(self) -> str:
        return "ATEN"

    @property
    def verifiers(self) -> list:
        return []

    def validate(self) -> None:
        """RuntimeError where the graph isn't well formed or doesn't fit its signature."""
        self.graph.lint()
        names = [n.name for n in self.graph.nodes if n.op == "placeholder"]
        if names != [s.arg.name for s in self._signature.input_specs]:
            raise RuntimeError("the placeholders of the exported graph are not those of its signature")

    def named_parameters(self):
        for s in self._signature.parameters:
            yield s, self._state[s]

    def parameters(self):
        for _, p in self.named_parameters():
            yield p

    def named_buffers(self):
        for s in self._signature.buffers:
            yield s, self._state.get(s, self._constants.get(s))

    def buffers(self):
        for _, b in self.named_buffers():
            yield b

    def tensor_of(self, spec) -> Any:
        """The tensor of the module that an input specification names."""
        return self._state.get(spec.target, self._constants.get(spec.target))

    def module(self, check_guards: bool = True) -> ExportedModule:
        """A module that runs the program, with the tensors of this one. Every call is held to the constraints (AssertionError naming the
        input, symbol and value) unless ``check_guards`` is False."""
        return ExportedModule(self, check_guards)

    def __call__(self, *args, **kwargs):
        """The same as ``module()(*args, **kwargs)``."""
        return self.module()(*args, **kwargs)

    def run_decompositions(self, decomp_table: dict[Any, Callable] | None = None, **options) -> ExportedProgram:
        """The program without writes in place: they are results of the graph, which ``graph_signature`` names.

        Without a table composites are replaced by what they are made of. With one its operators are replaced by what their functions do, and a
        composite that isn't in it stays, unless it may write or give back what it is given; ``default_decompositions()`` has all composites.
        Signatures of submodules aren't kept."""
        options.pop("decompose_custom_triton_ops", None)
        if options:
            raise TypeError(f"run_decompositions() got an unexpected keyword argument {next(iter(options))!r}")
        table = decomp_table.materialize() if isinstance(decomp_table, CustomDecompTable) else decomp_table
        return self._with(*decompose(self._gm, self._signature, table))

    def _with(self, gm: GraphModule, signature: ExportGraphSignature, assumed: list[Any]) -> ExportedProgram:
        checks = dataclasses.replace(self._checks, guards=[*self._checks.guards, *((r, None) for r in assumed)])
        return ExportedProgram(
            gm,
            signature,
            dict(self._state),
            dict(self._constants),
            self._ranges,
            checks,
            self._call_spec,
            self._example_inputs,
            [ModuleCallEntry(m.fqn, None, m.same_as) for m in self._modules if "@" not in m.fqn],
        )

    def __str__(self):
        code = self._gm.print_readable(print_output=False).replace("\n", "\n    ")
        return f"ExportedProgram:\n    {code}\nGraph signature: {self._signature}\nRange constraints: {self._ranges}\n"

    __repr__ = __str__
