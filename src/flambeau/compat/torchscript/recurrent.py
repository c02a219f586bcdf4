"""Recurrent layers on floats whose weights are packed, by the schemas of PyTorch's operators."""

from __future__ import annotations

from functools import partial

from ...ao.nn.quantized.dynamic import recurrent
from ...ops.affine.packed import CellParams
from ..root import public
from .schemas import declare

__all__ = []

_stack, _relu, _tanh = public("stack"), public("relu"), public("tanh")


def _cell_params(w_ih, w_hh, b_ih, b_hh, reduce_range=False) -> CellParams:
    return CellParams(w_ih, w_hh, (b_ih, b_hh), reduce_range)


declare(
    _cell_params,
    "quantized::make_quantized_cell_params_dynamic(Any w_ih, Any w_hh, Tensor bias_ih, Tensor bias_hh, bool reduce_range=False) -> Any",
)
declare(
    lambda w_ih, w_hh: CellParams(w_ih, w_hh, (), False),
    "quantized::make_quantized_cell_params_fp16(Any w_ih, Any w_hh) -> Any",
)


# ---- sequences ---------------------------------------------------------------------------------------------------------------


def _sequence(step, x, hx, params, dropout, train, bidirectional, sizes=None):
    """(output, final states, a tensor each). ``hx``: the tensors of the first states, by layer and direction."""
    cells = [recurrent.of_packed(p.input, p.hidden, p.reduce_range) for p in params]
    states = list(zip(*(s.unbind(0) for s in hx)))
    out, final = recurrent.run(
        x, states, cells, step, 2 if bidirectional else 1, sizes, float(dropout) if train else 0.0
    )
    return out, *map(_stack, zip(*final))


def _padded(step, x, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first, *_):
    x = x.transpose(0, 1) if batch_first else x
    out, *states = _sequence(step, x, hx, params, dropout, train, bidirectional)
    return out.transpose(0, 1) if batch_first else out, *states


def _packed(step, data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional, *_):
    return _sequence(step, data, hx, params, dropout, train, bidirectional, batch_sizes.tolist())


def _lstm(run, *args, dtype=None, use_dynamic=False):
    return run(recurrent.lstm_step, *args)


def _gru(run, place: int, *args):
    """``place``: where the first state stands, a tensor alone."""
    given = list(args)
    given[place] = [given[place]]
    return run(recurrent.gru_step, *given)


_LAYERS = "Any[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional"
_KINDS = "*, ScalarType? dtype=None, bool use_dynamic=False"
declare(
    partial(_lstm, _padded),
    f"quantized_lstm.input(Tensor input, Tensor[] hx, {_LAYERS}, bool batch_first, {_KINDS}) -> (Tensor, Tensor, Tensor)",
)
declare(
    partial(_lstm, _packed),
    f"quantized_lstm.data(Tensor data, Tensor batch_sizes, Tensor[] hx, {_LAYERS}, {_KINDS}) -> (Tensor, Tensor, Tensor)",
)
declare(
    partial(_gru, _padded, 1),
    f"quantized_gru.input(Tensor input, Tensor hx, {_LAYERS}, bool batch_first) -> (Tensor, Tensor)",
)
declare(
    partial(_gru, _packed, 2),
    f"quantized_gru.data(Tensor data, Tensor batch_sizes, Tensor hx, {_LAYERS}) -> (Tensor, Tensor)",
)


# ---- single steps ------------------------------------------------------------------------------------------------------------


def _step(step, x, state, w_ih, w_hh):
    cell = recurrent.of_packed(w_ih, w_hh)
    return step(cell.input(x), state, cell)


def _plain_step(activation, x, h, w_ih, w_hh, b_ih, b_hh):
    cell = recurrent.of_packed(w_ih, w_hh)
    return activation(cell.hidden(h) + cell.input(x))


_WEIGHTS = "Any w_ih, Any w_hh, Tensor b_ih, Tensor b_hh"
declare(
    lambda x, hx, w_ih, w_hh, b_ih, b_hh: tuple(_step(recurrent.lstm_step, x, hx, w_ih, w_hh)),
    "quantized::quantized_lstm_cell_dynamic(Tensor input, Tensor[] hx, Any w_ih, Any w_hh, Tensor bias_ih, Tensor bias_hh) -> (Tensor, Tensor)",
)
declare(
    lambda x, hx, w_ih, w_hh, b_ih, b_hh: _step(recurrent.gru_step, x, [hx], w_ih, w_hh)[0],
    f"quantized::quantized_gru_cell_dynamic(Tensor input, Tensor hx, {_WEIGHTS}) -> Tensor",
)
for _name, _activation in (("relu", _relu), ("tanh", _tanh)):
    declare(
        partial(_plain_step, _activation),
        f"quantized::quantized_rnn_{_name}_cell_dynamic(Tensor input, Tensor hx, {_WEIGHTS}) -> Tensor",
    )
