"""Normalisation under ATen's own names, with the statistics among the results; forms that look at positions without bounds."""

from __future__ import annotations

import math

from ..base import dtypes
from ..core.declare import COMPLEX, composite, explicit
from ..core.operator import namespace

aten = namespace("aten")


def _channels(t, ndim):
    return aten.reshape.default(t, [1, t.shape[0], *[1] * (ndim - 2)])


def _normalised(input, weight, bias, mean, rstd):
    out = aten.mul.Tensor(aten.sub.Tensor(input, _channels(mean, input.ndim)), _channels(rstd, input.ndim))
    if weight is not None:
        out = aten.mul.Tensor(out, _channels(weight, input.ndim))
    return out if bias is None else aten.add.Tensor(out, _channels(bias, input.ndim))


def _moments(input, eps):
    """(mean, unbiased variance, 1 / sqrt(variance + eps)) of each channel."""
    dims = [0, *range(2, input.ndim)]
    n = math.prod(input.shape[d] for d in dims)
    var, mean = aten.var_mean.correction(input, dims, correction=0)
    return mean, aten.mul.Tensor(var, n / max(n - 1, 1)), aten.rsqrt.default(aten.add.Tensor(var, eps))


def _trained(input, weight, bias, running_mean, running_var, training, momentum, eps):
    if training:
        mean, unbiased, rstd = _moments(input, eps)
        for kept, new in ((running_mean, mean), (running_var, unbiased)):
            if kept is not None:
                kept = aten.detach.default(kept) if kept.requires_grad else kept  # statistics have no history
                aten.copy_.default(kept, aten.lerp.Scalar(kept, aten.detach.default(new), momentum))
        return _normalised(input, weight, bias, mean, rstd), aten.detach.default(mean), aten.detach.default(rstd)
    rstd = aten.rsqrt.default(aten.add.Tensor(running_var, eps))
    out = _normalised(input, weight, bias, running_mean, rstd)
    return out, aten.new_empty.default(input, [0]), aten.new_empty.default(input, [0])


_ARGS = "Tensor input, Tensor? weight, Tensor? bias, "
composite(
    f"native_batch_norm({_ARGS}Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
    refuse=COMPLEX,
    images=(0, False, 1),
    variants="function",
    has_out=False,
    tags=("out_copied",),
)(_trained)
composite(
    f"_native_batch_norm_legit({_ARGS}Tensor(a!) running_mean, Tensor(b!) running_var, bool training, float momentum, float eps) "
    "-> (Tensor, Tensor, Tensor)",
    images=(0, False, 1),
    variants="function",
    has_out=False,
    tags=("out_copied",),
)(_trained)
composite(
    f"_native_batch_norm_legit.no_stats({_ARGS}bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
    refuse=COMPLEX,
    images=(0, False, 1),
    variants="function",
    has_out=False,
    tags=("out_copied",),
)(lambda input, weight, bias, training, momentum, eps: _trained(input, weight, bias, None, None, True, momentum, eps))
composite(
    f"_native_batch_norm_legit_no_training({_ARGS}Tensor running_mean, Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
    refuse=COMPLEX,
    images=(0, False, 1),
    variants="",
    has_out=False,
    tags=("out_copied",),
)(lambda input, weight, bias, mean, var, momentum, eps: _trained(input, weight, bias, mean, var, False, momentum, eps))


@composite(
    f"_batch_norm_with_update({_ARGS}Tensor(a!) running_mean, Tensor(b!) running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)",
    images=(0, False, 1),
    variants="function",
    has_out=False,
    tags=("out_copied",),
)
def _batch_norm_with_update(input, weight, bias, running_mean, running_var, momentum, eps):
    out, mean, rstd = _trained(input, weight, bias, running_mean, running_var, True, momentum, eps)
    return out, mean, rstd, aten.new_empty.default(input, [0], dtype=dtypes.uint8)


@composite(
    f"native_group_norm({_ARGS}SymInt N, SymInt C, SymInt HxW, int group, float eps) -> (Tensor, Tensor, Tensor)",
    refuse=COMPLEX,
    variants="function",
    has_out=False,
)
def native_group_norm(input, weight, bias, N, C, HxW, group, eps):
    """Wu & He, arXiv:1803.08494. Mean and 1 / sqrt(variance + eps) are (N, group)."""
    x = aten.reshape.default(aten.contiguous.default(input), [N, group, C // group * HxW])
    var, mean = aten.var_mean.correction(x, [2], correction=0)
    rstd = aten.rsqrt.default(aten.add.Tensor(var, eps))
    out = aten.mul.Tensor(aten.sub.Tensor(x, aten.unsqueeze.default(mean, 2)), aten.unsqueeze.default(rstd, 2))
    out = aten.reshape.default(out, [N, C, HxW])
    if weight is not None:
        out = aten.mul.Tensor(out, aten.reshape.default(weight, [1, C, 1]))
    if bias is not None:
        out = aten.add.Tensor(out, aten.reshape.default(bias, [1, C, 1]))
    return aten.reshape.default(out, list(input.shape)), mean, rstd


# ---- indexing under a mask ---------------------------------------------------------------------------------------------------


def _inside(self, indices):
    """Indices clamped into the tensor."""
    return [
        None if i is None else aten.clamp.default(i, -self.shape[d], self.shape[d] - 1) for d, i in enumerate(indices)
    ]


@explicit(
    "_unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, Scalar fill) -> Tensor",
    variants="function",
    has_out=False,
)
def _unsafe_masked_index(self, mask, indices, fill):
    """``self[indices]`` where the mask holds, ``fill`` elsewhere; indices there may be out of bounds."""
    picked = aten.index.Tensor(self, _inside(self, indices))
    return aten.masked_fill.Scalar(picked, aten.logical_not.default(_led(mask, picked)), fill)


def _led(mask, picked):
    return (
        mask
        if mask.ndim == picked.ndim
        else aten.reshape.default(mask, [*mask.shape, *[1] * (picked.ndim - mask.ndim)])
    )


@explicit(
    "_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, Tensor?[] indices, Tensor values) -> Tensor",
    variants="function",
    has_out=False,
)
def _unsafe_masked_index_put_accumulate(self, mask, indices, values):
    kept = aten.masked_fill.Scalar(values, aten.logical_not.default(_led(mask, values)), 0)
    return aten.index_put.default(self, _inside(self, indices), kept, True)
