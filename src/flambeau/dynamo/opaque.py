"""User functions that go into the graph whole (the argument of vmap or grad): what they may read is guarded or refused.

Nothing traces them at capture, so everything that could change their meaning later has to be a guard: their code, defaults, closure and the
globals they name, through the functions they call. Reading a tensor or a mutable object that is no argument is refused."""

from __future__ import annotations

import builtins
import types

from flambeau import _C

from . import trace_rules
from .exc import unsupported
from .source import CellSource, ConstSource, GetAttrSource, ItemSource, KeySource, Source
from .variables.constant import is_constant_value

__all__ = ["guard_function"]

DEPTH = 8


def guard_function(tx, fn: types.FunctionType, source: Source, depth: int = 0) -> None:
    if depth > DEPTH:
        unsupported("opaque-function", f"{fn.__qualname__} goes into the graph and calls functions {DEPTH} deep")
    code = fn.__code__
    guard = tx.output.guard
    if type(source) is not ConstSource:
        guard(GetAttrSource(source, "__code__"), "ID_MATCH", code)
    for i, value in enumerate(fn.__defaults__ or ()):
        _value(tx, fn, value, ItemSource(GetAttrSource(source, "__defaults__"), i), f"default {i}", depth)
    for i, (name, cell) in enumerate(zip(code.co_freevars, fn.__closure__ or ())):
        try:
            value = cell.cell_contents
        except ValueError:
            continue
        if value is not fn:
            _value(tx, fn, value, CellSource(ItemSource(GetAttrSource(source, "__closure__"), i)), name, depth)
    table = ConstSource(fn.__globals__, f"globals<{fn.__globals__.get('__name__')}>")
    for name in names_of(code):
        if name in fn.__globals__:
            if fn.__globals__[name] is not fn:
                _value(tx, fn, fn.__globals__[name], KeySource(table, name), name, depth)
        elif hasattr(builtins, name):
            guard(table, "NO_KEY", name)


def names_of(code: types.CodeType) -> set[str]:
    out = set(code.co_names)
    for c in code.co_consts:
        if isinstance(c, types.CodeType):
            out |= names_of(c)
    return out


def _value(tx, fn, value, source: Source, name: str, depth: int) -> None:
    if is_constant_value(value):
        tx.output.guard(source, "EQUALS_MATCH", value)
    elif isinstance(value, types.FunctionType) and not trace_rules.is_torch_callable(value) and trace_rules.inline_reason(value)[0] == "inline":
        guard_function(tx, value, source, depth + 1)
    elif isinstance(value, (types.ModuleType, type, types.BuiltinFunctionType)) or trace_rules.is_torch_callable(value) or callable_of_c(value):
        tx.output.guard(source, "ID_MATCH", value)
    elif isinstance(value, _C.TensorBase):
        unsupported(
            "opaque-function",
            f"{fn.__qualname__} goes into the graph and reads the tensor {name}",
            "Only its arguments are graph inputs.",
            "Pass the tensor as an argument.",
        )
    else:
        unsupported(
            "opaque-function",
            f"{fn.__qualname__} goes into the graph and reads {name}, a {type(value).__name__}",
            "It could change without being noticed.",
            "Pass what is needed as an argument.",
        )


def callable_of_c(value) -> bool:
    return type(value).__module__ in ("numpy", "builtins") and callable(value) and not isinstance(value, types.FunctionType)
