"""Recurrent layers and their cells: RNN, LSTM (with projections), GRU; padded or packed sequences."""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Sequence

from flambeau.amp.state import is_autocast_enabled
from flambeau.base.device import Device
from flambeau.base.dtypes import DType
from flambeau.core.bindings import function
from flambeau.core.tensor import Tensor
from flambeau.modules.module import Module
from flambeau.modules.parameter import Parameter
from flambeau.nn import init
from flambeau.nn.utils.packed import PackedSequence

__all__ = ["GRU", "GRUCell", "LSTM", "LSTMCell", "RNN", "RNNBase", "RNNCell", "RNNCellBase"]

_empty, _zeros = function("empty"), function("zeros")
_OPERATORS = {
    mode: function(name)
    for mode, name in (("LSTM", "lstm"), ("GRU", "gru"), ("RNN_TANH", "rnn_tanh"), ("RNN_RELU", "rnn_relu"))
}
_CELLS = {name: function(name) for name in ("lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell")}


def _permuted(t, permutation, dim: int = 1):
    return t if t is None or permutation is None else t.index_select(dim, permutation)


class RNNBase(Module):
    """Several layers in one or both directions. The weights are ``weight_ih_l0``, ``weight_hh_l0``, ... with ``_reverse`` for the way back."""

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Device | str | int | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        for name, value, kind in (
            ("bias", bias, bool),
            ("batch_first", batch_first, bool),
            ("input_size", input_size, int),
            ("hidden_size", hidden_size, int),
        ):
            if not isinstance(value, kind):
                raise TypeError(f"{name} should be of type {kind.__name__}, got: {type(value).__name__}")
        self.mode, self.input_size, self.hidden_size, self.num_layers = mode, input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bias, batch_first, float(dropout)
        self.bidirectional, self.proj_size = bidirectional, proj_size
        if not isinstance(dropout, numbers.Number) or not 0 <= dropout <= 1 or isinstance(dropout, bool):
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
            )
        if dropout > 0 and num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects num_layers greater than 1, but got "
                f"dropout={dropout} and num_layers={num_layers}",
                stacklevel=3,
            )
        if input_size <= 0:
            raise ValueError("input_size must be greater than zero")
        if hidden_size <= 0:
            raise ValueError("hidden_size must be greater than zero")
        if num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        if proj_size < 0:
            raise ValueError("proj_size should be a positive integer or zero to disable projections")
        if proj_size >= hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if proj_size and mode != "LSTM":
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        gates = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}
        if mode not in gates:
            raise ValueError("Unrecognized RNN mode: " + mode)
        rows, real = gates[mode] * hidden_size, proj_size or hidden_size
        self._flat_weights_names, self._all_weights = [], []
        for layer in range(num_layers):
            for suffix in ("", "_reverse") if bidirectional else ("",):
                width = input_size if layer == 0 else real * (2 if bidirectional else 1)
                shapes = {"weight_ih": (rows, width), "weight_hh": (rows, real)}
                if bias:
                    shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
                if proj_size:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                names = []
                for name, shape in shapes.items():
                    names.append(f"{name}_l{layer}{suffix}")
                    setattr(self, names[-1], Parameter(_empty(shape, device=device, dtype=dtype)))
                self._flat_weights_names += names
                self._all_weights.append(names)
        self.reset_parameters()

    @property
    def _flat_weights(self) -> list:
        return [getattr(self, name) for name in self._flat_weights_names]

    # Whole modules in PyTorch's files hold the list; here it is always made of the parameters.
    def __getstate__(self):
        return {**super().__getstate__(), "_flat_weights": self._flat_weights}

    def __setstate__(self, state):
        super().__setstate__({k: v for k, v in state.items() if k != "_flat_weights"})

    @property
    def all_weights(self) -> list[list]:
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def flatten_parameters(self) -> None:
        """For GPUs; nothing to do here."""

    def reset_parameters(self) -> None:
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def _first_states(self, x, batch: int) -> list:
        """Zeros for each state: (layers * directions, batch, size)."""
        rows = self.num_layers * (2 if self.bidirectional else 1)
        sizes = [self.proj_size or self.hidden_size] + ([self.hidden_size] if self.mode == "LSTM" else [])
        return [_zeros((rows, batch, n), dtype=x.dtype, device=x.device) for n in sizes]

    def check_forward_args(self, input: Tensor, hidden: Sequence[Tensor], batch: int) -> None:
        rows = self.num_layers * (2 if self.bidirectional else 1)
        sizes = [self.proj_size or self.hidden_size] + ([self.hidden_size] if self.mode == "LSTM" else [])
        for k, (state, n) in enumerate(zip(hidden, sizes)):
            name = ("hidden[0]", "hidden[1]")[k] if self.mode == "LSTM" else "hidden"
            if tuple(state.shape) != (rows, batch, n):
                raise RuntimeError(f"Expected {name} size {(rows, batch, n)}, got {list(state.shape)}")

    def _run(self, input, hx):
        """(output, list of final states)."""
        operator = _OPERATORS[self.mode]
        packed = isinstance(input, PackedSequence)
        if packed:
            x, sizes, order, back = input
            batch = int(sizes[0])
            batched = True
        else:
            if input.dim() not in (2, 3):
                raise ValueError(
                    f"{type(self).__name__}: Expected input to be 2D or 3D, got {input.dim()}D tensor instead"
                )
            batched = input.dim() == 3
            x, order, back = input if batched else input.unsqueeze(0 if self.batch_first else 1), None, None
            batch = x.shape[0] if self.batch_first else x.shape[1]
        found, wanted = x.dtype, self._flat_weights[0].dtype
        if found != wanted and not is_autocast_enabled(x.device.type):
            raise ValueError(
                f"RNN input dtype ({found}) does not match weight dtype ({wanted}). Convert input: input.to({wanted}), or convert model: "
                f"model.to({found})"
            )
        if x.shape[-1] != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {x.shape[-1]}"
            )
        if hx is None:
            states = self._first_states(x, batch)
        else:
            states = list(hx) if self.mode == "LSTM" else [hx]
            if not packed:
                wanted = 3 if batched else 2
                if any(s.dim() != wanted for s in states):
                    kind = "batched 3-D" if batched else "unbatched 2-D"
                    raise RuntimeError(
                        f"For {kind} input, hx should also be {wanted}-D but got {states[0].dim()}-D tensor"
                    )
            states = [_permuted(s if batched else s.unsqueeze(1), order) for s in states]
        self.check_forward_args(x, states, batch)
        state = states if self.mode == "LSTM" else states[0]
        rest = (self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional)
        if packed:
            out, *final = operator(x, sizes, state, *rest)
            return PackedSequence(out, sizes, order, back), [_permuted(s, back) for s in final]
        out, *final = operator(x, state, *rest, self.batch_first)
        if not batched:
            return out.squeeze(0 if self.batch_first else 1), [s.squeeze(1) for s in final]
        return out, final

    def forward(
        self, input: Tensor | PackedSequence, hx: Tensor | None = None
    ) -> tuple[Tensor | PackedSequence, Tensor]:
        out, final = self._run(input, hx)
        return out, final[0]

    def extra_repr(self) -> str:
        s = f"{self.input_size}, {self.hidden_size}"
        for name, default in (
            ("proj_size", 0),
            ("num_layers", 1),
            ("bias", True),
            ("batch_first", False),
            ("dropout", 0),
            ("bidirectional", False),
        ):
            if getattr(self, name) != default:
                s += f", {name}={getattr(self, name)}"
        return s


