"""The layers, under PyTorch's path."""

from flambeau.ao.nn.quantized.dynamic.modules.linear import Linear, LinearReLU
from flambeau.ao.nn.quantized.dynamic.modules.rnn import GRU, LSTM

__all__ = ["GRU", "LSTM", "Linear", "LinearReLU"]
