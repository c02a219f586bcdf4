"""``torch._dynamo.export``: one graph of a function, called as the function is.

The function runs once, captured whole. What the graph was given is found among the arguments, what it returned in the result; the rest of the inputs
(parameters, tensors of closures) become attributes of the graph's module, the rest of the result constants.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import re
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

from ..base import pytree
from ..base.compiling import exporting
from ..base.shape_env import ConstraintViolationError, ShapeEnv
from ..compiler.wrap import wrap_callable
from ..core.generator import default_generator
from ..core.tensor import Tensor
from ..dynamo.capture_events import Event
from ..dynamo.config import config
from ..dynamo.convert import Compiler
from ..dynamo.exc import UserError, UserErrorType
from ..dynamo.guards.dynamic import given_sizes
from ..fx import Graph, GraphModule, Interpreter
from ..fx.pytree_codegen import _PyTreeCodeGen, _PyTreeInfo
from ..fx.traceback import preserve_node_meta
from ..proxy import make_fx
from .constraints import Symbols
from .dynamic_shapes import leaf_specs
from .stand_ins import StandIns
from .tracing import parameter_names

__all__ = ["ExportResult", "export"]


class ExportResult(NamedTuple):
    """The module, and the conditions on the arguments that it was captured under."""

    graph_module: GraphModule
    guards: Any


class _Number(int):
    """A number that the graph returned: known again in the result by being this very object."""


class _Recorder:
    """The backend: keeps the graph, and what it was given and returned."""

    def __init__(self):
        self.graphs: list[GraphModule] = []
        self.inputs: tuple = ()
        self.outputs: list[Any] = []

    def __call__(self, gm: GraphModule, example_inputs):
        self.graphs.append(gm)

        def run(*args):
            self.inputs = args
            place = default_generator.place()
            out = gm(*[a.clone() if isinstance(a, Tensor) else a for a in args])  # the user's tensors stay as they are
            default_generator.go_back(place)
            self.outputs = [_Number(x) if type(x) is int else x for x in out]
            return tuple(self.outputs)

        return run


def export(
    f: Callable,
    *extra_args: Any,
    aten_graph: bool = False,
    pre_dispatch: bool = False,
    decomposition_table: dict | None = None,
    tracing_mode: str = "symbolic",
    dynamic_shapes: Any = None,
    specialize_float: bool = True,
    assume_static_by_default: bool = False,
    same_signature: bool = True,
    disable_constraint_solver: bool = False,
    prefer_deferred_runtime_asserts_over_guards: bool = False,
    **extra_kwargs: Any,
) -> Any:
    """``export(f)(*args, **kwargs)`` gives an :class:`ExportResult` whose module is called as ``f`` is.

    ``aten_graph``: the graph is of ATen's operators, ``decomposition_table`` and ``tracing_mode`` ("symbolic", "fake", "real") as for make_fx.
    ``assume_static_by_default``: sizes are constants. ``dynamic_shapes``: as for ``torch.export.export``, but dimensions that a dict leaves
    out vary, and so does everything where there is no specification. ``disable_constraint_solver``: what the function makes of named
    sizes isn't checked against their specification.

    AssertionError for options that go with ``aten_graph`` without it; Unsupported where the function can't be captured whole;
    ConstraintViolationError for examples that aren't what the specification says, and where the function needs less of a size than it promises.
    """
    if decomposition_table is not None and not aten_graph:
        raise AssertionError(
            "Specifying a decomposition_table table or tracing mode is illegal without setting aten_graph=True"
        )
    if prefer_deferred_runtime_asserts_over_guards:
        raise NotImplementedError("torch._dynamo.export: prefer_deferred_runtime_asserts_over_guards is not built")
    if pre_dispatch and not aten_graph:
        raise AssertionError("pre_dispatch=True can only be used when aten_graph=True")

    def inner(*args: Any, **kwargs: Any) -> ExportResult:
        stand_ins = StandIns()
        with stand_ins.within(getattr(f, "__self__", f)):
            result = exported(*stand_ins.given(args), **stand_ins.given(kwargs))
        stand_ins.put_back(result.graph_module)
        return result

    def exported(*args: Any, **kwargs: Any) -> ExportResult:
        recorder, events = _Recorder(), []
        dynamic = None if assume_static_by_default else True
        compiler = Compiler(recorder, "export", fullgraph=True, dynamic=dynamic)
        compiler.listeners.append(events.append)
        leaves, in_spec = pytree.tree_flatten((args, kwargs))
        _check_leaves("input", leaves)
        specified = _Specified()
        sizes = specified.sizes(f, args, kwargs, dynamic_shapes) if dynamic_shapes else contextlib.nullcontext()
        with exporting(), sizes, config.patch(specialize_int=True):
            result = wrap_callable(f, compiler)(*args, **kwargs)
        if specified.symbols is not None and not disable_constraint_solver:
            specified.symbols.check()
        results, out_spec = pytree.tree_flatten(result)
        _check_leaves("output", results)
        if not recorder.graphs and not same_signature:
            raise AssertionError(
                "Failed to produce a graph during tracing as no tensor operations were found and same_signature is False."
            )
        module = _whole(f, recorder, leaves, results)
        if aten_graph:
            module = _of_operators(module, leaves, decomposition_table, tracing_mode)
        if same_signature:
            info = _PyTreeInfo(_names(f, args, kwargs), in_spec, out_spec)
            module.graph.set_codegen(_PyTreeCodeGen(info))
            module.recompile()
        return ExportResult(module, _guards(events))

    if extra_args or extra_kwargs:
        warnings.warn(
            "export(f, *args, **kwargs) is deprecated, use export(f)(*args, **kwargs) instead.",
            FutureWarning,
            stacklevel=2,
        )
        return inner(*extra_args, **extra_kwargs)
    return inner


def _check_leaves(kind: str, leaves: list) -> None:
    """UserError for an object of a dataclass that isn't registered as a container: its parts can't be inputs or results of a graph."""
    bad = next((x for x in leaves if dataclasses.is_dataclass(x) and not isinstance(x, type)), None)
    if bad is not None:
        raise UserError(
            UserErrorType.INVALID_INPUT if kind == "input" else UserErrorType.INVALID_OUTPUT,
            f"It looks like one of the {kind}s with type `{type(bad)}` is not supported or pytree-flattenable. Exported graphs {kind}s can only "
            "contain tensors, numbers, strings and None. If you are using a custom class object, please register a pytree_flatten/unflatten "
            "function using `torch.utils._pytree.register_pytree_node` or `torch.export.register_dataclass`.",
        )


class _Specified:
    """The sizes that ``dynamic_shapes`` names, in the environment of the capture (which makes a new one when it starts again)."""

    def __init__(self):
        self.symbols: Symbols | None = None

    def size(self, spec: Any, env: ShapeEnv, n: int, source: Any) -> Any:
        if self.symbols is None or self.symbols.env is not env:
            self.symbols = Symbols(env, ConstraintViolationError)
        return self.symbols.size(n, spec, source)

    def sizes(self, f: Callable, args: tuple, kwargs: dict, dynamic_shapes: Any) -> contextlib.AbstractContextManager:
        """In this context the tensors among the arguments have them."""
        rows = [r for r in leaf_specs(parameter_names(f, args, kwargs), dynamic_shapes) if isinstance(r[1], Tensor)]
        trial = Symbols(ShapeEnv(), ConstraintViolationError)  # the examples are checked whatever the function reads
        for path, value, spec in rows:
            for d, s in spec.items():
                trial.size(value.shape[d], s, f"{path}.size()[{d}]")
        return given_sizes(
            [(value, {d: functools.partial(self.size, s) for d, s in spec.items()}) for _, value, spec in rows]
        )


def _guards(events: list[Event]) -> set:
    return {str(g) for e in events for g in e.guards}


def _names(f: Callable, args: tuple, kwargs: dict) -> list[str]:
    """The parameters' names: those of the signature, ``args_0`` for what a ``*args`` takes."""
    names: list[str] = []
    try:
        parameters = list(inspect.signature(getattr(f, "forward", f)).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    for p in parameters:
        if p.kind is p.VAR_POSITIONAL:
            names += [f"{p.name}_{i}" for i in range(len(args) - len(names))]
        elif p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and len(names) < len(args):
            names.append(p.name)
    names += [f"arg_{i}" for i in range(len(names), len(args))]
    return [*names[: len(args)], *kwargs]


_PART = re.compile(r"\['([^']+)'\]")


def _path(source: str | None, taken: dict[str, Any], value: Any, at: int) -> str:
    """Where the module keeps an input that is no argument: under its name in the user's module."""
    if source is not None and source.startswith("L['self']."):
        path = ".".join(_PART.findall(source[len("L['self']") :]))
        if path and all(p.isidentifier() or p.isdigit() for p in path.split(".")) and taken.get(path, value) is value:
            return path
    return f"_lifted_{at}"


def _whole(f: Callable, recorder: _Recorder, leaves: list, results: list) -> GraphModule:
    """The graph on all leaves of the arguments, returning all leaves of the result."""
    graph = Graph()
    inputs = [graph.placeholder(f"arg{i}") for i in range(len(leaves))]
    by_id: dict[int, Any] = {}
    for node, leaf in zip(inputs, leaves):
        by_id.setdefault(id(leaf), node)
    values: dict[str, Any] = {}
    returned: dict[int, Any] = {}
    if recorder.graphs:
        gm = recorder.graphs[-1]
        env: dict[Any, Any] = {}
        placeholders = [n for n in gm.graph.nodes if n.op == "placeholder"]
        for i, (node, value) in enumerate(zip(placeholders, recorder.inputs)):
            found = by_id.get(id(value))
            if found is None and not isinstance(value, Tensor):
                found = next(
                    (n for n, leaf in zip(inputs, leaves) if type(leaf) is type(value) and leaf == value), None
                )
            if found is None:
                path = _path(node.meta.get("source"), values, value, i)
                values[path] = value
                found = graph.get_attr(path)
                found.meta.update(node.meta)
            else:
                found.meta.update(node.meta)
            env[node] = found
        for node in gm.graph.nodes:
            if node.op in ("get_attr", "call_module"):
                values[node.target] = _found(gm, node.target)
        out = graph.graph_copy(gm.graph, env)
        for node, value in zip(out, recorder.outputs):
            returned.setdefault(id(value), node)
    made = []
    for x in results:
        node = returned.get(id(x), by_id.get(id(x)) if isinstance(x, Tensor) else None)
        if node is None and isinstance(x, Tensor):
            path = f"_result_{len(values)}"
            values[path] = x
            node = graph.get_attr(path)
        made.append(x if node is None else node)
    graph.output(made)
    name = type(f).__name__ if hasattr(f, "forward") else getattr(f, "__name__", "GraphModule")
    return GraphModule(values, graph, name if name.isidentifier() else "GraphModule")


def _found(gm: GraphModule, path: str) -> Any:
    obj: Any = gm
    for part in path.split("."):
        obj = getattr(obj, part)
    return obj


def _of_operators(module: GraphModule, leaves: list, decomposition_table, tracing_mode: str) -> GraphModule:
    """The same graph in ATen's operators."""
    with preserve_node_meta():
        run = lambda *flat: list(Interpreter(module).run(*flat))  # noqa: E731
        traced = make_fx(run, decomposition_table, tracing_mode, _allow_non_fake_inputs=True)(*leaves)
    have = [n for n in traced.graph.nodes if n.op == "placeholder"]
    if len(have) != len(leaves):
        tensors = iter(have)
        first = next(iter(traced.graph.nodes))
        for i, leaf in enumerate(leaves):
            if isinstance(leaf, Tensor):
                first = next(tensors).next
                continue
            with traced.graph.inserting_before(first):
                traced.graph.placeholder(f"arg{i}_1")
    traced.graph.specs = None
    for node, old in zip((n for n in traced.graph.nodes if n.op == "placeholder"), module.graph.nodes):
        for key, value in old.meta.items():
            node.meta.setdefault(key, value)
    traced.recompile()
    return traced
