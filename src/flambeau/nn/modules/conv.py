"""Convolutions over one, two and three spatial dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence

from flambeau.base.device import Device
from flambeau.base.dtypes import DType
from flambeau.core.bindings import function
from flambeau.core.tensor import Tensor
from flambeau.modules.module import Module
from flambeau.modules.parameter import Parameter
from flambeau.nn import functional as F
from flambeau.nn import init
from flambeau.nn.modules.lazy import LazyConvMixin, lazy_layer

__all__ = [
    "LazyConv1d",
    "LazyConv2d",
    "LazyConv3d",
    "LazyConvTranspose1d",
    "LazyConvTranspose2d",
    "LazyConvTranspose3d",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
]

empty = function("empty")


class _ConvNd(Module):
    """(N, in_channels, *) -> (N, out_channels, *): cross-correlation with zero padding."""

    spatial: int
    convolve: staticmethod

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Device | str | int | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        if padding_mode not in ("zeros", "reflect", "replicate", "circular"):
            raise ValueError(
                f"padding_mode must be one of 'zeros', 'reflect', 'replicate', 'circular', but got padding_mode='{padding_mode}'"
            )
        if isinstance(padding, str) and padding not in ("same", "valid"):
            raise ValueError(f"Invalid padding string {padding!r}, should be one of {{'same', 'valid'}}")
        if padding == "same" and any(s != 1 for s in self._each(stride)):
            raise ValueError("padding='same' is not supported for strided convolutions")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = self._each(kernel_size)
        self.stride = self._each(stride)
        self.padding = padding if isinstance(padding, str) else self._each(padding)
        self.dilation = self._each(dilation)
        self.groups = groups
        self.padding_mode = padding_mode
        self.transposed, self.output_padding = False, (0,) * self.spatial
        self._reversed_padding_repeated_twice = self._padding_pairs()
        self.weight = Parameter(empty(self._weight_shape(), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _each(self, value) -> tuple[int, ...]:
        return (value,) * self.spatial if isinstance(value, int) else tuple(value)

    def reset_parameters(self) -> None:
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def _weight_shape(self) -> tuple[int, ...]:
        return (self.out_channels, self.in_channels // self.groups, *self.kernel_size)

    def _padding_pairs(self) -> list[int]:
        """Padding as ``F.pad`` takes it: (before, after) of the last dimension first."""
        if self.padding == "valid":
            return [0, 0] * self.spatial
        if self.padding == "same":
            totals = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size)]
            return [n for t in reversed(totals) for n in (t // 2, t - t // 2)]
        return [n for p in reversed(self.padding) for n in (p, p)]

    def _conv_forward(self, input, weight, bias):
        if self.padding_mode != "zeros":
            padded = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            return self.convolve(padded, weight, bias, self.stride, (0,) * self.spatial, self.dilation, self.groups)
        return self.convolve(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        s = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if self.padding != (0,) * self.spatial:
            s += f", padding={self.padding}"
        if self.dilation != (1,) * self.spatial:
            s += f", dilation={self.dilation}"
        if self.output_padding != (0,) * self.spatial:
            s += f", output_padding={self.output_padding}"
        if self.groups != 1:
            s += f", groups={self.groups}"
        if self.bias is None:
            s += ", bias=False"
        if self.padding_mode != "zeros":
            s += f", padding_mode={self.padding_mode}"
        return s


class Conv1d(_ConvNd):
    """Cross-correlation of the input with ``out_channels`` kernels: (N, in_channels, L) or without N -> (N, out_channels, L').

    ``kernel_size``, ``stride`` (1), ``padding`` (0; or "valid", "same"), ``dilation`` (1): an int, or one for each spatial dimension.
    ``groups`` (1) splits
    the channels; ``padding_mode``: "zeros", "reflect", "replicate" or "circular". Weight (out_channels, in_channels / groups, kernel) and bias
    are drawn from
    U(-k, k), k = 1 / sqrt(in_channels / groups * kernel elements). RuntimeError for other dtypes or ranks.

    >>> torch.nn.Conv1d(3, 8, kernel_size=5, padding=2)(torch.ones(2, 3, 10)).shape
    torch.Size([2, 8, 10])
    """

    spatial = 1
    convolve = staticmethod(F.conv1d)


class Conv2d(_ConvNd):
    """Cross-correlation of the input with ``out_channels`` kernels: (N, in_channels, H, W) or without N -> (N, out_channels, H', W').

    ``kernel_size``, ``stride`` (1), ``padding`` (0; or "valid", "same"), ``dilation`` (1): an int, or one for each spatial dimension.
    ``groups`` (1) splits
    the channels; ``padding_mode``: "zeros", "reflect", "replicate" or "circular". Weight (out_channels, in_channels / groups, kernel, kernel)
    and bias are drawn from
    U(-k, k), k = 1 / sqrt(in_channels / groups * kernel elements). RuntimeError for other dtypes or ranks.

    >>> torch.nn.Conv2d(3, 8, kernel_size=3, stride=2, padding=1)(torch.ones(2, 3, 16, 16)).shape
    torch.Size([2, 8, 8, 8])
    """

    spatial = 2
    convolve = staticmethod(F.conv2d)


class Conv3d(_ConvNd):
    """Cross-correlation of the input with ``out_channels`` kernels: (N, in_channels, D, H, W) or without N -> (N, out_channels, D', H', W').

    ``kernel_size``, ``stride`` (1), ``padding`` (0; or "valid", "same"), ``dilation`` (1): an int, or one for each spatial dimension.
    ``groups`` (1) splits
    the channels; ``padding_mode``: "zeros", "reflect", "replicate" or "circular". Weight (out_channels, in_channels / groups, kernel, kernel,
    kernel) and bias are drawn from
    U(-k, k), k = 1 / sqrt(in_channels / groups * kernel elements). RuntimeError for other dtypes or ranks.

    >>> torch.nn.Conv3d(3, 8, kernel_size=3)(torch.ones(2, 3, 6, 6, 6)).shape
    torch.Size([2, 8, 4, 4, 4])
    """

    spatial = 3
    convolve = staticmethod(F.conv3d)


class _ConvTransposeNd(_ConvNd):
    """(N, in_channels, *) -> (N, out_channels, *): the transpose of a convolution with these options."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        output_padding: int | Sequence[int] = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: int | Sequence[int] = 1,
        padding_mode: str = "zeros",
        device: Device | str | int | None = None,
        dtype: DType | None = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, device, dtype
        )
        self.transposed, self.output_padding = True, self._each(output_padding)

    def _weight_shape(self) -> tuple[int, ...]:
        return (self.in_channels, self.out_channels // self.groups, *self.kernel_size)

    def _output_padding(self, input, output_size) -> tuple[int, ...]:
        """What ``output_size`` needs added at the end, or the layer's own."""
        if output_size is None:
            return self.output_padding
        n = self.spatial
        output_size = list(output_size)
        if len(output_size) == input.dim():
            output_size = output_size[-n:]
        if len(output_size) != n:
            raise ValueError(
                f"{type(self).__name__}: for {input.dim()}D input, output_size must have {n} or {input.dim()} elements (got {len(output_size)})"
            )
        least = [
            (input.size(input.dim() - n + d) - 1) * self.stride[d]
            - 2 * self.padding[d]
            + self.dilation[d] * (self.kernel_size[d] - 1)
            + 1
            for d in range(n)
        ]
        for d in range(n):
            if not least[d] <= output_size[d] <= least[d] + self.stride[d] - 1:
                raise ValueError(
                    f"requested an output size of {output_size}, but valid sizes range from {least} to "
                    f"{[m + s - 1 for m, s in zip(least, self.stride)]} (for an input of {list(input.shape[-n:])})"
                )
        return tuple(o - m for o, m in zip(output_size, least))

    def forward(self, input: Tensor, output_size: int | Sequence[int] | None = None) -> Tensor:
        extra = self._output_padding(input, output_size)
        return self.convolve(
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation
        )


class ConvTranspose1d(_ConvTransposeNd):
    """The transpose of a convolution, which is its gradient by the input: (N, in_channels, L) or without N -> (N, out_channels, L').

    ``output_padding`` (0) adds to one side of the result, whose size several inputs of a convolution share; ``forward(input, output_size)``
    chooses it.
    Other options are :class:`Conv1d`'s. The weight has the shape (in_channels, out_channels / groups, kernel).

    >>> torch.nn.ConvTranspose1d(8, 3, kernel_size=4, stride=2, padding=1)(torch.ones(2, 8, 5)).shape
    torch.Size([2, 3, 10])
    """

    spatial = 1
    convolve = staticmethod(F.conv_transpose1d)


class ConvTranspose2d(_ConvTransposeNd):
    """The transpose of a convolution, which is its gradient by the input: (N, in_channels, H, W) or without N -> (N, out_channels, H', W').

    ``output_padding`` (0) adds to one side of the result, whose size several inputs of a convolution share; ``forward(input, output_size)``
    chooses it.
    Other options are :class:`Conv2d`'s. The weight has the shape (in_channels, out_channels / groups, kernel, kernel).

    >>> torch.nn.ConvTranspose2d(8, 3, kernel_size=4, stride=2, padding=1)(torch.ones(2, 8, 8, 8)).shape
    torch.Size([2, 3, 16, 16])
    """

    spatial = 2
    convolve = staticmethod(F.conv_transpose2d)


class ConvTranspose3d(_ConvTransposeNd):
    """The transpose of a convolution, which is its gradient by the input: (N, in_channels, D, H, W) or without N -> (N, out_channels, D', H',
    W').

    ``output_padding`` (0) adds to one side of the result, whose size several inputs of a convolution share; ``forward(input, output_size)``
    chooses it.
    Other options are :class:`Conv3d`'s. The weight has the shape (in_channels, out_channels / groups, kernel, kernel, kernel).

    >>> torch.nn.ConvTranspose3d(8, 3, kernel_size=2, stride=2)(torch.ones(1, 8, 3, 3, 3)).shape
    torch.Size([1, 3, 6, 6, 6])
    """

    spatial = 3
    convolve = staticmethod(F.conv_transpose3d)


LazyConv1d = lazy_layer(LazyConvMixin, Conv1d, "input channels")
LazyConv2d = lazy_layer(LazyConvMixin, Conv2d, "input channels")
LazyConv3d = lazy_layer(LazyConvMixin, Conv3d, "input channels")
LazyConvTranspose1d = lazy_layer(LazyConvMixin, ConvTranspose1d, "input channels")
LazyConvTranspose2d = lazy_layer(LazyConvMixin, ConvTranspose2d, "input channels")
LazyConvTranspose3d = lazy_layer(LazyConvMixin, ConvTranspose3d, "input channels")
