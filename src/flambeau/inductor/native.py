"""Templates of csrc/natives.c in a graph: launches between kernels, their results in the arena. See core/templates.py for what they are handed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ..base.expr import Expr, at_least
from ..base.sizes import size
from .builder import itemsize
from .ir import ExternCall, Region, dense_strides
from .settings import config
from .values import short

__all__ = ["Native", "as_dtype", "biased", "full", "launch", "message", "other_view", "part"]


@dataclass(slots=True)
class Native:
    """A template's name, the integers it takes, and about how many operations it makes."""

    name: str
    numbers: list
    flops: Any


WEIGHT = 2  # the first number of the template `convolution`: a weight's gradient has no planes
_TAKE_NOTHING = {
    "order",
    "scan",
    "running",
    "logcumsumexp",
    "search",
    "sample",
}  # templates that may be handed tensors without elements


def _planar(name: str, numbers: list, buffer) -> bool:
    """Whether a template's result is a convolution's whose planes are worth going on as they are finished (planes.py)."""
    if name != "convolution" or numbers[0] == WEIGHT or any(type(n) is Expr for n in buffer.shape):
        return False
    if buffer.strides != dense_strides(buffer.shape):
        return False
    return math.prod(buffer.shape) * itemsize(buffer.dtype) >= config.planes_bytes


def launch(lowering, name, inputs, outs, numbers, flops, effect=False, empty=False) -> list:
    """A launch of a template on ``inputs`` (regions); the Lazies of its results: ``outs`` has (shape, strides, dtype, device) of each. ``effect``: it
    runs in program order, wanted or not. ``empty``: inputs may have no elements."""
    if not (empty or name in _TAKE_NOTHING) and any(not at_least(n, 1) for r in inputs for n in r.shape):
        raise NotImplementedError(f"{name} of what may be empty")
    made = []
    for shape, strides, dtype, device in outs:
        buffer = lowering.new_buffer(shape, strides, short(dtype))
        buffer.planar = _planar(name, numbers, buffer)
        made.append(lowering.in_memory(Region(buffer.name, shape, buffer.strides), dtype, buffer.strides, device))
    plan = Native(name, [size(n) for n in numbers], flops)
    lowering.add(ExternCall("native", name, list(inputs), [x.region.buffer for x in made], plan, effect))
    return made


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


def message(lowering, text: str) -> int:
    """The number by which a kernel or template names ``text`` when it fails."""
    lowering.messages.append(text)
    return len(lowering.messages) - 1
