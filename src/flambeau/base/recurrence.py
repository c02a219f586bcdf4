"""Recurrent layers over all time steps on ndarrays: csrc/recurrent.c."""

from __future__ import annotations

import numpy

from .. import _runtime

__all__ = ["GATES", "GRU", "LSTM", "RELU", "TANH", "backward", "forward", "results"]

LSTM, GRU, TANH, RELU = range(4)
GATES = (4, 3, 1, 1)


def results(kind: int, steps, batch, hidden, keep: bool) -> tuple:
    """Shapes of output, last cells, cells and gates; (0,) for what there isn't."""
    lstm, gated = kind == LSTM, kind in (LSTM, GRU)
    return (
        (steps, batch, hidden),
        (batch, hidden) if lstm else (0,),
        (steps, batch, hidden) if lstm and keep else (0,),
        (steps, batch, 4 * hidden) if gated and keep else (0,),
    )


def _native(name, arrays, outs, numbers):
    arrays = [numpy.ascontiguousarray(a) if not (a.flags.c_contiguous and a.flags.aligned) else a for a in arrays]
    _runtime.native(name, (*arrays, *(a for a in outs if a.ndim > 1)), numbers)


def forward(kind: int, reverse: bool, keep: bool, inner, weight, biases, h, c):
    """(output (T, B, H), last cells (B, H), cells (T, B, H), gates (T, B, 4 H)), an array without elements for what the kind doesn't have, of
    ndarrays in float32 or float64: the inputs' products (T, B, gates * H) without a bias, weight (gates * H, H), biases: () or those of the inputs
    and of the state, the first state (B, H), for the LSTM the first cells. ``keep``: whether a backward is to follow."""
    outs = [numpy.empty(s, inner.dtype) for s in results(kind, *inner.shape[:2], h.shape[1], keep)]
    if outs[0].size:
        given = [inner, weight, h, *biases, *([c] if kind == LSTM else [])]
        numbers = (kind, bool(reverse), inner.dtype == numpy.float64, bool(biases), bool(keep))
        _native("recurrence", given, outs, numbers)
    elif kind == LSTM:
        outs[1][...] = c
    return tuple(outs)


def backward(kind: int, reverse: bool, ct, ct_cells, weight, h, c, output, cells, gates):
    """Cotangents of the inputs' products, of the state's products (none but for the GRU: they are the same), of the first state and of the first
    cells."""
    steps, batch, hidden = output.shape
    wide, narrow = (steps, batch, GATES[kind] * hidden), (batch, hidden)
    shapes = (wide, wide if kind == GRU else (0,), narrow, narrow if kind == LSTM else (0,))
    outs = [numpy.zeros(s, output.dtype) for s in shapes]
    if output.size:
        given = [ct, weight, h, output]
        given += [c, cells] if kind == LSTM else []
        given += [gates] if kind in (LSTM, GRU) else []
        given += [ct_cells] if kind == LSTM and ct_cells is not None else []
        numbers = (kind, bool(reverse), output.dtype == numpy.float64, ct_cells is not None)
        _native("recurrence_backward", given, outs, numbers)
    return tuple(outs)
