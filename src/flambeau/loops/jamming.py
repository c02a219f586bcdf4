"""Turns of a loop taken several at a time, where their elements lie side by side and those of one turn don't.

In ``for j in range(n): s[j] = q @ a[:, j]; a[:, j] -= q * s[j]`` each element of a column is a cache line of its own. Where the turns have nothing to
do with each other (see :mod:`.inner` and :mod:`.interpreter`) any order of their operations that keeps each turn's own is right, so
:func:`jam` writes a second loop in front of the turns that takes ``TURNS`` of them at once ("unroll and jam"): each straight piece of code is
there once for each turn, each element loop once for all of them, with the copies of its body side by side. What the copies do to neighbouring
elements LLVM makes operations on vectors of (SLP). The turns that are left are taken one by one.

The condition, which is looked for in the instructions: a turn is straight code and element loops, whose numbers of elements are the same in
all turns; elements that neighbouring turns read and write are neighbours; and none lie side by side along an element loop, which LLVM
makes vectors of as it is.
"""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterator

from ..base.records import slotted
from ..inductor.assembly import instructions as llvm
from ..inductor.assembly.instructions import ConstantOperand, Instruction, Operand, label
from .emitter import RARELY, Emitter, turn_label

__all__ = ["TURNS", "jam"]

TURNS = 16  # that are taken at once: two vectors of float64 with AVX-512
LONGEST = 200  # instructions of a turn
Form = dict[str, int | None]
"""A sum of products, by the text of what is counted: the factor, None where it is no number. What isn't counted is left out."""


class _Unsuitable(Exception):
    """The turns aren't taken several at a time."""


@slotted
class _Straight:
    """An instruction that each turn has for itself."""

    instruction: Instruction


@slotted
class _Rare:
    """A way that is hardly ever taken, and leads back or out of the kernel: where a signal is asked for. It is there once for all turns."""

    code: list[Instruction]


@slotted
class _Loop:
    """An element loop. ``head``: its instructions up to the label of the body; ``tail``: those that count, up to the label of what follows."""

    head: list[Instruction]
    body: list[_Straight | _Rare | _Loop]
    tail: list[Instruction]
    index: Instruction
    size: Operand


_Items = list[_Straight | _Rare | _Loop]


def jam(e: Emitter, header: int, counter: Operand) -> bool:
    """Write the loop of several turns in front of those of the loop whose bytecode begins at ``header``, of which no turn writes what another
    reads or writes. ``counter``: the slot of its index, which goes up by 1. False where it isn't suitable, or isn't worth it."""
    try:
        turn = _Turn(e, turn_label(header).text)
        _Places(turn, counter.text).judge()
    except _Unsuitable:
        return False
    _Writer(e, turn, counter).write()
    return True


class _Turn:
    """A turn's code. ``start``: where its label lies; ``limit``: the slot of where the turns end; ``items``: what it does."""

    def __init__(self, e: Emitter, name: str):
        places = [k for k, i in enumerate(e.out) if i.operation == "label" and i.args[0].text == name]
        backs = [k for k, i in enumerate(e.out) if _leads(i, label(name[1:]))]
        if len(places) != 1 or len(backs) != 2 or backs[0] != places[0] - 1:  # one way in, one back
            raise _Unsuitable
        self.start = places[0]
        code = e.out[self.start + 1 : backs[1]]
        split = next((k for k, i in enumerate(code) if i.operation == "br"), 0)
        if len(code) > LONGEST or not 2 <= split < len(code) - 1 or len(code[split].args) != 3:
            raise _Unsuitable
        test, way = code[split - 1], code[split + 1]
        end = test.args[1] if test.operation == "icmp" else None
        if not isinstance(end, Instruction) or end.operation != "load" or not _is_label(way, code[split].args[1]):
            raise _Unsuitable
        self.limit = end.args[0]
        turn = code[split + 2 :]
        behind = next((k for k, i in enumerate(turn) if _is_label(i, code[split].args[2])), None)
        if behind is not None:  # the way out of the loop, which several turns that there are don't take
            del turn[behind : 1 + next(k for k in range(behind, len(turn)) if turn[k].operation == "br")]
        self.items: _Items = [*map(_Straight, code[: split - 1]), *_items(turn)]


