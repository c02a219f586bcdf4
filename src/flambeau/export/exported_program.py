"""``ExportedProgram``: a graph, what its inputs and outputs are, the tensors of the module, and what a call is held to."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _C, nn
from ..aot.tracing import trace
from ..autograd.grad_mode import no_grad
from ..base.public import public_in
from ..fx import Graph, GraphModule, Interpreter, Node
from .constraints import Checks
from .graph_signature import ExportGraphSignature, InputKind, OutputKind
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


@dataclasses.dataclass
class ModuleCallSignature:
    inputs: list
    outputs: list
    in_spec: Structure
    out_spec: Structure
    forward_arg_names: list[str] | None = None


@dataclasses.dataclass
class ModuleCallEntry:
    fqn: str
    signature: ModuleCallSignature | None = None


@public_in("export.decomp_utils")
class CustomDecompTable(dict):
    """Operators and the functions that replace them. Operators that are composites are always decomposed when a program is exported."""

    def __init__(self) -> None:
        super().__init__()

    def materialize(self) -> dict:
        return dict(self)


def default_decompositions() -> CustomDecompTable:
    """The table that :meth:`ExportedProgram.run_decompositions` uses: empty, for exported graphs hold no implicit composite."""
    return CustomDecompTable()


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
    ):
        self._gm, self._signature = gm, signature
        self._state, self._constants = state, constants
        self._ranges, self._checks, self._call_spec = ranges, checks, call_spec
        self._example_inputs = example_inputs

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
        s = self._signature
        inputs = [i.arg for i in s.input_specs if i.kind is InputKind.USER_INPUT]
        outputs = [o.arg for o in s.output_specs if o.kind is OutputKind.USER_OUTPUT]
        spec = self._call_spec
        return [ModuleCallEntry("", ModuleCallSignature(inputs, outputs, spec.in_spec, spec.out_spec))]

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
        """The program with operators replaced by what the functions of ``decomp_table`` do."""
        options.pop("decompose_custom_triton_ops", None)
        if options:
            raise TypeError(f"run_decompositions() got an unexpected keyword argument {next(iter(options))!r}")
        if not decomp_table:
            return self._with(copy.deepcopy(self._gm), copy.deepcopy(self._signature))
        table = decomp_table.materialize() if isinstance(decomp_table, CustomDecompTable) else decomp_table
        nodes = [n for n in self.graph.nodes if n.op == "placeholder"]
        fakes = [n.meta["val"] for n in nodes]
        mode = next((v.fake_mode for v in fakes if isinstance(v, _C.TensorBase)), None)

        def run(*inputs):
            return list(Interpreter(self._gm).run(*inputs))

        env = mode.shape_env if mode is not None else None
        frozen, state = (env.frozen, None) if env is not None else (None, None)
        if env is not None:
            env.frozen = True  # the constraints stand
        try:
            traced = trace(
                run,
                fakes,
                joint=False,
                decompositions=table,
                names=[n.name for n in nodes],
                fake_mode=mode,
                whole=True,
            )
        finally:
            if env is not None:
                env.frozen = frozen
        out = traced.gm.graph.output_node()
        values = out.args[0]
        leaves = [values[o.index] if hasattr(o, "index") else o.value for o in traced.outputs]
        out.args = (tuple(leaves),)
        signature = copy.deepcopy(self._signature)
        for spec, value in zip(signature.output_specs, leaves):
            if isinstance(value, Node):
                spec.arg.name = value.name
        return self._with(traced.gm, signature)

    def _with(self, gm: GraphModule, signature: ExportGraphSignature) -> ExportedProgram:
        return ExportedProgram(
            gm,
            signature,
            dict(self._state),
            dict(self._constants),
            self._ranges,
            self._checks,
            self._call_spec,
            self._example_inputs,
        )

    def __str__(self):
        code = self._gm.print_readable(print_output=False).replace("\n", "\n    ")
        return f"ExportedProgram:\n    {code}\nGraph signature: {self._signature}\nRange constraints: {self._ranges}\n"

    __repr__ = __str__


class ExportedModule(nn.Module):
    """An exported program as a module: parameters, buffers and constants under their names, writes to buffers and inputs are done."""

    def __init__(self, program: ExportedProgram, check_guards: bool = True):
        super().__init__()
        self._program = program
        self._check = program._checks.function() if check_guards else None
        self._run = program.graph_module.forward
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
