"""Nodes of Python's that lowered code is made of, and what is known while a method is lowered."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import NamedTuple

from .types import Type

__all__ = ["Closure", "Refused", "Typed", "Writer"]


class Refused(Exception):
    """The code can't be run; ``line`` of its file."""

    def __init__(self, node: ast.AST, why: str, kind: type[Exception] = RuntimeError):
        super().__init__(why)
        self.line, self.kind = getattr(node, "lineno", 0), kind


class Typed(NamedTuple):
    """An expression of the function that is written, and its static type."""

    code: ast.expr
    type: Type


class Closure(NamedTuple):
    """A function inside of the function that is written: its name there, and what it gives."""

    name: str
    gives: Type


class Writer:
    """What writes the function of one ``declared.Method``: the types of its locals so far, and nodes at the places of those they stand for."""

    def __init__(self, method, program):
        self.method, self.program = method, program
        self.types: dict[str, Type] = {}
        self.functions: dict[str, object] = {}  # locals that stand for a declared.Method or a Closure
        self.depth = 0
        self.returns: list[Type] = []

    def load(self, node: ast.AST, name: str) -> ast.expr:
        return ast.copy_location(ast.Name(name, ast.Load()), node)

    def held(self, node: ast.AST, value, name: str) -> ast.expr:
        """``value`` as a global of the function."""
        return self.load(node, self.program.hold(value, name))

    def constant(self, node: ast.AST, value) -> ast.expr:
        return ast.copy_location(ast.Constant(value), node)

    def call(self, node: ast.AST, fn: ast.expr, args: list, kwargs: dict | None = None) -> ast.expr:
        keywords = [ast.keyword(k, v) for k, v in (kwargs or {}).items()]
        return ast.copy_location(ast.Call(fn, args, keywords), node)

    def calling(self, node: ast.AST, fn: Callable, name: str, *args) -> ast.expr:
        return self.call(node, self.held(node, fn, name), list(args))
