"""LSTM and GRU with weights of codes, on floats: the products of each step are those of the dynamic linear layer."""

from __future__ import annotations

import flambeau as torch
from flambeau import nn
from flambeau.ao.nn.quantized.modules.utils import observed_weight
from flambeau.core.operator import namespace
from flambeau.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

__all__ = ["GRU", "LSTM"]

ops = namespace("quantized")


class _Recurrent(nn.Module):
    """Arguments as of the float layer. ``weights``: by layer and direction, input's and state's, of qint8, and their biases."""

    _gates: int

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
        states = self._states(x, hx, batched)
        for layer in range(self.num_layers):
            x = self._layer(x, layer, states)
        x = x.transpose(0, 1) if self.batch_first else x
        out = x if batched else x.squeeze(0 if self.batch_first else 1)
        return out, self._given(states, batched)

    def _packed(self, input, hx):
        padded, lengths = pad_packed_sequence(input, self.batch_first)
        if bool((lengths != lengths[0]).any()):
            raise NotImplementedError(
                f"{self._get_name()}: packed sequences of different lengths are not built; pad them, or run them one by one"
            )
        out, states = self(padded, hx)
        return pack_padded_sequence(out, lengths, self.batch_first, enforce_sorted=False), states

    def _layer(self, x, layer: int, states):
        outs = []
        for direction in range(self._directions):
            at = layer * self._directions + direction
            w_ih, w_hh, b_ih, b_hh = self.weights[at]
            gates = ops._linear_dynamic.default(x, w_ih, b_ih, True, False)
            steps = range(len(x)) if direction == 0 else reversed(range(len(x)))
            made = [None] * len(x)
            for t in steps:
                made[t] = self._step(
                    gates[t], lambda h, w=w_hh, b=b_hh: ops._linear_dynamic.default(h, w, b, True, False), states, at
                )
            outs.append(torch.stack(made) if made else x.new_zeros(0, x.shape[1], self.hidden_size))
        return torch.cat(outs, -1) if len(outs) > 1 else outs[0]

    def _zeros(self, x):
        return x.new_zeros(self.num_layers * self._directions, x.shape[1], self.hidden_size)

    @staticmethod
    def _rows(state, batched) -> list:
        return list((state if batched else state.unsqueeze(1)).unbind(0))


class LSTM(_Recurrent):
    """An LSTM with weights of qint8."""

    def _states(self, x, hx, batched):
        zeros = (self._zeros(x), self._zeros(x))
        return [self._rows(s, batched or hx is None) for s in (zeros if hx is None else hx)]

    def _step(self, gates, recur, states, at):
        hidden, cells = states
        i, f, g, o = (gates + recur(hidden[at])).chunk(4, -1)
        cells[at] = torch.sigmoid(f) * cells[at] + torch.sigmoid(i) * torch.tanh(g)
        hidden[at] = torch.sigmoid(o) * torch.tanh(cells[at])
        return hidden[at]

    def _given(self, states, batched):
        return tuple(torch.stack(s) if batched else torch.stack(s).squeeze(1) for s in states)


class GRU(_Recurrent):
    """A GRU with weights of qint8."""

    def _states(self, x, hx, batched):
        return [self._rows(self._zeros(x) if hx is None else hx, batched or hx is None)]

    def _step(self, gates, recur, states, at):
        (hidden,) = states
        r, z, n = gates.chunk(3, -1)
        hr, hz, hn = recur(hidden[at]).chunk(3, -1)
        r, z = torch.sigmoid(r + hr), torch.sigmoid(z + hz)
        n = torch.tanh(n + r * hn)
        hidden[at] = (1 - z) * n + z * hidden[at]
        return hidden[at]

    def _given(self, states, batched):
        made = torch.stack(states[0])
        return made if batched else made.squeeze(1)
