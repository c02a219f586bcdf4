"""Launches and products in order, given to the device by one call of C (csrc/device/plan.c).

What a call brings is the memory of inputs and the numbers: sizes of what is taken, blocks, arguments. These are the same for equal sizes, so a graph
keeps them.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

from ... import _C
from ...base import accelerator
from ...base.device import Device
from ...base.enums import Element
from ...base.expr_walks import evaluate
from ...base.records import slotted
from ...core import device_memory
from ..codegen.threads import MOST_NARROW

__all__ = ["STATUS", "LaunchStep", "Launches", "Numbers", "ProductStep"]

STATUS = "the status words"  # the name of their memory


@slotted
class LaunchStep:
    """``buffers``: whose addresses the kernel is handed; ``numbers``: the sizes behind them. ``last``: buffers that nothing reads later.
    ``fails``: whether it may report an error in the status words. ``counts``: what it counts up to; ``wide()``: the kernel for numbers beyond
    32 bits, None where ``function`` is it."""

    name: str
    function: int
    blocks: Any
    threads: int
    cooperative: bool
    shared: int
    buffers: tuple[str, ...]
    numbers: tuple
    last: tuple[str, ...] = ()
    fails: bool = False
    counts: tuple = ()
    wide: Callable[[], int] | None = None


@slotted
class ProductStep:
    """A product of the device's library: ``buffers`` are A, B and C. ``type``: of its elements; ``numbers``: where A and B
    begin, m, n, k, leading dimensions, then count and distances of each of ``dimensions`` of a batch."""

    name: str
    type: Element
    ta: bool
    tb: bool
    fast: bool
    buffers: tuple[str, ...]
    numbers: tuple
    dimensions: int
    last: tuple[str, ...] = ()


@slotted
class Numbers:
    """The numbers that a plan gets for some sizes. ``wide``: whether a number is beyond 32 bits."""

    packed: bytes
    wide: bool


class Launches:
    """Steps without a call of Python between them. ``nbytes``: of buffers that are taken, expressions of sizes."""

    def __init__(self, device: Device, steps, nbytes: dict[str, Any], status: bool):
        self.device, self.steps, self.status = device, tuple(steps), status
        names = dict.fromkeys(n for s in self.steps for n in s.buffers)
        self.names = (*names, STATUS) if status else tuple(names)
        self.slots = {n: k for k, n in enumerate(self.names)}
        self.nbytes = tuple(nbytes.get(n, 0) for n in self.names)
        self._plans: dict[bool, Any] = {}

    def numbers(self, env: dict) -> Numbers:
        made, wide = [evaluate(e, env) for e in self.nbytes], False
        for s in self.steps:
            own = [evaluate(e, env) for e in s.numbers]
            if isinstance(s, LaunchStep):
                blocks, counts = evaluate(s.blocks, env), [evaluate(e, env) for e in s.counts]
                wide = wide or not all(0 <= n <= MOST_NARROW for n in (*own, *counts))
                own = [blocks, *own] if self.status else [blocks, 0, *own]
            made += own
        return Numbers(array("q", made).tobytes(), wide)

    def run(self, held: dict[str, tuple], numbers: Numbers) -> None:
        """``held``: buffer -> its memory, and the byte at which it begins; what the steps take is added, what nothing reads later is taken out."""
        given = [held.get(n, (None, 0)) for n in self.names]
        memories, offsets = [m for m, _ in given], [at for _, at in given]
        plan = self._plan(numbers.wide)
        event = _C.event_begin(device_memory.EVENT, self._told(0))
        if event is None:
            plan.run(memories, offsets, numbers.packed)
        else:
            self._run_watched(plan, event, memories, offsets, numbers.packed)
        for name, memory, before in zip(self.names, memories, given):
            if memory is None:
                held.pop(name, None)
            elif before[0] is None:
                held[name] = memory, 0

    def _run_watched(self, plan, event, *given) -> None:
        """Step by step, each an event of a profile: it ends when the device has done it."""
        driver, index = accelerator.needed(), self.device.index or 0
        for k in range(len(self.steps)):
            event = event if k == 0 else _C.event_begin(device_memory.EVENT, self._told(k))
            plan.run(*given, k, k + 1)
            if not driver.capturing(index):
                driver.synchronize(index)
            _C.event_end(event)

    def _told(self, k: int) -> str:
        return f"launch {self.steps[k].name}"

    def _plan(self, wide: bool):
        plan = self._plans.get(wide)
        if plan is None:
            plan = accelerator.needed().Plan(self.device.index or 0, len(self.names))
            for s in self.steps:
                self._add(plan, s, wide)
            self._plans[wide] = plan
        return plan

    def _add(self, plan, s, wide: bool) -> None:
        slots, last = [self.slots[n] for n in s.buffers], [self.slots[n] for n in s.last]
        if isinstance(s, ProductStep):
            plan.product(s.type, s.ta, s.tb, s.fast, slots, last, s.dimensions)
            return
        if self.status:
            slots.append(self.slots[STATUS])
        function = s.wide() if wide and s.wide is not None else s.function
        count = len(s.numbers) + (not self.status)
        plan.launch(function, s.threads, s.cooperative, s.shared, slots, last, count)
