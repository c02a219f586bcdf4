"""What layers need beside the common activations: further activations, kinds of dropout, folding, shuffling, normalisations, bags of embeddings."""

from __future__ import annotations

import math

from ...base.dtypes import float32, float64
from ...base.errors import OutOfBounds
from ...base.memory_format import contiguous_format
from ...base.shapes import spread
from ...core.declare import COMPLEX, INTEGERS, composite, pointwise
from ...core.operator import namespace

aten = namespace("aten")

# ---- activations -----------------------------------------------------------------------------------------------------------

SELU_ALPHA, SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


@pointwise("celu(Tensor self, Scalar alpha=1.0) -> Tensor", variants="nn function", promote="float", operands=("self",))
def celu(s, self, alpha):
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return s.where(s.gt(self, 0), self, s.mul(s.expm1(s.mul(self, 1 / alpha)), float(alpha)))


celu.derivative(self=lambda ct, self, alpha: aten.elu_backward.default(ct, alpha, 1.0, 1 / alpha, False, self))


@pointwise("selu(Tensor self) -> Tensor", variants="nn function", promote="float")
def selu(s, self):
    return s.where(s.gt(self, 0), s.mul(self, SELU_SCALE), s.mul(s.expm1(self), SELU_ALPHA * SELU_SCALE))


selu.derivative(self=lambda ct, self: aten.elu_backward.default(ct, SELU_ALPHA, SELU_SCALE, 1.0, False, self))


@pointwise(
    "hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor",
    refuse=(*INTEGERS, *COMPLEX),
    variants="nn function method",
    operands=("self",),
    inplace=False,
    out_rules="exact",
)
def hardshrink(s, self, lambd):
    return s.where(s.le(s.abs(self), lambd), 0.0, self)


@pointwise(
    "softshrink(Tensor self, Scalar lambd=0.5) -> Tensor",
    variants="nn",
    operands=("self",),
    inplace=False,
    out_rules="exact",
)
def softshrink(s, self, lambd):
    if lambd < 0:
        raise RuntimeError(f"lambda must be in range [0, the largest number of the input dtype], but found {lambd}")
    return s.where(
        s.gt(self, lambd),
        s.sub(self, lambd),
        s.where(s.lt(self, -lambd), s.add(self, lambd), s.where(s.le(s.abs(self), lambd), s.mul(self, 0.0), self)),
    )


@pointwise(
    "threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor",
    variants="function",
    operands=("self",),
    refuse=("bool",),
)
def threshold(s, self, threshold, value):
    return s.where(s.le(self, threshold), value, self)


@pointwise("_prelu_kernel(Tensor self, Tensor weight) -> Tensor", variants="", layout="self")
def _prelu_kernel(s, self, weight):
    return s.where(s.gt(self, 0.0), self, s.mul(weight, self))


@composite("prelu(Tensor self, Tensor weight) -> Tensor")
def prelu(self, weight):
    """The slope of negative values is learnt, one for all or one for each channel. He et al., arXiv:1502.01852."""
    if weight.numel() != 1:
        if self.ndim == 0:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = self.shape[1] if self.ndim > 1 else 1
        if weight.ndim > 1 and weight.numel() == channels:
            raise RuntimeError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.ndim}")
        if weight.numel() != channels:
            raise RuntimeError(
                f"Mismatch of parameter numbers and input channel size. Found parameter numbers = {weight.numel()} and channel size = {channels}."
            )
        weight = aten.reshape.default(weight, [1, -1, *[1] * (self.ndim - 2)] if self.ndim > 1 else [-1])
    else:
        weight = aten.reshape.default(weight, [1] * self.ndim)
    return aten._prelu_kernel.default(self, weight)


@composite("glu(Tensor self, int dim=-1) -> Tensor", refuse=COMPLEX, variants="nn")
def glu(self, dim):
    """Dauphin et al., arXiv:1612.08083: one half, gated by the other."""
    if self.ndim == 0:
        raise RuntimeError("glu does not support 0-dimensional tensors")
    if self.shape[dim] % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim % self.ndim} is size {self.shape[dim]}")
    half = self.shape[dim] // 2
    a, b = aten.narrow.default(self, dim, 0, half), aten.narrow.default(self, dim, half, half)
    return aten.mul.Tensor(a, aten.sigmoid.default(b))


