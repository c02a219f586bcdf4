"""Batch and group normalization under ATen's own names, with the statistics among the results."""

from __future__ import annotations

import math

from ...base import dtypes
from ...core.declare import COMPLEX, composite, explicit
from ...core.operator import namespace
from ...core.promotion import check_parameters
from ..reductions.basic import as_dtype, widened

aten = namespace("aten")


def _channels(t, ndim):
    return aten.reshape.default(t, [1, t.shape[0], *[1] * (ndim - 2)])


def _in_memory_format(x):
    """Channels last stays so; anything else is made row-major."""
    channels_last = x.ndim in (4, 5) and aten.permute.default(x, [0, *range(2, x.ndim), 1]).is_contiguous()
    return x if channels_last else aten.contiguous.default(x)


def check_vectors(input, weight, bias, running_mean, running_var):
    """``weight`` and ``bias`` in one dimension; they come in any shape. RuntimeError unless each of the four holds a number for each channel, the
    statistics in one dimension."""
    given = {"weight": weight, "bias": bias, "running_mean": running_mean, "running_var": running_var}
    for name, t in given.items():
        if t is not None and t.numel() != input.shape[1]:
            raise RuntimeError(f"{name} should contain {input.shape[1]} elements not {t.numel()}")
        if t is not None and t.ndim != 1 and name.startswith("running"):
            raise RuntimeError(f"{name} should have one dimension, but has {t.ndim}")
    return (t if t is None or t.ndim == 1 else aten.reshape.default(t, [-1]) for t in (weight, bias))


def _but_channels(x):
    return [0, *range(2, x.ndim)]


def _moments(x):
    """Mean and biased variance of each channel (dimensions kept), and the deviations from the mean: in two passes."""
    mean = aten.mean.dim(x, _but_channels(x), True)
    centred = aten.sub.Tensor(x, mean)
    return mean, aten.mean.dim(aten.mul.Tensor(centred, centred), _but_channels(x), True), centred


def _affine(out, weight, bias):
    if weight is not None:
        out = aten.mul.Tensor(out, _channels(weight, out.ndim))
    return out if bias is None else aten.add.Tensor(out, _channels(bias, out.ndim))


def _moved(kept, new, momentum):
    return aten.lerp.Scalar(kept, as_dtype(kept.dtype, new), momentum)


def _kept_dtype(input, *beside):
    """The dtype of the statistics that are returned: float32 for a 16-bit input where a parameter or a running statistic is float32."""
    wide = any(t is not None and t.dtype is dtypes.float32 for t in beside)
    return dtypes.float32 if wide and input.dtype in (dtypes.float16, dtypes.bfloat16) else input.dtype


def _by_its_own(input, weight, bias, eps):
    """(result, mean, 1 / sqrt(variance + eps), variance), statistics of each channel of the input; 16-bit numbers in float32."""
    mean, var, centred = _moments(_in_memory_format(widened(input)))
    rstd = aten.rsqrt.default(aten.add.Tensor(var, eps))
    out = _affine(aten.mul.Tensor(centred, rstd), weight, bias)
    mean, rstd, var = (aten.reshape.default(t, [-1]) for t in (mean, rstd, var))
    return as_dtype(input.dtype, out), mean, rstd, var


def _by_given(input, weight, bias, mean, var, eps):
    rstd = aten.rsqrt.default(aten.add.Tensor(var, eps))
    centred = aten.sub.Tensor(input, _channels(mean, input.ndim))
    return _affine(aten.mul.Tensor(centred, _channels(rstd, input.ndim)), weight, bias)


def _unbiased(var, input):
    n = math.prod(input.shape[d] for d in _but_channels(input))
    return aten.mul.Tensor(var, n / max(n - 1, 1))


