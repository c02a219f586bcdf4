"""``pipeline``: the stages of a module, by tracing it.

While torch.export runs the module, every operator is noted with the number of splits before it. A stage's graph has the operators of its number and
the parameters that they use, under their names in the module. Whatever a later stage needs is handed on by each stage between, so
that stages talk to their neighbours only."""

from __future__ import annotations

import contextlib
import enum
import functools
from collections.abc import Callable
from typing import Any

from ...base.public import public_in
from ...export import ExportedProgram, export
from ...export.exported_module import flat_inputs
from ...export.graph_signature import InputKind, OutputKind
from ...export.structure import Structure
from ...fx import Graph, GraphModule, Node, map_arg
from ...fx.traceback import get_current_meta, set_custom_entry
from ...modules.module import Module
from ...nn import Parameter
from .stage import PipeInfo, PipelineStage, build_stage

__all__ = ["Pipe", "SplitPoint", "pipe_split", "pipeline"]

_STAGE = "pipeline_stage"


@public_in("distributed.pipelining")
class SplitPoint(enum.Enum):
    """Where a submodule begins a stage: before its call or behind it."""

    BEGINNING = 1
    END = 2


def pipe_split() -> None:
    """In a module's forward: what follows is of the next stage. Does nothing outside of ``pipeline``."""
    set_custom_entry(_STAGE, get_current_meta().get("custom", {}).get(_STAGE, 0) + 1)


@contextlib.contextmanager
def _split_at(module: Module, spec: dict[str, SplitPoint]):
    """In this block the submodules of ``spec`` split when they are called."""
    handles = []
    try:
        for name, point in spec.items():
            if not isinstance(point, SplitPoint):
                raise ValueError(f"Unknown split point type: {point!r} for {name!r}")
            try:
                part = module.get_submodule(name)
            except AttributeError as error:
                raise AttributeError(f"Specified target {name} referenced nonexistent module: {error}") from None
            if point is SplitPoint.BEGINNING:
                handles.append(part.register_forward_pre_hook(lambda *_: pipe_split()))
            else:
                handles.append(part.register_forward_hook(lambda *_: pipe_split()))
        yield
    finally:
        for handle in handles:
            handle.remove()


def pipeline(
    module: Module,
    mb_args: tuple,
    mb_kwargs: dict[str, Any] | None = None,
    split_spec: dict[str, SplitPoint] | None = None,
    split_policy: Callable | None = None,
) -> Pipe:
    """``module`` as stages: split where ``split_spec`` says (names of submodules and SplitPoints), else where its forward calls ``pipe_split()``.

    ``mb_args`` and ``mb_kwargs``: the inputs of one microbatch, whose sizes the stages are made for. ``module`` isn't changed, and the stages have
    its own parameters. Raises what ``torch.export.export`` raises, as the cause of a RuntimeError; ValueError for both kinds of splits,
    AttributeError for a name that isn't there."""
    if split_spec is not None and split_policy is not None:
        raise ValueError("Cannot specify both `split_spec` and `split_policy`. Please use only one of them.")
    if split_policy is not None:
        raise NotImplementedError(
            "pipeline: split_policy isn't built; name submodules in split_spec, or call pipe_split()"
        )
    try:
        with _split_at(module, split_spec or {}):
            program = export(module, mb_args, mb_kwargs)
    except (AttributeError, ValueError):
        raise
    except Exception as error:
        raise RuntimeError(
            "It seems that we cannot capture your model as a full graph. Typical reasons include graph breaks, data/shape-dependent "
            "control flow, or missing meta kernels for custom operators. You can use our manual pipeline interfaces, or try to fix the "
            "graph breaks, see https://pytorch.org/docs/stable/export.html"
        ) from error
    return Pipe(_stages(program), program.call_spec)


@public_in("distributed.pipelining")
class Pipe(Module):
    """The stages of a traced module; made by :func:`pipeline`. Called, it runs all of them here, one behind the other."""

    def __init__(self, stages: list[GraphModule], call_spec):
        super().__init__()
        self.split_gm = Module()
        for k, stage in enumerate(stages):
            self.split_gm.add_module(f"submod_{k}", stage)
        self.num_stages, self.has_loss_and_backward, self._call_spec = len(stages), False, call_spec

    def forward(self, *args, **kwargs):
        out = self.get_stage_module(0)(*args, **kwargs)
        for k in range(1, self.num_stages):
            out = self.get_stage_module(k)(*(out if isinstance(out, tuple) else (out,)))
        return out

    def get_stage_module(self, stage_idx: int) -> Module:
        """The module of a stage. ValueError when there is none of that number."""
        if not 0 <= stage_idx < self.num_stages:
            raise ValueError(f"Invalid stage index {stage_idx}!")
        return getattr(self.split_gm, f"submod_{stage_idx}")

    def info(self) -> PipeInfo:
        return PipeInfo(None, self.num_stages, self.has_loss_and_backward)

    def build_stage(self, stage_index: int, device=None, group=None) -> PipelineStage:
        """The stage, for a schedule."""
        return build_stage(self.get_stage_module(stage_index), stage_index, self.info(), device, group)

    def print_readable(self) -> None:
        """Print the code of all stages."""
        for k in range(self.num_stages):
            self.get_stage_module(k).print_readable()


