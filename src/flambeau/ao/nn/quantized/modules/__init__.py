"""The layers on codes, and the two that lead to codes and back."""

from __future__ import annotations

import flambeau as torch
from flambeau import nn
from flambeau.ao.nn.quantized.modules.activation import ELU, Hardswish, LeakyReLU, ReLU6, Sigmoid, Softmax
from flambeau.ao.nn.quantized.modules.batchnorm import BatchNorm2d, BatchNorm3d
from flambeau.ao.nn.quantized.modules.conv import Conv1d, Conv2d, Conv3d
from flambeau.ao.nn.quantized.modules.conv_transpose import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from flambeau.ao.nn.quantized.modules.dropout import Dropout
from flambeau.ao.nn.quantized.modules.embedding_ops import Embedding, EmbeddingBag
from flambeau.ao.nn.quantized.modules.functional_modules import FloatFunctional, FXFloatFunctional, QFunctional
from flambeau.ao.nn.quantized.modules.linear import Linear
from flambeau.ao.nn.quantized.modules.normalization import (
    GroupNorm,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
    LayerNorm,
)
from flambeau.ops.affine.tracing import code_parameters

__all__ = [
    "BatchNorm2d", "BatchNorm3d", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "DeQuantize",
    "Dropout", "ELU", "Embedding", "EmbeddingBag", "FXFloatFunctional", "FloatFunctional", "GroupNorm", "Hardswish", "InstanceNorm1d",
    "InstanceNorm2d", "InstanceNorm3d", "LayerNorm", "LeakyReLU", "Linear", "QFunctional", "Quantize", "ReLU6", "Sigmoid", "Softmax",
]  # fmt: skip


class Quantize(nn.Module):
    """Floats to codes, by ``scale`` and ``zero_point`` (buffers of one element)."""

    def __init__(self, scale, zero_point, dtype, factory_kwargs=None):
        super().__init__()
        self.register_buffer("scale", torch.tensor([scale], **(factory_kwargs or {})))
        self.register_buffer("zero_point", torch.tensor([zero_point], dtype=torch.long))
        self.dtype = dtype

    def forward(self, X):
        return torch.quantize_per_tensor(X, *code_parameters(self.scale, self.zero_point), self.dtype)

    @staticmethod
    def from_float(mod, use_precomputed_fake_quant=False):
        """Of an observed ``QuantStub``."""
        scale, zero_point = mod.activation_post_process.calculate_qparams()
        return Quantize(scale.float().item(), zero_point.long().item(), mod.activation_post_process.dtype)

    def extra_repr(self):
        return f"scale={self.scale}, zero_point={self.zero_point}, dtype={self.dtype}"


class DeQuantize(nn.Module):
    """Codes to floats."""

    def forward(self, Xq):
        return Xq.dequantize()

    @staticmethod
    def from_float(mod, use_precomputed_fake_quant=False):
        """Of a ``DeQuantStub``."""
        return DeQuantize()
