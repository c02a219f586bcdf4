"""A program as a CallPlan: which memory each value has, and the steps as csrc/core/call_plan_object.c reads them."""

from __future__ import annotations

from typing import NamedTuple

from ... import _C
from .program import Program
from .steps import KernelStep, LoopStep
from .values import Place, PlanValue, Slot

__all__ = ["call_plan"]


class _Memory(NamedTuple):
    """What is kept of a program's memory: how many there are of each place, and the number of each temporary and constant that a step uses."""

    counts: dict[Place, int]
    numbers: dict[Slot, int]
    temporaries: tuple[int, ...]
    constants: tuple


def _memory(p: Program) -> _Memory:
    """What no step uses is left out, and a temporary that is done with makes room for others of its size."""
    first: dict[Slot, int] = {}
    last: dict[Slot, int] = {}
    for k, step in enumerate(p.steps):
        for v in step.values():
            slot = p.final(v)
            first.setdefault(slot, k)
            last[slot] = k
    numbers: dict[Slot, int] = {}
    free: dict[int, list[int]] = {}
    sizes, constants = [], []
    done = sorted((k, slot.which) for slot, k in last.items() if slot.place is Place.TEMPORARY)
    # In the order in which they come into use.
    for slot, begin in first.items():
        if slot.place is Place.CONSTANT:
            numbers[slot] = len(constants)
            constants.append(p.constants[slot.which])
        elif slot.place is Place.TEMPORARY:
            while done and done[0][0] < begin:
                gone = Slot(Place.TEMPORARY, done.pop(0)[1])
                free.setdefault(p.temporaries[gone.which], []).append(numbers[gone])
            size = p.temporaries[slot.which]
            if room := free.get(size):
                numbers[slot] = room.pop()
            else:
                numbers[slot] = len(sizes)
                sizes.append(size)
    counts = {**p.counts, Place.TEMPORARY: len(sizes), Place.CONSTANT: len(constants)}
    return _Memory(counts, numbers, tuple(sizes), tuple(constants))


def call_plan(p: Program, *, target: PlanValue | None = None, outside: bool = False) -> _C.CallPlan:
    """``target``: the tensor argument that is written and returned; ``outside``: no other may be it."""
    memory = _memory(p)
    bases, at = {}, 0
    for place in Place:
        bases[place], at = at, at + memory.counts.get(place, 0)

    def place_of(v: PlanValue) -> int:
        slot = p.final(v)
        return bases[slot.place] + memory.numbers.get(slot, slot.which)

    def described(step: LoopStep | KernelStep) -> tuple:
        if isinstance(step, KernelStep):
            views = tuple(v and (place_of(v), v.offset, v.shape, v.strides) for v in step.operands)
            return step.fn, views, step.numbers, step.long
        operands = tuple((place_of(v), v.offset, strides) for v, strides in step.operands)
        loads = tuple(
            ((place_of(v), v.offset, strides), size, stride, v.dtype.itemsize, int(wrap))
            for (v, strides), size, stride, wrap in step.loads
        )
        return step.loop, step.sizes, step.inner, step.inner_strides, operands, loads, step.block

    written = {}
    if target is not None:
        extents: list[int] = []
        for v in p.inputs:
            same = (v.shape, v.strides, v.dtype) == (target.shape, target.strides, target.dtype)
            extents += [*v.extent(), int(same and not outside)]
        written = {"target": target.slot.which, "extents": tuple(extents)}
    return _C.CallPlan(
        p.counts[Place.TENSOR],
        tuple(p.results),
        steps=tuple(map(described, p.steps)),
        temporaries=memory.temporaries,
        constants=memory.constants,
        numbers=tuple(p.numbers),
        **written,
    )
