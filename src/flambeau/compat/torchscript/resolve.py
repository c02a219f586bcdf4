"""Which function a call of an operator means: by the types of its arguments, as TorchScript's schema matching does."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ... import ops
from ...core.operator import OpOverload
from ...core.operator import Unbuilt as UnbuiltPacket
from ...core.schema import Argument, Schema
from . import (
    recurrent,  # noqa: F401  its schemas are declared by importing it
    rows,
    schemas,
    values,
)
from .types import (
    BOOL,
    DEVICE,
    FLOAT,
    INT,
    NONE,
    NUMBER,
    SIZE,
    STR,
    TENSOR,
    Type,
    is_number,
    match,
    promoted,
    substituted,
)

__all__ = ["Choice", "NoMatch", "Unbuilt", "UnknownOperator", "choose"]


class UnknownOperator(Exception):
    """No operator has the name."""


class NoMatch(Exception):
    """The operator has no overload for the arguments; the text says which there are."""


class Unbuilt(Exception):
    """PyTorch has the operator."""


class Choice(NamedTuple):
    """``fn(*args, **kwargs)``; ``convert`` maps places and keywords to what their argument goes through first: "dtype", "int", "float", ...
    ``schema``: of the overload, None for arithmetic of numbers and methods of containers."""

    fn: Callable
    gives: Type
    convert: dict
    schema: Schema | None = None


_PLAIN = {
    "int": INT,
    "SymInt": INT,
    "float": FLOAT,
    "bool": BOOL,
    "str": STR,
    "Device": DEVICE,
    "Tensor": TENSOR,
    "Scalar": NUMBER,
}
_CODED = {"ScalarType": "dtype", "Layout": "layout", "MemoryFormat": "format"}


def _type(a: Argument) -> Type:
    base = INT if a.type in _CODED else _PLAIN.get(a.type, Type(a.type))
    if a.is_list:
        base = Type("List", (Type("Optional", (base,)) if a.elements_optional else base,))
    return Type("Optional", (base,)) if a.optional else base


def _converted(a: Argument, given: Type, loose: bool) -> str | None | bool:
    """How a value of type ``given`` becomes the argument: None as it is, False not at all."""
    wanted = _type(a)
    inner = given.args[0] if given.name == "Optional" and a.optional else given
    if given == NONE:
        return None if a.optional else False
    if a.type in _CODED and not a.is_list:
        return _CODED[a.type] if inner == INT else False
    if given == SIZE:
        if a.type == "Tensor" and not a.is_list:
            return "tensor"
        return "number" if loose and not a.is_list and a.type in ("int", "SymInt", "Scalar") else False
    if match(wanted, given, {}):
        return None
    if a.is_list and a.size and inner == INT and a.type in ("int", "SymInt"):
        return f"repeat {a.size}"
    if a.is_list and inner.name == "List" and inner.args[0] == NONE and a.elements_optional:
        return None
    if not loose:
        return False
    if a.is_list:
        return None if a.type == "float" and inner == Type("List", (INT,)) else False
    if a.type in ("int", "SymInt") and inner == TENSOR:
        return "int"
    if a.type == "float" and (inner == TENSOR or is_number(inner)):
        return "float"
    if a.type == "int" and inner == BOOL:
        return None
    if a.type == "Scalar" and inner == TENSOR:
        return "item"
    return "device" if a.type == "Device" and inner == STR else False


def _matched(schema: Schema, args: list[Type], kwargs: dict[str, Type], loose: bool) -> dict | None:
    """Conversions of the arguments for this overload, None where it doesn't fit."""
    places = [a for a in schema.arguments if not a.kwarg_only]
    by_name = {a.name: a for a in schema.arguments}
    if len(args) > len(places) or not kwargs.keys() <= by_name.keys():
        return None
    given = dict(zip((a.name for a in places), args))
    if not given.keys().isdisjoint(kwargs):
        return None
    if any(a.name not in given and a.name not in kwargs and (not a.has_default or a.is_out) for a in schema.arguments):
        return None
    convert: dict = {}
    for key, a, t in [
        *((i, a, t) for i, (a, t) in enumerate(zip(places, args))),
        *((k, by_name[k], t) for k, t in kwargs.items()),
    ]:
        how = _converted(a, t, loose)
        if how is False:
            return None
        if how is not None:
            convert[key] = how
    return convert


