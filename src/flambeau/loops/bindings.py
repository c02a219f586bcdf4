"""Which variables only change names in a loop: what each holds at the end of a turn of what was held when the turn began.

``previous, current = current, previous`` makes no array, so after the loop each name is bound to one of the arrays from before it; to which one
follows from the number of turns.
"""

from __future__ import annotations

from .region import LoopRegion, successors

__all__ = ["after", "moves"]

_NOTHING = ("NOP", "RESUME", "CACHE", "EXTENDED_ARG", "PRECALL", "PUSH_NULL")


def moves(insts, region: LoopRegion) -> dict[str, str]:
    """Variable -> the variable whose value at the start of the turn it holds at the turn's end, on all paths."""
    names = {i.argval for a, b in region.blocks.items() for i in insts[a:b] if i.name in ("LOAD_FAST", "STORE_FAST")}
    entered: dict[int, dict[str, str]] = {region.header: {name: name for name in names}}
    ends: list[dict[str, str]] = []
    todo = [region.header]
    while todo:
        at = todo.pop()
        end = region.blocks[at]
        held = _through(insts[at:end], entered[at])
        if at in region.blocks and any(target == region.header for target in successors(insts, end - 1)):
            ends.append(held)
        for target in successors(insts, end - 1):
            if target == region.header or target not in region.blocks:
                continue
            known = entered.get(target)
            met = held if known is None else _common(known, held)
            if met != known:
                entered[target] = met
                todo.append(target)
    out = ends[0] if ends else {}
    for held in ends[1:]:
        out = _common(out, held)
    return out


def _common(a: dict[str, str], b: dict[str, str]) -> dict[str, str]:
    return {name: was for name, was in a.items() if b.get(name) == was}


def _through(insts, held: dict[str, str]) -> dict[str, str]:
    """The values of variables after some instructions. On the stack only values that were just loaded from variables are followed."""
    held, stack = dict(held), []
    for inst in insts:
        name, n = inst.name, inst.arg
        if name == "LOAD_FAST":
            stack.append(held.get(inst.argval))
        elif name == "STORE_FAST":
            held.pop(inst.argval, None)
            was = stack.pop() if stack else None
            if was is not None:
                held[inst.argval] = was
        elif name == "SWAP" and len(stack) >= n:
            stack[-1], stack[-n] = stack[-n], stack[-1]
        elif name == "COPY" and len(stack) >= n:
            stack.append(stack[-n])
        elif name == "BUILD_TUPLE" and len(stack) >= n > 0:
            stack[-n:] = [tuple(stack[-n:])]
        elif name == "UNPACK_SEQUENCE" and stack and isinstance(stack[-1], tuple) and len(stack[-1]) == n:
            stack.extend(reversed(stack.pop()))
        elif name not in _NOTHING:
            stack.clear()
            if name == "DELETE_FAST":
                held.pop(inst.argval, None)
    return {name: was for name, was in held.items() if isinstance(was, str)}


def after(moved: dict[str, str], name: str, remainder) -> str | None:
    """The variable whose value from before the loop ``name`` holds after it; None where that isn't known. ``remainder(p)``: the number of turns, of
    which there is at least one, modulo ``p``."""
    way = [name]  # what it holds after 0, 1, ... turns
    while way[-1] in moved and moved[way[-1]] not in way:
        way.append(moved[way[-1]])
    if way[-1] not in moved:
        return None
    tail = way.index(moved[way[-1]])  # turns after which names come round again
    if tail > 1:
        return None
    period = len(way) - tail
    turns = remainder(period) if period > 1 else 0
    return way[turns if turns >= tail else turns + period]
