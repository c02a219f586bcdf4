"""Recurrent layers in a graph: launches of csrc/kernels/recurrent.c."""

from __future__ import annotations

import math

from ....base import dtypes, kernels
from ....base.result_spec import ResultSpec
from ...ir.nodes import dense_strides
from ...ir.sizes import sizes
from .launch import launch

__all__ = ["recurrence", "recurrence_backward"]


def _launch(lowering, kernel, val, operands, **numbers):
    """The results; one of no elements, which a kind doesn't have, isn't made."""
    regions = [x if x is None else lowering.contiguous(x) for x in operands]
    outs = [
        ResultSpec(sizes(v.shape), dense_strides(sizes(v.shape)), v.dtype, v.device) if len(v.shape) > 1 else None
        for v in val
    ]
    flops = 2 * math.prod(regions[0].shape) * regions[1].shape[1]
    made = launch(lowering, kernel, regions, outs, flops, **numbers)
    return [lowering.full((0,), v.dtype, 0, v.device) if x is None else x for x, v in zip(made, val)]


def recurrence(lowering, val, operands, kind, reverse):
    """Results of ``aten._recurrence``; ``operands``: those of the kernel `recurrence`."""
    f64 = operands[0].dtype is dtypes.float64
    return _launch(lowering, kernels.recurrence, val, operands, kind=kind, reversed=reverse, f64=f64)


def recurrence_backward(lowering, val, operands, kind, reverse):
    """Results of ``aten._recurrence_backward``; ``operands``: those of the kernel `recurrence_backward`."""
    f64 = operands[0].dtype is dtypes.float64
    return _launch(lowering, kernels.recurrence_backward, val, operands, kind=kind, reversed=reverse, f64=f64)
