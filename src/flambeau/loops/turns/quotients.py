"""Divisions that several turns of a loop make at once, where something else goes from turn to turn.

In ``total += x[i] - x[i - n]; out[i] = total / n`` the sums have to be made one after the other, and LLVM makes no vectors of such a loop. A division
of numbers takes longer than a sum, one of a vector hardly longer than one of numbers. So :func:`divide_together` writes a second loop in front of the
turns, which takes ``TURNS`` of them at once: first what doesn't depend on quotients, turn by turn, then the quotients as vectors, then what is
done with them, turn by turn.

The condition: a turn is straight code; a float that no quotient is part of goes from turn to turn, so that LLVM has no vectors for it; nothing that a
turn reads is what is done with quotients, neither a variable nor an array.
"""

from __future__ import annotations

from ...inductor.assembly import instructions as llvm
from ...inductor.assembly.instructions import Instruction, Operand
from ..emitter import Emitter, turn_label
from .turn_code import Straight, Turn, Unsuitable
from .turns_in_order import Writer, is_slot

__all__ = ["divide_together"]

TURNS = 8  # that are taken at once: a vector of float64 with AVX-512
LONGEST = 64  # instructions of a turn


def divide_together(e: Emitter, header: int, counter: Operand) -> bool:
    """Write the loop of several turns in front of those of the loop whose bytecode begins at ``header``. ``counter``: the slot of its index, which
    goes up by 1. False where it isn't suitable."""
    try:
        turn = Turn(e, turn_label(header).text)
        parts = _Parts(e, [_straight(item) for item in turn.items])
    except Unsuitable:
        return False
    _Writer(e, turn, counter, parts).write()
    return True


def _straight(item) -> Instruction:
    if not isinstance(item, Straight):
        raise Unsuitable
    return item.instruction


class _Parts:
    """``before``: what doesn't depend on quotients; ``quotients``: the first ones; ``after``: what is done with them."""

    def __init__(self, e: Emitter, code: list[Instruction]):
        self.e = e
        if len(code) > LONGEST:
            raise Unsuitable
        self.before: list[Instruction] = []
        self.quotients: list[Instruction] = []
        self.after: list[Instruction] = []
        dependent: set[str] = set()
        for i in code:
            if any(a.text in dependent for a in i.args):
                self.after.append(i)
            elif i.operation == "fdiv":
                self.quotients.append(i)
            else:
                self.before.append(i)
                continue
            if i.text:
                dependent.add(i.text)
        if not self.quotients or not self.goes_on() or not self.apart():
            raise Unsuitable

    def goes_on(self) -> bool:
        """Whether a float without quotients goes from turn to turn, for which LLVM makes no vectors."""
        read = {i.args[0].text for i in self.before if i.operation == "load" and i.type.floating}
        return any(i.operation == "store" and is_slot(i.args[1]) and i.args[1].text in read for i in self.before)

    def apart(self) -> bool:
        """Whether what is stored of the quotients is read in no turn, and what is stored without them isn't read with them."""
        operand_of = self.e.apart_from_others
        stores = [i for i in self.after if i.operation == "store"]
        slots = {i.args[1].text for i in stores if is_slot(i.args[1])}
        arrays = {operand_of(i) for i in stores if not is_slot(i.args[1])}
        given = {operand_of(i) for i in self.before if _in_memory(i)}
        read = {i.args[0].text for i in (*self.before, *self.after) if i.operation == "load"}
        kept = {i.args[1].text for i in self.before if i.operation == "store"}
        late = any(i.operation in ("load", "call") for i in self.after)
        return (
            bool(arrays)
            and not late
            and None not in arrays | given
            and not arrays & given
            and not slots & (read | kept)
        )


def _in_memory(i: Instruction) -> bool:
    return i.operation in ("load", "store") and not is_slot(i.args[-1])


class _Writer(Writer):
    def __init__(self, e: Emitter, turn: Turn, counter: Operand, parts: _Parts):
        super().__init__(e, turn, counter, TURNS)
        self.parts = parts

    def turns(self, names: list[dict[str, Operand]]) -> None:
        out = self.e.out
        for mine in names:
            out += [self.copy(i, mine) for i in self.parts.before]
        for i in self.parts.quotients:
            vectors = [self.vector([self.operand(a, mine) for mine in names]) for a in i.args]
            made = self.e.emit("fdiv", vectors[0].type, tuple(vectors), i.flags)
            for k, mine in enumerate(names):
                mine[i.text] = self.e.emit("extractelement", i.type, (made, llvm.constant(llvm.I32, k)))
        for mine in names:
            out += [self.copy(i, mine) for i in self.parts.after]

    def vector(self, numbers: list[Operand]) -> Operand:
        type = numbers[0].type.vector(len(numbers))
        out: Operand = Operand("undef", type)
        for k, v in enumerate(numbers):
            out = self.e.emit("insertelement", type, (out, v, llvm.constant(llvm.I32, k)))
        return out