def _returned(schema: Schema) -> Type:
    types = [_type(a) for a in schema.returns]
    return NONE if not types else types[0] if len(types) == 1 else Type("Tuple", tuple(types))


def _row(name: str, table: dict, args: list[Type], kwargs: dict[str, Type]) -> Choice | None:
    for row in table.get(name, ()):
        bound: dict[str, Type] = {}
        if len(row.takes) != len(args) or not kwargs.keys() <= row.keywords.keys():
            continue
        enums = [Type("Enum") if t.name.startswith("enum ") else t for t in args]
        if all(match(p, g, bound) for p, g in zip(row.takes, enums)) and all(
            match(row.keywords[k], t, {}) for k, t in kwargs.items()
        ):
            return Choice(row.fn, promoted(args) if row.gives is None else substituted(row.gives, bound), {})
    return None


def _writing(packet) -> list[tuple[Callable, Schema]]:
    """The overloads that write their result into an argument ``out``."""
    found = []
    for overload in ("out", *(f"{o}_out" for o in packet.overloads())):
        try:
            op = getattr(packet, overload)
        except AttributeError:
            continue  # not every overload has one
        if isinstance(op, OpOverload):
            found.append((op, op._schema))
    return found


def _overloads(space: str, name: str, out: bool = False) -> list[tuple[Callable, Schema]]:
    held = schemas.TABLE.get(f"{space}::{name}", ())
    found: list[tuple[Callable, Schema]] = list(held)
    if space.startswith("_") or name.startswith("__"):
        return found
    try:
        packet = getattr(ops, space).__getattr__(name)
    except (AttributeError, RuntimeError):
        packet = None
    if isinstance(packet, UnbuiltPacket) and not found:
        raise Unbuilt(f"{space}::{name}")
    if packet is not None and not isinstance(packet, UnbuiltPacket):
        found += _writing(packet) if out else ()
        for overload in packet.overloads():
            op = getattr(packet, overload)
            if isinstance(op, OpOverload):
                found.append((op, op._schema))
    return found


def choose(space: str, name: str, args: list[Type], kwargs: dict[str, Type]) -> Choice:
    """The function that ``torch.name`` (space "aten") or ``ops.space.name`` is for arguments of these types. UnknownOperator, Unbuilt or NoMatch
    where there is none."""
    table = rows.PRIM if space == "prim" else rows.ROWS if space == "aten" else {}
    found = _row(name, table, args, kwargs)
    if found is not None:
        return found
    overloads = [] if space == "prim" else _overloads(space, name, "out" in kwargs)
    for loose in (False, True):
        for fn, schema in overloads:
            convert = _matched(schema, args, kwargs, loose)
            if convert is not None:
                gives = _returned(schema)
                return Choice(
                    _by_number(fn)
                    if any(a.type in _CODED for a in schema.returns) and isinstance(fn, OpOverload)
                    else fn,
                    gives,
                    convert,
                    schema,
                )
    if not overloads and name not in table:
        raise UnknownOperator(f"{space}::{name}")
    known = "\n".join(f"  {schema}" for _, schema in overloads) or "\n".join(
        f"  {space}::{name}({', '.join(map(str, r.takes))})" for r in table.get(name, ())
    )
    given = ", ".join(map(str, [*args, *kwargs.values()]))
    raise NoMatch(
        f"Arguments for call are not valid: {space}::{name}({given})\nThe following variants are available:\n{known}"
    )


def _by_number(fn: Callable) -> Callable:
    """The operator with its dtype as a number."""
    return lambda *args, **kwargs: values.code_of(fn(*args, **kwargs))
