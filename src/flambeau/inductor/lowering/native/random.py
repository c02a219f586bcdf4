"""Draws from the default generator in a graph: launches of csrc/kernels/random.c, in program order, with eager's stream."""

from __future__ import annotations

import math

from ....base import dtypes, kernels
from ....base.expr import at_least
from ....base.kernels import Draw
from ....base.result_spec import ResultSpec
from ....core.generator import LONG, signed
from ....core.layouts import copy_strides, takes_format
from ...assembly.dtypes import compute_type
from ...ir.nodes import dense_strides
from ...ir.sizes import size, sizes
from ...ir.values import short
from ..lazy import broadcast_coords
from .launch import as_dtype, launch

__all__ = ["draw", "draw_bits", "draw_integers", "mapped", "permutation", "random"]


def random(lowering, op, full, val):
    """An operator of kind random: its override "drawn" with the strides by which the result is filled."""
    drawn = op.overrides.get("drawn")
    if drawn is None:
        raise NotImplementedError("a draw without a kernel")
    if any(a.type == "Generator" and x is not None for a, x in zip(op._schema.arguments, full)):
        raise NotImplementedError("a generator of one's own")
    if "memory_order" in op.tags:
        strides = sizes(copy_strides(full[0].shape, full[0].stride()))
    else:
        strides = sizes(val.stride()) if takes_format(op) else dense_strides(sizes(val.shape))
    return drawn(lowering, val, strides, *full)


def mapped(lowering, fn, x, val, *others):
    """``fn(handler, element, ...)`` of the elements of ``x`` and of those of ``others``, broadcast to it, as a tensor like ``val``."""
    values, out = lowering.values, short(val.dtype)
    handler = lowering.handler(compute_type(short(x.dtype)))

    def at(coords):
        parts = [y.at(broadcast_coords(coords, y.sizes)) for y in (x, *others)]
        return values.cast(fn(handler, *(values.cast(p, compute_type(p.dtype)) for p in parts)), out)

    return lowering.lazy(x.sizes, val.dtype, at, strides=x.strides, device=val.device)


def _launched(lowering, kernel, val, dtype, strides, **numbers):
    shape = sizes(val.shape)
    for n in (*shape, *strides):
        if type(n) is int and n < 0:
            raise NotImplementedError("a negative size")
    out = ResultSpec(shape, strides, dtype, val.device)
    return launch(lowering, kernel, [], [out], 4 * math.prod(shape), effect=True, **numbers)[0]


def draw(lowering, val, what: Draw, a=0.0, b=1.0, strides=None, dtype=None):
    """The result ``val`` of a draw: UNIFORM (from ``a`` to ``b``), NORMAL (mean, deviation),
    SEQUENCE (doubles), BERNOULLI (``a``: the probability). ``dtype``: what is drawn, where ``val`` is made of it otherwise."""
    dtype = dtype or val.dtype
    narrow = dtype in (dtypes.float16, dtypes.bfloat16)
    drawn = {Draw.BERNOULLI: dtypes.bool_, Draw.SEQUENCE: dtypes.float64}.get(what)
    drawn = drawn or (dtypes.float32 if narrow else dtype)
    if what in (Draw.UNIFORM, Draw.NORMAL) and drawn not in (dtypes.float32, dtypes.float64):
        raise NotImplementedError(f"there are no draws of {dtype}")
    strides = strides or dense_strides(sizes(val.shape))
    numbers = {"f64": drawn is dtypes.float64, "narrow": narrow, "first": a, "second": b}
    made = as_dtype(lowering, _launched(lowering, kernels.draw, val, drawn, strides, what=what, **numbers), dtype)
    if what == Draw.UNIFORM and narrow:
        # What is rounded up to the upper end is the lower one, as in Generator.uniform.
        first, end = (float(dtype.np.type(x)) for x in (a, b))
        return mapped(lowering, lambda s, x: s.where(s.eq(x, end), first, x), made, val)
    return made


def draw_bits(lowering, val, columns, p):
    """Rows of truth values as bits; ``columns``: of a row."""
    strides = dense_strides(sizes(val.shape))
    return _launched(lowering, kernels.draw_bits, val, dtypes.uint8, strides, columns=columns, p=p)


def draw_integers(lowering, val, low, high, strides=None, long=LONG):
    """Integers in [low, high), one word of the stream each, or two where the interval is ``long`` or longer."""
    low, span = size(low), size(high) - size(low)
    if type(span) is int:
        if span <= 0:
            raise NotImplementedError("an empty interval")
        wide, span = span >= long, signed(span)
    elif at_least(span, 1) and at_least(long - 1 - span, 0):
        wide = False
    else:
        raise NotImplementedError("an interval that may be empty, or long")
    strides = strides or dense_strides(sizes(val.shape))
    numbers = {"wide": wide, "low": low, "span": span}
    return as_dtype(
        lowering, _launched(lowering, kernels.draw_integers, val, dtypes.int64, strides, **numbers), val.dtype
    )


def permutation(lowering, val):
    """The numbers below the length of ``val`` in random order."""
    return as_dtype(lowering, _launched(lowering, kernels.draw_permutation, val, dtypes.int64, (1,)), val.dtype)
