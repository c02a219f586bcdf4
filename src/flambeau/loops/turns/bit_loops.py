"""Loops over the bits of a number, in closed form.

``while x: x &= x - 1`` ends after as many turns as ``x`` has bits set, ``while x: x >>= k`` (or ``x //= 2**k``) after its length
by ``k``; what such a loop adds to counters in each turn (a number, or ``x & 1``) is known before its first turn. Its body is one block, which
is run once, with the sums of all turns. Python's integers only, and those that aren't negative: others never get to zero that way.
"""

from __future__ import annotations

from ...base.records import slotted
from ...inductor.assembly import instructions as llvm
from ...inductor.assembly.instructions import Operand
from ..binary_operators import binary_name
from ..emitter import I64, Emitter, constant
from ..faults import Limit
from ..numbers import arithmetic
from ..region import LoopRegion
from ..values import Scalar

__all__ = ["BitLoop", "bit_loop"]

_IGNORED = ("NOP", "TO_BOOL", "CACHE", "PRECALL", "EXTENDED_ARG")


@slotted
class Term:
    """What an expression of the body is, in a turn: ``kind`` "int" (``number``), "variable" (``name``, as the turn found it), "less" (it minus one),
    "cleared" (without its lowest bit), "shifted" (by ``number``), "low" (its lowest bit; ``number``: by how many it was shifted before) or
    "sum" (of ``name``, ``number``, and as many lowest bits as ``lows`` lists, each by that shift)."""

    kind: str
    name: str = ""
    number: int = 0
    lows: tuple[int, ...] = ()


@slotted
class BitLoop:
    """``bits``: the variable that falls to zero, by ``shift`` bits in a turn, or bit by bit where that is 0; ``sums``: what is added to others
    in a turn."""

    bits: str
    shift: int
    sums: dict[str, Term]
    exit: int

    def run(self, e: Emitter, values: dict[str, Scalar]) -> dict[str, Scalar] | None:
        """What the variables are after the loop; None where it isn't known for such values."""
        if e.noting or any(s.dtype != I64 or s.weak is not True for s in values.values()):
            return None
        x = values[self.bits]
        text = Limit("an integer of a compiled loop gets too long")
        e.check_at_end(e.cmp("sge", x.v, 0), "OverflowError", text)
        ones = e.intrinsic("ctpop", x.v)
        turns = self._turns(e, x.v, ones)
        out = {self.bits: constant(0)}
        for name, term in self.sums.items():
            total = arithmetic.binary(e, "*", constant(term.number), Scalar(I64, True, turns, (1, 64)))
            for shift in term.lows:
                low = e.op("sub", ones, e.op("and", x.v, 1)) if shift else ones
                total = arithmetic.binary(e, "+", total, Scalar(I64, True, low, (0, 64)))
            out[name] = arithmetic.binary(e, "+", values[name], total)
        return out

    def _turns(self, e: Emitter, x: Operand, ones: Operand) -> Operand:
        if not self.shift:
            n = ones
        else:
            zeros = e.external("llvm.ctlz.i64", llvm.I64, x, llvm.constant(llvm.I1, False))
            n = e.op("sub", 64 + self.shift - 1, zeros)
            n = n if self.shift == 1 else e.op("udiv", n, self.shift)
        return e.larger(n, 1)


def bit_loop(insts, region: LoopRegion, at: int) -> BitLoop | None:
    """The loop whose body is the block that begins at ``at``; None for other blocks."""
    last = region.blocks[at] - 1
    exit = _exit(insts, at, last)
    if exit is None:
        return None
    found = _Body().run(insts[at:last])
    if found is None:
        return None
    assigned, test = found
    falling = {name: t for name, t in assigned.items() if t.kind in ("cleared", "shifted")}
    if len(falling) != 1:
        return None
    ((bits, step),) = falling.items()
    sums = {name: t for name, t in assigned.items() if name != bits}
    if step.name != bits or test != step or any(t.kind != "sum" or t.name != name for name, t in sums.items()):
        return None
    lows = [shift for t in sums.values() for shift in t.lows]
    if lows and step != Term("shifted", bits, 1):
        return None
    return BitLoop(bits, step.number, sums, exit)


def _exit(insts, at: int, last: int) -> int | None:
    """Where control goes when a block that is a loop by itself has ended: it goes back to its start while a number isn't zero."""
    end = insts[last]
    if end.name.startswith("POP_JUMP") and end.name.endswith("IF_TRUE") and end.target == at:
        return last + 1
    back = insts[last + 1] if last + 1 < len(insts) else None
    if end.name.startswith("POP_JUMP") and end.name.endswith("IF_FALSE") and back is not None:
        return end.target if back.name.startswith("JUMP_BACKWARD") and back.target == at else None
    return None


class _Body:
    """Runs the body once, on terms."""

    def __init__(self):
        self.assigned: dict[str, Term] = {}
        self.bits = ""
        self.stack: list[Term] = []

    def run(self, insts) -> tuple[dict[str, Term], Term] | None:
        """(the values of variables after a turn, the condition that is tested), or None."""
        for inst in insts:
            if inst.name not in _IGNORED and not self.step(inst):
                return None
        return (self.assigned, self.stack[0]) if len(self.stack) == 1 else None

    def step(self, inst) -> bool:
        match inst.name:
            case "LOAD_FAST":
                self.stack.append(self.assigned.get(inst.argval) or Term("variable", inst.argval))
            case "LOAD_CONST" if type(inst.argval) is int:
                self.stack.append(Term("int", number=inst.argval))
            case "STORE_FAST" if self.stack:
                self.assigned[inst.argval] = self.stack.pop()
            case "BINARY_OP" if len(self.stack) > 1:
                b, a = self.stack.pop(), self.stack.pop()
                out = _operation(binary_name(inst).rstrip("="), a, b)
                if out is None:
                    return False
                self.stack.append(out)
            case _:
                return False
        return True


def _operation(op: str, a: Term, b: Term) -> Term | None:
    """``a op b`` as a term."""
    if op in ("&", "+") and (a.kind == "int" or b.kind in ("variable", "sum") and a.kind in ("less", "low")):
        a, b = b, a
    if op == "-" and (a.kind, b) == ("variable", Term("int", number=1)):
        return Term("less", a.name)
    if op == "&" and (a.kind, b) == ("variable", Term("less", a.name)):
        return Term("cleared", a.name)
    one = Term("int", number=2 if op == "%" else 1)
    if op in ("&", "%") and b == one and (a.kind == "variable" or (a.kind, a.number) == ("shifted", 1)):
        return Term("low", a.name, int(a.kind == "shifted"))
    if a.kind == "variable" and b.kind == "int" and op in (">>", "//"):
        n = b.number if op == ">>" else b.number.bit_length() - 1
        exact = 0 < n < 64 and (op == ">>" or b.number == 1 << n)
        return Term("shifted", a.name, n) if exact else None
    if op == "+" and a.kind in ("variable", "sum") and b.kind in ("int", "low"):
        lows = (*a.lows, b.number) if b.kind == "low" else a.lows
        return Term("sum", a.name, a.number + (b.number if b.kind == "int" else 0), lows)
    return None
