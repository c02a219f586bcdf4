"""Recurrent networks: LSTM (with projections), GRU and simple RNN, of several layers, in one or both directions, padded or packed; and their cells.

The product with the inputs is one for all steps; a step multiplies the state and combines the gates.
"""

from __future__ import annotations

from ...core.declare import composite
from ...core.operator import namespace
from .recurrence import layer, streams

aten = namespace("aten")


def _lstm_step(gates, state):
    """Gates in PyTorch's order: input, forget, cell, output. Hochreiter & Schmidhuber 1997."""
    h, c = state
    i, f, g, o = aten.chunk.default(gates, 4, 1)
    c = aten.add.Tensor(
        aten.mul.Tensor(aten.sigmoid.default(f), c), aten.mul.Tensor(aten.sigmoid.default(i), aten.tanh.default(g))
    )
    return aten.mul.Tensor(aten.sigmoid.default(o), aten.tanh.default(c)), c


def _gru_step(inner, hidden, h):
    """Gates: reset, update, new. Cho et al. 2014; the reset gate acts on the product with the state, as in cuDNN."""
    ri, zi, ni = aten.chunk.default(inner, 3, 1)
    rh, zh, nh = aten.chunk.default(hidden, 3, 1)
    r = aten.sigmoid.default(aten.add.Tensor(ri, rh))
    z = aten.sigmoid.default(aten.add.Tensor(zi, zh))
    n = aten.tanh.default(aten.add.Tensor(ni, aten.mul.Tensor(r, nh)))
    return aten.add.Tensor(aten.mul.Tensor(aten.sub.Tensor(h, n), z), n)


class _Cell:
    """Weights of one layer in one direction, and its step: state and the inputs' product to the next state (a tuple; the first is the output)."""

    def __init__(self, kind, params):
        self.kind = kind
        self.w_ih, self.w_hh, *rest = params
        self.b_ih, self.b_hh, self.w_hr = None, None, None
        if len(rest) >= 2:
            self.b_ih, self.b_hh, *rest = rest
        if rest:
            self.w_hr = rest[0]

    def inputs(self, x):
        return aten.linear.default(x, self.w_ih, self.b_ih)

    def step(self, inner, state):
        hidden = aten.linear.default(state[0], self.w_hh, self.b_hh)
        if self.kind == "gru":
            return (_gru_step(inner, hidden, state[0]),)
        gates = aten.add.Tensor(inner, hidden)
        if self.kind == "lstm":
            h, c = _lstm_step(gates, state)
            return (h if self.w_hr is None else aten.linear.default(h, self.w_hr, None)), c
        return ((aten.tanh if self.kind == "tanh" else aten.relu).default(gates),)


def _padded(cell, x, state, reverse):
    """x (steps, batch, features): outputs (steps, batch, hidden) and the last state."""
    parameters = (cell.w_ih, cell.w_hh, cell.b_ih, cell.b_hh)
    if cell.w_hr is None and streams([t for t in (x, *parameters, *state) if t is not None]):
        return layer(cell.kind, x, *parameters, state, reverse)
    rows = aten.unbind.int(cell.inputs(x), 0)
    outputs = []
    for inner in reversed(rows) if reverse else rows:
        state = cell.step(inner, state)
        outputs.append(state[0])
    if reverse:
        outputs.reverse()
    return aten.stack.default(outputs, 0), state


def _packed(cell, data, sizes, state, reverse):
    """data (sum of sizes, features), as PackedSequence has it: sizes fall, sequence k is there in the first steps."""
    rows = aten.split_with_sizes.default(cell.inputs(data), sizes, 0)
    outputs = []
    if not reverse:
        done = []  # states of sequences that ended, the shortest first
        for inner, n in zip(rows, sizes):
            here = state[0].shape[0]
            if n < here:
                done.append(tuple(aten.slice.Tensor(s, 0, n, here) for s in state))
                state = tuple(aten.slice.Tensor(s, 0, 0, n) for s in state)
            state = cell.step(inner, state)
            outputs.append(state[0])
        done.append(state)
        final = tuple(aten.cat.default([part[k] for part in reversed(done)], 0) for k in range(len(state)))
        return aten.cat.default(outputs, 0), final
    start = state
    state = tuple(aten.slice.Tensor(s, 0, 0, sizes[-1]) for s in start)
    for inner, n in zip(reversed(rows), reversed(sizes)):
        here = state[0].shape[0]
        if n > here:
            state = tuple(aten.cat.default([s, aten.slice.Tensor(s0, 0, here, n)], 0) for s, s0 in zip(state, start))
        state = cell.step(inner, state)
        outputs.append(state[0])
    return aten.cat.default(outputs[::-1], 0), state