def _trained(input, weight, bias, running_mean, running_var, training, momentum, eps):
    weight, bias = check_vectors(input, weight, bias, running_mean, running_var)
    check_parameters(input, weight, bias)
    check_parameters(input, running_mean, running_var)
    if not training:
        # Statistics have no history.
        own = [aten.detach.default(t) if t.requires_grad else t for t in (running_mean, running_var)]
        return aten._native_batch_norm_legit_no_training.default(input, weight, bias, *own, momentum, eps)
    if running_mean is None or running_var is None:
        out, mean, rstd = aten._native_batch_norm_legit.no_stats(input, weight, bias, True, momentum, eps)
        if running_mean is not None or running_var is not None:
            moments = _moments(_in_memory_format(widened(aten.detach.default(input))))[:2]
            new_mean, var = (aten.reshape.default(t, [-1]) for t in moments)
        if running_mean is not None:
            aten.copy_.default(running_mean, _moved(running_mean, new_mean, momentum))
        if running_var is not None:
            aten.copy_.default(running_var, _moved(running_var, _unbiased(var, input), momentum))
        kept = _kept_dtype(input, weight, bias, running_mean, running_var)
        return out, as_dtype(kept, mean), as_dtype(kept, rstd)
    # Statistics have no history.
    own = [aten.detach.default(t) if t.requires_grad else t for t in (running_mean, running_var)]
    made = aten._native_batch_norm_legit_functional.default(input, weight, bias, *own, True, momentum, eps)
    for kept, new in zip(own, made[3:]):
        aten.copy_.default(kept, new)
    return made[:3]


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


@explicit(
    f"_native_batch_norm_legit.no_stats({_ARGS}bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
    images=(0, False, 1),
    refuse=COMPLEX,
    variants="function",
    has_out=False,
    tags=("out_copied",),
)
def _no_stats(input, weight, bias, training, momentum, eps):
    """Ioffe & Szegedy, arXiv:1502.03167: by the statistics of the input itself."""
    out, mean, rstd, _ = _by_its_own(input, weight, bias, eps)
    kept = _kept_dtype(input, weight, bias)
    return out, as_dtype(kept, mean), as_dtype(kept, rstd)


@explicit(
    f"_native_batch_norm_legit_functional({_ARGS}Tensor running_mean, Tensor running_var, bool training, float momentum, float eps) "
    "-> (Tensor, Tensor, Tensor, Tensor running_mean_out, Tensor running_var_out)",
    images=(0, False, 1),
    refuse=COMPLEX,
    variants="function",
    has_out=False,
)
def _functional(input, weight, bias, running_mean, running_var, training, momentum, eps):
    """The same and the running statistics after it, moved by ``momentum`` (the variance unbiased)."""
    if not training:
        made = _no_training.definition.fn(input, weight, bias, running_mean, running_var, momentum, eps)
        return *made, aten.clone.default(running_mean), aten.clone.default(running_var)
    out, mean, rstd, var = _by_its_own(input, weight, bias, eps)
    var = _unbiased(var, input)
    kept = _kept_dtype(input, weight, bias, running_mean, running_var)
    moved = _moved(running_mean, mean, momentum), _moved(running_var, var, momentum)
    return out, as_dtype(kept, mean), as_dtype(kept, rstd), *moved


@explicit(
    f"_native_batch_norm_legit_no_training({_ARGS}Tensor running_mean, Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
    images=(0, False, 1),
    refuse=COMPLEX,
    variants="",
    has_out=False,
    tags=("out_copied",),
)
def _no_training(input, weight, bias, running_mean, running_var, momentum, eps):
    """By given statistics; the last two results are empty."""
    x = _in_memory_format(widened(input))
    out = as_dtype(input.dtype, _by_given(x, weight, bias, running_mean, running_var, eps))
    kept = _kept_dtype(input, weight, bias, running_mean, running_var)
    return out, aten.new_empty.default(input, [0], dtype=kept), aten.new_empty.default(input, [0], dtype=kept)


