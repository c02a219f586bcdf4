"""Layers that move channels into space and back."""

from __future__ import annotations

from flambeau.nn import functional as F
from flambeau.nn.modules._made import layer

__all__ = [
    "PixelShuffle",
    "PixelUnshuffle",
]

PixelShuffle = layer("PixelShuffle", lambda input, upscale_factor: F.pixel_shuffle(input, upscale_factor), "upscale_factor",
                     """(*, C r^2, H, W) to (*, C, H r, W r). Shi et al., arXiv:1609.05158.

    >>> torch.nn.PixelShuffle(2)(torch.ones(1, 8, 3, 3)).shape
    torch.Size([1, 2, 6, 6])
    """)  # fmt: skip


PixelUnshuffle = layer("PixelUnshuffle", lambda input, downscale_factor: F.pixel_unshuffle(input, downscale_factor), "downscale_factor",
                       "The reverse of PixelShuffle.")  # fmt: skip
