"""A turn of a loop as straight code and element loops, found in the instructions that were written for it: what :mod:`.jamming` and
:mod:`.turns_in_order` take several of at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ...base.records import slotted
from ...inductor.assembly import instructions as llvm
from ...inductor.assembly.instructions import Instruction, Operand, label
from ..emitter import RARELY, USUALLY, Emitter
from .divisors import divided

__all__ = ["Check", "ElementLoop", "Items", "Rare", "Straight", "Turn", "Unsuitable", "code_of", "in_front"]

LONGEST = 200  # instructions of a turn


class Unsuitable(Exception):
    """The turns aren't taken several at a time."""


@slotted
class Straight:
    """An instruction that each turn has for itself."""

    instruction: Instruction


@slotted
class Rare:
    """A way that is hardly ever taken, and leads back or out of the kernel: where a signal is asked for. It is there once for all turns."""

    code: list[Instruction]


@slotted
class Check:
    """A branch that is taken unless there is an error, of which a block elsewhere tells; the label that follows."""

    branch: Instruction
    on: Instruction


@slotted
class ElementLoop:
    """An element loop, or one over a range. ``head``: its instructions up to the label of the body; ``tail``: those that count, up to the label of
    what follows. ``slots``: of a range, those of its counter and of its end, which are written before."""

    head: list[Instruction]
    body: list[Straight | Rare | Check | ElementLoop]
    tail: list[Instruction]
    index: Instruction
    size: Operand
    slots: tuple[Operand, ...] = ()


Items = list[Straight | Rare | Check | ElementLoop]


class Turn:
    """A turn's code. ``start``: where its label lies; ``entries``: the jumps that lead there from before it; ``limit``: the slot of where the turns
    end; ``items``: what it does. ``ranges``: whether it may have loops over ranges. Unsuitable where it is anything else."""

    def __init__(self, e: Emitter, name: str, ranges: bool = False):
        places = [k for k, i in enumerate(e.out) if i.operation == "label" and i.args[0].text == name]
        leads = [k for k, i in enumerate(e.out) if _leads(i, label(name[1:]))]
        if len(places) != 1 or sum(k > places[0] for k in leads) != 1:  # one way back
            raise Unsuitable
        self.start = places[0]
        self.entries = [e.out[k] for k in leads[:-1]]
        code = e.out[self.start + 1 : leads[-1]]
        split = next((k for k, i in enumerate(code) if i.operation == "br"), 0)
        if len(code) > LONGEST or not 2 <= split < len(code) - 1 or len(code[split].args) != 3:
            raise Unsuitable
        test, way = code[split - 1], code[split + 1]
        end = test.args[1] if test.operation == "icmp" else None
        if not isinstance(end, Instruction) or end.operation != "load" or not _is_label(way, code[split].args[1]):
            raise Unsuitable
        self.limit = end.args[0]
        turn = code[split + 2 :]
        behind = next((k for k, i in enumerate(turn) if _is_label(i, code[split].args[2])), None)
        if behind is not None:  # the way out of the loop, which several turns that there are don't take
            del turn[behind : 1 + next(k for k in range(behind, len(turn)) if turn[k].operation == "br")]
        self.items: Items = [*map(Straight, code[: split - 1]), *_items(turn, ranges)]


def _is_label(i: Instruction, of: Operand) -> bool:
    return i.operation == "label" and i.args[0].text == of.text


def _leads(i: Instruction, to: Operand) -> bool:
    return i.operation == "br" and any(a.text == to.text for a in i.args)