@explicit(
    "native_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight, Tensor? running_mean, Tensor? running_var, Tensor? save_mean, "
    "Tensor? save_invstd, bool train, float eps, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    images=(1, False, 1),
    refuse=COMPLEX,
)
def native_batch_norm_backward(
    grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, output_mask
):
    """Two sums a channel, of the cotangent and of its product with what was normalised, tell all three cotangents."""
    kind, x, g = input.dtype, widened(input), widened(grad_out)
    if train:
        mean, rstd = save_mean, save_invstd
    else:
        mean, rstd = running_mean, aten.rsqrt.default(aten.add.Tensor(running_var, eps))
    n = math.prod(x.shape[d] for d in _but_channels(x))
    mean, rstd = (_channels(widened(t), x.ndim) for t in (mean, rstd))
    x, g = _in_memory_format(x), _in_memory_format(g)
    normed = aten.mul.Tensor(aten.sub.Tensor(x, mean), rstd)
    total = aten.sum.dim_IntList(g, _but_channels(x), True)
    along = aten.sum.dim_IntList(aten.mul.Tensor(g, normed), _but_channels(x), True)
    d_input = d_weight = d_bias = None
    if output_mask[0]:
        scale = rstd if weight is None else aten.mul.Tensor(rstd, _channels(widened(weight), x.ndim))
        if train:
            g = aten.sub.Tensor(g, aten.div.Tensor(total, n))
            g = aten.sub.Tensor(g, aten.mul.Tensor(normed, aten.div.Tensor(along, n)))
        d_input = as_dtype(kind, aten.mul.Tensor(g, scale))
    kind = kind if weight is None else weight.dtype
    if output_mask[1]:
        d_weight = as_dtype(kind, aten.reshape.default(along, [-1]))
    if output_mask[2]:
        d_bias = as_dtype(kind, aten.reshape.default(total, [-1]))
    return d_input, d_weight, d_bias


def _vjp(ct0, input, weight, bias, result1, result2, eps, mask, given=(None, None)):
    if given[0] is None and result1.dtype in (dtypes.float16, dtypes.bfloat16):
        # Rounded to 16 bits they are too coarse where the mean is many deviations from zero.
        _, result1, result2, _ = _by_its_own(input, None, None, eps)
    made = aten.native_batch_norm_backward.default(
        ct0, input, weight, *given, result1, result2, given[0] is None, eps, [bool(m) for m in mask]
    )
    return *made[:2], made[2] if made[2] is None else as_dtype(bias.dtype, made[2])


def _functional_vjp(ct0, input, weight, bias, training, result1, result2, result3, result4, eps, mask):
    # Without training the running statistics are results too, and nobody writes them.
    given = (None, None) if training else (result3, result4)
    return _vjp(ct0, input, weight, bias, result1, result2, eps, mask, given)


for _op in (_no_stats, _functional, _no_training):
    _op.override("parts", lambda *args: True)


_no_stats.derivative(
    (0,),
    input__weight__bias=lambda ct0, input, weight, bias, result1, result2, eps, mask: _vjp(
        ct0, input, weight, bias, result1, result2, eps, mask
    ),
)


_functional.derivative((0,), input__weight__bias=_functional_vjp)


_no_training.derivative(
    (0,),
    input__weight__bias=lambda ct0, input, weight, bias, running_mean, running_var, eps, mask: _vjp(
        ct0, input, weight, bias, None, None, eps, mask, (running_mean, running_var)
    ),
)


def _differentiable_backward(
    grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, output_mask
):
    """The backward for a second derivative: mean and deviation as functions of ``input`` again."""
    if train:
        mean, var, _ = _moments(widened(input))
        rstd = aten.rsqrt.default(aten.add.Tensor(var, eps))
        save_mean, save_invstd = (aten.reshape.default(t, [-1]) for t in (mean, rstd))
    return native_batch_norm_backward.definition.fn(
        grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, output_mask
    )


native_batch_norm_backward.override("autograd", _differentiable_backward)


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
    f"_batch_norm_no_update({_ARGS}Tensor? running_mean, Tensor? running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)",
    images=(0, False, 1),
    variants="function",
    has_out=False,
    tags=("out_copied",),
)
def _batch_norm_no_update(input, weight, bias, running_mean, running_var, momentum, eps):
    made = _trained(input, weight, bias, running_mean, running_var, False, momentum, eps)
    return *made, aten.new_empty.default(input, [0], dtype=dtypes.uint8)


@composite(
    f"native_group_norm({_ARGS}SymInt N, SymInt C, SymInt HxW, int group, float eps) -> (Tensor, Tensor, Tensor)",
    refuse=COMPLEX,
    variants="function",
    has_out=False,
)
def native_group_norm(input, weight, bias, N, C, HxW, group, eps):
    """Wu & He, arXiv:1803.08494. Mean and 1 / sqrt(variance + eps) are (N, group)."""
    if group <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {group}")
    check_parameters(input, weight, bias)
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
