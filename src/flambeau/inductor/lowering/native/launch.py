"""Native kernels (csrc/runtime/kernels.def) in a graph: launches between compiled ones, results in the arena.

What they are handed: core/native_kernels."""

from __future__ import annotations

import math
from typing import Any

from ....base import kernels
from ....base.expr import Expr, at_least
from ....base.memory_format import is_last
from ....base.records import slotted
from ....base.sizes import size
from ...assembly.dtypes import itemsize
from ...ir.nodes import ExternCall, Region, dense_strides
from ...ir.values import short
from ...settings import config

__all__ = ["as_dtype", "biased", "copied", "full", "image", "image_strides", "launch", "other_view", "part"]


@slotted(frozen=False)
class Native:
    """A kernel, its numbers, and about how many operations it makes. ``given``: whether each of its views is there."""

    kernel: Any
    numbers: list
    flops: Any
    given: tuple[bool, ...]


def _planar(buffer) -> bool:
    """Whether planes of a result are worth going on with as they are finished (planes.py)."""
    if any(type(n) is Expr for n in buffer.shape) or buffer.strides != dense_strides(buffer.shape):
        return False
    return math.prod(buffer.shape) * itemsize(buffer.dtype) >= config.planes_bytes


def launch(lowering, kernel, operands, outs, flops, /, effect=False, by_planes=False, **numbers) -> list:
    """A launch of a native kernel (base/kernels.py) on ``operands`` (regions, None for one that isn't given); the Lazies of its results: ``outs``
    has the ResultSpec of each, or None. ``flops``: about how many operations it makes. ``effect``: it runs in program order,
    wanted or not. ``by_planes``: it may hand finished planes of its result over. NotImplementedError for operands that may be empty, where the
    kernel doesn't take such."""
    if lowering.on_device is not None:
        return lowering.on_device(lowering, kernel, operands, outs, numbers)
    inputs = [r for r in operands if r is not None]
    if not kernel.empty and any(not at_least(n, 1) for r in inputs for n in r.shape):
        raise NotImplementedError(f"{kernel.name} of what may be empty")
    packed = [size(n) for n in kernel.pack(**numbers)]
    made: list = []
    for out in outs:
        if out is None:
            made.append(None)
            continue
        buffer = lowering.new_buffer(out.shape, out.strides, short(out.dtype))
        buffer.planar = by_planes and _planar(buffer)
        region = Region(buffer.name, out.shape, buffer.strides)
        made.append(lowering.in_memory(region, out.dtype, buffer.strides, out.device))
    plan = Native(kernel, packed, flops, kernels.given(kernel, operands, outs))
    names = [x.region.buffer for x in made if x is not None]
    lowering.add(ExternCall("native", kernel.name, inputs, names, plan, effect))
    return made


def copied(lowering, x):
    """The same elements as a tensor of its own, not in memory yet."""
    return lowering.lazy(x.sizes, x.dtype, x.at, strides=x.strides, device=x.device)


def as_dtype(lowering, x, dtype):
    """The tensor in another dtype, not in memory yet."""
    if x is None or x.dtype is dtype:
        return x
    t = short(dtype)
    return lowering.lazy(x.sizes, dtype, lambda c: lowering.values.cast(x.at(c), t), strides=x.strides, device=x.device)


def biased(lowering, x, bias):
    """``x`` (N, C, ...) plus ``bias`` (C,), not in memory yet."""
    t = short(x.dtype)
    add = lambda c: lowering.values.make("add", (x.at(c), bias.at((c[1],))), t)  # noqa: E731
    return lowering.lazy(x.sizes, x.dtype, add, strides=x.strides, device=x.device)


def full(lowering, shape, dtype, number, device):
    """A tensor of one number."""
    return lowering.lazy(shape, dtype, lambda c: lowering.values.const(number, short(dtype)), device=device)


def part(lowering, region, shape, strides) -> Region:
    """The memory of a region with other sizes."""
    return Region(region.buffer, shape, strides, region.offset)


def other_view(lowering, x, shape, strides, offset, own_strides):
    """as_strided: the memory of ``x``, which has ``own_strides``, with other sizes. NotImplementedError where it may reach further than the
    buffer: a graph knows no more of a storage than its tensors cover."""
    shape, strides, own = (tuple(map(size, t)) for t in (shape, strides, own_strides))
    region = x.region if x.region is not None else lowering.realize(x, own)
    buffer = lowering.buffers[region.buffer]
    begin = region.offset + size(offset)
    if any(n != 1 and s is not t and s != t for n, s, t in zip(x.sizes, region.strides, own)) or any(
        type(n) is not int for n in (*shape, *strides, begin)
    ):
        raise NotImplementedError("sizes that are known at the call only, or other strides")
    if (
        begin < 0
        or any(s < 0 for s in strides)
        or not at_least(buffer.size - 1 - begin - sum((n - 1) * s for n, s in zip(shape, strides)), 0)
    ):
        if 0 not in shape:
            raise NotImplementedError("memory that the graph doesn't know")
    return lowering.in_memory(Region(region.buffer, shape, strides, begin), x.dtype, strides, x.device)


def image(lowering, x):
    """In memory in C order or with the channels last, as kernels of images read it."""
    region = lowering.realize(x)
    return region if is_last(region.shape, region.strides) else lowering.contiguous(x)


def image_strides(lowering, shape, ruled, as_ruled: bool) -> tuple:
    """Strides for what a kernel of images makes, whose shape rule says ``ruled``; ``as_ruled``: it is worth following."""
    return tuple(ruled) if as_ruled and is_last(shape, ruled) else dense_strides(shape)
