"""From kernels, products and calls to the native graph object: slots, steps and outputs of ``_runtime.Graph``."""

from __future__ import annotations

import numpy as np

from .. import _runtime
from ..base import dtypes
from . import blas
from .builder import itemsize
from .ir import Buffer, ExternCall

__all__ = ["assemble", "numpy_dtype"]

_BY_SHORT = {("bool" if d.short == "b8" else d.short): d.np for d in dtypes.ALL}


def numpy_dtype(buffer: Buffer):
    return buffer.np_dtype if buffer.np_dtype is not None else _BY_SHORT[buffer.dtype]


def _layout(buffer: Buffer, shape=None, strides=None):
    dtype = numpy_dtype(buffer)
    shape = buffer.shape if shape is None else shape
    strides = buffer.strides if strides is None else strides
    return tuple(shape), tuple(s * dtype.itemsize for s in strides), dtype


def _plain(buffer: Buffer) -> bool:
    step = 1
    for n, s in zip(reversed(buffer.shape), reversed(buffer.strides)):
        if n != 1 and s != step:
            return False
        step *= n
    return True


def assemble(lowering, steps, addresses, offsets, arena_size, info, inplace):
    """``steps``: Kernel or ExternCall, in order. ``inplace``: output buffers that lie in an input's memory."""
    buffers = lowering.buffers
    slots: list = []
    number: dict[str, int] = {}

    def slot(name: str) -> int:
        name = inplace.get(name, name)
        if name not in number:
            b = buffers[name]
            if b.kind == "input":
                entry = ("input", lowering.inputs.index(name), _layout(b))
            elif b.kind == "constant":
                entry = ("constant", b.constant)
            elif b.kind == "output":
                entry = ("output", 0, b.size * numpy_dtype(b).itemsize, _plain(b), _layout(b))
            elif b.kind == "object":
                entry = ("object", _layout(b))
            else:
                entry = ("arena", offsets.get(name, 0), _layout(b))
            number[name] = len(slots)
            slots.append(entry)
        return number[name]

    def part(region):
        """(offset in bytes, layout) of a region of a buffer."""
        b = buffers[region.buffer]
        return region.offset * numpy_dtype(b).itemsize, _layout(b, region.shape, region.strides)

    out_steps, cost = [], 0.0
    for step in steps:
        if not isinstance(step, ExternCall):
            out_steps.append(("kernel", addresses[step.name], [slot(a) for a in step.args], step.total, step.grain))
            cost += step.cost
        elif step.what == "gemm":
            g = step.data
            item = itemsize(g.t)
            a, b = step.inputs
            (c,) = step.outputs
            batch = tuple((n, sa * item, sb * item, sc * item) for n, sa, sb, sc in g.batch)
            out_steps.append(
                (
                    "gemm",
                    blas.gemm_address(g.t),
                    g.t == "f64",
                    [slot(a.buffer), slot(b.buffer), slot(c)],
                    [a.offset * item, b.offset * item, 0],
                    g.ta,
                    g.tb,
                    g.m,
                    g.n,
                    g.k,
                    g.lda,
                    g.ldb,
                    g.ldc,
                    1.0,
                    0.0,
                    batch,
                )
            )
            cost += g.flops() / 3e4
        else:
            out_steps.append(
                (
                    "call",
                    step.data,
                    [slot(r.buffer) for r in step.inputs],
                    [part(r) for r in step.inputs],
                    [slot(n) for n in step.outputs],
                )
            )
            cost += 10
    outputs = []
    for out in lowering.outputs:
        if out[0] != "region":
            outputs.append(out)
            continue
        region = out[1]
        b = buffers[region.buffer]
        whole = (
            region.offset == 0 and tuple(region.shape) == tuple(b.shape) and tuple(region.strides) == tuple(b.strides)
        )
        if whole and b.kind in ("output", "object"):
            outputs.append(("slot", slot(b.name), 0, None))
        else:
            outputs.append(
                (
                    "slot",
                    slot(b.name),
                    region.offset * numpy_dtype(b).itemsize,
                    _layout(b, region.shape, region.strides),
                )
            )
    messages = list(lowering.messages)

    def on_error(code, value, size):
        name = messages[code - 1].split("::")[-1].split(".")[0]
        raise IndexError(f"{name}: index {value} is out of bounds for dimension with size {size}")

    names = list(lowering.inputs)

    def on_mismatch(k, tensor):
        """The input in the layout the kernels read: other strides are copied, anything else is a caller's error."""
        b = buffers[names[k]]
        array = getattr(tensor, "_array", None)
        if array is None:
            raise TypeError(f"compiled graph: input {k} must be a tensor with data, got {type(tensor).__name__}")
        if tuple(array.shape) != tuple(b.shape) or array.dtype != numpy_dtype(b):
            raise RuntimeError(
                f"compiled graph: input {k} has shape {list(array.shape)} and dtype {array.dtype}, it was compiled for shape "
                f"{list(b.shape)} and dtype {numpy_dtype(b)}"
            )
        shape, strides, dtype = _layout(b)
        memory = np.empty(max(b.size, 1), dtype)
        made = np.ndarray(shape, dtype, memory, 0, strides)
        made[...] = array
        return made

    return _runtime.Graph(
        len(lowering.inputs), slots, out_steps, outputs, arena_size, on_error, on_mismatch, info, cost < 150
    )
