"""The namespace ``torch._dynamo``."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import types

from flambeau import _frame
from flambeau.dynamo import comptime, convert, exc, stances, utils, variables
from flambeau.dynamo.config import config
from flambeau.dynamo.guards.dynamic import mark_dynamic, mark_static, mark_unbacked, maybe_mark_dynamic
from flambeau.dynamo.numpy import numpy_bridge
from flambeau.dynamo.rules import trace_rules

from . import backends as _backends
from .backends import list_backends, lookup_backend, register_backend
from .controls import (
    allow_in_graph,
    assume_constant_result,
    disable,
    disallow_in_graph,
    graph_break,
    reset,
    run,
    set_stance,
    skip,
)
from .explain import ExplainOutput, explain
from .regions import (
    dynamo_ops_for,
    error_on_graph_break,
    nonstrict_trace,
    patch_dynamo_config,
    substitute_in_graph,
)
from .wrap import OptimizedModule, compiler_for, wrap_callable

__all__ = [
    "ExplainOutput",
    "OptimizedModule",
    "allow_in_graph",
    "assume_constant_result",
    "comptime",
    "config",
    "disable",
    "disallow_in_graph",
    "dynamo_ops_for",
    "error_on_graph_break",
    "exc",
    "explain",
    "forbid_in_graph",
    "graph_break",
    "is_compiling",
    "list_backends",
    "lookup_backend",
    "mark_dynamic",
    "mark_static",
    "mark_unbacked",
    "maybe_mark_dynamic",
    "nonstrict_trace",
    "on_compile_end",
    "on_compile_start",
    "numpy_bridge",
    "optimize",
    "patch_dynamo_config",
    "register_backend",
    "reset",
    "reset_code_caches",
    "run",
    "set_stance",
    "skip",
    "substitute_in_graph",
    "trace_rules",
    "utils",
    "variables",
]

reset_code_caches = convert.reset_caches
on_compile_start, on_compile_end = stances.on_compile_start, stances.on_compile_end


def __getattr__(name: str):
    if name in ("export", "ExportResult"):  # loaded when it is asked for: what exports is most of the package
        return getattr(importlib.import_module("flambeau.export.dynamo_export"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def is_compiling() -> bool:
    """Whether the caller is being traced."""
    return convert.is_compiling()


def is_dynamo_supported() -> bool:
    """Whether functions can be captured here: always, on every CPython that flambeau installs on."""
    return True


def is_inductor_supported() -> bool:
    """Whether the compiler can be loaded: it needs llvmlite, which is among the package's requirements."""
    return importlib.util.find_spec("llvmlite") is not None


def optimize(backend="inductor", *, nopython: bool = False, disable: bool = False, dynamic: bool | None = None):
    """The older spelling of compile(): ``optimize(backend)(fn)``; ``nopython`` is ``fullgraph``. As a context manager it captures what is
    called in the block."""
    disable = disable or os.environ.get("TORCHDYNAMO_DISABLE", "") == "1"
    return _Optimize(None if disable else compiler_for(backend, nopython, dynamic))


class _Optimize:
    def __init__(self, compiler):
        self.compiler, self.before = compiler, []

    def __call__(self, fn):
        return fn if self.compiler is None else wrap_callable(fn, self.compiler)

    def __enter__(self):
        self.before.append(_frame.set_context(self.compiler))
        return self

    def __exit__(self, *exc):
        _frame.set_context(self.before.pop())
        return False


def optimize_assert(backend, *, dynamic: bool | None = None):
    """``optimize(backend, nopython=True, dynamic=dynamic)``."""
    return optimize(backend, nopython=True, dynamic=dynamic)


def forbid_in_graph(fn):
    """Captured code that calls ``fn`` (or one of a list of callables) is an AssertionError: no graph break helps."""
    for f in fn if isinstance(fn, (list, tuple)) else (fn,):
        if not callable(f):
            raise AssertionError(f"forbid_in_graph expects a callable, got {type(f).__name__}")
        trace_rules.forbid(f, "torch._dynamo.forbid_in_graph was called for it")
    return fn


def _submodule(name: str, doc: str, **names) -> types.ModuleType:
    """A module of this namespace that has no file of its own."""
    m = types.ModuleType(f"{__name__}.{name}", doc)
    m.__dict__.update(names)
    sys.modules[m.__name__] = m
    return m


class CompileCounter:
    """A backend that counts graphs and operations and runs the graph as it is."""

    def __init__(self):
        self.frame_count = self.op_count = 0
        self.graphs: list = []

    def __call__(self, gm, example_inputs):
        self.frame_count += 1
        self.op_count += sum(n.op.startswith("call") for n in gm.graph.nodes)
        self.graphs.append(gm)
        return gm.forward

    def clear(self) -> None:
        self.__init__()


backends = _submodule("backends", "Backends of compile().", registry=None, common=None)
backends.registry = _submodule(
    "backends.registry",
    "Backends by name.",
    register_backend=register_backend,
    list_backends=list_backends,
    lookup_backend=lookup_backend,
)
backends.common = _submodule("backends.common", "What backends are made of.", aot_autograd=_backends.aot_autograd)
testing = _submodule(
    "testing", "Backends for tests.", CompileCounter=CompileCounter, EagerAndRecordGraphs=CompileCounter
)
decorators = _submodule(
    "decorators",
    "What is put on functions, and on tensors.",
    allow_in_graph=allow_in_graph,
    assume_constant_result=assume_constant_result,
    disable=disable,
    disallow_in_graph=disallow_in_graph,
    forbid_in_graph=forbid_in_graph,
    graph_break=graph_break,
    mark_dynamic=mark_dynamic,
    mark_static=mark_static,
    maybe_mark_dynamic=maybe_mark_dynamic,
    set_stance=set_stance,
    skip=skip,
    substitute_in_graph=substitute_in_graph,
)
callback = _submodule(
    "callback",
    "Who hears that a frame is compiled.",
    on_compile_start=on_compile_start,
    on_compile_end=on_compile_end,
    CallbackArgs=stances.CallbackArgs,
    clear=stances.clear_callbacks,
)
eval_frame = _submodule(
    "eval_frame",
    "Frame evaluation.",
    OptimizedModule=OptimizedModule,
    set_eval_frame=_frame.set_context,
    innermost_fn=trace_rules.unwrap_compiled,
    is_dynamo_supported=is_dynamo_supported,
    is_inductor_supported=is_inductor_supported,
    optimize=optimize,
    reset_code=_frame.forget,
)
eval_frame.__getattr__ = __getattr__
