"""The module classes, a file to a family."""

import sys

from flambeau.modules import module as module
from flambeau.modules.module import Module
from flambeau.nn.modules import (
    adaptive,
    batchnorm,
    conv,
    dropout,
    instancenorm,
    lazy,
    linear,
    more_activation,
    more_loss,
    padding,
    pooling,
    rnn,
    shaping,
    sparse,
    transformer,
)
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
from flambeau.nn.modules.container import ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential
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
from flambeau.nn.modules.normalization import GroupNorm, LayerNorm, RMSNorm

# Annotations of Module are evaluated in the module that it says it is from.
sys.modules[Module.__module__] = module

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CrossEntropyLoss",
    "ELU",
    "GELU",
    "GroupNorm",
    "Hardsigmoid",
    "Hardswish",
    "HuberLoss",
    "L1Loss",
    "LayerNorm",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "MSELoss",
    "Mish",
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
]
for _part in (
    adaptive,
    batchnorm,
    conv,
    dropout,
    instancenorm,
    lazy,
    linear,
    more_activation,
    more_loss,
    padding,
    pooling,
    rnn,
    shaping,
    sparse,
    transformer,
):
    globals().update({_name: getattr(_part, _name) for _name in _part.__all__})
    __all__ += _part.__all__
