"""Convolutions and transposed ones with weights of codes, on floats."""

from __future__ import annotations

from flambeau import nn
from flambeau.ao.nn import quantized as nnq
from flambeau.ao.nn.quantized.modules.utils import observed_weight
from flambeau.core.operator import namespace

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]

ops = namespace("quantized")


class _Dynamic:
    """Floats in and out; a scale for the whole of the input is chosen at each call. ``reduce_range`` takes seven bits of it."""

    _FLOAT_MODULE: type
    _n: int

    def _get_name(self):
        return f"Dynamic{super()._get_name()}"

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """Of a float layer with a ``qconfig``. AssertionError for another class."""
        return cls._with_weight_of(mod)


class _Conv(_Dynamic):
    def forward(self, input, reduce_range=True):
        input, padding = self._padded(input)
        return ops._convolution_dynamic.default(
            input, self._weight, self._bias, list(self.stride), padding, [0] * self._n, list(self.dilation), self.groups, False,
            reduce_range,
        )  # fmt: skip

    @classmethod
    def _with_weight_of(cls, mod):
        if type(mod) is not cls._FLOAT_MODULE:
            raise AssertionError(
                f"nnqd.{cls.__name__}.from_float only works for {cls._FLOAT_MODULE.__name__}, got {type(mod).__name__}"
            )
        made = cls(
            mod.in_channels, mod.out_channels, mod.kernel_size, mod.stride, mod.padding, mod.dilation, mod.groups, mod.bias is not None,
            mod.padding_mode,
        )  # fmt: skip
        bias = None if mod.bias is None else mod.bias.detach().float()
        made.set_weight_bias(observed_weight(mod, mod.weight.float()), bias)
        return made


class _ConvTranspose(_Dynamic):
    def forward(self, input, reduce_range=True):
        self._check_input(input)
        return ops._convolution_dynamic.default(
            input, self._weight, self._bias, *self._sizes(), self.groups, True, reduce_range
        )


class Conv1d(_Conv, nnq.Conv1d):
    __doc__ = _Dynamic.__doc__
    _FLOAT_MODULE = nn.Conv1d


class Conv2d(_Conv, nnq.Conv2d):
    __doc__ = _Dynamic.__doc__
    _FLOAT_MODULE = nn.Conv2d


class Conv3d(_Conv, nnq.Conv3d):
    __doc__ = _Dynamic.__doc__
    _FLOAT_MODULE = nn.Conv3d


class ConvTranspose1d(_ConvTranspose, nnq.ConvTranspose1d):
    __doc__ = _Dynamic.__doc__


class ConvTranspose2d(_ConvTranspose, nnq.ConvTranspose2d):
    __doc__ = _Dynamic.__doc__


class ConvTranspose3d(_ConvTranspose, nnq.ConvTranspose3d):
    __doc__ = _Dynamic.__doc__
