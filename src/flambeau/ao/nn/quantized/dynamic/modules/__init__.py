"""The layers, under PyTorch's path."""

from flambeau.ao.nn.quantized.dynamic.modules.conv import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from flambeau.ao.nn.quantized.dynamic.modules.linear import Linear, LinearReLU
from flambeau.ao.nn.quantized.dynamic.modules.rnn import GRU, LSTM

__all__ = [
    "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "GRU", "LSTM", "Linear", "LinearReLU",
]  # fmt: skip