def _network(kind, run, x, states, params, has_biases, layers, dropout, train, bidirectional):
    """Layers over directions. ``states``: (layers * directions, batch, hidden), two of them for the LSTM."""
    directions = 2 if bidirectional else 1
    count = len(params) // (layers * directions)
    finals = []
    for level in range(layers):
        outputs = []
        for d in range(directions):
            k = level * directions + d
            cell = _Cell(kind, params[k * count : (k + 1) * count])
            out, final = run(cell, x, tuple(aten.select.int(s, 0, k) for s in states), d == 1)
            outputs.append(out)
            finals.append(final)
        x = outputs[0] if directions == 1 else aten.cat.default(outputs, x.ndim - 1)
        if dropout and train and level < layers - 1:
            x = aten.dropout.default(x, dropout, True)
    return x, *(aten.stack.default([f[k] for f in finals], 0) for k in range(len(states)))


def _check(input, states, hidden_dims, layers, bidirectional, packed=None):
    batch = packed if packed is not None else input.shape[1]
    expected = layers * (2 if bidirectional else 1)
    for s in states:
        if s.ndim != 3 or s.shape[0] != expected or s.shape[1] != batch:
            raise RuntimeError(f"Expected hidden size ({expected}, {batch}, {s.shape[-1]}), got {list(s.shape)}")
    if input.shape[0] == 0 and packed is None:
        raise RuntimeError("Expected sequence length to be larger than 0 in RNN")


def _run_padded(kind, input, states, params, has_biases, layers, dropout, train, bidirectional, batch_first):
    x = aten.transpose.int(input, 0, 1) if batch_first else input
    _check(x, states, None, layers, bidirectional)
    out, *final = _network(kind, _padded, x, states, params, has_biases, layers, dropout, train, bidirectional)
    return (aten.transpose.int(out, 0, 1) if batch_first else out), *final


def _run_packed(kind, data, batch_sizes, states, params, has_biases, layers, dropout, train, bidirectional):
    sizes = batch_sizes.tolist()
    _check(data, states, None, layers, bidirectional, sizes[0])

    def run(cell, x, state, reverse):
        return _packed(cell, x, sizes, state, reverse)

    return _network(kind, run, data, states, params, has_biases, layers, dropout, train, bidirectional)


_REST = "Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional"


@composite(
    f"lstm.input(Tensor input, Tensor[] hx, {_REST}, bool batch_first) -> (Tensor, Tensor, Tensor)", variants="function"
)
def lstm(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first):
    if len(hx) != 2:
        raise RuntimeError("lstm expects two hidden states")
    return _run_padded("lstm", input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)


@composite(
    f"lstm.data(Tensor data, Tensor batch_sizes, Tensor[] hx, {_REST}) -> (Tensor, Tensor, Tensor)", variants="function"
)
def lstm_data(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional):
    return _run_packed("lstm", data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional)


def _simple(opname, kind):
    @composite(
        f"{opname}.input(Tensor input, Tensor hx, {_REST}, bool batch_first) -> (Tensor, Tensor)", variants="function"
    )
    def padded(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first):
        return _run_padded(
            kind, input, [hx], params, has_biases, num_layers, dropout, train, bidirectional, batch_first
        )

    @composite(
        f"{opname}.data(Tensor data, Tensor batch_sizes, Tensor hx, {_REST}) -> (Tensor, Tensor)", variants="function"
    )
    def packed(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional):
        return _run_packed(kind, data, batch_sizes, [hx], params, has_biases, num_layers, dropout, train, bidirectional)


_simple("gru", "gru")
_simple("rnn_tanh", "tanh")
_simple("rnn_relu", "relu")


@composite(
    "lstm_cell(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> (Tensor, Tensor)",
    variants="function",
)
def lstm_cell(input, hx, w_ih, w_hh, b_ih, b_hh):
    cell = _Cell("lstm", [w_ih, w_hh, b_ih, b_hh])
    return cell.step(cell.inputs(input), tuple(hx))


def _simple_cell(opname, kind):
    @composite(
        f"{opname}(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor",
        variants="function",
    )
    def cell(input, hx, w_ih, w_hh, b_ih, b_hh):
        made = _Cell(kind, [w_ih, w_hh, b_ih, b_hh])
        return made.step(made.inputs(input), (hx,))[0]


_simple_cell("gru_cell", "gru")
_simple_cell("rnn_tanh_cell", "tanh")
_simple_cell("rnn_relu_cell", "relu")
