"""LSTM and GRU with weights of codes, on floats: the products of each step are those of the dynamic linear layer."""

from __future__ import annotations

import flambeau as torch
from flambeau import nn
from flambeau.ao.nn.quantized.modules.utils import observed_weight
from flambeau.core.operator import namespace
from flambeau.nn.utils.rnn import PackedSequence

from .. import recurrent

__all__ = ["GRU", "LSTM"]

ops = namespace("quantized")


class _Recurrent(nn.Module):
    """Arguments as of the float layer. ``weights``: by layer and direction, input's and state's, of qint8, and their biases."""

    _step: recurrent.Step

    def __init__(
        self, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False
    ):
        super().__init__()
        self.input_size, self.hidden_size, self.num_layers, self.bias = input_size, hidden_size, num_layers, bias
        self.batch_first, self.dropout, self.bidirectional = batch_first, float(dropout), bidirectional
        self.weights: list[tuple] = []

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """Of a float layer with a ``qconfig``. NotImplementedError with projections."""
        if getattr(mod, "proj_size", 0):
            raise NotImplementedError(
                f"quantize_dynamic: {type(mod).__name__} with projections (proj_size) is not built"
            )
        made = cls(
            mod.input_size, mod.hidden_size, mod.num_layers, mod.bias, mod.batch_first, mod.dropout, mod.bidirectional
        )
        for layer in range(mod.num_layers):
            for suffix in ("", "_reverse")[: made._directions]:
                pair = [
                    observed_weight(mod, getattr(mod, f"weight_{kind}_l{layer}{suffix}").float())
                    for kind in ("ih", "hh")
                ]
                biases = [
                    getattr(mod, f"bias_{kind}_l{layer}{suffix}").detach() if mod.bias else None
                    for kind in ("ih", "hh")
                ]
                made.weights.append((*pair, *biases))
        return made

    @property
    def _directions(self) -> int:
        return 2 if self.bidirectional else 1

    def _get_name(self):
        return f"DynamicQuantized{type(self).__name__}"

    def extra_repr(self):
        return f"{self.input_size}, {self.hidden_size}"

    def get_extra_state(self):
        return {"weights": self.weights}

    def set_extra_state(self, state):
        self.weights = state["weights"]

    def forward(self, input, hx=None):
        """``(output, state)`` as of the float layer; packed sequences too."""
        if isinstance(input, PackedSequence):
            return self._packed(input, hx)
        batched = input.dim() == 3
        x = input if batched else input.unsqueeze(1 if not self.batch_first else 0)
        x = x.transpose(0, 1) if self.batch_first else x
        hx = self._zeros(x, x.shape[1]) if hx is None else hx if batched else self._each(hx, lambda s: s.unsqueeze(1))
        x, states = self._run(x, hx)
        x = x.transpose(0, 1) if self.batch_first else x
        out = x if batched else x.squeeze(0 if self.batch_first else 1)
        return out, states if batched else self._each(states, lambda s: s.squeeze(1))

    def _packed(self, input, hx):
        data, sizes, ordered, back = input
        sizes_read = sizes.tolist()
        if hx is None:
            hx = self._zeros(data, sizes_read[0])
        elif ordered is not None:
            hx = self._each(hx, lambda s: s.index_select(1, ordered))
        out, states = self._run(data, hx, sizes_read)
        if back is not None:
            states = self._each(states, lambda s: s.index_select(1, back))
        return PackedSequence(out, sizes, ordered, back), states

    def _run(self, x, hx, sizes=None):
        cells = [_cell(*weights) for weights in self.weights]
        given = hx if isinstance(hx, tuple) else (hx,)
        states = list(zip(*(s.unbind(0) for s in given)))
        dropout = self.dropout if self.training else 0.0
        x, final = recurrent.run(x, states, cells, self._step, self._directions, sizes, dropout)
        made = tuple(torch.stack(parts) for parts in zip(*final))
        return x, made if isinstance(hx, tuple) else made[0]

    @staticmethod
    def _each(states, fn):
        return tuple(map(fn, states)) if isinstance(states, tuple) else fn(states)

    def _zeros(self, x, rows: int):
        zeros = x.new_zeros(self.num_layers * self._directions, rows, self.hidden_size)
        return (zeros, zeros) if isinstance(self, LSTM) else zeros


def _cell(w_ih, w_hh, b_ih, b_hh) -> recurrent.Cell:
    return recurrent.Cell(
        lambda x: ops._linear_dynamic.default(x, w_ih, b_ih, True, False),
        lambda h: ops._linear_dynamic.default(h, w_hh, b_hh, True, False),
    )


class LSTM(_Recurrent):
    """An LSTM with weights of qint8."""

    _step = staticmethod(recurrent.lstm_step)


class GRU(_Recurrent):
    """A GRU with weights of qint8."""

    _step = staticmethod(recurrent.gru_step)