class RNN(RNNBase):
    """h' = tanh(W x + U h + b), or ReLU with ``nonlinearity="relu"``. Returns (output, h).

    >>> output, h = torch.nn.RNN(3, 4)(torch.ones(6, 2, 3))  # length, batch, input
    >>> output.shape, h.shape
    (torch.Size([6, 2, 4]), torch.Size([1, 2, 4]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: None = None,
        device: Device | str | int | None = None,
        dtype: DType | None = None,
    ) -> None:
        _no_projection(proj_size)
        self.nonlinearity = nonlinearity
        modes = {"tanh": "RNN_TANH", "relu": "RNN_RELU"}
        if nonlinearity not in modes:
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        options = (num_layers, bias, batch_first, dropout, bidirectional, 0, device, dtype)
        super().__init__(modes[nonlinearity], input_size, hidden_size, *options)


class LSTM(RNNBase):
    """Long short-term memory; with ``proj_size`` the output is projected. Returns (output, (h, c)).

    >>> output, (h, c) = torch.nn.LSTM(3, 4, batch_first=True)(torch.ones(2, 6, 3))
    >>> output.shape, h.shape, c.shape
    (torch.Size([2, 6, 4]), torch.Size([1, 2, 4]), torch.Size([1, 2, 4]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Device | str | int | None = None,
        dtype: DType | None = None,
    ) -> None:
        options = (num_layers, bias, batch_first, dropout, bidirectional, proj_size, device, dtype)
        super().__init__("LSTM", input_size, hidden_size, *options)

    def forward(  # type: ignore[override]
        self, input: Tensor | PackedSequence, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor | PackedSequence, tuple[Tensor, Tensor]]:
        out, final = self._run(input, hx)
        return out, tuple(final)


class GRU(RNNBase):
    """Gated recurrent units. Returns (output, h).

    >>> output, h = torch.nn.GRU(3, 4, num_layers=2)(torch.ones(6, 2, 3))
    >>> output.shape, h.shape
    (torch.Size([6, 2, 4]), torch.Size([2, 2, 4]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: None = None,
        device: Device | str | int | None = None,
        dtype: DType | None = None,
    ) -> None:
        _no_projection(proj_size)
        options = (num_layers, bias, batch_first, dropout, bidirectional, 0, device, dtype)
        super().__init__("GRU", input_size, hidden_size, *options)


def _no_projection(proj_size) -> None:
    if proj_size is not None:
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")


class RNNCellBase(Module):
    """One step: (batch, input_size) and the state to the next state."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: Device | str | int | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        rows = num_chunks * hidden_size
        self.weight_ih = Parameter(_empty((rows, input_size), device=device, dtype=dtype))
        self.weight_hh = Parameter(_empty((rows, hidden_size), device=device, dtype=dtype))
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, Parameter(_empty(rows, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def _states(self, input, hx, count: int) -> tuple:
        if input.dim() not in (1, 2):
            raise ValueError(f"{type(self).__name__}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        x = input if input.dim() == 2 else input.unsqueeze(0)
        if x.shape[1] != self.input_size:
            raise RuntimeError(f"input has inconsistent input_size: got {x.shape[1]} expected {self.input_size}")
        if hx is None:
            zero = _zeros((x.shape[0], self.hidden_size), dtype=x.dtype, device=x.device)
            return x, (zero,) * count
        states = tuple(hx) if count > 1 else (hx,)
        for s in states:
            if s.dim() not in (1, 2):
                raise ValueError(f"{type(self).__name__}: Expected hidden to be 1D or 2D, got {s.dim()}D instead")
        states = tuple(s if s.dim() == 2 else s.unsqueeze(0) for s in states)
        for k, s in enumerate(states):
            if s.shape[0] != x.shape[0]:
                raise RuntimeError(f"Input batch size {x.shape[0]} doesn't match hidden{k} batch size {s.shape[0]}")
            if s.shape[1] != self.hidden_size:
                raise RuntimeError(
                    f"hidden{k} has inconsistent hidden_size: got {s.shape[1]}, expected {self.hidden_size}"
                )
        return x, states

    def _weights(self) -> tuple:
        return self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh

    def extra_repr(self) -> str:
        s = f"{self.input_size}, {self.hidden_size}"
        if not self.bias:
            s += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            s += f", nonlinearity={self.nonlinearity}"
        return s


class RNNCell(RNNCellBase):
    """One step of a simple recurrent network: h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu with ``nonlinearity``.

    (N, input_size) and (N, hidden_size) or without N; h is zeros unless given. Weights are drawn from U(-k, k) with k = 1 / sqrt(hidden_size).

    >>> torch.nn.RNNCell(3, 4)(torch.ones(2, 3)).shape
    torch.Size([2, 4])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Device | str | int | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        x, (h,) = self._states(input, hx, 1)
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        out = _CELLS[f"rnn_{self.nonlinearity}_cell"](x, h, *self._weights())
        return out if input.dim() == 2 else out.squeeze(0)


class GRUCell(RNNCellBase):
    """One step of gated recurrent units: (input, h) -> h', (N, input_size) and (N, hidden_size) or without N.

    h is zeros unless given. ``weight_ih`` (3 hidden_size, input_size) holds reset, update and new gate; all weights are drawn from U(-k, k) with
    k = 1 / sqrt(hidden_size).

    >>> torch.nn.GRUCell(3, 4)(torch.ones(2, 3)).shape
    torch.Size([2, 4])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Device | str | int | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        x, (h,) = self._states(input, hx, 1)
        out = _CELLS["gru_cell"](x, h, *self._weights())
        return out if input.dim() == 2 else out.squeeze(0)


class LSTMCell(RNNCellBase):
    """One step of a long short-term memory: (input, (h, c)) -> (h', c'), (N, input_size) and (N, hidden_size) or without N.

    h and c are zeros unless given. ``weight_ih`` (4 hidden_size, input_size) holds input, forget, cell and output gate; all weights are drawn from
    U(-k, k) with k = 1 / sqrt(hidden_size).

    >>> h, c = torch.nn.LSTMCell(3, 4)(torch.ones(2, 3))
    >>> h.shape, c.shape
    (torch.Size([2, 4]), torch.Size([2, 4]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Device | str | int | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        x, states = self._states(input, hx, 2)
        out = _CELLS["lstm_cell"](x, list(states), *self._weights())
        return tuple(out) if input.dim() == 2 else tuple(s.squeeze(0) for s in out)
