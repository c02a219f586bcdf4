"""The module classes, in files of PyTorch's names."""

import sys

from flambeau.modules import module as module
from flambeau.modules.module import Module
from flambeau.nn.modules import (
    activation,
    adaptive,
    batchnorm,
    channelshuffle,
    container,
    conv,
    distance,
    dropout,
    flatten,
    fold,
    instancenorm,
    lazy,
    linear,
    loss,
    normalization,
    padding,
    pixelshuffle,
    pooling,
    rnn,
    sparse,
    transformer,
    upsampling,
)

# Annotations of Module are evaluated in the module that it says it is from.
sys.modules[Module.__module__] = module

__all__ = ["Module"]
for _part in (
    *(
        activation,
        adaptive,
        batchnorm,
        channelshuffle,
        container,
        conv,
        distance,
        dropout,
        flatten,
        fold,
        instancenorm,
        lazy,
    ),
    *(linear, loss, normalization, padding, pixelshuffle, pooling, rnn, sparse, transformer, upsampling),
):
    globals().update({_name: getattr(_part, _name) for _name in _part.__all__})
    __all__ += _part.__all__
