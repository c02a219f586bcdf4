"""Convolutions on codes."""

from __future__ import annotations

import flambeau as torch
from flambeau.ao.nn import intrinsic as nni
from flambeau.core.operator import namespace
from flambeau.nn import functional as F

from .utils import WeightedQuantizedModule, observed_weight, output_qparams

__all__ = ["Conv1d", "Conv2d", "Conv3d"]

ops = namespace("quantized")


class _ConvNd(WeightedQuantizedModule):
    """Codes (N, C, *sizes) to codes (N, O, *sizes) with ``scale`` and ``zero_point``; arguments as of ``nn.Conv2d``. Weights are qint8."""

    _n: int
    _relu = False

    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True, padding_mode="zeros",
        device=None, dtype=None,
    ):  # fmt: skip
        super().__init__()
        n = self._n
        if padding_mode not in ("zeros", "reflect"):
            raise NotImplementedError(f"'padding_mode' {padding_mode} is not supported by quantized convolution")
        if in_channels % groups or out_channels % groups:
            raise ValueError("in_channels and out_channels must be divisible by groups")
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size, self.stride, self.dilation = (_spread(v, n) for v in (kernel_size, stride, dilation))
        self.padding = padding if isinstance(padding, str) else _spread(padding, n)
        self.padding_mode = padding_mode
        self.scale, self.zero_point = 1.0, 0
        zeros = torch.zeros(out_channels, in_channels // groups, *self.kernel_size)
        self.set_weight_bias(
            torch.quantize_per_tensor(zeros, 1.0, 0, torch.qint8), torch.zeros(out_channels) if bias else None
        )

    def set_weight_bias(self, w, b):
        """Take a weight of qint8 and a bias of floats, or None."""
        self._weight, self._bias = w, b

    def _weight_bias(self):
        return self._weight, self._bias

    def _check_input(self, input):
        if input.dim() != self._n + 2:
            raise ValueError(f"Input shape must be `(N, C, {', '.join('DHW'[3 - self._n :])})`!")

    def _padded(self, input):
        """(the input, the padding that is left to the convolution)."""
        self._check_input(input)
        padding = self._padding()
        if self.padding_mode == "zeros":
            return input, padding
        return F.pad(input, [p for p in reversed(padding) for _ in range(2)], self.padding_mode), [0] * self._n

    def forward(self, input):
        input, padding = self._padded(input)
        sizes = list(self.stride), padding, list(self.dilation)
        return ops._convolution.default(
            input, self._weight, self._bias, *sizes, self.groups, self.scale, self.zero_point, self._relu
        )

    def _padding(self) -> list[int]:
        if not isinstance(self.padding, str):
            return list(self.padding)
        if self.padding == "valid":
            return [0] * self._n
        reach = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size)]
        if any(r % 2 for r in reach):
            raise NotImplementedError(
                f"padding='same' of a quantised convolution with an even kernel {self.kernel_size}"
            )
        return [r // 2 for r in reach]

    def _get_name(self):
        return f"QuantizedConv{self._n}d"

    def extra_repr(self):
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        text += f", scale={self.scale}, zero_point={self.zero_point}"
        if self.padding != (0,) * self._n:
            text += f", padding={self.padding}"
        if self.dilation != (1,) * self._n:
            text += f", dilation={self.dilation}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        return text if self._bias is not None else f"{text}, bias=False"

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        destination[f"{prefix}weight"], destination[f"{prefix}bias"] = self._weight_bias()
        super()._save_to_state_dict(destination, prefix, keep_vars)

    def _load_from_state_dict(self, state_dict, prefix, *args):
        self.set_weight_bias(state_dict.pop(f"{prefix}weight"), state_dict.pop(f"{prefix}bias"))
        super()._load_from_state_dict(state_dict, prefix, *args)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """Of an observed layer, one with a ReLU, or one trained with fake quantisation; a batch norm is folded into the weight."""
        scale, zero_point = output_qparams(mod)
        conv = mod
        if type(mod) in (nni.ConvReLU1d, nni.ConvReLU2d, nni.ConvReLU3d):
            conv = mod[0]
            conv.qconfig = mod.qconfig
        weight, bias = conv.folded() if hasattr(conv, "folded") else (conv.weight, conv.bias)
        made = cls(
            *(
                conv.in_channels,
                conv.out_channels,
                conv.kernel_size,
                conv.stride,
                conv.padding,
                conv.dilation,
                conv.groups,
            ),
            *(bias is not None, conv.padding_mode),
        )
        made.set_weight_bias(observed_weight(conv, weight.float()), None if bias is None else bias.detach().float())
        made.scale, made.zero_point = scale, zero_point
        return made


def _spread(value, n: int) -> tuple:
    return (value,) * n if isinstance(value, int) else tuple(value)


class Conv1d(_ConvNd):
    __doc__ = _ConvNd.__doc__
    _n = 1


class Conv2d(_ConvNd):
    __doc__ = _ConvNd.__doc__
    _n = 2


class Conv3d(_ConvNd):
    __doc__ = _ConvNd.__doc__
    _n = 3
