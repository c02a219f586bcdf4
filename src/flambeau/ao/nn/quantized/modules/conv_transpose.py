"""Transposed convolutions on codes."""

from __future__ import annotations

import flambeau as torch
from flambeau import nn
from flambeau.core.operator import namespace

from .conv import _ConvNd, _spread
from .utils import observed_weight, output_qparams

__all__ = ["ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]

ops = namespace("quantized")


class _ConvTransposeNd(_ConvNd):
    """Codes (N, C, *sizes) to codes (N, O, *sizes) with ``scale`` and ``zero_point``; arguments as of ``nn.ConvTranspose2d``.

    Weights are qint8, (C, O / groups, *kernel), quantised as a whole or by dimension 1. ValueError for a padding mode but zeros."""

    _FLOAT_MODULE: type

    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=True, dilation=1,
        padding_mode="zeros", device=None, dtype=None,
    ):  # fmt: skip
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode)
        self.output_padding = _spread(output_padding, self._n)
        zeros = torch.zeros(in_channels, out_channels // groups, *self.kernel_size)
        self.set_weight_bias(torch.quantize_per_tensor(zeros, 1.0, 0, torch.qint8), self._bias)

    def _sizes(self) -> tuple:
        return tuple(map(list, (self.stride, self.padding, self.output_padding, self.dilation)))

    def forward(self, input):
        self._check_input(input)
        return ops._convolution_transpose.default(
            input, self._weight, self._bias, *self._sizes(), self.groups, self.scale, self.zero_point
        )

    def _get_name(self):
        return f"QuantizedConvTranspose{self._n}d"

    def extra_repr(self):
        text = super().extra_repr()
        if self.output_padding == (0,) * self._n:
            return text
        before, groups, after = text.partition(", groups=")
        before, bias, end = (before, "", "") if groups else before.partition(", bias=")
        return f"{before}, output_padding={self.output_padding}{groups}{after}{bias}{end}"

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """Of an observed layer. AssertionError for another class, and where the weight is observed by its input channels."""
        made = cls._with_weight_of(mod)
        made.scale, made.zero_point = output_qparams(mod)
        return made

    @classmethod
    def _with_weight_of(cls, mod):
        if type(mod) is not cls._FLOAT_MODULE:
            raise AssertionError(
                f"nnq.{cls.__name__}.from_float only works for {cls._FLOAT_MODULE.__name__}, got {type(mod).__name__}"
            )
        if getattr(mod, "qconfig", None) is None:
            raise AssertionError("Input float module must have qconfig defined.")
        weight = observed_weight(mod, mod.weight.float())
        if weight.qscheme() is torch.per_channel_affine and weight.q_per_channel_axis() != 1:
            raise AssertionError(f"Per channel weight observer is not supported yet for {cls._FLOAT_MODULE.__name__}.")
        made = cls(
            mod.in_channels, mod.out_channels, mod.kernel_size, mod.stride, mod.padding, mod.output_padding, mod.groups,
            mod.bias is not None, mod.dilation, mod.padding_mode,
        )  # fmt: skip
        made.set_weight_bias(weight, None if mod.bias is None else mod.bias.detach().float())
        return made


class ConvTranspose1d(_ConvTransposeNd):
    __doc__ = _ConvTransposeNd.__doc__
    _n, _FLOAT_MODULE = 1, nn.ConvTranspose1d


class ConvTranspose2d(_ConvTransposeNd):
    __doc__ = _ConvTransposeNd.__doc__
    _n, _FLOAT_MODULE = 2, nn.ConvTranspose2d


class ConvTranspose3d(_ConvTransposeNd):
    __doc__ = _ConvTransposeNd.__doc__
    _n, _FLOAT_MODULE = 3, nn.ConvTranspose3d