@composite(
    "rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, Generator? generator=None) -> Tensor",
    refuse=INTEGERS,
    variants="function",
)
def rrelu(self, lower, upper, training, generator):
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    self = aten.contiguous.default(self)
    if not training:
        return aten.leaky_relu.default(self, (lower + upper) / 2)
    # One draw in double precision for each element that isn't positive, in order.
    below = aten.le.Scalar(self, 0)
    count = aten.sum.default(below).item()
    draws = aten.uniform_.default(aten.empty.memory_format([count], dtype=float64), lower, upper, generator=generator)
    slopes = aten.masked_scatter.default(
        aten.ones_like.default(self), below, aten._to_copy.default(draws, dtype=self.dtype)
    )
    return aten.mul.Tensor(self, slopes)


# ---- dropout ---------------------------------------------------------------------------------------------------------------


def _check_p(p):
    if not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p}")


def _kept(self, p, whole_features):
    """One where an element (or the feature map it is in) is kept."""
    shape = [*self.shape[:2], *[1] * (self.ndim - 2)] if whole_features else list(self.shape)
    # Out of place: vmap can then draw for each example where the examples share the input.
    return aten.bernoulli.p(aten.new_empty.default(self, shape), 1 - p)


def _alpha(self, kept, p):
    """Dropped elements take SELU's lowest value; an affine map keeps mean and variance. Klambauer et al., arXiv:1706.02515."""
    alpha = SELU_ALPHA * SELU_SCALE
    a = 1.0 / math.sqrt((alpha * alpha * p + 1) * (1 - p))
    shift = aten.mul.Tensor(aten.sub.Tensor(kept, 1), alpha * a)
    return aten.add.Tensor(aten.mul.Tensor(self, aten.mul.Tensor(kept, a)), aten.add.Tensor(shift, alpha * a * p))


def _check_features(input, p, train):
    if train and 0 < p < 1 and input.ndim < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")


@composite("alpha_dropout(Tensor input, float p, bool train) -> Tensor", variants="function")
def alpha_dropout(input, p, train):
    _check_p(p)
    if p == 0 or not train:
        return input
    return aten.mul.Tensor(input, 0.0) if p == 1 else _alpha(input, _kept(input, p, False), p)


@composite("feature_dropout(Tensor input, float p, bool train) -> Tensor", variants="function")
def feature_dropout(input, p, train):
    _check_p(p)
    _check_features(input, p, train)
    if p == 0 or not train:
        return input
    return (
        aten.mul.Tensor(input, 0.0) if p == 1 else aten.mul.Tensor(input, aten.div.Tensor(_kept(input, p, True), 1 - p))
    )


@composite("feature_alpha_dropout(Tensor input, float p, bool train) -> Tensor", variants="function")
def feature_alpha_dropout(input, p, train):
    _check_p(p)
    _check_features(input, p, train)
    if p == 0 or not train:
        return input
    return aten.mul.Tensor(input, 0.0) if p == 1 else _alpha(input, _kept(input, p, True), p)


# ---- folding and shuffling -------------------------------------------------------------------------------------------------


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


# ---- normalisation ---------------------------------------------------------------------------------------------------------


@composite(
    "instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool use_input_stats, "
    "float momentum, float eps, bool cudnn_enabled) -> Tensor",
    refuse=COMPLEX,
    variants="function",
)
def instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled):
    """Each channel of each sample by its own statistics. Ulyanov et al., arXiv:1607.08022."""
    n, c = input.shape[:2]

    def tiled(t):
        return None if t is None else aten.repeat.default(t, [n])

    mean, var = tiled(running_mean), tiled(running_var)
    x = aten.reshape.default(input, [1, n * c, *input.shape[2:]])
    out = aten.batch_norm.default(
        x, tiled(weight), tiled(bias), mean, var, use_input_stats, momentum, eps, cudnn_enabled
    )
    if use_input_stats:
        for kept, moved in ((running_mean, mean), (running_var, var)):
            if kept is not None:
                aten.copy_.default(kept, aten.mean.dim(aten.reshape.default(moved, [n, c]), [0]))
    return aten.reshape.default(out, list(input.shape))


# ---- bags of embeddings ----------------------------------------------------------------------------------------------------