def _is_label(i: Instruction, of: Operand) -> bool:
    return i.operation == "label" and i.args[0].text == of.text


def _leads(i: Instruction, to: Operand) -> bool:
    return i.operation == "br" and any(a.text == to.text for a in i.args)


def _items(code: list[Instruction]) -> _Items:
    out: _Items = []
    k = 0
    while k < len(code):
        i = code[k]
        if i.operation == "br" and len(i.args) == 1 and k + 1 < len(code) and _is_label(code[k + 1], i.args[0]):
            back = [n for n in range(k + 1, len(code)) if _leads(code[n], i.args[0])]
            if back:
                out.append(_loop(code[k : back[-1] + 2], out))
                k = back[-1] + 2
            else:  # to the next block
                k += 2
        elif i.operation == "br" and i.attributes == RARELY:
            end = next((n for n in range(k, len(code)) if _is_label(code[n], i.args[2])), None)
            if end is None:
                raise _Unsuitable
            out.append(_Rare(code[k : end + 1]))
            k = end + 1
        elif i.operation in ("br", "label", "ret", "unreachable", "alloca") or (
            i.operation == "call" and not i.args[0].text.startswith("@llvm.")
        ):
            raise _Unsuitable
        else:
            out.append(_Straight(i))
            k += 1
    return out


def _loop(code: list[Instruction], before: _Items) -> _Loop:
    """From the jump to its head to the label behind it; its counter's store is the last of what lies ``before``."""
    first = before.pop() if before else None
    names = [i.operation for i in code[:6]]
    if names != ["br", "label", "load", "icmp", "br", "label"] or not isinstance(first, _Straight):
        raise _Unsuitable
    _, _, index, test, ways, _ = code[:6]
    store = first.instruction
    if store.operation != "store" or store.args[1].text != index.args[0].text or not _is_label(code[-1], ways.args[2]):
        raise _Unsuitable
    return _Loop([store, *code[:6]], _items(code[6:-4]), code[-4:], index, test.args[1])


def _code(items: _Items) -> Iterator[Instruction]:
    for item in items:
        if isinstance(item, _Straight):
            yield item.instruction
        elif isinstance(item, _Rare):
            yield from item.code
        else:
            yield from item.head
            yield from _code(item.body)
            yield from item.tail


# ---- where elements lie --------------------------------------------------------------------------------------------------
_TURN = "turn"
_UNKNOWN: Form = {_TURN: None}


