"""Layers on codes: what ``convert`` puts in the places of observed ones."""

from flambeau.ao.nn.quantized import functional
from flambeau.ao.nn.quantized.modules import (
    ELU,
    BatchNorm2d,
    BatchNorm3d,
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
    DeQuantize,
    Dropout,
    Embedding,
    EmbeddingBag,
    FloatFunctional,
    FXFloatFunctional,
    GroupNorm,
    Hardswish,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
    LayerNorm,
    LeakyReLU,
    Linear,
    QFunctional,
    Quantize,
    ReLU6,
    Sigmoid,
    Softmax,
)

__all__ = [
    "BatchNorm2d",
    "BatchNorm3d",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "DeQuantize",
    "Dropout",
    "ELU",
    "Embedding",
    "EmbeddingBag",
    "FXFloatFunctional",
    "FloatFunctional",
    "GroupNorm",
    "Hardswish",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LayerNorm",
    "LeakyReLU",
    "Linear",
    "QFunctional",
    "Quantize",
    "ReLU6",
    "Sigmoid",
    "Softmax",
    "functional",
]


def __getattr__(name):
    """``dynamic`` is imported when it is asked for."""
    import importlib

    if name == "dynamic":
        return importlib.import_module("flambeau.ao.nn.quantized.dynamic")
    raise AttributeError(f"module 'torch.ao.nn.quantized' has no attribute {name!r}")
