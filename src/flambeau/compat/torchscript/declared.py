"""What an archive declares: methods, functions and classes, and the constants in their text."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

from ...base.device import Device
from . import expressions
from .nodes import Refused
from .syntax import ClassSource, MethodSource
from .types import ANY, Type

if TYPE_CHECKING:
    from .names import Names

__all__ = ["Class", "Method", "literal"]


class Method:
    """A method of a class, or a function (``owner`` None). ``python`` is the function once it is compiled."""

    def __init__(self, names: Names, source: MethodSource, owner: Class | None, path: str, qualified: str):
        self.name, self.node, self.text = source.name, source.node, source.text
        self.owner, self.path, self.qualified = owner, path, qualified
        self.python: Callable | None = None
        a = source.node.args
        params = a.args[1:] if owner is not None else a.args
        if owner is not None and not a.args:
            raise Refused(source.node, f"{qualified} is a method without self")
        # The object's name: classes may call it otherwise than self.
        self.of = a.args[0].arg if owner is not None else None
        if any(p.annotation is None for p in params) or a.kwonlyargs:
            raise Refused(source.node, f"{qualified} has a parameter without a type")
        self.takes = [(p.arg, names.type(p.annotation)) for p in params]
        self.gives = names.type(source.node.returns) if source.node.returns is not None else ANY
        self.defaults = {p.arg: literal(d) for p, d in zip(params[len(params) - len(a.defaults) :], a.defaults)}

    def where(self) -> str:
        """The place that errors name."""
        owner = f"class {self.owner.name}, method " if self.owner is not None else "function "
        return f"{self.path}, {owner}{self.name}"


def literal(node: ast.expr):
    """The value of a constant of the code. Refused for another expression."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name) and node.id in expressions.INFINITE:
        return expressions.INFINITE[node.id]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -literal(node.operand)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        left, right = literal(node.left), literal(node.right)
        return left + right if isinstance(node.op, ast.Add) else left - right
    if isinstance(node, ast.List | ast.Tuple):
        parts = [literal(e) for e in node.elts]
        return parts if isinstance(node, ast.List) else tuple(parts)
    if isinstance(node, ast.Dict) and None not in node.keys:
        return {literal(k): literal(v) for k, v in zip(node.keys, node.values)}
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("annotate", "unchecked_cast")
        and len(node.args) == 2
    ):
        return literal(node.args[1])
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "torch.device" and len(node.args) == 1:
        return Device(literal(node.args[0]))
    raise Refused(node, f"{ast.unparse(node)} is no constant")


class Class:
    """A class of the archive. ``python`` is made with it; of a module it is a subclass of :class:`modules.ArchivedModule`."""

    def __init__(self, qualified: str, source: ClassSource, path: str):
        self.qualified, self.name, self.base, self.source, self.path = qualified, source.name, source.base, source, path
        self.attributes: dict[str, Type] = {}
        self.values: dict[str, object] = {}
        self.methods: dict[str, Method] = {}
        self.takes: list[tuple[str, Type]] = []
        self.defaults: dict = {}
        self.python: type | None = None

    def where(self) -> str:
        """The place that errors name."""
        return f"{self.path}, class {self.name}"
