"""Functions of a loop that call themselves, or each other.

A recursive function is one copy of code (see inlining.py), whose variables are slots. A call within a call puts what its callers still need on a
stack of the kernel's (:class:`Frame`: the variables of the functions between the two calls, their iterators and operands), and jumps
to where the function begins; a return looks which call it is of, takes that back and goes on behind the call. As many calls may be within
each other as Python allows, so that a recursion without an end is Python's RecursionError.
"""

from __future__ import annotations

import sys
from typing import Any

from ..base.records import slotted
from ..inductor.assembly import instructions as llvm
from ..inductor.assembly.instructions import Operand, Type
from .faults import Limit
from .machine import BlockEnd, Edge, InterpreterPart, Machine
from .parts import ArrayPart, ListPart
from .values import (
    CONFLICT,
    ContainerType,
    Declined,
    Element,
    Iterator,
    Known,
    Method,
    Null,
    PerhapsType,
    ScalarType,
    Stream,
    TupleType,
    ViewType,
    register_type,
    type_of,
    unrelated,
)
from .variables import Variables

__all__ = ["Recursion"]

DEEPEST = 5000  # calls within calls, where Python allows more
# A complex number is two words, which don't lie as vectors do.
ALIGNED = ", align 8"


@slotted
class Frame:
    """What a recursive call keeps: ``types`` of the callers' variables, ``stack``: types of the operands above those of the first caller;
    ``slots`` that hold all that."""

    types: dict[str, Any]
    stack: tuple
    slots: list[tuple[str, Type]]

    @property
    def words(self) -> int:
        return 1 + sum(2 if t.lanes > 1 else 1 for _, t in self.slots)


