"""Linear layers and convolutions whose weights are rounded as codes would be: ``weight_fake_quant`` is made by the configuration's ``weight``."""

from __future__ import annotations

from flambeau import nn
from flambeau.nn import functional as F

__all__ = ["Conv1d", "Conv2d", "Conv3d", "Linear"]


def take(new, old, *names):
    """``new`` with the parameters ``names`` of ``old``, and its mode."""
    for name in names:
        setattr(new, name, getattr(old, name))
    return new.train(old.training)


class _FakeQuantized:
    """The part that all share. The configuration is an argument of the constructor, or an attribute of what ``from_float`` is given."""

    _FLOAT_MODULE: type

    def _observe_weight(self, qconfig):
        if not qconfig:
            raise AssertionError("qconfig must be provided for QAT module")
        self.qconfig = qconfig
        self.weight_fake_quant = qconfig.weight()

    @classmethod
    def _configuration(cls, mod):
        if not isinstance(mod, cls._FLOAT_MODULE):
            raise AssertionError(
                f"qat.{cls.__name__}.from_float only works for {cls._FLOAT_MODULE.__name__}, got {type(mod).__name__}"
            )
        if not getattr(mod, "qconfig", None):
            raise AssertionError("Input float module must have a valid qconfig")
        return mod.qconfig


class Linear(_FakeQuantized, nn.Linear):
    """``linear(input, weight_fake_quant(weight), bias)``."""

    _FLOAT_MODULE = nn.Linear

    def __init__(self, in_features, out_features, bias=True, qconfig=None, device=None, dtype=None):
        nn.Linear.__init__(self, in_features, out_features, bias, device=device, dtype=dtype)
        self._observe_weight(qconfig)

    def forward(self, input):
        return F.linear(input, self.weight_fake_quant(self.weight), self.bias)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The layer with the parameters and the ``qconfig`` of a float one."""
        made = cls(mod.in_features, mod.out_features, mod.bias is not None, cls._configuration(mod))
        return take(made, mod, "weight", "bias")

    def to_float(self):
        """The float layer with these parameters."""
        return take(nn.Linear(self.in_features, self.out_features, self.bias is not None), self, "weight", "bias")


class _ConvNd(_FakeQuantized):
    def __init__(self, *args, qconfig=None, **kwargs):
        self._FLOAT_MODULE.__init__(self, *args, **kwargs)
        self._observe_weight(qconfig)

    def forward(self, input):
        return self._conv_forward(input, self.weight_fake_quant(self.weight), self.bias)

    @staticmethod
    def _arguments(mod):
        return (
            *(mod.in_channels, mod.out_channels, mod.kernel_size, mod.stride, mod.padding, mod.dilation, mod.groups),
            *(mod.bias is not None, mod.padding_mode),
        )

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The layer with the parameters and the ``qconfig`` of a float one."""
        made = cls(*cls._arguments(mod), qconfig=cls._configuration(mod))
        return take(made, mod, "weight", "bias")

    def to_float(self):
        """The float layer with these parameters."""
        return take(self._FLOAT_MODULE(*self._arguments(self)), self, "weight", "bias")


class Conv1d(_ConvNd, nn.Conv1d):
    """A convolution with ``weight_fake_quant(weight)``."""

    _FLOAT_MODULE = nn.Conv1d


class Conv2d(_ConvNd, nn.Conv2d):
    """A convolution with ``weight_fake_quant(weight)``."""

    _FLOAT_MODULE = nn.Conv2d


class Conv3d(_ConvNd, nn.Conv3d):
    """A convolution with ``weight_fake_quant(weight)``."""

    _FLOAT_MODULE = nn.Conv3d