def _items(code: list[Instruction], ranges: bool) -> Items:
    out: Items = []
    k = 0
    while k < len(code):
        i = divided(code[k])
        if i.operation == "br" and len(i.args) == 1 and k + 1 < len(code) and _is_label(code[k + 1], i.args[0]):
            back = [n for n in range(k + 1, len(code)) if _leads(code[n], i.args[0])]
            if back:
                whole = code[k : back[-1] + 2]
                over_range = ranges and len(back) == 1 and whole[3].operation == "load"
                out.append(_range_loop(whole) if over_range else _loop(whole, out))
                k = back[-1] + 2
            else:  # to the next block
                k += 2
        elif i.operation == "br" and i.attributes == RARELY:
            end = next((n for n in range(k, len(code)) if _is_label(code[n], i.args[2])), None)
            if end is None:
                raise Unsuitable
            out.append(Rare(code[k : end + 1]))
            k = end + 1
        elif i.operation == "br" and i.attributes == USUALLY and _is_label(code[k + 1], i.args[1]):
            out.append(Check(i, code[k + 1]))
            k += 2
        elif i.operation in ("br", "label", "ret", "unreachable", "alloca") or (
            i.operation == "call" and not i.args[0].text.startswith("@llvm.")
        ):
            raise Unsuitable
        else:
            out.append(Straight(i))
            k += 1
    return out


def _loop(code: list[Instruction], before: Items) -> ElementLoop:
    """From the jump to its head to the label behind it; its counter's store is the last of what lies ``before``."""
    first = before.pop() if before else None
    names = [i.operation for i in code[:6]]
    if names != ["br", "label", "load", "icmp", "br", "label"] or not isinstance(first, Straight):
        raise Unsuitable
    _, _, index, test, ways, _ = code[:6]
    store = first.instruction
    if store.operation != "store" or store.args[1].text != index.args[0].text or not _is_label(code[-1], ways.args[2]):
        raise Unsuitable
    return ElementLoop([store, *code[:6]], _items(code[6:-4], False), code[-4:], index, test.args[1])


def _range_loop(code: list[Instruction]) -> ElementLoop:
    """From the jump to its head to the label behind it."""
    names = [i.operation for i in code[:9]]
    if names != ["br", "label", "load", "load", "icmp", "br", "label", "add", "store"]:
        raise Unsuitable
    head, body = code[:9], code[9:-2]
    _, _, index, limit, test, ways, begin, counted, count = head
    out = next((k for k, i in enumerate(body) if _is_label(i, ways.args[2])), None)
    if out is None or not _is_label(begin, ways.args[1]) or [a.text for a in test.args] != [index.text, limit.text]:
        raise Unsuitable
    if counted.args[0].text != index.text or (count.args[0].text, count.args[1].text) != (
        counted.text,
        index.args[0].text,
    ):
        raise Unsuitable
    way_out = body[out + 1]
    if way_out.operation != "br" or len(way_out.args) != 1 or not _is_label(code[-1], way_out.args[0]):
        raise Unsuitable
    del body[out : out + 2]
    ways = Instruction("", ways.type, "br", (test, begin.args[0], way_out.args[0]), ways.flags, ways.attributes)
    head = [*head[:5], ways, *head[6:]]
    return ElementLoop(head, _items(body, True), code[-2:], index, limit, (index.args[0], limit.args[0]))


def code_of(items: Items) -> Iterator[Instruction]:
    """All instructions."""
    for item in items:
        if isinstance(item, Straight):
            yield item.instruction
        elif isinstance(item, Rare):
            yield from item.code
        elif isinstance(item, Check):
            yield from (item.branch, item.on)
        else:
            yield from item.head
            yield from code_of(item.body)
            yield from item.tail


def in_front(e: Emitter, turn: Turn, counter: Operand, several: int, write: Callable[[], None]) -> None:
    """Put a loop that takes ``several`` turns at once in front of those of a loop, which go on where fewer are left. ``write()`` the turns'
    code. ``counter``: the slot of the loop's index."""
    head, together = e.new_label(), e.new_label()
    single = e.out[turn.start].args[0]
    rest = e.out[turn.start :]
    del e.out[turn.start :]
    for jump in turn.entries:
        jump.args = tuple(head if a.text == single.text else a for a in jump.args)
    e.label(head)
    after = e.op("add", e.read(llvm.I64, counter), several)
    e.branch(e.cmp("sle", after, e.read(llvm.I64, turn.limit)), together, single)
    e.label(together)
    write()
    e.jump(head)
    e.out += rest
