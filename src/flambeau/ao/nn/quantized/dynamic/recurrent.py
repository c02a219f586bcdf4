"""LSTM and GRU whose products are those of dynamic linear layers, on floats: single steps, and layers of sequences, padded or packed.

The products with the input are one call for a whole sequence, so that all its steps share a scale; those with the state are one a step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import flambeau as torch
from flambeau.core.operator import namespace

__all__ = ["Cell", "Step", "gru_step", "lstm_step", "of_packed", "run"]

quantized = namespace("quantized")
Step = Callable[..., list]


class Cell(NamedTuple):
    """The products of one layer and direction: ``(rows, features)`` to ``(rows, gates)``."""

    input: Callable
    hidden: Callable


def of_packed(input, hidden, reduce_range: bool = True) -> Cell:
    """The products of two packed weights (``linear_prepack``, ``linear_prepack_fp16``)."""
    return Cell(
        lambda x: quantized.linear_dynamic.default(x, input, reduce_range),
        lambda h: quantized.linear_dynamic.default(h, hidden, reduce_range),
    )


def lstm_step(gates, state: Sequence, cell: Cell) -> list:
    """One step: ``gates`` (rows, 4 * hidden) of the input; ``state`` is [hidden, cells]."""
    hidden, cells = state
    i, f, g, o = (gates + cell.hidden(hidden)).chunk(4, -1)
    cells = torch.sigmoid(f) * cells + torch.sigmoid(i) * torch.tanh(g)
    return [torch.sigmoid(o) * torch.tanh(cells), cells]


def gru_step(gates, state: Sequence, cell: Cell) -> list:
    """One step: ``gates`` (rows, 3 * hidden) of the input; ``state`` is [hidden]."""
    (hidden,) = state
    r, z, n = gates.chunk(3, -1)
    hr, hz, hn = cell.hidden(hidden).chunk(3, -1)
    r, z = torch.sigmoid(r + hr), torch.sigmoid(z + hz)
    n = torch.tanh(n + r * hn)
    return [(1 - z) * n + z * hidden]


def run(x, states: Sequence[Sequence], cells: Sequence[Cell], step: Step, directions: int, sizes=None, dropout=0.0):
    """All layers: the output of the last one and the final states, by layer and direction as ``states`` and ``cells`` are.

    ``x`` is (steps, rows, features); with ``sizes``, the numbers of rows of each step, which never rise, it is (sum of them, features), and so is
    the output. ``dropout``: the probability between layers.
    """
    final = []
    for first in range(0, len(cells), directions):
        if first and dropout:
            x = torch.dropout(x, dropout, True)
        outs = []
        for at in range(first, first + directions):
            out, state = _direction(x, states[at], cells[at], step, at > first, sizes)
            outs.append(out)
            final.append(state)
        x = torch.cat(outs, -1) if directions > 1 else outs[0]
    return x, final


def _direction(x, whole, cell: Cell, step: Step, backward: bool, sizes):
    """One layer in one direction. Sequences end on the way where steps have fewer rows, and begin on the way backward."""
    gates = cell.input(x)
    steps = list(gates.unbind(0) if sizes is None else gates.split(sizes))
    if backward:
        steps.reverse()
    state, ended, made = list(whole), [], []
    if backward and steps:
        state = [s[: steps[0].shape[0]] for s in state]
    for rows in steps:
        n, held = rows.shape[0], state[0].shape[0]
        if n < held:
            ended.append([s[n:] for s in state])
            state = [s[:n] for s in state]
        elif n > held:
            state = [torch.cat((s, w[held:n])) for s, w in zip(state, whole)]
        state = step(rows, state, cell)
        made.append(state[0])
    if backward:
        made.reverse()
    if ended:
        state = [torch.cat(parts) for parts in zip(state, *reversed(ended))]
    if not made:
        return x.new_zeros(*x.shape[:-1], whole[0].shape[-1]), state
    return torch.stack(made) if sizes is None else torch.cat(made), state
