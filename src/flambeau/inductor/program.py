"""From kernels, products and calls to the native graph object: its :class:`~.plan.Plan`, frame, slots, steps and outputs."""

from __future__ import annotations

from ..base import dtypes
from ..base.expr import Expr
from ..base.relations import symbols
from .builder import itemsize
from .frame import SIZE, STRIDE, VALUE, Frame, lone
from .ir import Buffer, ExternCall, Region
from .plan import Plan
from .planes import PlaneChain
from .rows import RowChain

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
        self.frame = Frame()
        self.slots: list = []
        self.number: dict[str, int] = {}
        self.cost = 0.0
        self.local: dict[str, int] = {}  # buffers of the chain at hand -> bytes of a row
        for k, name in enumerate(lowering.inputs):
            if name is None:
                symbol = lone(lowering.numbers.get(k))
                if symbol is not None:
                    self.frame.bind(symbol, k, VALUE, 0)
                continue
            b = self.buffers[name]
            self.bind(b, k, 0)

    def bind(self, b: Buffer, source: int, stage: int) -> None:
        for what, parts in ((SIZE, b.shape), (STRIDE, b.strides)):
            for i, e in enumerate(parts):
                symbol = lone(e)
                if symbol is not None:
                    self.frame.bind(symbol, source, what, i, numpy_dtype(b).itemsize, stage)

    def layout(self, buffer: Buffer, shape=None, strides=None):
        dtype = numpy_dtype(buffer)
        shape = buffer.shape if shape is None else shape
        strides = buffer.strides if strides is None else strides
        return len(shape), self.frame.block((*shape, *(s * dtype.itemsize for s in strides))), dtype

    def view(self, region: Region):
        """(place of the offset, layout) of a part of a buffer."""
        b = self.buffers[region.buffer]
        return self.frame.number(region.offset * numpy_dtype(b).itemsize), self.layout(b, region.shape, region.strides)

    def slot(self, name: str) -> int:
        name = self.inplace.get(name, name)
        if name not in self.number:
            b = self.buffers[name]
            if b.kind == "input":
                entry = ("input", self.lowering.inputs.index(name), self.layout(b))
            elif b.kind == "constant":
                entry = ("constant", b.constant)
            elif b.kind == "number":
                return -1
            elif name in self.local:
                before = list(self.local.values())[: list(self.local).index(name)]
                entry = ("local", sum(before), self.local[name])
            elif b.kind == "value":
                entry = ("value",)
            elif b.kind == "object":
                entry = ("object", self.layout(b))
            elif b.kind == "own":
                size = b.size * b.width * itemsize(b.dtype)
                entry = ("own", self.frame.number(size), self.layout(b))
            elif b.kind == "output" or name not in self.offsets:
                size = b.size * numpy_dtype(b).itemsize
                stage = self.frame.stage(size, *b.shape, *b.strides)
                entry = ("output", self.frame.number(size), _plain(b), stage, self.layout(b))
            else:
                entry = ("arena", self.frame.number(self.offsets[name]), self.layout(b))
            self.number[name] = len(self.slots)
            self.slots.append(entry)
        return self.number[name]

    def step(self, step):
        frame = self.frame
        if isinstance(step, RowChain):
            self.local = step.locals
            steps = [self.step(s) for s in step.steps]
            self.local = {}
            ratios = [(r.numerator, r.denominator) for r in step.ratios]
            return (
                "rows",
                step.rows,
                step.period,
                step.unit,
                step.block,
                list(step.locals.values()),
                steps,
                ratios,
                step.lanes,
            )
        if isinstance(step, PlaneChain):
            self.inplace = {**self.inplace, **step.over}
            first, *steps = map(self.step, step.steps)
            return (*first, (step.rows, step.unit, steps, [(r.numerator, r.denominator) for r in step.ratios]))
        if not isinstance(step, ExternCall):
            self.cost += step.cost
            args = [self.slot(a) for a in step.args]
            total, grain = frame.number(step.total), frame.number(step.grain)
            return ("kernel", step.name, args, total, grain, frame.block(step.params), len(step.params))
        if step.what == "gemm":
            g = step.data
            item = itemsize(g.t)
            a, b = step.inputs
            (c,) = step.outputs
            self.cost += self.lowering.values.hint(g.flops()) / 3e4
            sizes = [g.m, g.n, g.k, g.lda, g.ldb, g.ldc, a.offset * item, b.offset * item, 0]
            for n, sa, sb, sc in g.batch:
                sizes += [n, sa * item, sb * item, sc * item]
            slots = [self.slot(a.buffer), self.slot(b.buffer), self.slot(c)]
            return ("gemm", g.t, slots, g.ta, g.tb, frame.block(sizes), len(g.batch), g.choice)
        if step.what == "native":
            self.cost += self.lowering.values.hint(step.data.flops) / 3e4
            made = [self.buffers[n] for n in step.outputs if self.buffers[n].kind != "number"]
            regions = [*step.inputs, *(Region(b.name, b.shape, b.strides) for b in made)]
            views = list(map(self.view, regions))
            numbers = [frame.number(e) for e in step.data.numbers]
            return ("native", step.data.name, [self.slot(r.buffer) for r in regions], views, numbers)
        parts = list(map(self.view, step.inputs))
        args = [self.slot(r.buffer) for r in step.inputs]
        if step.what == "tell":
            stage = len(frame.stages)
            for i, name in enumerate(step.outputs):
                frame.bind(lone(self.buffers[name].constant), i, VALUE, 0, stage=stage)
            return ("tell", args, parts, stage)
        self.cost += 10
        known, stage = len(frame.symbols), len(frame.stages)
        for i, name in enumerate(step.outputs):
            b = self.buffers[name]
            symbol = lone(b.constant) if b.kind == "number" else None
            if symbol is not None:
                frame.bind(symbol, i, VALUE, 0, stage=stage)
            self.bind(b, i, stage)
        stage = stage if len(frame.symbols) > known else 0
        numbers = [frame.number(e) for e in step.data.numbers]
        return ("call", step.data, args, parts, [self.slot(n) for n in step.outputs], stage, numbers)

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
        if out[0] == "number":
            return "number", self.frame.number(out[1])
        if out[0] == "value":
            return "value", self.slot(out[1])
        if out[0] != "region":
            return out
        region = out[1]
        b = self.buffers[region.buffer]
        same = tuple(region.shape) == tuple(b.shape) and tuple(region.strides) == tuple(b.strides)
        if not (type(region.offset) is Expr or region.offset) and same and b.kind in ("output", "object"):
            return "slot", self.slot(b.name), self.frame.number(0), None
        offset = self.frame.number(region.offset * numpy_dtype(b).itemsize)
        return "slot", self.slot(b.name), offset, self.layout(b, region.shape, region.strides)


def assemble(lowering, steps, together, offsets, arena_size, inplace) -> Plan:
    """``steps``: Kernel, ExternCall or a chain, in order. ``together``: see branches.py. ``offsets``: of the buffers in the arena.
    ``inplace``: output buffers that lie in an input's memory."""
    made = _Assembly(lowering, offsets, inplace)
    out_steps = [made.step(s) for s in steps]
    outputs = [made.output(o) for o in lowering.outputs]
    arena = made.frame.number(arena_size)
    return Plan(
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
