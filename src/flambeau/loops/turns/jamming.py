"""Turns of a loop taken several at a time, where their elements lie side by side and those of one turn don't.

In ``for j in range(n): s[j] = q @ a[:, j]; a[:, j] -= q * s[j]`` each element of a column is a cache line of its own, and in ``for j in range(n): s =
0.0; for k in range(m): s += a[i, k] * b[k, j]; c[i, j] = s`` each addition waits for the one before. Where the turns have nothing to do with each
other (see :mod:`..threads.inner` and :mod:`..interpreter`) any order of their operations that keeps each turn's own is right, so :func:`jam` writes a
second loop in front of the turns that takes ``TURNS`` of them at once ("unroll and jam"): each straight piece of code is there once for each turn,
each loop within once for all of them, with the copies of its body side by side. What the copies do to neighbouring elements LLVM makes operations on
vectors of (SLP). The turns that are left are taken ``LEFT`` at once, and the last ones one by one.

The condition, which is looked for in the instructions: a turn is straight code, element loops and loops over ranges, which are as long in
all turns; elements that neighbouring turns read and write are neighbours; and of those that a turn has for itself none lie side by side along a
loop within, which LLVM makes vectors of as it is. No number that a turn assigns is read before it is.
"""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterator

from ...inductor.assembly.instructions import ConstantOperand, Instruction, Operand, label
from ...inductor.machine.llvm import SIDE_BY_SIDE
from ..emitter import Emitter, turn_label
from .turn_code import Check, ElementLoop, Items, Rare, Straight, Turn, Unsuitable, code_of, in_front

__all__ = ["TURNS", "jam"]

TURNS, LEFT = 16, 4  # that are taken at once, two vectors of float64 with AVX-512, and of those that are left
Form = dict[str, int | None]
"""A sum of products, by the text of what is counted: the factor, None where it is no number. What isn't counted is left out."""


def jam(e: Emitter, header: int, counter: Operand) -> bool:
    """Write the loop of several turns in front of those of the loop whose bytecode begins at ``header``, of which no turn writes what another
    reads or writes. ``counter``: the slot of its index, which goes up by 1. False where it isn't suitable, or isn't worth it."""
    try:
        turn = Turn(e, turn_label(header).text, ranges=True)
        _Places(turn, counter.text).judge(_of_kernel(e, counter))
    except Unsuitable:
        return False
    for several in (TURNS, LEFT):
        turn = Turn(e, turn_label(header).text, ranges=True)
        _Writer(e, turn, counter, several).write()
    return True


# ---- where elements lie --------------------------------------------------------------------------------------------------
_TURN = "turn"
_UNKNOWN: Form = {_TURN: None}


def _is_slot(a: Operand) -> bool:
    return a.text.startswith("%s.")


def _of_kernel(e: Emitter, counter: Operand) -> set[str]:
    """Slots that belong to no turn: counters, and what is noted for the end."""
    return {counter.text, *(slot.text for (name, _), slot in e.slots.items() if name.startswith("@"))}


def _written_first(code: list[Instruction]) -> set[str]:
    """Slots that the code writes before it reads them."""
    met: dict[str, bool] = {}
    for i in code:
        if i.operation in ("load", "store") and _is_slot(i.args[-1]):
            met.setdefault(i.args[-1].text, i.operation == "store")
    return {slot for slot, written in met.items() if written}


class _Places:
    """Where the elements lie that a turn reads and writes."""

    def __init__(self, turn: Turn, counter: str):
        self.turn = turn
        self.forms: dict[str, Form] = {}
        stores = [i.args[1].text for i in code_of(turn.items) if i.operation == "store"]
        self.slots: dict[str, Form] = dict.fromkeys(stores, _UNKNOWN)
        self.slots[counter] = {_TURN: 1}
        self.across = self.apart = 0  # accesses of neighbouring elements in neighbouring turns, and of others

    def judge(self, of_kernel: set[str]) -> None:
        self.walk(self.turn.items, [])
        code = list(code_of(self.turn.items))
        carried = {i.args[1].text for i in code if i.operation == "store" and _is_slot(i.args[1])} - _written_first(
            code
        )
        if self.across <= self.apart or not carried <= of_kernel:
            raise Unsuitable

    def walk(self, items: Items, loops: list[str]) -> None:
        for item in items:
            if isinstance(item, Check):
                raise Unsuitable
            if isinstance(item, ElementLoop):
                self.loop(item, loops)
            elif isinstance(item, Straight):
                self.one(item.instruction, loops)

    def loop(self, item: ElementLoop, loops: list[str]) -> None:
        if any(_TURN in form for form in (self.form(item.size), *(self.slots.get(s.text, {}) for s in item.slots))):
            raise Unsuitable  # as many turns in each
        name = item.index.text
        assigned = [i.args[1].text for i in code_of(item.body) if i.operation == "store" and _is_slot(i.args[1])]
        self.forms[name] = {name: 1}
        before = dict.fromkeys(assigned, _UNKNOWN)
        self.slots.update(before)  # where a turn of it begins, and behind it
        self.walk(item.body, [*loops, name])
        self.slots.update(before)

    def form(self, v: Operand) -> Form:
        return self.forms.get(v.text, {})

    def one(self, i: Instruction, loops: list[str]) -> None:
        if i.operation in ("load", "store"):
            place = i.args[-1]
            if _is_slot(place):
                if i.operation == "store":
                    self.slots[place.text] = self.form(i.args[0])
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
        step = place.get(_TURN, 0)
        if step != 0 and place.get(loops[-1], 0) in (size, -size):
            raise Unsuitable  # vectors along the loop
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
def _loops(items: Items) -> Iterator[ElementLoop]:
    for item in items:
        if isinstance(item, ElementLoop):
            yield item
            yield from _loops(item.body)


class _Writer:
    def __init__(self, e: Emitter, turn: Turn, counter: Operand, several: int):
        self.e, self.turn, self.counter, self.several = e, turn, counter, several
        self.names: list[dict[str, Operand]] = [{} for _ in range(several)]
        code = list(code_of(turn.items))
        self.labels = {i.args[0].text for i in code if i.operation == "label"}
        # Variables of a turn, by their slots: each of several turns has its own.
        stores = _written_first(code) - {slot.text for loop in _loops(turn.items) for slot in loop.slots}
        self.own = {
            slot.text: type for (_, type), slot in e.slots.items() if slot.text in stores - _of_kernel(e, counter)
        }

    def write(self) -> None:
        in_front(self.e, self.turn, self.counter, self.several, lambda: self.all(self.turn.items))

    def all(self, items: Items) -> None:
        """Runs of straight code for one turn after the other, loops for all of them."""
        for straight, run in itertools.groupby(items, lambda item: isinstance(item, Straight)):
            if straight:
                code = [item.instruction for item in run if isinstance(item, Straight)]
                for names in self.names:
                    self.e.out += [self.copy(i, names) for i in code]
                continue
            for item in run:
                if isinstance(item, Rare):
                    self.once(item.code)
                elif isinstance(item, ElementLoop):
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
            return label(f"{a.text[1:]}{SIDE_BY_SIDE}{self.several}")
        if a.text in self.own and a.text not in shared and a.text not in names:
            names[a.text] = self.e.slot(self.e.unique("jammed"), self.own[a.text])
        return a if a.text in shared else names.get(a.text, a)
