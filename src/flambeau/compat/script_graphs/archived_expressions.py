"""Expressions of an archive's code as nodes of a graph: their types are those that lowering finds."""

from __future__ import annotations

import ast
from typing import Any

from ..torchscript import lowering
from ..torchscript.declared import literal
from ..torchscript.expressions import INFINITE
from ..torchscript.nodes import Refused
from ..torchscript.types import SIZE, Type, dotted
from ..torchscript.types import TENSOR as TENSOR_TYPE
from .builder import Builder
from .types import TENSOR, ScriptType, of_type, of_value
from .values import Value

__all__ = ["Constants", "Expressions"]


class Constants:
    """The constants of a graph: one of each type and value, before the other nodes."""

    def __init__(self, build: Builder):
        self.build = build
        self.held: dict[tuple, tuple[Value, Any]] = {}

    def value(self, value, kind: ScriptType | None = None) -> Value:
        """The constant of this value."""
        kind = kind or (TENSOR if of_value(value).base == "Tensor" else of_value(value))
        key = (kind, id(value) if kind is TENSOR else repr(value))
        if key not in self.held:
            self.held[key] = self.build.constant(value, kind), value
        return self.held[key][0]

    def function(self, name: str) -> Value:
        """The constant of a function of the archive."""
        key = ("Function", name)
        if key not in self.held:
            made = self.build.node("prim::Constant", (), (ScriptType("Function"),), attributes={"name": name})
            self.held[key] = made.output(), None
        return self.held[key][0]


class Expressions:
    """``names``: the values of a method's locals. ``typing`` knows the types of those assigned so far. ``inline``: calls of methods and
    functions are replaced by what these do."""

    def __init__(self, method, program, build: Builder, constants: Constants, inline: bool):
        self.method, self.program, self.build, self.constants, self.inline = method, program, build, constants, inline
        self.typing = lowering.opened(method, program)
        self.names: dict[str, Value] = {}
        self.closures: dict[str, ast.FunctionDef] = {}

    def type_of(self, node: ast.expr) -> ScriptType:
        return of_type(self.type_for(node))

    def type_for(self, node: ast.expr) -> Type:
        """The static type: of sizes that a trace computes that of tensors."""
        found = self.typing.expr(node).type
        return TENSOR_TYPE if found == SIZE else found

    def value(self, node: ast.expr, name: str = "") -> Value:
        """The value of an expression; ``name``: that it is assigned to."""
        if isinstance(node, ast.Constant | ast.UnaryOp | ast.BinOp):
            return self.constants.value(literal(node))
        if isinstance(node, ast.Name):
            return self.names[node.id] if node.id in self.names else self.constants.value(INFINITE[node.id])
        if isinstance(node, ast.Call):
            return self.called(node, name)
        if isinstance(node, ast.Attribute):
            return self.attribute(node, name)
        kind = self.type_of(node)
        if isinstance(node, ast.List | ast.Tuple):
            parts = [self.value(e) for e in node.elts]
            return self.node(f"prim::{kind.base}Construct", parts, kind, name)
        if isinstance(node, ast.Dict):
            pairs = [self.value(e) for item in zip(node.keys, node.values) for e in item if e is not None]
            return self.node("prim::DictConstruct", pairs, kind, name)
        if isinstance(node, ast.Subscript):
            listed = self.type_of(node.value).base in ("List", "Dict", "str", "Any")
            parts = [self.value(node.value), self.value(node.slice)]
            return self.node("aten::__getitem__" if listed else "prim::TupleIndex", parts, kind, name)
        raise Refused(node, f"the graph of {ast.unparse(node)} isn't built")

    def node(self, kind: str, inputs, gives: ScriptType, name: str = "", **attributes) -> Value:
        return self.build.node(kind, inputs, (gives,), name=name, attributes=attributes).output()

    def attribute(self, node: ast.Attribute, name: str = "") -> Value:
        root = dotted(node)
        if root is not None and root.startswith("CONSTANTS.") and "CONSTANTS" not in self.names:
            held = self.program.constant(node, node.attr)
            return self.constants.value(held, of_type(self.program.type_of(held)))
        if root is not None and root.startswith("__torch__."):
            return self.constants.value(self.program.member(node, root), self.type_of(node))
        return self.build.attribute(self.value(node.value), node.attr, self.type_of(node), name)

    def called(self, node: ast.Call, name: str) -> Value:
        """The one value of a call."""
        raise NotImplementedError
