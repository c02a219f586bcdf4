"""What a loop's turns only combine: sums, products, extrema and the like over turns, found in the bytecode.

A variable that is carried from turn to turn keeps turns in their order, unless all that is done with it is known: ``s += x`` where nothing else
reads ``s``, ``if x > m: m = x`` (with other variables that are assigned there), ``m = max(m, x)``, ``found = True``. Each part of the turns has
such a variable of its own then, which begins with what changes nothing (:class:`Recurrence`), and the parts are combined in the order of the
turns (:mod:`.spreading`). A variable that each turn assigns before it is read is that of the last turn.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

from ...base.records import slotted
from ..binary_operators import binary_name
from ..region import LoopRegion
from ..values import Known

__all__ = ["Kind", "Recurrence", "recurrence_of"]


class Kind(enum.Enum):
    """How the values of two parts of the turns are combined."""

    LAST = "the last"
    SUM = "a sum"
    PRODUCT = "a product"
    AND = "a bitwise and"
    OR = "a bitwise or"
    XOR = "a bitwise exclusive or"
    LARGEST = "the largest"
    SMALLEST = "the smallest"
    CHOSEN = "what belongs to an extremum"
    CONSTANT = "whether something happened"


@slotted
class Recurrence:
    """``once``: a turn does it once at most. ``strict``: of extrema, the first of equals stays. ``of``: the extremum that a CHOSEN one belongs to.
    ``value``: what a CONSTANT one is set to."""

    kind: Kind
    once: bool = True
    strict: bool = True
    of: str | None = None
    value: Any = None


_OPERATORS = {
    "+": Kind.SUM, "-": Kind.SUM, "*": Kind.PRODUCT, "&": Kind.AND, "|": Kind.OR, "^": Kind.XOR,
}  # fmt: skip
# Instruction -> (operands that it takes, that it gives), of those that an expression is made of.
_EFFECTS: dict[str, Callable[[int], tuple[int, int]]] = {
    **dict.fromkeys(("LOAD_FAST", "LOAD_CONST", "LOAD_DEREF", "PUSH_NULL"), lambda n: (0, 1)),
    **dict.fromkeys(("NOP", "PRECALL", "KW_NAMES"), lambda n: (0, 0)),
    **dict.fromkeys(("BINARY_OP", "BINARY_SUBSCR", "COMPARE_OP"), lambda n: (2, 1)),
    **dict.fromkeys(("UNARY_NEGATIVE", "UNARY_INVERT", "UNARY_NOT", "LOAD_ATTR"), lambda n: (1, 1)),
    **dict.fromkeys(("BUILD_TUPLE", "BUILD_SLICE"), lambda n: (n, 1)),
    "LOAD_GLOBAL": lambda n: (0, 1 + (n & 1)),
    "LOAD_METHOD": lambda n: (1, 2),
    "BINARY_SLICE": lambda n: (3, 1),
    "CALL": lambda n: (n + 2, 1),
    "CALL_KW": lambda n: (n + 3, 1),
}
# An expression that gives the same value again, right behind itself.
_REPEATABLE = frozenset(
    ("LOAD_FAST", "LOAD_CONST", "LOAD_GLOBAL", "BINARY_OP", "BINARY_SUBSCR", "UNARY_NEGATIVE", "BUILD_TUPLE")
)


def recurrence_of(
    name: str, insts, region: LoopRegion, live: Callable[[int], frozenset[str]], load_global: Callable[[str], Any]
) -> Recurrence | None:
    """What the turns of the loop do with a variable; None where that has to be done in order. ``insts``: those of the function that has the loop.
    ``live(i)``: variables that may be read at or after instruction i."""
    return _Variable(name, insts, region, load_global).found(live)


class _Variable:
    def __init__(self, name: str, insts, region: LoopRegion, load_global: Callable[[str], Any]):
        self.name, self.insts, self.region = name, insts, region
        self.load_global = load_global
        inside = [i for a, b in region.blocks.items() if a < len(insts) for i in insts[a:b]]
        self.loads = [i.index for i in inside if i.name == "LOAD_FAST" and i.argval == name]
        self.stores = [i.index for i in inside if i.name == "STORE_FAST" and i.argval == name]
        self.inside = inside

    def found(self, live) -> Recurrence | None:
        plain = ("LOAD_FAST", "STORE_FAST")
        if any("FAST" in i.name and i.name not in plain and i.argval == self.name for i in self.inside):
            return None
        if self.name not in live(self.region.header + 1):
            return Recurrence(Kind.LAST)
        if not self.loads:
            return self.constant() or self.chosen()
        updates = [self.update(at) for at in self.loads]
        first = updates[0]
        if first is None or any(u is None or (u[0], u[1]) != (first[0], first[1]) for u in updates):
            return None
        if sorted(at for *_, at in updates) != sorted(self.stores):  # another store breaks the chain
            return None
        once = len(self.stores) == 1 and not self.repeats(self.stores[0])
        return Recurrence(first[0], once, first[1])

    def entered(self, first: int, last: int) -> bool:
        """Whether a jump from elsewhere leads to one of these instructions."""
        return any(
            i.target is not None and first <= i.target <= last and not first <= i.index <= last for i in self.inside
        )

    def repeats(self, at: int) -> bool:
        """Whether a loop within the loop has this instruction."""
        header = self.region.header
        return any(i.target is not None and header < i.target <= at <= i.index for i in self.inside)

    # ---- updates -----------------------------------------------------------------------------------------------------------
    def update(self, at: int) -> tuple[Kind, bool, int] | None:
        """(kind, whether strict, the store) of the statement that reads the variable at ``at``."""
        found = self.consumer(at)
        if found is None:
            return None
        user, depth = found
        inst = self.insts[user]
        if inst.name == "BINARY_OP":
            operator = binary_name(inst).rstrip("=")
            kind = _OPERATORS.get(operator)
            if kind is None or (operator == "-" and depth != 2):
                return None
            return self.stored(user, kind, True)
        if inst.name == "COMPARE_OP":
            return self.compared(at, user, depth)
        if inst.name == "CALL" and inst.arg == 2:
            return self.called(at, user, depth)
        return None

    def stored(self, user: int, kind: Kind, strict: bool) -> tuple[Kind, bool, int] | None:
        store = self.insts[user + 1]
        return (kind, strict, user + 1) if store.name == "STORE_FAST" and store.argval == self.name else None

    def consumer(self, at: int) -> tuple[int, int] | None:
        """The instruction that takes what is loaded at ``at`` from the stack, and how deep it lies then: 1 at the top."""
        depth = 1
        for inst in self.insts[at + 1 :]:
            effect = _EFFECTS.get(inst.name)
            if effect is None or (inst.name == "LOAD_FAST" and inst.argval == self.name):
                return None
            takes, gives = effect(inst.arg or 0)
            if takes >= depth:
                return inst.index, depth
            depth += gives - takes
        return None

    def compared(self, at: int, user: int, depth: int) -> tuple[Kind, bool, int] | None:
        """``if x > m: m = x``, or the other way round."""
        operator, body = self.insts[user].argval, self.body(user)
        if operator not in ("<", ">", "<=", ">=") or body is None:
            return None
        value = self.insts[at + 1 : user] if depth == 2 else self.before(at)
        end = self.taker(body + len(value))
        if end is None:
            return None
        after, store = self.insts[body : body + len(value)], self.insts[end]
        same = len(value) > 0 and all(
            a.name == b.name and a.name in _REPEATABLE and type(a.argval) is type(b.argval) and a.argval == b.argval
            for a, b in zip(value, after)
        )
        if (
            not same
            or any(a.argval == self.name for a in value)
            or store.name != "STORE_FAST"
            or store.argval != self.name
        ):
            return None
        if self.entered(1 + (value[0].index if depth == 1 else at), store.index):  # past the comparison
            return None
        larger = (operator[0] == ">") == (depth == 1)
        return Kind.LARGEST if larger else Kind.SMALLEST, len(operator) == 1, store.index

    def taker(self, at: int) -> int | None:
        """The store that takes what lies on top of the stack in front of ``at``: at once, or behind those of other values (``m, k = x, i``)."""
        depth, storing = 1, False
        for inst in self.insts[at:]:
            if inst.name == "STORE_FAST":
                depth, storing = depth - 1, True
                if depth == 0:
                    return inst.index
                continue
            effect = _EFFECTS.get(inst.name)
            takes, gives = effect(inst.arg or 0) if effect else (depth, 0)
            if storing or takes >= depth:
                return None
            depth += gives - takes
        return None

    def body(self, user: int) -> int | None:
        """Where the statements begin that run if a comparison holds, and not where it doesn't."""
        if user + 2 >= len(self.insts):
            return None
        jump, following = self.insts[user + 1], self.insts[user + 2]
        if jump.name == "POP_JUMP_IF_FALSE":
            return user + 2
        over = jump.name == "POP_JUMP_IF_TRUE" and following.name == "JUMP_BACKWARD" and jump.target == user + 3
        return user + 3 if over else None

    def before(self, at: int):
        """The instructions of the operand that lies below the variable on the stack: they begin where the stack had one less."""
        need, i = 1, at
        while need > 0 and i > self.region.header:
            i -= 1
            effect = _EFFECTS.get(self.insts[i].name)
            if effect is None:
                return ()
            takes, gives = effect(self.insts[i].arg or 0)
            need += takes - gives
        return self.insts[i:at] if need == 0 else ()

    def called(self, at: int, user: int, depth: int) -> tuple[Kind, bool, int] | None:
        """``m = max(m, x)``, or min."""
        first = [i for i in self.before_call(at, depth) if i.name == "LOAD_GLOBAL"]
        if not first or first[0].argval not in ("max", "min"):
            return None
        known = self.load_global(first[0].argval)
        if not isinstance(known, Known) or known.value not in (max, min):
            return None
        # Of equals the first argument is taken.
        return self.stored(user, Kind.LARGEST if known.value is max else Kind.SMALLEST, depth == 2)

    def before_call(self, at: int, depth: int):
        """What loads the function that is called."""
        if depth == 2:
            return self.insts[max(at - 2, 0) : at]
        value = self.before(at)
        begin = value[0].index if value else at
        return self.insts[max(begin - 2, 0) : begin]

    # ---- variables that are never read -------------------------------------------------------------------------------------
    def constant(self) -> Recurrence | None:
        """``found = True``."""
        values = [self.insts[at - 1] for at in self.stores]
        if any(i.name != "LOAD_CONST" or type(i.argval) not in (bool, int) for i in values):
            return None
        first = values[0].argval
        if any(type(i.argval) is not type(first) or i.argval != first for i in values):
            return None
        return Recurrence(Kind.CONSTANT, value=first)

    def chosen(self) -> Recurrence | None:
        """``k = i`` behind ``m = x``, or ``m, k = x, i``, under ``if x > m``."""
        if len(self.stores) != 1:
            return None
        for i in reversed(self.insts[: self.stores[0]]):
            if i.target is not None or i.index <= self.region.header:
                break
            if i.name == "STORE_FAST" and self.is_extremum(i.argval, i.index):
                return Recurrence(Kind.CHOSEN, of=i.argval)
        for i in self.insts[self.stores[0] + 1 :]:
            if i.name != "STORE_FAST":
                break
            if self.is_extremum(i.argval, i.index):
                return Recurrence(Kind.CHOSEN, of=i.argval)
        return None

    def is_extremum(self, name: str, at: int) -> bool:
        """Whether the instruction stores an extremum of strict comparisons, the only one of this name, and what lies between it and this variable's
        store, which may come first, runs only then."""
        other = _Variable(name, self.insts, self.region, self.load_global)
        if other.stores != [at] or len(other.loads) != 1:
            return False
        found = other.consumer(other.loads[0])
        if found is None or self.insts[found[0]].name != "COMPARE_OP":
            return False
        update, end = other.update(other.loads[0]), self.stores[0]
        if update is None or not update[1] or update[2] != at:
            return False
        return not self.entered(min(at, end) + 1, max(at, end))
