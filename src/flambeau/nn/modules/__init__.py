"""The module classes, a file to a family."""

from flambeau.nn.modules.activation import (
    ELU,
    GELU,
    Hardsigmoid,
    Hardswish,
    LeakyReLU,
    LogSigmoid,
    LogSoftmax,
    Mish,
    ReLU,
    ReLU6,
    Sigmoid,
    SiLU,
    Softmax,
    Softplus,
    Tanh,
)
from flambeau.nn.modules.batchnorm import BatchNorm1d, BatchNorm2d, BatchNorm3d
from flambeau.nn.modules.container import ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential
from flambeau.nn.modules.conv import Conv1d, Conv2d, Conv3d
from flambeau.nn.modules.dropout import Dropout
from flambeau.nn.modules.linear import Bilinear, Flatten, Identity, Linear, Unflatten
from flambeau.nn.modules.loss import (
    BCELoss,
    BCEWithLogitsLoss,
    CrossEntropyLoss,
    HuberLoss,
    L1Loss,
    MSELoss,
    NLLLoss,
    SmoothL1Loss,
)
from flambeau.nn.modules.module import Module
from flambeau.nn.modules.normalization import GroupNorm, LayerNorm, RMSNorm
from flambeau.nn.modules.pooling import AdaptiveAvgPool2d, AvgPool2d, MaxPool2d
from flambeau.nn.modules.sparse import Embedding

__all__ = [
    "AdaptiveAvgPool2d",
    "AvgPool2d",
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "Hardsigmoid",
    "Hardswish",
    "MaxPool2d",
    "Mish",
    "BCELoss",
    "BCEWithLogitsLoss",
    "Bilinear",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "CrossEntropyLoss",
    "Dropout",
    "ELU",
    "Embedding",
    "Flatten",
    "GELU",
    "GroupNorm",
    "HuberLoss",
    "Identity",
    "L1Loss",
    "LayerNorm",
    "LeakyReLU",
    "Linear",
    "LogSigmoid",
    "LogSoftmax",
    "MSELoss",
    "Module",
    "ModuleDict",
    "ModuleList",
    "NLLLoss",
    "ParameterDict",
    "ParameterList",
    "RMSNorm",
    "ReLU",
    "ReLU6",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "SmoothL1Loss",
    "Softmax",
    "Softplus",
    "Tanh",
    "Unflatten",
]
