"""Layers that rearrange or resample: folding, shuffling, upsampling."""

from __future__ import annotations

from flambeau.modules.module import Module
from flambeau.nn import functional as F
from flambeau.nn.modules._made import layer

__all__ = [
    "ChannelShuffle",
    "Fold",
    "PixelShuffle",
    "PixelUnshuffle",
    "Unfold",
    "Upsample",
    "UpsamplingBilinear2d",
    "UpsamplingNearest2d",
]

Fold = layer(
    "Fold",
    F.fold,
    "output_size, kernel_size, dilation=1, padding=0, stride=1",
    "The sum of sliding blocks at their places.",
)
Unfold = layer("Unfold", F.unfold, "kernel_size, dilation=1, padding=0, stride=1", "Sliding blocks as columns.")
PixelShuffle = layer("PixelShuffle", lambda input, upscale_factor: F.pixel_shuffle(input, upscale_factor), "upscale_factor",
                     "(*, C r^2, H, W) to (*, C, H r, W r). Shi et al., arXiv:1609.05158.")  # fmt: skip
PixelUnshuffle = layer("PixelUnshuffle", lambda input, downscale_factor: F.pixel_unshuffle(input, downscale_factor), "downscale_factor",
                       "The reverse of PixelShuffle.")  # fmt: skip
ChannelShuffle = layer(
    "ChannelShuffle",
    lambda input, groups: F.channel_shuffle(input, groups),
    "groups",
    "Channels of the groups in turn.",
)


class Upsample(Module):
    """Resample (N, C, ...) to a size or by a factor."""

    def __init__(
        self, size=None, scale_factor=None, mode: str = "nearest", align_corners=None, recompute_scale_factor=None
    ):
        super().__init__()
        self.name = type(self).__name__
        self.size = size
        self.scale_factor = (
            tuple(map(float, scale_factor))
            if isinstance(scale_factor, tuple)
            else float(scale_factor)
            if scale_factor
            else None
        )
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input):
        return F.interpolate(
            input,
            self.size,
            self.scale_factor,
            self.mode,
            self.align_corners,
            recompute_scale_factor=self.recompute_scale_factor,
        )

    def extra_repr(self) -> str:
        what = f"scale_factor={self.scale_factor!r}" if self.scale_factor is not None else f"size={self.size!r}"
        return f"{what}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    def __init__(self, size=None, scale_factor=None):
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    def __init__(self, size=None, scale_factor=None):
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)
