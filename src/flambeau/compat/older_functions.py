"""Functions at the top level that newer names have replaced: in-place draws, convolutions of sequences, norms but for a dimension."""

from __future__ import annotations

from ..core.bindings import function
from ..core.operator import namespace

__all__ = [
    "alpha_dropout_",
    "conv_tbc",
    "detach_",
    "dropout_",
    "embedding_renorm_",
    "feature_alpha_dropout_",
    "feature_dropout_",
    "native_channel_shuffle",
    "norm_except_dim",
    "rrelu_",
]

aten = namespace("aten")


def detach_(input):
    """``input`` without its history, in place. RuntimeError for a view."""
    return input.detach_()


def _draw(name: str):
    plain = function(name)

    def in_place(input, p, train):
        return input.copy_(plain(input, p, train))

    in_place.__name__ = in_place.__qualname__ = f"{name}_"
    in_place.__doc__ = f"``{name}(input, p, train)``, in place."
    return in_place


dropout_, alpha_dropout_ = _draw("dropout"), _draw("alpha_dropout")
feature_dropout_, feature_alpha_dropout_ = _draw("feature_dropout"), _draw("feature_alpha_dropout")


def rrelu_(input, lower=0.125, upper=1 / 3, training=False, generator=None):
    """``rrelu`` in place: negative elements times a slope, drawn in training, else the middle of the interval."""
    return input.copy_(function("rrelu")(input, lower, upper, training, generator))


def native_channel_shuffle(input, groups: int):
    """``channel_shuffle``: channels of the groups alternate."""
    return aten.channel_shuffle.default(input, groups)


def norm_except_dim(v, pow: int = 2, dim: int = 0):
    """The norms of the slices along ``dim``, of the shape of ``v`` with 1 elsewhere; of all elements for -1."""
    if dim == -1:
        return v.norm(pow)
    return v.norm(pow, [d for d in range(v.ndim) if d != dim], keepdim=True)


def conv_tbc(input, weight, bias, pad: int = 0):
    """Convolution of sequences (time, batch, channels) with a weight (width, channels, filters); RuntimeError for other ranks."""
    if input.ndim != 3 or weight.ndim != 3 or bias.ndim != 1:
        raise RuntimeError(
            f"conv_tbc: input and weight must have 3 dimensions and bias 1, got {input.ndim}, {weight.ndim} and {bias.ndim}"
        )
    made = function("conv1d")(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad)
    return made.permute(2, 0, 1).contiguous()


def embedding_renorm_(weight, indices, max_norm: float, norm_type: float):
    """Rows of ``weight`` that ``indices`` name are scaled down to ``max_norm``, in place."""
    from ..nn.functions.normalization import renormed

    renormed(weight, indices, max_norm, norm_type)
    return weight
