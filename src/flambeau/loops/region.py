"""The part of a frame's bytecode that is a loop: its basic blocks, and where it ends."""

from __future__ import annotations

import copy

from ..base.records import slotted
from .values import Declined

__all__ = ["LoopRegion", "find", "leads_to", "own_cells", "with_locals"]

_ENDS = ("RETURN_VALUE", "RAISE_VARARGS", "RERAISE")
_ALWAYS = ("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT")


@slotted
class LoopRegion:
    """``blocks``: first instruction of each block -> index after its last. ``header``: where the loop is entered and returned to.
    ``exit``: the one instruction outside that every way out of the loop leads to; None where the region ends with ``return``."""

    header: int
    exit: int | None
    blocks: dict[int, int]

    def assigned(self, insts) -> set[str]:
        """Variables that it may assign."""
        inside = (insts[i] for start, end in self.blocks.items() for i in range(start, end))
        return {i.argval for i in inside if i.name == "STORE_FAST"}


def successors(insts, i: int) -> list[int]:
    inst = insts[i]
    out = [] if inst.name in _ENDS or inst.name in _ALWAYS else [i + 1]
    if inst.target is not None:
        out.append(inst.target)
    return out


def through(insts, i: int) -> int:
    """Where control really goes that arrives at instruction ``i``."""
    seen = set()
    while insts[i].name in ("JUMP_FORWARD", "NOP") and i not in seen:
        seen.add(i)
        i = insts[i].target if insts[i].name == "JUMP_FORWARD" else i + 1
    return i


def leads_to(insts, i: int, exit: int) -> bool:
    """Whether control that arrives at ``i`` is out of the loop: at its exit, or at a copy of what follows that (the end of a function is
    repeated behind ``break`` since CPython 3.12)."""
    i, k = through(insts, i), through(insts, exit)
    while i != k:
        a, b = insts[i], insts[k]
        same = a.name == b.name and type(a.argval) is type(b.argval) and a.argval == b.argval and a.handler == b.handler
        if not same or a.target is not None:
            return False
        if a.name in _ENDS:
            return True
        i, k = through(insts, i + 1), through(insts, k + 1)
    return True


def find(insts, header: int) -> LoopRegion:
    """The loop that starts at ``header``; where it is left by ``return`` too, with all that follows it in the function. Declined when it is
    neither."""
    try:
        return _loop(insts, header)
    except Declined as reason:
        rest = _rest(insts, header)
        if rest is None:
            raise reason
        return rest


def _rest(insts, header: int) -> LoopRegion | None:
    """All that can run from ``header`` on, ending with the function."""
    reached, stack, starts = set(), [header], {header}
    while stack:
        i = stack.pop()
        if i in reached:
            continue
        if i < header or insts[i].handler != insts[header].handler:
            return None
        reached.add(i)
        after = successors(insts, i)
        if insts[i].target is not None or insts[i].name in _ALWAYS:
            starts.update(after)
        stack.extend(after)
    if len(reached) > LONGEST or not any(insts[i].name == "RETURN_VALUE" for i in reached):
        return None
    return LoopRegion(header, None, _blocks(insts, reached, starts))


def _loop(insts, header: int) -> LoopRegion:
    """The natural loop of the backward jumps to ``header``, with the code that leads from it to its common end (what follows ``break``).

    Declined when there is no backward jump, or when the loop is left to different places, by return, or covered by an exception handler
    of its own."""
    back = [i.index for i in insts if i.target == header and i.index >= header]
    if not back:
        raise Declined("nothing jumps back to the start of the loop")
    inside = set(range(header, max(back) + 1))
    if insts[header].name == "FOR_ITER":
        return _up_to(insts, header, inside, through(insts, insts[header].target))
    exits = {s for i in inside for s in successors(insts, i) if s not in inside}
    ends = {through(insts, i + (insts[i].name == "POP_TOP")) for i in exits}  # where a < b < c leaves an operand
    reason = Declined("the loop has no end")
    for exit in sorted(ends, reverse=True):
        try:
            return _up_to(insts, header, inside, exit)
        except Declined as e:
            reason = e
    raise reason


