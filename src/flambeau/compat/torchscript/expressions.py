"""Expressions of an archive's code as Python's, with their types; of calls see :mod:`.lowered_calls`."""

from __future__ import annotations

import ast

from . import rows
from .nodes import Refused, Typed, Writer
from .types import ANY, BOOL, COMPLEX, FLOAT, INT, NONE, NUMBER, SIZE, STR, TENSOR, Type, dotted, is_number, join

__all__ = ["INFINITE", "Expressions", "item"]

INFINITE = {
    "inf": float("inf"),
    "nan": float("nan"),
    "infj": complex(0, float("inf")),
    "nanj": complex(0, float("nan")),
}


class Expressions(Writer):
    """``of_*``: the expression and type of a node of that class."""

    def value(self, node: ast.expr) -> Typed:
        """An expression that is never a size as a number."""
        made, kind = self.expr(node)
        if kind == SIZE:
            return Typed(self.calling(node, rows.tensor_of, "tensor", made), TENSOR)
        return Typed(made, kind)

    def condition(self, node: ast.expr) -> ast.expr:
        """What an if or while statement asks. Refused for what is no truth value."""
        made, kind = self.expr(node)
        if kind == TENSOR:
            return self.calling(node, bool, "bool", made)
        if kind not in (BOOL, ANY) and not is_number(kind):
            raise Refused(node, f"Expected a boolean expression for condition but found {kind}")
        return made

    def number(self, node: ast.expr) -> ast.expr:
        """A whole number. Refused for another type."""
        made, kind = self.expr(node)
        if kind == TENSOR:
            return self.calling(node, int, "int", made)
        if kind not in (INT, BOOL, SIZE):
            raise Refused(node, f"range of a {kind}")
        return made

    def fitted(self, made: ast.expr, given: Type, wanted: Type | None) -> ast.expr:
        """The value as the declared type has it: TorchScript turns tensors into numbers by itself."""
        if given == TENSOR and wanted in (INT, FLOAT, NUMBER):
            fn = {INT: int, FLOAT: float, NUMBER: item}[wanted]
            return self.calling(made, fn, wanted.name, made)
        return self.calling(made, float, "float", made) if given == INT and wanted == FLOAT else made

    def expr(self, node: ast.expr) -> Typed:
        """An expression. Refused for what isn't TorchScript."""
        handler = getattr(self, "of_" + type(node).__name__, None)
        if handler is None:
            raise Refused(node, f"{type(node).__name__} isn't TorchScript")
        return handler(node)

    def of_Constant(self, node):
        v = node.value
        kind = NONE if v is None else {bool: BOOL, int: INT, float: FLOAT, str: STR, complex: COMPLEX}.get(type(v))
        if kind is None:
            raise Refused(node, f"the constant {v!r}")
        return Typed(self.constant(node, v), kind)

    def of_UnaryOp(self, node):
        made, kind = self.expr(node.operand)
        if not isinstance(node.op, ast.USub) or not isinstance(made, ast.Constant) or not is_number(kind):
            raise Refused(node, f"{ast.unparse(node)} isn't TorchScript")
        return Typed(self.constant(node, -made.value), kind)

    def of_BinOp(self, node):
        (a, _), (b, kind) = self.expr(node.left), self.expr(node.right)
        if not (
            isinstance(a, ast.Constant)
            and isinstance(b, ast.Constant)
            and kind == COMPLEX
            and isinstance(node.op, ast.Add | ast.Sub)
        ):
            raise Refused(node, f"{ast.unparse(node)} isn't TorchScript")
        value = a.value + b.value if isinstance(node.op, ast.Add) else a.value - b.value
        return Typed(self.constant(node, complex(value)), COMPLEX)

    def of_Name(self, node):
        if node.id in self.types:
            return Typed(self.load(node, node.id), self.types[node.id])
        if node.id in INFINITE:
            value = INFINITE[node.id]
            return Typed(self.constant(node, value), COMPLEX if isinstance(value, complex) else FLOAT)
        raise Refused(node, f"undefined value {node.id}")

    def of_List(self, node):
        parts = [self.value(e) for e in node.elts]
        made, of = [p.code for p in parts], _joined(parts)
        if of.name == "Union" and all(k in (INT, TENSOR) for k in of.args):
            # A list of sizes, of which some are tensors.
            made = [self.fitted(p.code, p.type, INT) for p in parts]
            of = INT
        return Typed(ast.copy_location(ast.List(made, ast.Load()), node), Type("List", (of,)))

    def of_Tuple(self, node):
        parts = [self.value(e) for e in node.elts]
        made, kinds = [p.code for p in parts], [p.type for p in parts]
        return Typed(ast.copy_location(ast.Tuple(made, ast.Load()), node), Type("Tuple", tuple(kinds)))

    def of_Dict(self, node):
        if None in node.keys:
            raise Refused(node, "** in a dict isn't TorchScript")
        keys, items = [self.value(k) for k in node.keys], [self.value(v) for v in node.values]
        made = ast.copy_location(ast.Dict([k.code for k in keys], [v.code for v in items]), node)
        return Typed(made, Type("Dict", (_joined(keys), _joined(items))))

    def of_Subscript(self, node):
        made, kind = self.value(node.value)
        at, place = self.value(node.slice)
        if kind.name == "List" and place == INT:
            gives = kind.args[0]
        elif kind.name == "Dict":
            gives = kind.args[1]
        elif kind == STR and place == INT:
            return Typed(self.calling(node, rows.character, "character", made, at), STR)
        elif kind == ANY:
            gives = ANY
        else:
            kinds = self.program.elements(node, kind)
            if (
                not isinstance(at, ast.Constant)
                or type(at.value) is not int
                or not -len(kinds) <= at.value < len(kinds)
            ):
                raise Refused(node, f"{ast.unparse(node)}: an element of {kind}")
            gives = kinds[at.value]
        return Typed(ast.copy_location(ast.Subscript(made, at, ast.Load()), node), gives)

    def of_Attribute(self, node):
        if isinstance(node.value, ast.Name) and node.value.id == "CONSTANTS" and "CONSTANTS" not in self.types:
            value = self.program.constant(node, node.attr)
            return Typed(self.held(node, value, node.attr), self.program.type_of(value))
        path = dotted(node)
        if path is not None and path.startswith("__torch__."):
            member = self.program.member(node, path)
            return Typed(self.held(node, member, node.attr), self.program.type_of(member))
        made, kind = self.value(node.value)
        gives = self.program.attribute(node, kind, node.attr)
        return Typed(ast.copy_location(ast.Attribute(made, node.attr, ast.Load()), node), gives)


def _joined(parts: list[Typed]) -> Type:
    """The type of the elements of a container."""
    of = parts[0].type if parts else ANY
    for part in parts[1:]:
        of = join(of, part.type)
    return of


def item(x):
    """The number that a tensor holds."""
    return x.item()
