"""Controls of tracing for a region of a program: as context managers, decorators, or for modules by name."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator
from typing import Any

from flambeau.core.tensor import Tensor
from flambeau.dynamo.config import config
from flambeau.dynamo.convert import reset_caches
from flambeau.dynamo.rules import trace_rules
from flambeau.dynamo.rules.trace_rules import allow_in_graph, disallow_in_graph

__all__ = [
    "allowed",
    "disable_module",
    "disable_path",
    "disallowed",
    "dynamo_ops_for",
    "enable_module",
    "error_on_graph_break",
    "nested_compile_region",
    "nonstrict_trace",
    "patch_dynamo_config",
    "substitute_in_graph",
]


class _Undo:
    """What a rule returns: ``with`` it the rule holds for the block, and captured code made under other rules is forgotten on both ends."""

    def __init__(self, undo: Callable[[], None]):
        self.undo = undo

    def __enter__(self):
        reset_caches()
        return self

    def __exit__(self, *exc):
        self.undo()
        reset_caches()
        return False


def disable_module(pattern: str) -> _Undo:
    """Functions of modules whose names match (``"package.*"``, as in fnmatch) run as ordinary Python: from now on, or for the block
    ``with disable_module(...)``. What is captured already stays (in a block it is forgotten)."""
    trace_rules.disabled_modules.add(pattern)
    return _Undo(lambda: enable_module(pattern))


def disable_path(path: str) -> _Undo:
    """The same for the functions of a file, or of all files below a folder."""
    trace_rules.disable_path(path)
    return _Undo(lambda: trace_rules.enable_path(path))


def enable_module(pattern: str) -> None:
    """Undo :func:`disable_module`."""
    trace_rules.disabled_modules.discard(pattern)


class _Scope:
    """Rules that hold for a ``with`` block, in every thread. Captured code made under other rules is forgotten on both ends."""

    def __init__(self, *fns):
        self.fns = fns
        self.saved: list[tuple[list, list]] = []

    def __enter__(self):
        self.saved.append(([*trace_rules.allowed], [*trace_rules.disallowed]))
        self.change(list(self.fns))
        reset_caches()
        return self

    def __exit__(self, *exc):
        for table, before in zip((trace_rules.allowed, trace_rules.disallowed), self.saved.pop()):
            table.clear()
            for fn in before:
                table.add(fn)
        reset_caches()
        return False

    def change(self, fns: list) -> None:
        raise NotImplementedError(type(self).__name__)


class disallowed(_Scope):
    """``with disallowed(op, ...)``: disallow_in_graph for the block."""

    def change(self, fns):
        disallow_in_graph(fns)


class allowed(_Scope):
    """``with allowed(fn, ...)``: allow_in_graph for the block."""

    def change(self, fns):
        allow_in_graph(fns)


class error_on_graph_break:
    """While on, a graph break in captured code is an error, as under ``fullgraph=True``; a context manager and a decorator, in traced code. No
    effect in plain code."""

    def __init__(self, error: bool):
        self.error = error

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return False

    def __call__(self, fn: Callable) -> Callable:
        error = self.error

        @functools.wraps(fn)
        def region(*args, **kwargs):
            with error_on_graph_break(error):
                return fn(*args, **kwargs)

        return region


def patch_dynamo_config(arg: Any = None, value: Any = None, **changes):
    """``torch._dynamo.config.patch``, also in traced code: the settings hold while the region is traced."""
    if arg is not None:
        changes = {**(arg if isinstance(arg, dict) else {arg: value}), **changes}
    return _PatchedConfig(changes)


class _PatchedConfig:
    def __init__(self, changes: dict[str, Any]):
        self.changes = changes
        self.entered: list = []

    def __enter__(self):
        patch = config.patch(self.changes)
        patch.__enter__()
        self.entered.append(patch)
        return self

    def __exit__(self, *exc):
        self.entered.pop().__exit__(*exc)
        return False

    def __call__(self, fn: Callable) -> Callable:
        changes = self.changes

        @functools.wraps(fn)
        def region(*args, **kwargs):
            with _PatchedConfig(changes):
                return fn(*args, **kwargs)

        return region


def nonstrict_trace(fn: Callable) -> Callable:
    """``fn`` as one node of the graph: capture doesn't look into it, the compiler traces through it. What it reads other than its arguments is
    taken as constant. ``fn`` itself stays as it is."""

    @functools.wraps(fn)
    def node(*args, **kwargs):
        return fn(*args, **kwargs)

    return allow_in_graph(node)


def substitute_in_graph(
    original_fn: Callable, *, can_constant_fold_through: bool = False, skip_signature_check: bool = False
):
    """Decorator: traced calls of ``original_fn``, which capture can't look into, trace the decorated function instead. TypeError for one that
    is no callable; the result can't be called outside of captured code."""
    if not callable(original_fn):
        raise TypeError(f"substitute_in_graph expects a callable, got {type(original_fn).__name__}")

    def register(traced: Callable) -> Callable:
        if not isinstance(traced, types.FunctionType):
            raise TypeError(f"@substitute_in_graph expects a function, got {type(traced).__name__}")
        trace_rules.substitutes[original_fn] = traced

        @functools.wraps(traced)
        def refused(*args, **kwargs):
            raise RuntimeError(
                f"{traced.__name__} stands for {original_fn!r} in captured code and is not meant to be called itself"
            )

        refused.__torch_dynamo_original__ = original_fn
        return refused

    return register


def nested_compile_region(fn: Callable | None = None):
    """A function that is one region wherever compiled code calls it: captured into a graph of its own (a node ``invoke_subgraph``), which calls on
    equal shapes share, so that it is differentiated and compiled once. Regions that write, draw random numbers or change objects of the program
    are captured with their caller. Plainly it is the function."""
    if fn is None:
        return nested_compile_region

    @functools.wraps(fn)
    def region(*args, **kwargs):
        return fn(*args, **kwargs)

    region.__dict__[trace_rules.REGION] = "region"
    return region


nested_compile_region.__dict__[trace_rules.REGION] = "maker"


def _places() -> Iterator[dict]:
    import flambeau as torch

    yield vars(torch)
    yield from (vars(c) for c in Tensor.__mro__)
    yield vars(torch.nn.functional)


def dynamo_ops_for(op: Any) -> set:
    """The functions and methods that capture sees for an ATen operator (an overload or a packet): what disallow_in_graph can be asked for."""
    name = getattr(op, "_opname", None) or getattr(op, "__name__", str(op))
    names = {name, *(f"__{prefix}{name}__" for prefix in ("", "r", "i"))}
    found = (v for place in _places() for v in place.values() if callable(v) and not isinstance(v, type))
    return {v for v in found if getattr(v, "__name__", None) in names}