def _up_to(insts, header: int, inside: set[int], exit: int) -> LoopRegion:
    """The loop, left to ``exit`` only."""
    is_for = insts[header].name == "FOR_ITER"
    reached: set[int] = set()
    stack = [header]
    while stack:
        i = stack.pop()
        # What follows the loop may have a copy between its turns: a `return x` that stands behind it, where CPython has it instead of a `break`.
        if i in reached or (i != header and leads_to(insts, i, exit)):
            continue
        if insts[i].name in _ENDS and insts[i].name != "RAISE_VARARGS":
            raise Declined("the loop is left by return")
        if i not in inside and insts[i].index > exit and exit > header:
            raise Declined("the loop is left to different places")
        if insts[i].handler != insts[header].handler and not _is_uncovered_jump(insts[i]):
            raise Declined("try or with inside the loop")
        reached.add(i)
        stack.extend(successors(insts, i))
    if not is_for and any(i < header and insts[i].name == "FOR_ITER" for i in reached):
        raise Declined("the loop is part of one over a range or an array that has begun")  # which is on the stack
    starts = {header}
    for i in reached:
        if insts[i].target is not None or insts[i].name in _ALWAYS:
            starts.update(s for s in successors(insts, i) if s in reached)
    if len(reached) > LONGEST:
        raise Declined("the loop's body is very long")
    return LoopRegion(header, exit, _blocks(insts, reached, starts))


def _is_uncovered_jump(inst) -> bool:
    """Whether it is a jump that no handler covers: within a comprehension, which has one of its own since CPython 3.12."""
    return inst.handler is None and (inst.name in _ALWAYS or inst.name.startswith("POP_JUMP_IF_"))


LONGEST = 4000  # instructions


def _blocks(insts, reached: set[int], starts: set[int]) -> dict[int, int]:
    blocks: dict[int, int] = {}
    for start in sorted(starts):
        end = start
        while end in reached and (end == start or end not in starts):
            end += 1
            if insts[end - 1].target is not None or insts[end - 1].name in (*_ALWAYS, *_ENDS):
                break
        blocks[start] = end
    return blocks


def own_cells(insts, region: LoopRegion) -> frozenset[str]:
    """Variables of inner functions that only the loop assigns and reads."""
    names = _cells(insts)
    inside = {i for start, end in region.blocks.items() for i in range(start, end)}
    used = [i for i in insts if i.argval in names and i.name in (*_OF_CELLS, "LOAD_FAST")]
    assigned = {i.argval for i in used if i.name == "STORE_DEREF" and i.index in inside}
    return frozenset(assigned - {i.argval for i in used if i.index not in inside})


def with_locals(insts, cells: frozenset[str]) -> list:
    """The instructions with these variables as the function's locals. What hands a cell to an inner function is LOAD_CLOSURE, which CPython 3.13
    writes as LOAD_FAST."""
    names, out = _cells(insts), list(insts)
    for i in insts:
        name = {"LOAD_FAST": "LOAD_CLOSURE"}.get(i.name) if i.argval in names else None
        if i.name in ("LOAD_DEREF", "STORE_DEREF") and i.argval in cells:
            name = i.name.replace("DEREF", "FAST")
        if name is not None:
            out[i.index] = made = copy.copy(i)
            made.name = name
    return out


_OF_CELLS = ("LOAD_DEREF", "STORE_DEREF", "DELETE_DEREF", "LOAD_CLOSURE")


def _cells(insts) -> set[str]:
    """Variables that inner functions share."""
    return {i.argval for i in insts if i.name in (*_OF_CELLS, "MAKE_CELL")}


def blocks_of(insts) -> dict[int, int]:
    """The blocks of a whole function. Declined when an exception handler covers some of it."""
    reached, stack, starts = set(), [0], {0}
    while stack:
        i = stack.pop()
        if i in reached:
            continue
        if insts[i].handler is not None:
            raise Declined("try or with in a function that the loop calls")
        reached.add(i)
        after = successors(insts, i)
        if insts[i].target is not None or insts[i].name in _ALWAYS:
            starts.update(after)
        stack.extend(after)
    if len(reached) > LONGEST:
        raise Declined("a function that the loop calls is very long")
    return _blocks(insts, reached, starts)
