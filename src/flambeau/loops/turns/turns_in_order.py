"""Turns of a loop taken several at a time in their order, where each has an element loop that goes over the same elements.

In ``for k in range(n): out += c[k] * x[k : k + m]`` each turn reads all of ``out`` and writes it again. Where a turn's element loop touches, of the
memory that the loop writes, only the element that it has come to (the condition of :mod:`..threads.row_blocks`), all that is done to an element may
be done before the next one: :func:`take_several` writes a second loop in front of the turns, which takes several of them at once. The straight code
of these turns stands there turn by turn, and their element loops are one, in which the copies of the body follow each other. What one copy stores and
the next loads LLVM keeps in a register. Each element's operations have the order that they have turn by turn. The turns that are left are taken one
by one."""

from __future__ import annotations

from collections.abc import Iterator

from ...inductor.assembly.instructions import Instruction, Operand
from ..emitter import Emitter, turn_label
from .turn_code import Check, ElementLoop, Items, Rare, Straight, Turn, Unsuitable, code_of, in_front

__all__ = ["Writer", "is_slot", "take_several"]

BODY = 96
MOST, LEAST = 8, 2


def take_several(e: Emitter, header: int, counter: Operand) -> bool:
    """Write the loop of several turns in front of those of the loop whose bytecode begins at ``header``. ``counter``: the slot of its index, which
    goes up by 1. False where it isn't suitable, or isn't worth it."""
    try:
        turn = Turn(e, turn_label(header).text)
        loop = _the_loop(turn.items)
    except Unsuitable:
        return False
    several = min(MOST, BODY // max(len(loop.body), 1))
    if several < LEAST or not _rewrites(turn.items, loop):
        return False
    Writer(e, turn, counter, several).write()
    return True


def _the_loop(items: Items) -> ElementLoop:
    """The only one, of straight code, whose size is the same in all turns, and which uses no variables."""
    loops = [item for item in items if isinstance(item, ElementLoop)]
    made = {i.text for i in code_of(items) if i.text}
    if len(loops) != 1 or loops[0].size.text in made:
        raise Unsuitable
    for item in loops[0].body:
        if not isinstance(item, Straight) or any(is_slot(a) for a in item.instruction.args):
            raise Unsuitable
    return loops[0]


def is_slot(a: Operand) -> bool:
    return a.text.startswith("%s.")


def _rewrites(items: Items, loop: ElementLoop) -> bool:
    """Whether all turns store to the same elements."""
    turning: set[str] = set()  # what may be something else in another turn
    for i in _straight(items):
        if i.operation in ("load", "call") or any(a.text in turning for a in i.args):
            turning.add(i.text)
    stores = 0
    for i in _straight(loop.body):
        if i.operation in ("load", "call") or any(a.text in turning for a in i.args):
            turning.add(i.text)
        if i.operation == "store":
            stores += 1
            if i.args[1].text in turning:
                return False
    return stores > 0


def _straight(items: Items) -> Iterator[Instruction]:
    return (item.instruction for item in items if isinstance(item, Straight))


class Writer:
    """Writes a loop of several turns in front of a loop's turns."""

    def __init__(self, e: Emitter, turn: Turn, counter: Operand, several: int):
        self.e, self.turn, self.counter, self.several = e, turn, counter, several
        self.labels = {i.args[0].text for i in code_of(turn.items) if i.operation == "label"}
        self.errors = {
            i.args[0].text: k for k, i in enumerate(e.error_blocks) if i.operation == "label"
        }  # where the blocks begin that tell of an error

    def write(self) -> None:
        names: list[dict[str, Operand]] = [{} for _ in range(self.several)]
        in_front(self.e, self.turn, self.counter, self.several, lambda: self.turns(names))

    def turns(self, names: list[dict[str, Operand]]) -> None:
        """Write the turns. ``names``: for each of them what stands for the operands of the turn's code."""
        for mine in names:
            for item in self.turn.items:
                self.copy_straight(item, mine)
        self.copy_loop(_the_loop(self.turn.items), names)

    def copy_straight(self, item: Straight | Rare | Check | ElementLoop, names: dict[str, Operand]) -> None:
        if isinstance(item, Straight):
            self.e.out.append(self.copy(item.instruction, names))
        elif isinstance(item, Rare):
            self.e.out += [self.copy(i, names) for i in item.code]
        elif isinstance(item, Check):
            self.copy_error(item.branch.args[2], names)
            self.e.out += [self.copy(item.branch, names), self.copy(item.on, names)]

    def copy_error(self, name: Operand, names: dict[str, Operand]) -> None:
        """The block that tells of an error with the numbers of this turn."""
        at = self.errors[name.text]
        names[name.text] = self.e.new_label()
        for i in self.e.error_blocks[at:]:
            self.e.error_blocks.append(self.copy(i, names))
            if i.operation == "br":
                return

    def copy_loop(self, loop: ElementLoop, names: list[dict[str, Operand]]) -> None:
        for i in loop.head:
            self.once(i, names)
        for mine in names:
            for item in loop.body:
                self.copy_straight(item, mine)
        for i in loop.tail:
            self.once(i, names)

    def once(self, i: Instruction, names: list[dict[str, Operand]]) -> None:
        made = self.copy(i, names[0])
        made.attributes = self.e.told_again(made.attributes)
        self.e.out.append(made)
        for mine in names:
            mine.update((t, names[0][t]) for t in (i.text, *(a.text for a in i.args)) if t in names[0])

    def copy(self, i: Instruction, names: dict[str, Operand]) -> Instruction:
        args = [self.operand(a, names) for a in i.args]
        made = Instruction(i.text and f"%{self.e.unique('j')}", i.type, i.operation, args, i.flags, i.attributes)
        if i.text:
            names[i.text] = made
        return made

    def operand(self, a: Operand, names: dict[str, Operand]) -> Operand:
        if a.text in self.labels and a.text not in names:
            names[a.text] = self.e.new_label()
        return names.get(a.text, a)
