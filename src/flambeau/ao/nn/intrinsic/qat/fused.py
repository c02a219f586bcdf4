"""Fused layers for training with fake quantisation.

A convolution with batch norm is trained as it will run: its weight is scaled by the norm's ``gamma / running_std`` before it is rounded, and what
comes out is scaled back for the norm to see (Krishnamoorthi, "Quantizing deep convolutional networks for efficient inference", 2018, 3.2.2).
"""

from __future__ import annotations

import flambeau as torch
from flambeau import nn
from flambeau.ao.nn import intrinsic as nni
from flambeau.ao.nn import qat as nnqat
from flambeau.ao.nn.qat.modules.layers import take
from flambeau.nn import functional as F
from flambeau.nn.utils.fusion import fuse_conv_bn_weights

__all__ = [
    "ConvBn1d", "ConvBn2d", "ConvBn3d", "ConvBnReLU1d", "ConvBnReLU2d", "ConvBnReLU3d", "ConvReLU2d", "ConvReLU3d", "LinearReLU",
    "freeze_bn_stats", "update_bn_stats",
]  # fmt: skip


class LinearReLU(nnqat.Linear, nni._FusedModule):
    """Linear and ReLU, the weight rounded."""

    def __init__(self, in_features, out_features, bias=True, qconfig=None):
        nnqat.Linear.__init__(self, in_features, out_features, bias, qconfig)

    def forward(self, input):
        return F.relu(nnqat.Linear.forward(self, input))

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """Of an ``intrinsic.LinearReLU``."""
        return super().from_float(_configured(mod))


def _configured(mod):
    """The first layer of a fused module, with the module's configuration."""
    first = mod[0]
    first.qconfig = mod.qconfig
    return first


class _ConvReLU(nni._FusedModule):
    def forward(self, input):
        return F.relu(self._conv_forward(input, self.weight_fake_quant(self.weight), self.bias))

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """Of an ``intrinsic.ConvReLU``."""
        return super().from_float(_configured(mod))


class ConvReLU2d(_ConvReLU, nnqat.Conv2d):
    """Conv2d and ReLU, the weight rounded."""

    def __init__(self, *args, qconfig=None, **kwargs):
        nnqat.Conv2d.__init__(self, *args, qconfig=qconfig, **kwargs)


class ConvReLU3d(_ConvReLU, nnqat.Conv3d):
    """Conv3d and ReLU, the weight rounded."""

    def __init__(self, *args, qconfig=None, **kwargs):
        nnqat.Conv3d.__init__(self, *args, qconfig=qconfig, **kwargs)


class _ConvBn(nni._FusedModule):
    """``bn`` is the norm as a part, so that its parameters and statistics train on. ``freeze_bn``: by the running statistics."""

    _NORM: type
    _relu = False

    def _add_norm(self, bn):
        self.bn = bn
        self.freeze_bn = False

    def freeze_bn_stats(self):
        """Normalise by the running statistics, and leave them as they are."""
        self.freeze_bn = True
        self.bn.training = False
        return self

    def update_bn_stats(self):
        """Normalise by those of each batch, and count them."""
        self.freeze_bn = False
        self.bn.training = True
        return self

    def train(self, mode=True):
        super().train(mode)
        if self.freeze_bn:
            self.bn.training = False
        return self

    def forward(self, input):
        deviation = torch.sqrt(self.bn.running_var + self.bn.eps)
        factor = self.bn.weight / deviation
        weight = self.weight_fake_quant(self.weight * factor.reshape(-1, *[1] * (self.weight.dim() - 1)))
        raw = self._conv_forward(input, weight, None)
        raw = raw / factor.reshape(1, -1, *[1] * (raw.dim() - 2))
        if self.bias is not None:
            raw = raw + self.bias.reshape(1, -1, *[1] * (raw.dim() - 2))
        made = self.bn(raw)
        return F.relu(made) if self._relu else made

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """Of an ``intrinsic.ConvBn``, or one with ReLU."""
        conv = _configured(mod)
        made = cls(*cls._arguments(conv), qconfig=cls._configuration(conv))
        take(made, conv, "weight", "bias")
        made._add_norm(mod[1])
        return made.train(mod.training)

    def folded(self):
        """(weight, bias) of the convolution that does the norm's work too."""
        bn = self.bn
        return fuse_conv_bn_weights(self.weight, self.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias)


def _conv_bn(n: int, relu: bool) -> type:
    """The class for ``n`` dimensions."""
    conv, norm = getattr(nnqat, f"Conv{n}d"), getattr(nn, f"BatchNorm{n}d")

    def __init__(self, *args, qconfig=None, **kwargs):
        conv.__init__(self, *args, qconfig=qconfig, **kwargs)
        self._add_norm(norm(self.out_channels))

    name = f"ConvBn{'ReLU' if relu else ''}{n}d"
    doc = f"Conv{n}d{', ' if relu else ' and '}BatchNorm{n}d{' and ReLU' if relu else ''} for training, the weight rounded as it will run."
    body = {"__init__": __init__, "_NORM": norm, "_relu": relu, "__doc__": doc, "__module__": __name__}
    return type(name, (_ConvBn, conv), body)


ConvBn1d, ConvBn2d, ConvBn3d = (_conv_bn(n, False) for n in (1, 2, 3))
ConvBnReLU1d, ConvBnReLU2d, ConvBnReLU3d = (_conv_bn(n, True) for n in (1, 2, 3))


def freeze_bn_stats(mod):
    """``mod.freeze_bn_stats()`` where it is a convolution with batch norm: ``model.apply(freeze_bn_stats)``."""
    if isinstance(mod, _ConvBn):
        mod.freeze_bn_stats()


def update_bn_stats(mod):
    """``mod.update_bn_stats()`` where it is a convolution with batch norm: ``model.apply(update_bn_stats)``."""
    if isinstance(mod, _ConvBn):
        mod.update_bn_stats()