class _Places:
    """Where the elements lie that a turn reads and writes."""

    def __init__(self, turn: _Turn, counter: str):
        self.turn = turn
        self.forms: dict[str, Form] = {}
        stores = [i.args[1].text for i in _code(turn.items) if i.operation == "store"]
        self.slots: dict[str, Form] = dict.fromkeys(stores, _UNKNOWN)
        self.slots[counter] = {_TURN: 1}
        self.across = self.apart = 0  # accesses of neighbouring elements in neighbouring turns, and of others

    def judge(self) -> None:
        self.walk(self.turn.items, [])
        if self.across <= self.apart:
            raise _Unsuitable

    def walk(self, items: _Items, loops: list[str]) -> None:
        for item in items:
            if isinstance(item, _Loop):
                if _TURN in self.form(item.size):
                    raise _Unsuitable
                name = item.index.text
                self.forms[name] = {name: 1}
                self.walk(item.body, [*loops, name])
            elif isinstance(item, _Straight):
                self.one(item.instruction, loops)

    def form(self, v: Operand) -> Form:
        return self.forms.get(v.text, {})

    def one(self, i: Instruction, loops: list[str]) -> None:
        if i.operation in ("load", "store"):
            place = i.args[-1]
            if place.text.startswith("%s."):
                if i.operation == "store":
                    self.slots[place.text] = _UNKNOWN if loops else self.form(i.args[0])
                else:
                    self.forms[i.text] = self.slots.get(place.text, {})
                return
            self.accessed(self.form(place), (i if i.operation == "load" else i.args[0]).type.bits // 8, loops)
            if i.text:
                self.forms[i.text] = {_TURN: None, **dict.fromkeys(loops)}
        elif i.text:
            self.forms[i.text] = self.computed(i)

    def accessed(self, place: Form, size: int, loops: list[str]) -> None:
        if not loops:
            return
        if place.get(loops[-1], 0) in (size, -size):
            raise _Unsuitable  # vectors along the loop
        step = place.get(_TURN, 0)
        self.across += step == size
        self.apart += step not in (0, size)

    def computed(self, i: Instruction) -> Form:
        forms = [self.form(a) for a in i.args]
        if i.operation in ("add", "sub", "getelementptr") and (
            i.operation != "getelementptr" or i.flags.endswith("i8")
        ):
            sign = -1 if i.operation == "sub" else 1
            out = dict(forms[0])
            for name, n in forms[1].items():
                out[name] = None if n is None or out.get(name, 0) is None else out.get(name, 0) + sign * n
            return {name: n for name, n in out.items() if n != 0}
        if i.operation == "mul":
            for k, a in enumerate(i.args):
                if isinstance(a, ConstantOperand):
                    return {name: n and n * a.value for name, n in forms[1 - k].items() if a.value}
        return {name: None for form in forms for name in form}


# ---- the loop of several turns -------------------------------------------------------------------------------------------
class _Writer:
    def __init__(self, e: Emitter, turn: _Turn, counter: Operand):
        self.e, self.turn, self.counter = e, turn, counter
        self.names: list[dict[str, Operand]] = [{} for _ in range(TURNS)]
        code = list(_code(turn.items))
        self.labels = {i.args[0].text for i in code if i.operation == "label"}
        shared = {counter.text, *(slot.text for (name, _), slot in e.slots.items() if name in e.zeroed)}
        stores = {i.args[1].text for i in _code(turn.items) if i.operation == "store"}
        # Variables of a turn, by their slots: each of several turns has its own.
        self.own = {slot.text: type for (_, type), slot in e.slots.items() if slot.text in stores - shared}

    def write(self) -> None:
        e, start = self.e, self.turn.start
        rest = e.out[start:]
        del e.out[start - 1 :]  # the jump to the first turn, too
        head, several, single = e.new_label(), e.new_label(), rest[0].args[0]
        e.jump(head)
        e.label(head)
        after = e.op("add", e.read(llvm.I64, self.counter), TURNS)
        e.branch(e.cmp("sle", after, e.read(llvm.I64, self.turn.limit)), several, single)
        e.label(several)
        self.all(self.turn.items)
        e.jump(head)
        e.out += rest

    def all(self, items: _Items) -> None:
        """Runs of straight code for one turn after the other, loops for all of them."""
        for straight, run in itertools.groupby(items, lambda item: isinstance(item, _Straight)):
            if straight:
                code = [item.instruction for item in run if isinstance(item, _Straight)]
                for names in self.names:
                    self.e.out += [self.copy(i, names) for i in code]
                continue
            for item in run:
                if isinstance(item, _Rare):
                    self.once(item.code)
                elif isinstance(item, _Loop):
                    self.once(item.head)
                    self.all(item.body)
                    self.once(item.tail, self.e.unvectorised())

    def once(self, code: list[Instruction], back: str = "") -> None:
        """Code that is there once for all turns: it uses what is the same in all of them. ``back``: what is told of the jump to a loop's head."""
        for i in code:
            made = self.copy(i, self.names[0], self.own)
            if i.operation == "br" and back:
                made.attributes = back
            if i.text:
                for names in self.names:
                    names[i.text] = made
            self.e.out.append(made)

    def copy(self, i: Instruction, names: dict[str, Operand], shared: Container[str] = ()) -> Instruction:
        args = [self.operand(a, names, shared) for a in i.args]
        made = Instruction(i.text and f"%{self.e.unique('j')}", i.type, i.operation, args, i.flags, i.attributes)
        if i.text:
            names[i.text] = made
        return made

    def operand(self, a: Operand, names: dict[str, Operand], shared: Container[str]) -> Operand:
        if a.text in self.labels:
            return label(f"{a.text[1:]}.jammed")
        if a.text in self.own and a.text not in shared and a.text not in names:
            names[a.text] = self.e.slot(self.e.unique("jammed"), self.own[a.text])
        return a if a.text in shared else names.get(a.text, a)
