"""Pooling, padding and resizing of quantised images, by the classes of elements.py."""

from __future__ import annotations

from ...core.operator import namespace
from ...core.quantized import like, quantized_rule, whole
from .elements import computed, moved

aten = namespace("aten")

moved(
    aten.upsample_nearest1d.default, aten.upsample_nearest2d.default, aten.upsample_nearest3d.default,
    aten.reflection_pad1d.default, aten.reflection_pad2d.default, aten.replication_pad2d.default, aten.channel_shuffle.default,
    aten.pixel_shuffle.default, aten.pixel_unshuffle.default,
)  # fmt: skip
computed(
    aten._adaptive_avg_pool2d.default, aten._adaptive_avg_pool3d.default,
    aten.upsample_bilinear2d.default,
)  # fmt: skip


def _pooled(name: str):
    pool = getattr(aten, name).default

    @quantized_rule(pool)
    def run(self, *args):
        # NOTE: maxima of codes are codes of maxima; the kernels of pooling want floats, which hold every code of a byte.
        p = whole(name, self)
        made, places = pool(p.codes.float(), *args)
        return like(self, made.to(p.codes._dtype)), places

    return run


_pooled("max_pool2d_with_indices")
_pooled("max_pool3d_with_indices")