class Recursion(InterpreterPart):
    """The recursive calls of functions, by the first instruction of the functions' code and the instruction that calls."""

    def __init__(self, machine: Machine, variables: Variables):
        super().__init__(machine)
        self.variables = variables
        self.frames: dict[int, dict[int, Frame]] = {}
        self.depths: dict[int, int] = {}  # operands below those of the function, by its first instruction
        self.returns: dict[int, set[int]] = {}  # blocks that return
        self.again: set[int] = set()  # blocks that have to be run again: more is known of whom they return to

    def begin(self, base: int) -> None:
        """A function is called by one that it doesn't call in turn."""
        self.depths[base] = len(self.stack)
        self.e.set(f"@depth.{base}", llvm.I64, 0)
        self.e.set(f"@call.{base}", llvm.I64, 0)

    def call(self, base: int, prefixes: list[str], inside) -> list:
        """The function at ``base`` is called by one that it has called: keep what is needed behind the call; the operands in the call. ``prefixes``:
        of the names of all variables of the functions between; ``inside(n)``: whether instruction ``n`` is part of one."""
        e, variables, at = self.e, self.variables, self.machine.at
        if e.noting:
            raise Declined("a recursive call where gradients are asked for")
        kept = {
            name: unrelated(t)
            for name, t in sorted(variables.types.items())
            if name.startswith(tuple(prefixes)) or (name.startswith("it") and inside(int(name[2:].split(".")[0])))
        }
        below = self.depths[base]
        for d, value in enumerate(self.stack[below:], below):
            variables.keep(f"stack{d}", value)
        types = tuple(unrelated(type_of(v)) for v in self.stack[below:])
        slots = [slot for name, t in kept.items() for slot in _slots(name, t)]
        slots += [slot for d, t in enumerate(types, below) for slot in _slots(f"stack{d}", t)]
        frame = Frame(kept, types, slots)
        if self.frames.setdefault(base, {}).get(at) != frame:
            self.frames[base][at] = frame
            self.again |= self.returns.get(base, set())
        self._push(base, at, frame)
        for prefix in prefixes:
            variables.forget(prefix)
        return self.stack[:below]

    def returned(self, base: int, block: int, behind: int, value) -> BlockEnd:
        """Edges of a return: behind the first call, and behind each of those within."""
        self.returns.setdefault(base, set()).add(block)
        e, frames = self.e, self.frames.get(base, {})
        edges = [Edge(behind, [*self.stack, value])]
        if not frames:
            return BlockEnd(edges)
        number = e.get(f"@call.{base}", llvm.I64)
        labels = []
        for at, frame in sorted(frames.items()):
            here, other, go = e.new_label(), e.new_label(), e.new_label()
            e.branch(e.cmp("eq", number, at), here, other)
            e.label(here)
            extra = self._pop(base, frame)
            e.jump(go)
            e.label(other)
            labels.append(go)
            edges.append(Edge(at + 1, [*self.stack, *extra, value], continued=self._after(base, frame)))
        return BlockEnd(edges, labels=(other, *labels))

    def _after(self, base: int, frame: Frame) -> dict[str, Any]:
        """Types of all variables behind a recursive call: those of the callers, and those that the recursion doesn't have."""
        names = {name for f in self.frames[base].values() for name in f.types}
        prefixes = {name.split(":")[0] + ":" for name in names if ":" in name} | {f"{base}:"}
        others = {n: t for n, t in self.variables.types.items() if not n.startswith(tuple(prefixes)) and n not in names}
        return {**others, **frame.types}

    # -- the stack: words of 8 bytes; the number of the call, then the slots --
    def _memory(self, base: int, words: int) -> Operand:
        """The stack, large enough for frames of so many words."""
        key = f"@frames.{base}"
        slots = self.e.slots
        for (name, type), slot in slots.items():
            if name == key:
                if words * self.limit > int(type.text[1:].split(" ")[0]):
                    del slots[name, type]
                    slots[key, llvm.aggregate(f"[{words * self.limit} x i64]")] = slot
                return slot
        return self.e.slot(key, llvm.aggregate(f"[{words * self.limit} x i64]"))

    @property
    def limit(self) -> int:
        return min(sys.getrecursionlimit(), DEEPEST)

    def _push(self, base: int, at: int, frame: Frame) -> None:
        e = self.e
        memory, depth = self._memory(base, frame.words), e.get(f"@depth.{base}", llvm.I64)
        text = "maximum recursion depth exceeded"
        told = Limit(text) if self.limit < sys.getrecursionlimit() else text
        e.check(e.cmp("sle", depth, (self.limit - 1) * frame.words), "RecursionError", told)
        e.spend(1)
        for place, (name, type) in self._places(memory, depth, frame):
            e.write(e.get(name, type), place, ALIGNED)
        e.write(e.get(f"@call.{base}", llvm.I64), e.place(llvm.I64, memory, depth))
        e.set(f"@depth.{base}", llvm.I64, e.op("add", depth, frame.words))
        e.set(f"@call.{base}", llvm.I64, at)

    def _pop(self, base: int, frame: Frame) -> list:
        """Take back what the last call kept; its operands."""
        e, below = self.e, self.depths[base]
        memory = self._memory(base, frame.words)
        depth = e.op("sub", e.get(f"@depth.{base}", llvm.I64), frame.words)
        e.set(f"@depth.{base}", llvm.I64, depth)
        e.set(f"@call.{base}", llvm.I64, e.read(llvm.I64, e.place(llvm.I64, memory, depth)))
        for place, (name, type) in self._places(memory, depth, frame):
            e.set(name, type, e.read(type, place, ALIGNED))
        return [self.variables.fetch(f"stack{d}", t) for d, t in enumerate(frame.stack, below)]

    def _places(self, memory: Operand, depth: Operand, frame: Frame):
        """(address, slot) of all that is kept."""
        word = 1
        for name, type in frame.slots:
            yield self.e.place(llvm.I64, memory, self.e.op("add", depth, word)), (name, type)
            word += 2 if type.lanes > 1 else 1


def _slots(name: str, t) -> list[tuple[str, Type]]:
    """The slots of a variable of this type, see Variables.keep. Declined for what can't be kept."""
    if t is CONFLICT or isinstance(t, (Known, Null, Element)):
        return []
    if isinstance(t, ScalarType):
        return [(name, register_type(t.dtype)), *([(f"{name}.w", llvm.I8)] if t.weak is None else [])]
    if isinstance(t, PerhapsType):
        return [(f"{name}.is", llvm.I8), *_slots(name, t.of)]
    if isinstance(t, ViewType) and not t.owned:
        if t.whole is not None:
            return []
        sizes = [f"{name}.n{d}" for d, n in enumerate(t.sizes) if n is None]
        strides = [f"{name}.s{d}" for d in range(t.ndim - t.dense)]
        return [(f"{name}.p", llvm.PTR), *((slot, llvm.I64) for slot in sizes + strides)]
    if isinstance(t, TupleType):
        return [slot for k, item in enumerate(t.items) for slot in _slots(f"{name}.{k}", item)]
    if isinstance(t, ContainerType):
        return [(f"{name}.p", llvm.PTR)]
    if isinstance(t, Method) and isinstance(t.owner, Stream):
        return []
    if isinstance(t, Iterator) and isinstance(t.parts, ArrayPart | ListPart | None):
        return [(f"{t.key}.{what}", llvm.I64) for what in ("cur", "stop", "limit")]
    raise Declined(f"a recursive call while {type(t).__name__.lower().removesuffix('type')}s of its caller are in use")
