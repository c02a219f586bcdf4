"""TorchScript's static types: parsing them from annotations, matching arguments against patterns, and joining the types of branches."""

from __future__ import annotations

import ast
import functools
from typing import NamedTuple

__all__ = ["Type", "from_node", "is_number", "join", "match", "parse", "promoted", "schema_text", "substituted"]


class Type(NamedTuple):
    """``List[int]`` is ``Type("List", (Type("int"),))``; of a class of the archive the name is the qualified one. Names of one small letter are
    variables of patterns."""

    name: str
    args: tuple = ()

    def __str__(self) -> str:
        return f"{self.name}[{', '.join(map(str, self.args))}]" if self.args else self.name


ANY, NONE, TENSOR, NUMBER = Type("Any"), Type("NoneType"), Type("Tensor"), Type("number")
INT, FLOAT, BOOL, STR, COMPLEX, DEVICE = map(Type, ("int", "float", "bool", "str", "complex", "Device"))
# A tensor without dimensions that holds a size: a trace computes with such, and as numbers they stay symbols in a capture.
SIZE = Type("size as tensor")

_NAMES = {"None": "NoneType", "Scalar": "number", "list": "List", "dict": "Dict", "tuple": "Tuple", "device": "Device"}
_NUMBERS = ("bool", "int", "float", "complex")


def dotted(node: ast.AST) -> str | None:
    """``a.b.c`` of names, else None."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else None


def from_node(node: ast.AST) -> Type:
    """The type that an annotation names. ValueError for what isn't one."""
    if isinstance(node, ast.Constant) and node.value is None:
        return NONE
    if isinstance(node, ast.Subscript):
        name = dotted(node.value)
        inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if name is None:
            raise ValueError(f"{ast.unparse(node)} is no type")
        return Type(_NAMES.get(name, name), tuple(map(from_node, inner)))
    name = dotted(node)
    if name is None:
        raise ValueError(f"{ast.unparse(node)} is no type")
    return Type(_NAMES.get(name, name))


@functools.cache
def parse(text: str) -> Type:
    """The type with this text."""
    return from_node(ast.parse(text, mode="eval").body)


def is_number(t: Type) -> bool:
    """Whether values of the type are numbers: of one kind, or of several."""
    return t.name in _NUMBERS or t.name == "number" or t.name == "Union" and all(map(is_number, t.args))


def promoted(types) -> Type:
    """The type of a sum of numbers."""
    names = [t.name for t in types]
    if "number" in names or "Union" in names:
        return NUMBER
    return Type(max((n for n in names if n != "bool"), key=_NUMBERS.index, default="int"))


def substituted(t: Type, bound: dict[str, Type]) -> Type:
    """The pattern with its variables replaced."""
    if not t.args:
        return bound.get(t.name, t)
    return Type(t.name, tuple(substituted(a, bound) for a in t.args))


def match(pattern: Type, given: Type, bound: dict[str, Type]) -> bool:
    """Whether a value of type ``given`` may stand where ``pattern`` does; variables are entered in ``bound``."""
    name = pattern.name
    # What an operator that isn't built would give is of no known type.
    if "Any" in (name, given.name) or pattern == given:
        return True
    if len(name) == 1:
        held = bound.get(name)
        if held is None or held == ANY:
            bound[name] = given
            return True
        joined = join(held, given)
        if joined.name == "Union" and held.name != "Union":
            return False
        bound[name] = joined
        return True
    if name == "number":
        return is_number(given)
    if name == "Optional":
        inner = given.args[0] if given.name == "Optional" else given
        return given == NONE or match(pattern.args[0], inner, bound)
    if name == "Union":
        options = given.args if given.name == "Union" else (given,)
        return all(any(match(p, g, bound) for p in pattern.args) for g in options)
    if name == "Function":
        return given.name == "Function"
    if name != given.name or len(pattern.args) != len(given.args):
        return False
    return all(match(p, g, bound) for p, g in zip(pattern.args, given.args))


def join(a: Type, b: Type) -> Type:
    """The type of what is an ``a`` on one way and a ``b`` on another."""
    if a == b or b == ANY:
        return a if a == b else ANY
    if a == ANY:
        return ANY
    if a == NONE or b == NONE:
        other = b if a == NONE else a
        return other if other.name in ("Optional", "NoneType") else Type("Optional", (other,))
    if a.name == "Optional" or b.name == "Optional":
        inner = join(*(t.args[0] if t.name == "Optional" else t for t in (a, b)))
        return inner if inner.name == "Optional" else Type("Optional", (inner,))
    if a.name == b.name and a.args and len(a.args) == len(b.args) and a.name != "Union":
        return Type(a.name, tuple(map(join, a.args, b.args)))
    options = dict.fromkeys((*(a.args if a.name == "Union" else (a,)), *(b.args if b.name == "Union" else (b,))))
    return Type("Union", tuple(options))


def schema_text(t: Type) -> str:
    """The type as PyTorch's schemas write it: ``int?``, ``Tensor[]``, ``Dict(str, int)``."""
    inner = [schema_text(a) for a in t.args]
    if t.name == "List":
        return f"{inner[0]}[]"
    if t.name == "Optional":
        return f"{inner[0]}?"
    if t.name == "Tuple":
        return f"({', '.join(inner)})"
    if t.name.startswith("enum "):
        return f"Enum<{t.name.removeprefix('enum ')}>"
    if t.name == "number":
        return "Scalar"
    return f"{t.name}({', '.join(inner)})" if inner else t.name
