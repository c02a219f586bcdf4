"""Lowering of complex tensors: pairs of values (see complex_values.py) in loops and in memory."""

from __future__ import annotations

from ..ir.sizes import sizes
from ..ir.values import short
from .lazy import LazyTensor
from .reductions import reduce

__all__ = ["as_complex", "as_real"]


def refuse_complex(op, tensors: list[LazyTensor], val) -> None:
    """NotImplementedError where kernels don't compute with complex numbers. ``tensors``: among the arguments."""
    made = val if isinstance(val, (tuple, list)) else (val,)
    if not any(x.dtype.is_complex for x in (*tensors, *(v for v in made if hasattr(v, "stride")))):
        return
    d = op.definition
    if "lower" in op.overrides or d.kind in ("view", "pointwise", "extern"):
        return
    if d.kind == "index" and d.mode == "read" or d.kind == "factory":
        return
    if d.kind == "reduction" and (d.combine == "add" or not val.dtype.is_complex):
        return
    raise NotImplementedError(f"kind {d.kind} of complex numbers")


def reduce_pairs(lowering, d, x, kept, dims, element):
    """A sum of complex numbers: the function from kept coordinates to it."""

    def half(k):
        return reduce(lowering, d.combine, d.init, x.sizes, kept, dims, lambda coords: element(coords).args[k])

    halves = half(0), half(1)
    return lambda c: lowering.values.make("complex", tuple(h(c) for h in halves), short(x.dtype))


def as_real(lowering, x, val) -> LazyTensor:
    """The parts of complex numbers along a new last dimension."""

    def at(coords):
        parts = x.at(tuple(coords[:-1])).args
        which = coords[-1]
        if type(which) is int:
            return parts[which]
        first = lowering.values.make("eq", (lowering.values.index(which), lowering.values.const(0, "i64")), "bool")
        return lowering.values.make("where", (first, *parts), parts[0].dtype)

    return lowering.lazy(sizes(val.shape), val.dtype, at, strides=sizes(val.stride()), device=val.device)


def as_complex(lowering, x, val) -> LazyTensor:
    """Complex numbers of pairs along the last dimension."""
    t = short(val.dtype)

    def at(coords):
        return lowering.values.make("complex", tuple(x.at((*coords, k)) for k in (0, 1)), t)

    return lowering.lazy(sizes(val.shape), val.dtype, at, strides=sizes(val.stride()), device=val.device)
