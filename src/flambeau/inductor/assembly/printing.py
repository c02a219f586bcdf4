"""LLVM instructions as lines of assembly."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .instructions import Instruction, Type

__all__ = ["CONVERSIONS", "PAIRS", "declared", "printed"]

PAIRS = frozenset("add sub mul udiv sdiv urem srem shl lshr ashr and or xor fadd fsub fmul fdiv frem icmp fcmp".split())
"""Operations on two operands of one type, which is written once."""
CONVERSIONS = frozenset("trunc zext sext fptrunc fpext fptoui fptosi uitofp sitofp ptrtoint inttoptr bitcast".split())


def declared(name: str, result: Type, arguments: list[Type]) -> str:
    """The declaration of a C function."""
    # LLVM takes a fmod of a finite number by one that isn't 0 for a frem that gives no NaN, though the divisor may be one: the result is poison then.
    attributes = " nobuiltin" if name in ("fmod", "fmodf") else ""
    return f"declare {result.text} @{name}({', '.join([t.text for t in arguments])}){attributes}"


def printed(code: list[Instruction]) -> list[str]:
    """The lines of some instructions."""
    form = _FORMS.get
    return [form(i.operation, _plainly)(i) for i in code]


def _two(i: Instruction) -> str:
    x, y = i.args
    if i.flags:
        return f"  {i.text} = {i.operation} {i.flags} {x.type.text} {x.text}, {y.text}"
    return f"  {i.text} = {i.operation} {x.type.text} {x.text}, {y.text}"


def _converted(i: Instruction) -> str:
    (x,) = i.args
    return f"  {i.text} = {i.operation} {x.type.text} {x.text} to {i.type.text}"


def _chosen(i: Instruction) -> str:
    c, x, y = i.args
    return f"  {i.text} = select {c.type.text} {c.text}, {x.type.text} {x.text}, {y.type.text} {y.text}"


def _loaded(i: Instruction) -> str:
    (p,) = i.args
    words = f"{i.flags} {i.type.text}" if i.flags else i.type.text
    return f"  {i.text} = load {words}, ptr {p.text}{i.attributes}"


def _stored(i: Instruction) -> str:
    x, p = i.args
    return f"  store {x.type.text} {x.text}, ptr {p.text}{i.attributes}"


def _placed(i: Instruction) -> str:
    p, index = i.args
    return f"  {i.text} = getelementptr {i.flags}, ptr {p.text}, {index.type.text} {index.text}"


def _allocated(i: Instruction) -> str:
    return f"  {i.text} = alloca {i.flags}{i.attributes}"


def _called(i: Instruction) -> str:
    callee, *args = i.args
    given = ", ".join([f"{a.type.text} {a.text}" for a in args])
    result = f"{i.text} = " if i.text else ""
    return f"  {result}call {i.type.text} {callee.text}({given}){i.attributes}"


def _named(i: Instruction) -> str:
    return f"{i.args[0].text[1:]}:"


def _plainly(i: Instruction) -> str:
    """All operands with their types."""
    words = ", ".join([f"{a.type.text} {a.text}" for a in i.args])
    if i.flags:
        words = f"{i.flags} {words}" if words else i.flags
    result = f"{i.text} = " if i.text else ""
    return f"  {result}{i.operation} {words}{i.attributes}".rstrip()


_FORMS: dict[str, Callable[[Instruction], str]] = {
    **dict.fromkeys(PAIRS, _two),
    **dict.fromkeys(CONVERSIONS, _converted),
    "select": _chosen,
    "load": _loaded,
    "store": _stored,
    "getelementptr": _placed,
    "alloca": _allocated,
    "call": _called,
    "label": _named,
}
