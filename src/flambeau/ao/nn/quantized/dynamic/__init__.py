"""Layers with weights of codes that take and give floats: a scale for the input is chosen at each call."""

from flambeau.ao.nn.quantized.dynamic.modules.linear import Linear, LinearReLU
from flambeau.ao.nn.quantized.dynamic.modules.rnn import GRU, LSTM

__all__ = ["GRU", "LSTM", "Linear", "LinearReLU"]
