"""From a decomposed program on a device to its graph: the host's passes up to fused kernels, then code for threads."""

from __future__ import annotations

from collections import Counter

from ... import _C
from ...base import accelerator, dtypes
from ...base.device import Device
from ...base.enums import Out
from ...base.relations import as_symbol
from ...core import device_memory
from ..assembly.dtypes import itemsize
from ..codegen.targets import Target
from ..codegen.threads import blocks_of, counts_of, widened, write_threads
from ..ir.nodes import BufferKind, ExternCall, eliminate_dead, verify
from ..ir.values import loaded_atoms, walk
from ..lowering import interface
from ..lowering.lazy import broadcast_coords
from ..lowering.lowering import Lowering
from ..lowering.native.launch import as_dtype
from ..passes.decompose import _without_data
from ..runtime.program import numpy_dtype
from ..scheduling.building import build
from ..scheduling.fusion import fuse, merge
from ..settings import config
from .calls import called
from .graph import CallStep, DeviceGraph, DeviceInfo, InputPlan, OutputPlan, Place
from .images import function_of, target
from .launches import LaunchStep, ProductStep
from .loops import launched
from .products import as_product, as_reduction

__all__ = ["compile_copy", "compile_on_device", "lowered", "threads_of", "wanted"]


def lowered(program):
    """(the lowering of a program, its groups of nodes)."""
    lowering = Lowering(None, on_device=launched)
    lowering.run(program)
    return lowering, _grouped(lowering, wanted(lowering))


def _grouped(lowering, outputs: set[str]):
    nodes = [
        as_reduction(n, lowering.values)
        if isinstance(n, ExternCall) and n.what == "gemm" and not accelerator.has_products()
        else n
        for n in lowering.nodes
    ]
    nodes = eliminate_dead(nodes, outputs)
    verify(nodes, lowering.buffers)
    groups = fuse(nodes, lowering.buffers, lowering.values, config.fusion)
    groups = merge(groups, lowering.values) if config.fusion else groups
    verify([n for g in groups for n in g.nodes], lowering.buffers)
    return groups


def wanted(lowering) -> set[str]:
    return {o[1].buffer for o in lowering.outputs if o[0] == Out.SLOT}


def threads_of(lowering, groups, outputs: set[str], target: Target):
    """The kernels, with their text, and the extern calls in order. ``outputs``: buffers that are wanted."""
    readers: dict[str, set[int]] = {}
    for i, g in enumerate(groups):
        for name in g.reads:
            readers.setdefault(name, set()).add(i)
    writers = Counter(name for g in groups for name in set(g.writes))
    for i, g in enumerate(groups):
        if g.kind == "extern":
            yield g.nodes[0]
            continue
        keep = {n for n in g.writes if n in outputs or readers.get(n, set()) - {i} or writers[n] > 1}
        if keep or g.kind == "scatter":
            kernel = build(g, lowering.buffers, lowering.values, keep, threads=True)
            write_threads(kernel, lowering.buffers, lowering.values, target)
            yield kernel


def compile_on_device(program, device: Device) -> DeviceGraph:
    """The graph of a decomposed program whose tensors lie on ``device``. ``info``: the names of operators that it calls from Python."""
    lowering, groups = lowered(program)
    return _assembled(lowering, groups, wanted(lowering), device)


def compile_copy(target, source, device: Device) -> DeviceGraph:
    """A graph of two tensors that gives the elements of the first the values of the second. Both are told by TensorMeta."""
    lowering = Lowering(None, on_device=launched)
    to, values = (interface.placeholder(lowering, _without_data(meta)) for meta in (target, source))
    spread = lowering.lazy(
        to.sizes, values.dtype, lambda c: values.at(broadcast_coords(c, values.sizes)), device=to.device
    )
    written = lowering.buffers[to.region.buffer]
    lowering.fill(written, as_dtype(lowering, spread, target.dtype))
    return _assembled(lowering, _grouped(lowering, {written.name}), {written.name}, device)


