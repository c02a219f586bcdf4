"""From kernels, products and calls to the native graph object: its :class:`~.plan.LaunchPlan`, frame, slots, steps and outputs."""

from __future__ import annotations

from ...base import dtypes
from ...base.enums import Bind, Out
from ...base.expr import Expr
from ...base.relations import as_symbol, symbols
from ..assembly.dtypes import itemsize
from ..ir.nodes import Buffer, BufferKind, ExternCall, Region
from ..scheduling.planes import PlaneChain
from ..scheduling.rows import RowChain
from ..scheduling.tables import Table
from .frame import IntegerFrame
from .plan import LaunchPlan
from .records import (
    ArenaSlot,
    BindStep,
    CallStep,
    ConstantOutput,
    ConstantSlot,
    GemmStep,
    InputOutput,
    InputSlot,
    KernelStep,
    LayoutRecord,
    LocalSlot,
    NativeStep,
    NumberOutput,
    ObjectSlot,
    OutputSlot,
    OwnSlot,
    Planes,
    RowsStep,
    SlotOutput,
    TableStep,
    ValueOutput,
    ValueSlot,
    ViewRecord,
)

__all__ = ["assemble", "numpy_dtype"]

_BY_SHORT = {("bool" if d.short == "b8" else d.short): d.np for d in dtypes.ALL}


def numpy_dtype(buffer: Buffer):
    return buffer.np_dtype if buffer.np_dtype is not None else _BY_SHORT[buffer.dtype]


def _plain(buffer: Buffer) -> bool:
    step = 1
    for n, s in zip(reversed(buffer.shape), reversed(buffer.strides)):
        if s != step:
            return False
        step = step * n
    return True


