"""Blocks of images as columns and back (im2col, col2im), and what shuffles pixels and channels."""

from __future__ import annotations

import math

from ...base.memory_format import contiguous_format
from ...base.shapes import spread
from ...core.declare import composite
from ...core.operator import namespace

aten = namespace("aten")


def _blocks(size, kernel, dilation, padding, stride):
    for (height, width), what, key in (
        (kernel, "kernel size", "kernel"),
        (stride, "stride", "stride"),
        (dilation, "dilation", "dilation"),
    ):
        if height <= 0 or width <= 0:
            raise RuntimeError(
                f"{what} should be greater than zero, but got {key}_height: {height} {key}_width: {width}"
            )
    if min(padding) < 0:
        raise RuntimeError(f"padding should be non-negative, but got pad_height: {padding[0]} pad_width: {padding[1]}")
    return [(size[i] + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1) // stride[i] + 1 for i in range(2)]


@composite(
    "im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor", variants=""
)
def im2col(self, kernel_size, dilation, padding, stride):
    """(N, C, H, W) to (N, C * kh * kw, blocks)."""
    kernel, dilation, padding, stride = (spread(v, 2) for v in (kernel_size, dilation, padding, stride))
    if self.ndim not in (3, 4):
        raise RuntimeError(f"Expected 3D or 4D (batch mode) tensor for input, but got: {list(self.shape)}")
    x = aten.unsqueeze.default(self, 0) if self.ndim == 3 else self
    if 0 in x.shape[1:]:
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but got: "
            f"{list(self.shape)}"
        )
    counts = _blocks(list(x.shape[2:]), kernel, dilation, padding, stride)
    if any(c < 1 for c in counts):
        raise RuntimeError(
            f"Given input with spatial size {tuple(x.shape[2:])}, kernel_size={tuple(kernel)}, dilation={tuple(dilation)}, "
            f"padding={tuple(padding)}, calculated shape of the array of sliding blocks as {tuple(counts)}, but its components must be at least one."
        )
    if any(p != 0 for p in padding):
        x = aten.constant_pad_nd.default(x, [padding[1], padding[1], padding[0], padding[0]], 0)
    for i in range(2):
        x = aten.unfold.default(x, 2 + i, (kernel[i] - 1) * dilation[i] + 1, stride[i])
        if dilation[i] != 1:
            x = aten.slice.Tensor(x, x.ndim - 1, 0, None, dilation[i])
    n, c = x.shape[:2]
    x = aten.clone.default(aten.permute.default(x, [0, 1, 4, 5, 2, 3]), memory_format=contiguous_format)
    x = aten.reshape.default(x, [n, c * math.prod(kernel), math.prod(counts)])
    return aten.squeeze.dim(x, 0) if self.ndim == 3 else x


@composite(
    "col2im(Tensor self, SymInt[2] output_size, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor",
    variants="",
)
def col2im(self, output_size, kernel_size, dilation, padding, stride):
    """The transpose of im2col: overlapping blocks are added."""
    size, kernel, dilation, padding, stride = (
        spread(v, 2) for v in (output_size, kernel_size, dilation, padding, stride)
    )
    x = aten.unsqueeze.default(self, 0) if self.ndim == 2 else self
    counts = _blocks(size, kernel, dilation, padding, stride)
    if x.ndim != 3 or x.shape[1] % math.prod(kernel) or x.shape[2] != math.prod(counts):
        raise RuntimeError(
            f"Given output_size={tuple(size)}, kernel_size={tuple(kernel)}, dilation={tuple(dilation)}, padding={tuple(padding)}, "
            f"stride={tuple(stride)}, expected the size of input of {math.prod(counts)} blocks and a multiple of {math.prod(kernel)} channels, "
            f"but got input of size {list(self.shape)}"
        )
    n, c = x.shape[0], x.shape[1] // math.prod(kernel)
    padded = [size[i] + 2 * padding[i] for i in range(2)]
    rows = [
        aten.add.Tensor(
            aten.unsqueeze.default(aten.mul.Tensor(aten.arange.default(kernel[i], device=x.device), dilation[i]), 1),
            aten.mul.Tensor(aten.arange.default(counts[i], device=x.device), stride[i]),
        )
        for i in range(2)
    ]
    y = aten.reshape.default(rows[0], [kernel[0], 1, counts[0], 1])
    z = aten.reshape.default(rows[1], [1, kernel[1], 1, counts[1]])
    at = aten.reshape.default(aten.add.Tensor(aten.mul.Tensor(y, padded[1]), z), [-1])
    flat = aten.new_zeros.default(x, [n, c, padded[0] * padded[1]])
    flat = aten.index_add.default(flat, 2, at, aten.reshape.default(x, [n, c, math.prod(x.shape[1:]) // c if c else 0]))
    out = aten.reshape.default(flat, [n, c, *padded])
    for i in range(2):
        if padding[i] != 0:
            out = aten.slice.Tensor(out, 2 + i, padding[i], padding[i] + size[i])
    out = aten.clone.default(out, memory_format=contiguous_format)
    return aten.squeeze.dim(out, 0) if self.ndim == 2 else out


@composite("pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor", variants="function nn", images=0)
def pixel_unshuffle(self, downscale_factor):
    if self.ndim < 3:
        raise RuntimeError(
            f"pixel_unshuffle expects input to have at least 3 dimensions, but got input with {self.ndim} dimension(s)"
        )
    r, (c, h, w) = downscale_factor, self.shape[-3:]
    if r <= 0:
        raise RuntimeError(f"pixel_unshuffle expects a positive downscale_factor, but got {r}")
    for name, size in (("height", h), ("width", w)):
        if size % r:
            raise RuntimeError(
                f"pixel_unshuffle expects {name} to be divisible by downscale_factor, but input.size is {size} and factor {r}"
            )
    if 0 in self.shape:
        return aten.clone.default(self)  # as it is: PyTorch's rule
    b = self.ndim - 3
    x = aten.reshape.default(self, [*self.shape[:-3], c, h // r, r, w // r, r])
    x = aten.clone.default(
        aten.permute.default(x, [*range(b), b, b + 2, b + 4, b + 1, b + 3]), memory_format=contiguous_format
    )
    return aten._unsafe_view.default(x, [*self.shape[:-3], c * r * r, h // r, w // r])


@composite("channel_shuffle(Tensor self, SymInt groups) -> Tensor", variants="function nn", images=0)
def channel_shuffle(self, groups):
    if self.ndim < 3:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(self.shape)}")
    n, c = self.shape[:2]
    if groups <= 0 or c % groups:
        raise RuntimeError(f"Number of channels must be divisible by groups. Got {c} channels and {groups} groups.")
    x = aten.reshape.default(self, [n, groups, c // groups, *self.shape[2:]])
    x = aten.clone.default(aten.transpose.int(x, 1, 2), memory_format=contiguous_format)
    return aten._unsafe_view.default(x, list(self.shape))
