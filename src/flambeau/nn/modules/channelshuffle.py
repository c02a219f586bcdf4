"""A layer that shuffles groups of channels."""

from __future__ import annotations

from flambeau.nn import functional as F
from flambeau.nn.modules._made import layer

__all__ = [
    "ChannelShuffle",
]

ChannelShuffle = layer(
    "ChannelShuffle",
    lambda input, groups: F.channel_shuffle(input, groups),
    "groups",
    "Channels of the groups in turn.",
)