class _Assembly:
    def __init__(self, lowering, offsets, inplace):
        self.lowering, self.buffers = lowering, lowering.buffers
        self.offsets, self.inplace = offsets, inplace
        self.frame = IntegerFrame()
        self.slots: list = []
        self.number: dict[str, int] = {}
        self.cost = 0.0
        self.local: dict[str, int] = {}  # buffers of the chain at hand -> bytes of a row
        for k, name in enumerate(lowering.inputs):
            if name is None:
                symbol = as_symbol(lowering.numbers.get(k))
                if symbol is not None:
                    self.frame.bind(symbol, k, Bind.VALUE, 0)
                continue
            b = self.buffers[name]
            self.bind(b, k, 0)

    def bind(self, b: Buffer, source: int, stage: int) -> None:
        for what, parts in ((Bind.SIZE, b.shape), (Bind.STRIDE, b.strides)):
            for i, e in enumerate(parts):
                symbol = as_symbol(e)
                if symbol is not None:
                    self.frame.bind(symbol, source, what, i, numpy_dtype(b).itemsize, stage)

    def layout(self, buffer: Buffer, shape=None, strides=None):
        dtype = numpy_dtype(buffer)
        shape = buffer.shape if shape is None else shape
        strides = buffer.strides if strides is None else strides
        return LayoutRecord(len(shape), self.frame.block((*shape, *(s * dtype.itemsize for s in strides))), dtype)

    def view(self, region: Region):
        b = self.buffers[region.buffer]
        return ViewRecord(
            self.frame.number(region.offset * numpy_dtype(b).itemsize), self.layout(b, region.shape, region.strides)
        )

    def slot(self, name: str) -> int:
        """The number of a buffer's slot; -1 for a number, which has no memory."""
        name = self.inplace.get(name, name)
        if name not in self.number:
            b = self.buffers[name]
            if b.kind == BufferKind.NUMBER:
                return -1
            self.number[name] = len(self.slots)
            self.slots.append(self.new_slot(name, b))
        return self.number[name]

    def new_slot(self, name: str, b: Buffer):
        if b.kind == BufferKind.INPUT:
            return InputSlot(self.lowering.inputs.index(name), self.layout(b))
        if b.kind == BufferKind.CONSTANT:
            return ConstantSlot(b.constant)
        if name in self.local:
            before = list(self.local.values())[: list(self.local).index(name)]
            return LocalSlot(sum(before), self.local[name])
        if b.kind == BufferKind.VALUE:
            return ValueSlot()
        if b.kind == BufferKind.OBJECT:
            return ObjectSlot(self.layout(b))
        if b.kind == BufferKind.OWN:
            return OwnSlot(self.frame.number(b.size * b.width * itemsize(b.dtype)), self.layout(b))
        if b.kind == BufferKind.OUTPUT or name not in self.offsets:
            size = b.size * numpy_dtype(b).itemsize
            stage = self.frame.stage(size, *b.shape, *b.strides)
            return OutputSlot(self.frame.number(size), _plain(b), stage, self.layout(b))
        return ArenaSlot(self.frame.number(self.offsets[name]), self.layout(b))

    def step(self, step):
        if isinstance(step, RowChain):
            return self.rows(step)
        if isinstance(step, Table):
            return self.table(step)
        if isinstance(step, PlaneChain):
            self.inplace = {**self.inplace, **step.over}
            first, *steps = map(self.step, step.steps)
            first.planes = Planes(step.rows, step.unit, steps, _ratios(step))
            return first
        if not isinstance(step, ExternCall):
            return self.kernel(step)
        made = {"gemm": self.gemm, "native": self.native, "bind": self.bind_step, "call": self.call}
        return made[step.what](step)

    def rows(self, chain: RowChain) -> RowsStep:
        self.local = chain.locals
        steps = [self.step(s) for s in chain.steps]
        self.local = {}
        sizes = list(chain.locals.values())
        return RowsStep(chain.rows, chain.period, chain.unit, chain.block, sizes, steps, _ratios(chain), chain.lanes)

    def kernel(self, kernel) -> KernelStep:
        self.cost += kernel.cost
        slots = [self.slot(a) for a in kernel.args]
        total, grain = self.frame.number(kernel.total), self.frame.number(kernel.grain)
        return KernelStep(kernel.name, slots, total, grain, self.frame.block(kernel.params), len(kernel.params))

    def table(self, table: Table) -> TableStep:
        rows = table.steps
        self.cost += table.cost
        slots = [self.slot(a) for r in rows for a in r.args]
        totals = self.frame.block([r.total for r in rows])
        params = self.frame.block([n for r in rows for n in r.params])
        grain = self.frame.number(table.grain)
        return TableStep(table.name, slots, len(rows), totals, grain, params, len(rows[0].params))

    def gemm(self, step: ExternCall) -> GemmStep:
        g, (a, b), (c,) = step.data, step.inputs, step.outputs
        item = itemsize(g.t)
        self.cost += self.lowering.values.hint(g.flops()) / 3e4
        sizes = [g.m, g.n, g.k, g.lda, g.ldb, g.ldc, a.offset * item, b.offset * item, 0]
        for n, sa, sb, sc in g.batch:
            sizes += [n, sa * item, sb * item, sc * item]
        slots = [self.slot(a.buffer), self.slot(b.buffer), self.slot(c)]
        return GemmStep(g.t, slots, g.ta, g.tb, self.frame.block(sizes), len(g.batch), int(g.choice))

    def native(self, step: ExternCall) -> NativeStep:
        data = step.data
        self.cost += self.lowering.values.hint(data.flops) / 3e4
        made = [self.buffers[n] for n in step.outputs if self.buffers[n].kind != BufferKind.NUMBER]
        regions = iter([*step.inputs, *(Region(b.name, b.shape, b.strides) for b in made)])
        placed = [next(regions) if there else None for there in data.given]
        slots = [-1 if r is None else self.slot(r.buffer) for r in placed]
        views = [None if r is None else self.view(r) for r in placed]
        return NativeStep(data.kernel.name, slots, views, [self.frame.number(e) for e in data.numbers])

    def bind_step(self, step: ExternCall) -> BindStep:
        stage = len(self.frame.stages)
        for i, name in enumerate(step.outputs):
            self.frame.bind(as_symbol(self.buffers[name].constant), i, Bind.VALUE, 0, stage=stage)
        return BindStep([self.slot(r.buffer) for r in step.inputs], list(map(self.view, step.inputs)), stage)

    def call(self, step: ExternCall) -> CallStep:
        frame = self.frame
        views = list(map(self.view, step.inputs))
        slots = [self.slot(r.buffer) for r in step.inputs]
        self.cost += 10
        known, stage = len(frame.symbols), len(frame.stages)
        for i, name in enumerate(step.outputs):
            b = self.buffers[name]
            symbol = as_symbol(b.constant) if b.kind == BufferKind.NUMBER else None
            if symbol is not None:
                frame.bind(symbol, i, Bind.VALUE, 0, stage=stage)
            self.bind(b, i, stage)
        stage = stage if len(frame.symbols) > known else 0
        numbers = [frame.number(e) for e in step.data.numbers]
        return CallStep(step.data, slots, views, [self.slot(n) for n in step.outputs], stage, numbers)

    def checks(self) -> list:
        """What the program checks of single numbers that depend on data: kernels rely on it, so it is known when the number is."""
        example = self.lowering.example
        late = {s: place for s, (place, stage) in self.frame.symbols.items() if stage}
        out = []
        for a in example.env.asserts if example is not None and late else ():
            found = symbols(a.relation)
            if len(found) == 1 and (s := next(iter(found))) in late:
                out.append((late[s], s, a.relation, a.message))
        return out

    def output(self, out):
        kind, what, *_ = out
        if kind == Out.NUMBER:
            return NumberOutput(self.frame.number(what))
        if kind == Out.VALUE:
            return ValueOutput(self.slot(what))
        if kind == Out.INPUT:
            return InputOutput(what)
        if kind == Out.CONSTANT:
            return ConstantOutput(what)
        region = what
        b = self.buffers[region.buffer]
        same = tuple(region.shape) == tuple(b.shape) and tuple(region.strides) == tuple(b.strides)
        if (
            not (type(region.offset) is Expr or region.offset)
            and same
            and b.kind in (BufferKind.OUTPUT, BufferKind.OBJECT)
        ):
            return SlotOutput(self.slot(b.name), self.frame.number(0), None)
        view = self.view(region)
        return SlotOutput(self.slot(b.name), view.at, view.layout)


def _ratios(chain) -> list[tuple[int, int]]:
    return [(r.numerator, r.denominator) for r in chain.ratios]


def assemble(lowering, steps, together, offsets, arena_size, inplace) -> LaunchPlan:
    """``steps``: Kernel, ExternCall or a chain, in order. ``together``: see branches.py. ``offsets``: of the buffers in the arena.
    ``inplace``: output buffers that lie in an input's memory."""
    made = _Assembly(lowering, offsets, inplace)
    out_steps = [made.step(s) for s in steps]
    outputs = [made.output(o) for o in lowering.outputs]
    arena = made.frame.number(arena_size)
    return LaunchPlan(
        len(lowering.inputs),
        made.frame.values,
        made.frame.stages,
        made.slots,
        out_steps,
        outputs,
        arena,
        list(lowering.messages),
        [None if n is None else numpy_dtype(lowering.buffers[n]) for n in lowering.inputs],
        made.cost < 150,
        made.checks(),
        together,
    )
