"""User functions that go into the graph whole (the argument of vmap or grad): what they may read is guarded or refused.

Nothing traces them at capture, so everything that could change their meaning later has to be a guard: their code, defaults, closure and the
globals they name, through the functions they call. Reading a tensor or a mutable object that is no argument is refused."""

from __future__ import annotations

import builtins
import dis
import types
import warnings

from flambeau import _C
from flambeau.base.code_names import names_of

from ..exc import unsupported
from ..guards.source import CellSource, ConstSource, GetAttrSource, ItemSource, KeySource, Source
from ..rules import trace_rules
from ..rules.constants import is_constant_value
from ..rules.reflect import module_of, name_of

__all__ = ["FunctionTemplate", "guard_function"]

DEPTH = 8


class Watched:
    """Guard that always holds: warns, once, when what a function of allow_in_graph reads beside its arguments has changed since it was captured."""

    def __init__(self, fn):
        self.seen, self.warned = self.reads(fn), False

    @staticmethod
    def reads(fn) -> dict:
        code = fn.__code__
        out = {}
        for name, cell in zip(code.co_freevars, fn.__closure__ or ()):
            try:
                out[name] = cell.cell_contents
            except ValueError:
                continue
        out |= {n: fn.__globals__[n] for n in code.co_names if n in fn.__globals__}
        return {n: state_of(v) for n, v in out.items()}

    def __call__(self, fn) -> bool:
        if not self.warned:
            now = self.reads(fn)
            changed = sorted(n for n in self.seen.keys() | now.keys() if self.seen.get(n) != now.get(n))
            if changed:
                self.warned = True
                warnings.warn(
                    f"allow_in_graph: {fn.__qualname__} ({fn.__code__.co_filename}:{fn.__code__.co_firstlineno}) reads {', '.join(changed)}, "
                    "which changed since it was captured; captured code doesn't notice",
                    stacklevel=2,
                )
        return True


def state_of(v) -> tuple:
    """What tells that a value is another one now: plain values and containers by contents, tensors by version, the rest by identity."""
    if isinstance(v, (bool, int, float, complex, str, bytes, type(None))):
        return name_of(type(v)), repr(v)
    if isinstance(v, (list, tuple)):
        return name_of(type(v)), *map(state_of, v)
    if isinstance(v, dict):
        return "dict", *((repr(k), state_of(x)) for k, x in v.items())
    return name_of(type(v)), id(v), getattr(v, "_version", None)


def watch(tx, fn) -> None:
    """``config.check_allow_in_graph``: check at each call that the objects that ``fn`` reads are unchanged."""
    if type(fn) is types.FunctionType:
        tx.output.guard(ConstSource(fn, fn.__qualname__), "CALL", Watched(fn))


class FunctionTemplate:
    """Target of a node that makes a function: its closure holds values of the graph, given as the node's arguments, and ``fixed`` ones,
    by position."""

    def __init__(
        self, code: types.CodeType, globals: dict, defaults: tuple, kwdefaults: dict, fixed: dict[int, object]
    ):
        self.code, self.globals, self.defaults, self.kwdefaults, self.fixed = code, globals, defaults, kwdefaults, fixed
        self.__name__ = f"make_{code.co_name.strip('<>')}"
        self.__qualname__, self.__module__ = self.__name__, __name__

    def __call__(self, *given) -> types.FunctionType:
        values = iter(given)
        contents = [self.fixed[i] if i in self.fixed else next(values) for i in range(len(self.code.co_freevars))]
        f = types.FunctionType(
            self.code, self.globals, self.code.co_name, self.defaults, tuple(map(types.CellType, contents))
        )
        f.__kwdefaults__ = self.kwdefaults or None
        return f


def writes_to_closure(code: types.CodeType) -> bool:
    inner = [c for c in code.co_consts if isinstance(c, types.CodeType)]
    return any(
        i.opname in ("STORE_DEREF", "DELETE_DEREF") and i.argval in code.co_freevars for i in dis.get_instructions(code)
    ) or any(writes_to_closure(c) for c in inner)


def call_value(fn, *args, **kwargs):
    """Target of a node that calls a function which is itself a value of the graph."""
    return fn(*args, **kwargs)


def guard_function(tx, fn: types.FunctionType, source: Source, depth: int = 0, closure: bool = True) -> None:
    if depth > DEPTH:
        unsupported("opaque-function", f"{fn.__qualname__} goes into the graph and calls functions {DEPTH} deep")
    code = fn.__code__
    guard = tx.output.guard
    if type(source) is not ConstSource:
        guard(GetAttrSource(source, "__code__"), "ID_MATCH", code)
    for i, value in enumerate(fn.__defaults__ or ()):
        _value(tx, fn, value, ItemSource(GetAttrSource(source, "__defaults__"), i), f"default {i}", depth)
    for i, (name, cell) in enumerate(zip(code.co_freevars, (fn.__closure__ or ()) if closure else ())):
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


def _value(tx, fn, value, source: Source, name: str, depth: int) -> None:
    if is_constant_value(value):
        tx.output.guard(source, "EQUALS_MATCH", value)
    elif (
        type(value) is types.FunctionType
        and not trace_rules.is_torch_callable(value)
        and trace_rules.inline_reason(value).inlined
    ):
        guard_function(tx, value, source, depth + 1)
    elif (
        isinstance(value, (types.ModuleType, type, types.BuiltinFunctionType))
        or trace_rules.is_torch_callable(value)
        or callable_of_c(value)
    ):
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
            f"{fn.__qualname__} goes into the graph and reads {name}, a {name_of(type(value))}",
            "It could change without being noticed.",
            "Pass what is needed as an argument.",
        )


def callable_of_c(value) -> bool:
    return module_of(type(value)) in ("numpy", "builtins") and callable(value) and type(value) is not types.FunctionType
