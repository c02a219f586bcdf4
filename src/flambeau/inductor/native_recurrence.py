"""Recurrent layers in a graph: launches of csrc/recurrent.c."""

from __future__ import annotations

import math

from ..base import dtypes
from .ir import dense_strides
from .native import launch
from .sizes import sizes

__all__ = ["backward", "forward"]


def _launch(lowering, name, val, given, numbers):
    """The results; those of no elements, which a kind doesn't have, are no arguments of the launch."""
    regions = [lowering.contiguous(x) for x in given]
    outs = [(sizes(v.shape), dense_strides(sizes(v.shape)), v.dtype, v.device) for v in val if len(v.shape) > 1]
    flops = 2 * math.prod(regions[0].shape) * regions[1].shape[1]
    made = iter(launch(lowering, name, regions, outs, numbers, flops))
    zero = lambda c: lowering.values.const(0, regions_dtype)  # noqa: E731
    regions_dtype = lowering.buffers[regions[0].buffer].dtype
    return [next(made) if len(v.shape) > 1 else lowering.lazy((0,), v.dtype, zero, device=v.device) for v in val]


def forward(lowering, val, given, kind, reverse, keep):
    """Results of ``aten._recurrence`` of (inner, weight, h, biases, c)."""
    numbers = [kind, reverse, given[0].dtype is dtypes.float64, len(given) > 4, keep]
    return _launch(lowering, "recurrence", val, given, numbers)


def backward(lowering, val, given, kind, reverse, of_cells):
    """Results of ``aten._recurrence_backward`` of (ct, weight, h, output, c, cells, gates, ct of the cells)."""
    numbers = [kind, reverse, given[0].dtype is dtypes.float64, of_cells]
    return _launch(lowering, "recurrence_backward", val, given, numbers)
