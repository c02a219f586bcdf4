"""Loops over ranges that sum up exponentials: vectors of eight, what is left with a mask.

LLVM makes vectors of four of such loops, and takes up to three turns by themselves, each of which costs as much as a vector: of seven turns half
of the time. A mask costs nothing beside an exponential. Loops that store elements are left as they are: masked stores cost more than they save
where there are many turns. Turns that there aren't compute with zeros: no number that is read, or changes from turn to turn, may be divided by,
or be the argument of a logarithm, so that no flag is raised for them. The names stand for LLVM's on processors with AVX-512
(machine/vector_hints.py); on others they mean nothing.
"""

from __future__ import annotations

from ...inductor.assembly.instructions import Instruction, Operand
from ...inductor.machine.vector_hints import LANES, MASKED
from ..emitter import Emitter

__all__ = ["FUNCTIONS", "told"]

FUNCTIONS = ("exp", "exp2")  # that raise no flag for zero


def told(e: Emitter, turn: Operand) -> str:
    """What LLVM is told at the jump back to the label ``turn``, which is written next."""
    start = max((k for k, i in enumerate(e.out) if i.operation == "label" and i.args[0].text == turn.text), default=-1)
    if start < 0 or e.noting or max((at for at, name in e.expanded_at if name in FUNCTIONS), default=-1) <= start:
        return ""
    if any(at > start and name not in FUNCTIONS for at, name in e.expanded_at) or not _suits(e.out[start:]):
        return ""
    return e.loop_node([e.node(f'!{{!"{LANES}", i32 8}}'), e.node(f'!{{!"{MASKED}", i1 true}}')])


def _suits(code: list[Instruction]) -> bool:
    """Whether a turn's code, its label included, has no loop, stores no element, and divides by nothing that turns have of their own."""
    labels: set[str] = set()
    own = {i.args[1].text for i in code if i.operation == "store"}
    for i in code:
        if i.operation == "label":
            labels.add(i.args[0].text)
        elif i.operation == "br":
            if any(a.text in labels for a in i.args):
                return False
        elif i.operation == "store":
            if not i.args[1].text.startswith("%s."):
                return False
        elif i.operation == "call" and not i.args[0].text.startswith("@llvm."):
            return False
        elif i.operation in ("fdiv", "frem") and i.args[1].text in own:
            return False
        elif (i.operation == "load" and not i.args[0].text.startswith("%s.")) or any(a.text in own for a in i.args):
            own.add(i.text)
    return True
