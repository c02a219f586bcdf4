"""Calls of operators in an archive's code as nodes: with all arguments of the schema that is meant."""

from __future__ import annotations

import ast
from typing import Any

from ...core.schema import Argument
from ..torchscript import resolve, upgrades
from ..torchscript.types import dotted
from .archived_expressions import Expressions
from .nodes import Node
from .types import ScriptType
from .values import Value

__all__ = ["CASTS", "OF_TENSORS", "Operators"]

CASTS = {
    "int": "aten::Int",
    "float": "aten::Float",
    "bool": "aten::Bool",
    "complex": "aten::Complex",
    "str": "aten::str",
}
# How tensors become numbers.
OF_TENSORS = {"int": "aten::IntImplicit", "float": "aten::FloatImplicit", "number": "aten::ScalarImplicit"}
_CONVERSIONS = {"int": "int", "float": "float", "item": "number"}  # of resolve.Choice: the types that they give

# Of operators that aren't a tensor's: the arguments behind the first one, and what they are by default.
_DEFAULTS: dict[str, tuple[tuple[str, Any], ...]] = {
    "RaiseException": (("cls", None),),
    "slice": (("start", None), ("end", None), ("step", 1)),
    "tensor": (("dtype", None), ("device", None), ("requires_grad", False)),
}


class Operators(Expressions):
    """Of an operator a node has the name and the schema."""

    def operator_of(self, node: ast.expr) -> tuple[str, str] | None:
        """The space and name of the operator that an expression calls, None where it does something else."""
        fn = node.func if isinstance(node, ast.Call) else None
        if isinstance(fn, ast.Name):
            special = self.typing.function_of(fn) is not None or fn.id in CASTS or hasattr(self.typing, f"call_{fn.id}")
            return None if special else ("aten", fn.id)
        parts = (dotted(fn) or "").split(".") if isinstance(fn, ast.Attribute) else []
        if not parts or parts[0] in self.names:
            return None
        if parts[0] == "torch" and len(parts) == 2:
            return "aten", parts[1]
        return (parts[1], parts[2]) if parts[0] == "ops" and len(parts) == 3 else None

    def operator(self, node: ast.Call, name: str = "") -> Node:
        """The node of an operator with all arguments of its schema."""
        space, called = self.operator_of(node)  # type: ignore[misc]
        args = [self.value(a) for a in node.args]
        kwargs = {str(k.arg): self.value(k.value) for k in node.keywords}
        gives = self.type_of(node)
        choice = self.choice(node, space, called)
        schema = choice.schema if choice is not None else None
        if schema is None:
            kinds = () if gives.base == "NoneType" else (gives,)
            for key, default in _DEFAULTS.get(called, ())[len(args) - 1 :]:
                args.append(kwargs.pop(key, None) or self.constants.value(default))
            return self.build.node(f"{space}::{called}", [*args, *kwargs.values()], kinds, name=name)
        given, places = [], iter(enumerate(args))
        for a in schema.arguments:
            place, found = a.name, kwargs.get(a.name)
            if found is None and not a.kwarg_only:
                place, found = next(places, (a.name, None))
            if found is None:
                found = self.default(a)
            elif choice.convert.get(place) in _CONVERSIONS:
                wanted = _CONVERSIONS[choice.convert[place]]
                found = self.node(OF_TENSORS[wanted], [found], ScriptType(wanted))
            elif (choice.convert.get(place) or "").startswith("repeat"):
                times = int(choice.convert[place].split()[1])
                found = self.node("prim::ListConstruct", [found] * times, ScriptType("List", (found.type(),)))
            given.append(found)
        several = gives.args if len(schema.returns) > 1 else (gives,) * len(schema.returns)
        return self.build.node(schema.name, given, several, name=name, schema=schema)

    def default(self, a: Argument) -> Value:
        """The default of an argument: of a list one of its elements may be given."""
        value = a.default_value
        if a.is_list and a.size and isinstance(value, (list, tuple)) and len(value) == 1:
            value = list(value) * a.size
        elif a.is_list and a.size and isinstance(value, int):
            value = [value] * a.size
        return self.constants.value(list(value) if isinstance(value, tuple) else value)

    def choice(self, node: ast.Call, space: str, name: str) -> resolve.Choice | None:
        """Which overload is meant, None where that isn't known."""
        args, kwargs = (
            [self.type_for(a) for a in node.args],
            {str(k.arg): self.type_for(k.value) for k in node.keywords},
        )
        if space == "prim" or upgrades.held(upgrades.named(self.program.version, space, name, args, kwargs)[0]):
            return None
        try:
            return resolve.choose(space, name, args, kwargs)
        except (resolve.NoMatch, resolve.UnknownOperator, resolve.Unbuilt):
            return None