def _assembled(lowering, groups, outputs: set[str], device: Device) -> DeviceGraph:
    made = list(threads_of(lowering, groups, outputs, target()))
    steps = [_step(s, lowering, device) for s in made]
    buffers, kept = lowering.buffers, set(outputs)
    kept |= {n for n in buffers if buffers[n].kind in (BufferKind.INPUT, BufferKind.CONSTANT)}
    _mark_last(steps, kept)
    temporary = {
        n: Place(b.size * b.width * itemsize(b.dtype))
        for n, b in buffers.items()
        if b.kind in (BufferKind.TEMP, BufferKind.OUTPUT, BufferKind.OWN)
    }
    inputs = [None if n is None else InputPlan(buffers[n].shape, buffers[n].strides, n) for n in lowering.inputs]
    outputs = [_output(o, lowering) for o in lowering.outputs]
    constants = _uploaded({n: b for n, b in buffers.items() if b.kind == BufferKind.CONSTANT}, device)
    info = DeviceInfo(
        tuple(s.name for s in steps if isinstance(s, CallStep)), tuple(lowering.fallbacks), _source(made, steps)
    )
    return DeviceGraph(device, inputs, _told(lowering), temporary, steps, outputs, lowering.messages, constants, info)


def _source(made, steps) -> str:
    """The steps in order, then the text of each kernel once."""
    lines, texts = [], {}
    for s, step in zip(made, steps):
        if isinstance(step, ProductStep):
            lines.append(f"; product({', '.join(step.buffers)})")
            continue
        if isinstance(step, CallStep):
            lines.append(f"; call {step.name}({', '.join(v[0] for v in step.views)}) -> {', '.join(step.outs)}")
            continue
        way = "a block a row" if s.by_rows else "a thread an element"
        lines.append(f"; launch {step.name}({', '.join(s.args)}) over {s.total}, {way}, blocks of {s.threads}")
        texts[step.name] = s.text.replace("@KERNEL", f"@{step.name}")
    return "\n".join([*lines, "", *texts.values()])


def _uploaded(buffers: dict, device: Device) -> dict:
    """The memory of constants, ready for calls on any stream."""
    made = {
        n: (device_memory.upload(_C.from_array(b.constant), device)._storage.device_memory, 0)
        for n, b in buffers.items()
    }
    driver = accelerator.needed()
    if made and not driver.capturing(device.index or 0):
        driver.synchronize(device.index or 0)
    return made


def _step(s, lowering, device: Device):
    if isinstance(s, ExternCall):
        return as_product(s) if s.what == "gemm" else _call(s, lowering)
    function = function_of(device, s.text)
    wider = widened(s.text)
    wide = None if wider == s.text else lambda: function_of(device, wider).handle
    fails = any(v.op == "checked" for n in s.nodes for v in walk(n.value, *loaded_atoms(n.index)))
    return LaunchStep(
        function.name, function.handle, blocks_of(s), s.threads, s.by_rows, s.shared, tuple(s.args), tuple(s.params), (), fails, counts_of(s), wide
    )  # fmt: skip


def _call(s: ExternCall, lowering) -> CallStep:
    if s.what != "call":
        raise NotImplementedError(f"{s.what} {s.name} on a device")
    views = tuple(
        (r.buffer, tuple(r.shape), tuple(r.strides), r.offset, _dtype(lowering.buffers[r.buffer])) for r in s.inputs
    )
    symbols = tuple(
        as_symbol(lowering.buffers[n].constant) if lowering.buffers[n].kind == BufferKind.NUMBER else None
        for n in s.outputs
    )
    return CallStep(called(s.data), views, tuple(s.outputs), symbols, tuple(s.data.numbers), (), s.name)


def _dtype(buffer):
    return dtypes.from_numpy(numpy_dtype(buffer))


def _mark_last(steps, kept: set[str]) -> None:
    """Which buffers nothing reads after a step."""
    seen = set(kept)
    for s in reversed(steps):
        names = [v[0] for v in s.views] if isinstance(s, CallStep) else s.buffers
        last = tuple(dict.fromkeys(n for n in names if n not in seen))
        object.__setattr__(s, "last", last)
        seen.update(names)


def _told(lowering) -> list:
    """What each input tells: (sizes, strides) of a tensor, or the expression that a number is."""
    told = []
    for k, name in enumerate(lowering.inputs):
        b = lowering.buffers.get(name)
        told.append(lowering.numbers.get(k) if b is None else (b.shape, b.strides))
    return told


def _output(out, lowering) -> OutputPlan:
    kind, what, *rest = out
    if kind != Out.SLOT:
        return OutputPlan(kind, what)
    (dtype,) = rest
    shares = lowering.inputs.index(what.buffer) if what.buffer in lowering.inputs else None
    return OutputPlan(kind, what.buffer, tuple(what.shape), tuple(what.strides), what.offset, dtype, shares)
