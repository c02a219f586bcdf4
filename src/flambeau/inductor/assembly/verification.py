"""Whether a function is one that LLVM takes: names, blocks and types."""

from __future__ import annotations

from collections.abc import Iterable

from .instructions import I1, I32, I64, LABEL, PTR, VOID, Function, Instruction, Type
from .printing import CONVERSIONS, PAIRS

__all__ = ["verify"]

_ENDS = ("br", "ret", "unreachable")


def verify(function: Function, known: Iterable[str] = ()) -> None:
    """Raise ValueError unless every register is defined before it is used and once only, every label that is jumped to exists, every block ends
    with one terminator, and the types of operands and results fit the operations. ``known``: registers that are defined elsewhere."""
    defined = {p.text for p in function.parameters} | set(known)
    labels = {i.args[0].text for i in function.body if i.operation == "label"}
    ended = False
    for i in function.body:

        def fail(why: str, i=i):
            raise ValueError(f"@{function.name}: {why} in {i!r}")

        if i.operation == "label":
            if not ended and i is not function.body[0]:
                fail("a block goes on into another one")
            ended = False
            continue
        if ended:
            fail("something stands behind the end of a block")
        ended = i.operation in _ENDS
        for a in i.args:
            if a.type is LABEL:
                if a.text not in labels:
                    fail(f"{a.text} isn't a block")
            elif a.text[0] == "%" and a.text not in defined:
                fail(f"{a.text} isn't defined before")
        if i.text in defined:
            fail(f"{i.text} is defined twice")
        if i.text:
            defined.add(i.text)
        if bool(i.text) == (i.type is VOID):
            fail("a result without a type or a name")
        if not _fits(i):
            fail("types don't fit")
    if not ended:
        raise ValueError(f"@{function.name}: the last block has no end")


def _fits(i: Instruction) -> bool:
    """Whether the types of operands and result are what the operation asks for."""
    types = [a.type for a in i.args]
    operation, result = i.operation, i.type
    if operation in PAIRS:
        first = types[0]
        made = first.truth if operation in ("icmp", "fcmp") else first
        wants_float = operation[0] == "f"
        return (
            types == [first, first]
            and result is made
            and (first.floating == wants_float)
            and (bool(first.bits) or operation == "icmp")
        )
    if operation in CONVERSIONS:
        return _converts(operation, types[0], result)
    if operation == "fneg":
        return types == [result] and result.floating
    if operation == "select":
        c, x, y = types
        return c in (I1, x.truth) and x is y is result
    if operation == "load":
        return types == [PTR]
    if operation == "store":
        return types[1:] == [PTR] and types[0] is not VOID
    if operation == "getelementptr":
        return types[0] is PTR and types[1] in (I32, I64) and result is PTR
    if operation == "insertelement":
        vector, element, _ = types
        return vector is result and element is vector.element and vector.lanes > 1
    if operation == "extractelement":
        return types[0].lanes > 1 and result is types[0].element
    if operation == "shufflevector":
        return types[0] is types[1] and result is types[0].element.vector(types[2].lanes)
    if operation == "br":
        return types in ([LABEL], [I1, LABEL, LABEL])
    return True


def _converts(operation: str, source: Type, result: Type) -> bool:
    if source.lanes != result.lanes and operation != "bitcast":
        return False
    kinds = {"f": True, "u": False, "s": False}
    match operation:
        case "trunc" | "zext" | "sext" | "fptrunc" | "fpext":
            floating = operation[0] == "f"
            narrower = source.bits > result.bits if "trunc" in operation else source.bits < result.bits
            return source.floating == result.floating == floating and narrower
        case "fptoui" | "fptosi" | "uitofp" | "sitofp":
            return source.floating == kinds[operation[0]] and result.floating != source.floating
        case "ptrtoint":
            return source is PTR and not result.floating
        case "inttoptr":
            return result is PTR and not source.floating
    return source.bits * source.lanes == result.bits * result.lanes