@composite(
    "embedding_bag.padding_idx(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq, int mode, bool sparse, "
    "Tensor? per_sample_weights, bool include_last_offset, int? padding_idx) -> (Tensor, Tensor, Tensor, Tensor)",
    variants="function",
)
def embedding_bag(
    weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding_idx
):
    """Sum (mode 0), mean (1) or maximum (2) of the rows of each bag. Returns (bags, bag of each index, sizes of bags, winners)."""
    total, bags = indices.shape[0], offsets.shape[0] - (1 if include_last_offset else 0)
    if offsets.dtype.category != 1:
        raise RuntimeError(
            "Expected tensor for argument #2 'offsets' to have one of the following scalar types: Long, Int; "
            f"but got {offsets.dtype} instead"
        )
    # The first bag begins at 0, or an index has no bag; none begins behind the last index: a read that is checked, of the value itself.
    offsets = aten.gather.default(
        aten.arange.default(total + 1, dtype=offsets.dtype, device=offsets.device), 0, offsets
    )
    starts = aten.slice.Tensor(offsets, 0, 0, bags)
    position = aten.arange.default(total, device=indices.device)
    if bags:
        begun = aten.le.Tensor(aten.unsqueeze.default(starts, 0), aten.unsqueeze.default(position, 1))
        bag = aten.sub.Tensor(aten.sum.dim_IntList(begun, [1]), 1)
    else:
        bag = position
    try:
        rows = aten.embedding.default(
            weight, indices, -1 if padding_idx is None else padding_idx, scale_grad_by_freq, sparse and mode != 2
        )
    except OutOfBounds:
        bad = next(i for i in indices.tolist() if not 0 <= i < weight.shape[0])
        raise RuntimeError(
            f"embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be {bad}"
        ) from None
    counts = aten.ones_like.default(indices)
    if padding_idx is not None:
        kept = aten.ne.Scalar(indices, padding_idx)
        counts = aten._to_copy.default(kept, dtype=indices.dtype)
    sizes = aten.index_add.default(aten.new_zeros.default(counts, [bags]), 0, bag, counts)
    if mode == 2:
        if per_sample_weights is not None:
            raise RuntimeError(
                "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum'"
            )
    if mode == 2 and total:
        member = aten.eq.Tensor(
            aten.unsqueeze.default(bag, 0), aten.unsqueeze.default(aten.arange.default(bags, device=bag.device), 1)
        )
        if padding_idx is not None:
            member = aten.logical_and.default(member, aten.unsqueeze.default(kept, 0))
        each = aten.where.ScalarOther(aten.unsqueeze.default(member, 2), aten.unsqueeze.default(rows, 0), -math.inf)
        values, where = aten.max.dim(each, 1)
        empty = aten.unsqueeze.default(aten.eq.Scalar(sizes, 0), 1)
        return aten.where.ScalarSelf(empty, 0.0, values), bag, sizes, where
    if per_sample_weights is not None:
        if per_sample_weights.dtype is not weight.dtype:
            raise RuntimeError(
                f"embedding_bag: expected 'weight' and 'per_sample_weights' to have the same type as each other, but got {weight.dtype} and "
                f"{per_sample_weights.dtype}"
            )
        rows = aten.mul.Tensor(rows, aten.unsqueeze.default(per_sample_weights, 1))
    if padding_idx is not None:
        rows = aten.where.ScalarOther(aten.unsqueeze.default(kept, 1), rows, 0.0)
    if weight.dtype.itemsize == 2:
        # Added up in single precision and rounded once, as in PyTorch.
        rows = aten._to_copy.default(rows, dtype=float32)
    out = aten.index_add.default(aten.new_zeros.default(rows, [bags, weight.shape[1]]), 0, bag, rows)
    if mode == 1:
        divisor = aten._to_copy.default(aten.clamp_min.default(sizes, 1), dtype=out.dtype)
        out = aten.div.Tensor(out, aten.unsqueeze.default(divisor, 1))
    out = out if out.dtype is weight.dtype else aten._to_copy.default(out, dtype=weight.dtype)
    winners = aten.new_zeros.default(bag, [bags, weight.shape[1]]) if mode == 2 else sizes
    return out, bag, sizes, winners
