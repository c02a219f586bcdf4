"""What programs say of callables: allowed in graphs, disallowed, forbidden, or replaced."""

from __future__ import annotations

import types
from typing import Any

from flambeau.base.weak import Marks, Noted
from flambeau.core.operator import namespace

from .callable_kinds import is_torch_callable
from .reflect import module_of, name_of

__all__ = [
    "allow_in_graph",
    "allowed",
    "disallow_in_graph",
    "disallowed",
    "disallows_operators",
    "forbid",
    "forbidden",
    "forget",
    "is_allowed",
    "is_disallowed",
    "is_disallowed_method",
    "substitutes",
]

allowed, disallowed = Marks(), Marks()  # callables and operators
forbidden = Noted()  # why it must not be called in captured code
substitutes = Noted()  # of what is called: the function that is traced instead


def _each(fn) -> list[Any]:
    """What the rule is for; ``"ns::*"`` is a namespace of operators."""
    return [
        namespace(f.removesuffix("::*")) if isinstance(f, str) and f.endswith("::*") else f
        for f in (fn if isinstance(fn, (list, tuple)) else (fn,))
    ]


def allow_in_graph(fn):
    """``fn`` becomes one node of the graph; nothing in it is looked at. Takes a callable or a list of them; undoes disallow_in_graph."""
    for f in _each(fn):
        if not callable(f) and not is_namespace(f):
            raise AssertionError(f"allow_in_graph expects a callable, got {name_of(type(f))}")
        disallowed.discard(f)
        for o in overloads(f):
            disallowed.discard(o)
        if not is_namespace(f):
            allowed.add(f)
    return fn


def disallow_in_graph(fn):
    """Calls of ``fn`` break the graph and run eagerly. Takes a callable, an operator namespace, or a list of them."""
    for f in _each(fn):
        if not callable(f) and not is_namespace(f):
            raise AssertionError(f"disallow_in_graph expects a callable, got {name_of(type(f))}")
        if type(f) is types.FunctionType and not is_torch_callable(f) and not is_allowed(f):
            raise RuntimeError(
                f"disallow_in_graph is for operators, which are nodes of the graph; {f.__qualname__} is a function that is traced through. "
                "Use torch._dynamo.disable for it."
            )
        allowed.discard(f)
        disallowed.add(f)
        for o in overloads(f):
            disallowed.add(o)
    return fn


def forbid(fn, why: str) -> None:
    """Captured code that calls ``fn`` is an error, not a graph break."""
    forbidden[fn] = why


def forget(fn) -> None:
    allowed.discard(fn)
    disallowed.discard(fn)


def is_namespace(f) -> bool:
    return module_of(type(f)).startswith("flambeau.") and "namespace" in name_of(type(f)).lower()


def overloads(f) -> list[Any]:
    names = getattr(f, "overloads", None)
    if callable(names) and module_of(type(f)).startswith("flambeau."):
        return [getattr(f, n) for n in names()]
    return []


def is_disallowed(fn) -> bool:
    if fn in disallowed:
        return True
    if not disallowed or not module_of(type(fn)).startswith("flambeau."):
        return False
    packet = getattr(fn, "overloadpacket", None) or getattr(fn, "_overloadpacket", None)
    if packet is not None and packet in disallowed and not overloads(packet):
        return True
    name = (
        getattr(fn, "_qualified_op_name", None)
        or (fn.name() if callable(getattr(fn, "name", None)) else None)
        or str(fn)
    )
    ns = name.replace("::", ".").split(".")[0]
    return any(is_namespace(d) and getattr(d, "name", getattr(d, "_name", None)) == ns for d in disallowed)


def disallows_operators() -> bool:
    """Whether any operator (not a function above it) is disallowed."""
    return any(hasattr(f, "_schema") or is_namespace(f) for f in disallowed)


def is_disallowed_method(name: str, cls_attr) -> bool:
    return cls_attr is not None and cls_attr in disallowed


def is_allowed(fn) -> bool:
    return fn in allowed
