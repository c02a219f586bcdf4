"""The records that a plan is made of.

csrc/runtime/graph.c reads their fields by name when a graph is made; ``kind`` tells records of one table apart.
A *place* is one of the frame's (frame.py), a *slot* is one of the plan's. ``views`` are what a step sees of its slots, one for each.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ...base.enums import Out, Slot, Step
from ...base.records import made_by, slotted

__all__ = [
    "ArenaSlot", "BindStep", "Binding", "CallStep", "ConstantOutput", "ConstantSlot", "GemmStep", "InputOutput", "InputSlot",
    "KernelStep", "LayoutRecord", "LocalSlot", "NativeStep", "NumberOutput", "ObjectSlot", "OutputSlot", "OwnSlot", "Planes", "RowsStep",
    "SlotOutput", "TableStep", "ValueOutput", "ValueSlot", "ViewRecord",
]  # fmt: skip

record = slotted(frozen=False)


@record
class LayoutRecord:
    """Shape and strides in bytes are the ``2 * ndim`` numbers from place ``at`` on; ``dtype`` is NumPy's."""

    ndim: int
    at: int
    dtype: Any


@record
class ViewRecord:
    """A part of a slot: ``at`` is the place of its offset in bytes."""

    at: int
    layout: LayoutRecord


@record
class Binding:
    """The symbol at ``place`` is a size or stride ``index`` of ``source``, or its value (``what``: a Bind), within [lo, hi] and a multiple of
    ``divisor``."""

    source: int
    what: int
    index: int
    place: int
    lo: int
    hi: int
    divisor: int
    itemsize: int


# ---- slots -------------------------------------------------------------------------------------------------------------


@record
class InputSlot:
    kind: ClassVar = Slot.INPUT
    input: int
    layout: LayoutRecord


@record
class ArenaSlot:
    """``at``: the place of the offset in the arena."""

    kind: ClassVar = Slot.ARENA
    at: int
    layout: LayoutRecord


@record
class OwnSlot:
    """Memory of its own; ``bytes``: the place of its size."""

    kind: ClassVar = Slot.OWN
    bytes: int
    layout: LayoutRecord


@record
class OutputSlot:
    """``plain``: in C order. ``stage``: from which on its size is known."""

    kind: ClassVar = Slot.OUTPUT
    bytes: int
    plain: bool
    stage: int
    layout: LayoutRecord


@record
class ConstantSlot:
    kind: ClassVar = Slot.CONSTANT
    array: Any


@record
class LocalSlot:
    """Rows in a thread's scratch memory, of ``row`` bytes, behind those of the locals ``before`` (bytes)."""

    kind: ClassVar = Slot.LOCAL
    before: int
    row: int


@record
class ObjectSlot:
    """A tensor that a Python step returns."""

    kind: ClassVar = Slot.OBJECT
    layout: LayoutRecord


@record
class ValueSlot:
    """Any object that a Python step returns."""

    kind: ClassVar = Slot.VALUE


# ---- steps -------------------------------------------------------------------------------------------------------------


@record
class KernelStep:
    """A compiled kernel over the range at place ``total`` in pieces of ``grain`` at least; it reads ``nparams`` sizes from ``params`` on.
    ``address``: of its code, once it is known."""

    kind: ClassVar = Step.KERNEL
    name: str
    slots: list[int]
    total: int
    grain: int
    params: int
    nparams: int
    address: int = 0


@record
class TableStep:
    """A compiled kernel on ``rows`` rows of as many slots each, one row behind the other in ``slots``. Row i has the range at place
    ``totals + i`` and reads ``nparams`` sizes from ``params + i * nparams`` on; pieces go over all rows and are of ``grain`` iterations at least."""

    kind: ClassVar = Step.TABLE
    name: str
    slots: list[int]
    rows: int
    totals: int
    grain: int
    params: int
    nparams: int
    address: int = 0


@record
class GemmStep:
    """A batch of products of slots A, B, C; ``type``: "f32" or "f64". ``sizes``: the place of a GemmSizes (csrc/runtime/graph.h).
    ``choice``: see gemm.py."""

    kind: ClassVar = Step.GEMM
    type: str
    slots: list[int]
    ta: str
    tb: str
    sizes: int
    nbatch: int
    choice: int
    address: int = 0

    @property
    def f64(self) -> bool:
        return self.type == "f64"


@record
class Planes:
    """Kernels that take ``rows`` planes of a result in multiples of ``unit`` as they are finished; ``ratios``: (planes, iterations) that go
    together."""

    rows: int
    unit: int
    steps: list
    ratios: list[tuple[int, int]]


@record
class NativeStep:
    """A native kernel on views of slots, -1 and None for one that isn't given; ``numbers``: places."""

    kind: ClassVar = Step.NATIVE
    kernel: str
    slots: list[int]
    views: list[ViewRecord | None]
    numbers: list[int]
    planes: Planes | None = None


@record
class RowsStep:
    """Products and kernels over the same rows as one launch (rows.py, csrc/kernels/rows.c). ``locals``: bytes of a row of each local buffer;
    ``ratios``: (rows, iterations) that go together, (0, 1) for a sum over rows."""

    kind: ClassVar = Step.ROWS
    rows: int
    period: int
    unit: int
    block: int
    locals: list[int]
    steps: list
    ratios: list[tuple[int, int]]
    lanes: int


@record
class BindStep:
    """Numbers in memory (int64) become the symbols of ``stage``, which begins."""

    kind: ClassVar = Step.BIND
    slots: list[int]
    views: list[ViewRecord]
    stage: int


@record
class CallStep:
    """A Python callable on tensors and numbers (places); ``results``: slots, -1 for a number. Then ``stage`` begins, if it isn't 0."""

    kind: ClassVar = Step.CALL
    call: Any
    slots: list[int]
    views: list[ViewRecord]
    results: list[int]
    stage: int
    numbers: list[int] = made_by(list)


# ---- outputs -----------------------------------------------------------------------------------------------------------


@record
class SlotOutput:
    """A tensor over a part of a slot; ``layout`` None: the slot's own array."""

    kind: ClassVar = Out.SLOT
    slot: int
    at: int
    layout: LayoutRecord | None


@record
class InputOutput:
    kind: ClassVar = Out.INPUT
    input: int


@record
class ConstantOutput:
    kind: ClassVar = Out.CONSTANT
    value: Any


@record
class NumberOutput:
    kind: ClassVar = Out.NUMBER
    at: int


@record
class ValueOutput:
    kind: ClassVar = Out.VALUE
    slot: int
