"""Sliding blocks of images as columns, and back."""

from __future__ import annotations

from flambeau.nn import functional as F
from flambeau.nn.modules._made import layer

__all__ = [
    "Fold",
    "Unfold",
]

Fold = layer(
    "Fold",
    F.fold,
    "output_size, kernel_size, dilation=1, padding=0, stride=1",
    "The sum of sliding blocks at their places.",
)


Unfold = layer(
    "Unfold",
    F.unfold,
    "kernel_size, dilation=1, padding=0, stride=1",
    """Sliding blocks as columns.

    >>> torch.nn.Unfold(2)(torch.ones(1, 3, 4, 4)).shape
    torch.Size([1, 12, 9])
    """,
)