def _numbers(program: ExportedProgram) -> dict[Node, int]:
    """The stage of each node but parameters."""
    found: dict[Node, int] = {}
    own = _tensors(program)
    for n in program.graph.nodes:
        if n.op == "output" or n in own:
            continue
        before = max((found[i] for i in n.all_input_nodes if i in found), default=0)
        found[n] = max(before, n.meta.get("custom", {}).get(_STAGE, 0))
    # Splits with nothing between them are one.
    ranks = {number: k for k, number in enumerate(sorted({found[n] for n in found if n.op != "placeholder"}))}
    return {n: ranks.get(number, 0) for n, number in found.items()}


def _tensors(program: ExportedProgram) -> dict[Node, str]:
    """The placeholders that are parameters, buffers and constants, and their names in the module."""
    inputs = [n for n in program.graph.nodes if n.op == "placeholder"]
    specs = program.graph_signature.input_specs
    return {n: s.target for n, s in zip(inputs, specs, strict=True) if s.kind is not InputKind.USER_INPUT}


def _stages(program: ExportedProgram) -> list[GraphModule]:
    """A module for each stage."""
    written = [s for s in program.graph_signature.output_specs if s.kind is not OutputKind.USER_OUTPUT]
    if written:
        raise NotImplementedError(
            f"pipeline: writes to {[s.target for s in written]} by the end of the program aren't built"
        )
    tensors, numbers = _tensors(program), _numbers(program)
    count = max(numbers.values(), default=0) + 1
    last_use = dict(numbers)
    for n in program.graph.nodes:
        for i in n.all_input_nodes:
            if i in numbers:
                last_use[i] = max(last_use[i], count - 1 if n.op == "output" else numbers[n])
    stages = []
    for k in range(count):
        arriving = [n for n in numbers if numbers[n] < k <= last_use[n]]
        leaving = [n for n in numbers if numbers[n] <= k < last_use[n]]
        stages.append(_stage(program, k, count, numbers, tensors, arriving, leaving))
    _take_inputs(stages[0], program.call_spec.in_spec)
    return stages


def _stage(program, k: int, count: int, numbers, tensors, arriving: list[Node], leaving: list[Node]) -> GraphModule:
    graph, root = Graph(), Module()
    here: dict[Node, Node] = {n: graph.placeholder(n.name) for n in arriving}

    def value(n: Node) -> Node:
        if n not in here:
            _place(root, tensors[n], program)
            here[n] = graph.get_attr(tensors[n])
        return here[n]

    for n in program.graph.nodes:
        if n in numbers and numbers[n] == k:
            if n.op == "get_attr":
                _set(root, n.target, functools.reduce(getattr, n.target.split("."), program.graph_module))
            map_arg((n.args, n.kwargs), value)
            here[n] = graph.node_copy(n, value)
    if k < count - 1:
        graph.output(here[leaving[0]] if len(leaving) == 1 else tuple(here[n] for n in leaving))
    else:
        leaves = map_arg(program.graph.output_node().args[0], value)
        graph.output(program.call_spec.out_spec.unflatten(leaves))
    return GraphModule(root, graph, f"Stage{k}")


def _set(root: Module, name: str, value: Any, buffer: bool = False, persistent: bool = True) -> None:
    *path, last = name.split(".")
    for part in path:
        if part not in root._modules:
            root.add_module(part, Module())
        root = root._modules[part]
    if isinstance(value, Parameter):
        root.register_parameter(last, value)
    elif buffer:
        root.register_buffer(last, value, persistent=persistent)
    else:
        setattr(root, last, value)


def _place(root: Module, name: str, program: ExportedProgram) -> None:
    """A parameter, buffer or constant under its name."""
    kept = name in program.state_dict
    value = program.state_dict[name] if kept else program.constants[name]
    kinds = {s.target: s.kind for s in program.graph_signature.input_specs}
    _set(root, name, value, kinds[name] is InputKind.BUFFER, kept)


def _take_inputs(stage: GraphModule, spec: Structure) -> None:
    """Let the first stage take arguments as the module does: nested ones and keywords."""
    args, kwargs = spec.parts
    if not kwargs.parts and all(p.kind == "leaf" for p in args.parts):
        return
    stage.register_forward_pre_hook(
        lambda _, args, kwargs: (tuple(flat_inputs(spec, args, kwargs)), {}), with_kwargs=True
    )
