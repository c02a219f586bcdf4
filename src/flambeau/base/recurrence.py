"""Recurrent layers over all time steps on ndarrays: csrc/kernels/recurrent.c."""

from __future__ import annotations

import numpy

from . import kernels
from .kernels import Recurrence

__all__ = ["GATES", "backward", "forward", "results"]

LSTM, GRU = Recurrence.LSTM, Recurrence.GRU
GATES = {LSTM: 4, GRU: 3, Recurrence.TANH: 1, Recurrence.RELU: 1}


def results(kind: int, steps, batch, hidden, keep: bool) -> tuple:
    """Shapes of output, last cells, cells and gates; (0,) for what there isn't."""
    lstm, gated = kind == LSTM, kind in (LSTM, GRU)
    return (
        (steps, batch, hidden),
        (batch, hidden) if lstm else (0,),
        (steps, batch, hidden) if lstm and keep else (0,),
        (steps, batch, 4 * hidden) if gated and keep else (0,),
    )


def _run(kernel, operands, outs, kind, reverse):
    """A result without elements, which the kind doesn't have, isn't given."""
    plain = lambda a: a is None or (a.flags.c_contiguous and a.flags.aligned)  # noqa: E731
    operands = [a if plain(a) else numpy.ascontiguousarray(a) for a in operands]
    made = [a if a.ndim > 1 else None for a in outs]
    kernel(operands, made, kind=kind, reversed=bool(reverse), f64=outs[0].dtype == numpy.float64)


def forward(kind: int, reverse: bool, keep: bool, inner, weight, biases, h, c):
    """(output (T, B, H), last cells (B, H), cells (T, B, H), gates (T, B, 4 H)), an array without elements for what the kind doesn't have, of
    ndarrays in float32 or float64: the inputs' products (T, B, gates * H) without a bias, weight (gates * H, H), biases: () or those of the inputs
    and of the state, the first state (B, H), for the LSTM the first cells. ``keep``: whether a backward is to follow."""
    outs = [numpy.empty(s, inner.dtype) for s in results(kind, *inner.shape[:2], h.shape[1], keep)]
    if outs[0].size:
        operands = [inner, weight, h, *(biases or (None, None)), c if kind == LSTM else None]
        _run(kernels.recurrence, operands, outs, kind, reverse)
    elif kind == LSTM:
        outs[1][...] = c
    return tuple(outs)


def backward(kind: int, reverse: bool, ct, ct_cells, weight, h, c, output, cells, gates):
    """Cotangents of the inputs' products, of the state's products (none but for the GRU: they are the same), of the first state and of the first
    cells."""
    steps, batch, hidden = output.shape
    wide, narrow = (steps, batch, GATES[kind] * hidden), (batch, hidden)
    shapes = (wide, wide if kind == GRU else (0,), narrow, narrow if kind == LSTM else (0,))
    # The kernel writes all of them, where there is a step to go back.
    outs = [(numpy.empty if output.size else numpy.zeros)(s, output.dtype) for s in shapes]
    if output.size:
        operands = [ct, weight, h, output, *([c, cells] if kind == LSTM else [None, None])]
        operands += [gates if kind in (LSTM, GRU) else None, ct_cells if kind == LSTM else None]
        _run(kernels.recurrence_backward, operands, outs, kind, reverse)
    return tuple(outs)
