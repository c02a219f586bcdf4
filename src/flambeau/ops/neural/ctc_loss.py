"""Connectionist temporal classification (Graves et al., 2006)."""

from __future__ import annotations

import numpy as np

from ...base import kernels
from ...base.dtypes import float32, float64, int64
from ...base.errors import OutOfBounds
from ...base.shapes import contiguous_strides
from ...core.declare import COMPLEX, INTEGERS, composite, extern
from ...core.definition import TensorMeta
from ...core.operator import namespace
from ...core.promotion import _scalar_name
from .loss_reduction import reduced

aten = namespace("aten")


# The kernels compute in float32 and float64.
_REFUSED = (*COMPLEX, *INTEGERS, "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")


def _checked_classes(labels, count) -> None:
    """OutOfBounds for a label that is no class."""
    outside = labels[(labels < 0) | (labels >= count)]
    if outside.size:
        raise OutOfBounds(
            f"ctc_loss: index {outside[0]} is out of bounds for dimension with size {count}", int(outside[0])
        )


def _check_sizes(log_probs, targets, input_lengths, target_lengths, grad=None) -> None:
    """RuntimeError unless the kernel, which goes by the sizes of ``log_probs``, finds all that it reads."""
    if len(log_probs.shape) != 3:
        raise RuntimeError(f"ctc_loss: expected log_probs of 3 dimensions, but got size {list(log_probs.shape)}")
    batch = log_probs.shape[1]
    for name, x in (("input_lengths", input_lengths), ("target_lengths", target_lengths), ("grad", grad)):
        if x is not None and tuple(x.shape) != (batch,):
            raise RuntimeError(f"ctc_loss: {name} must be of size [{batch}], but got size {list(x.shape)}")
    if len(targets.shape) not in (1, 2):
        raise RuntimeError(
            f"Expected 1 to 2 dimensions, but got {len(targets.shape)}-dimensional tensor for argument #2 'targets' "
            "(while checking arguments for ctc_loss)"
        )
    if len(targets.shape) == 2 and targets.shape[0] != batch:
        raise RuntimeError(
            f"Expected tensor to have size {batch} at dimension 0, but got size {targets.shape[0]} for argument #2 'targets' "
            "(while checking arguments for ctc_loss)"
        )


def _loss_meta(log_probs, targets, input_lengths, target_lengths, *rest):
    _check_sizes(log_probs, targets, input_lengths, target_lengths)
    return TensorMeta((log_probs.shape[1],), (1,), log_probs.dtype, log_probs.device)


def _gradient_meta(grad, log_probs, targets, input_lengths, target_lengths, *rest):
    _check_sizes(log_probs, targets, input_lengths, target_lengths, grad)
    shape = tuple(log_probs.shape)
    return TensorMeta(shape, contiguous_strides(shape), log_probs.dtype, log_probs.device)


def _run(kernel, made, log_probs, targets, lengths, cotangents=(), **numbers):
    given = [np.ascontiguousarray(x) for x in (*cotangents, log_probs)]
    labels = [np.ascontiguousarray(x, np.int64) for x in (targets, *lengths)]
    try:
        kernel((*given, *labels), [made], f64=log_probs.dtype == np.float64, **numbers)
    except IndexError:
        count = log_probs.shape[2]
        used = labels[0]
        if used.ndim == 2:
            used = used[np.arange(used.shape[1]) < labels[2][:, None]]
        _checked_classes(used, count)
    return made


@extern(
    "_ctc_each(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank, bool zero_infinity) -> Tensor",
    meta=_loss_meta,
    variants="",
    refuse=_REFUSED,
    places=("targets", "input_lengths", "target_lengths"),
)
def _ctc_each(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity):
    """The loss of each sequence."""
    _check_sizes(log_probs, targets, input_lengths, target_lengths)
    made = np.empty(log_probs.shape[1], log_probs.dtype)
    lengths = (input_lengths, target_lengths)
    return _run(kernels.ctc, made, log_probs, targets, lengths, blank=blank, zero_infinity=zero_infinity)


@extern(
    "_ctc_each_backward(Tensor grad, Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank) -> Tensor",
    meta=_gradient_meta,
    variants="",
    refuse=_REFUSED,
    places=("targets", "input_lengths", "target_lengths"),
)
def _ctc_each_backward(grad, log_probs, targets, input_lengths, target_lengths, blank):
    _check_sizes(log_probs, targets, input_lengths, target_lengths, grad)
    made = np.empty(log_probs.shape, log_probs.dtype)
    lengths = (input_lengths, target_lengths)
    return _run(kernels.ctc_backward, made, log_probs, targets, lengths, (grad,), blank=blank)


_ctc_each.derivative(
    log_probs=lambda ct, log_probs, targets, input_lengths, target_lengths, blank: aten._ctc_each_backward.default(
        ct, log_probs, targets, input_lengths, target_lengths, blank
    )
)


def _no_second_derivative(ct):
    raise NotImplementedError("the derivative for '_ctc_loss_backward: log_probs' is not implemented.")


_ctc_each_backward.derivative(
    log_probs=_no_second_derivative,
    grad=lambda ct, grad, log_probs, targets, input_lengths, target_lengths, blank: aten.sum.dim_IntList(
        aten.mul.Tensor(
            ct,
            aten._ctc_each_backward.default(
                aten.ones_like.default(grad), log_probs, targets, input_lengths, target_lengths, blank
            ),
        ),
        [0, 2],
    ),
)
_ctc_each.override(
    "lower",
    lambda h, val, log_probs, *parts: h.ctc(
        val, "ctc_loss", log_probs, parts[:3], parts[3], zero_infinity=bool(parts[4])
    ),
)
_ctc_each_backward.override(
    "lower",
    lambda h, val, grad, log_probs, *parts: h.ctc(val, "ctc_loss", log_probs, (grad, *parts[:3]), parts[3]),
)


def _vector(values, device):
    parts = [aten.full.default([1], v, dtype=int64, device=device) for v in values]
    return aten.cat.default(parts, 0) if parts else aten.zeros.default([0], dtype=int64, device=device)


def _ctc_reduced(loss, wanted, reduction):
    if reduction == 1:
        return aten.mean.default(aten.div.Tensor(loss, aten.clamp_min.default(wanted, 1)))
    return reduced(loss, reduction)


def _ctc_checked(log_probs, targets, lengths, blank, reduction, zero_infinity):
    """``lengths``: of the inputs and the targets, each as a list and as a tensor."""
    (input_lengths, given), (target_lengths, wanted) = lengths
    single = log_probs.ndim == 2
    if single:
        log_probs = aten.unsqueeze.default(log_probs, 1)
    if log_probs.ndim != 3:
        raise RuntimeError("ctc_loss: expected log_probs of 2 or 3 dimensions")
    steps, batch, classes = log_probs.shape
    if not 0 <= blank < classes:
        raise RuntimeError("blank must be in label range")
    if len(input_lengths) != batch or len(target_lengths) != batch:
        raise RuntimeError(f"input_lengths and target_lengths must be of size {batch}")
    for n in input_lengths:
        if n > steps or n < 0:
            raise RuntimeError(f"Expected input_lengths to have value at most {steps}, but got value {n}")
    if min(target_lengths, default=0) < 0:
        raise RuntimeError(f"Expected target_lengths to have value at least 0, but got value {min(target_lengths)}")
    if targets.ndim == 1 and targets.shape[0] != sum(target_lengths):
        raise RuntimeError(
            f"Expected tensor to have size {sum(target_lengths)} at dimension 0, but got size {targets.shape[0]} for argument #2 'targets'"
        )
    if targets.ndim == 2 and targets.shape[1] < max(target_lengths, default=0):
        raise RuntimeError(
            f"Expected tensor to have size at least {max(target_lengths)} at dimension 1, but got size {targets.shape[1]} "
            "for argument #2 'targets'"
        )
    kind = log_probs.dtype
    if not kind.is_floating_point:
        raise NotImplementedError(f"\"ctc_loss_cpu\" not implemented for '{_scalar_name(kind)}'")
    if kind not in (float32, float64):  # 16-bit ones are computed in float32
        log_probs = aten._to_copy.default(log_probs, dtype=float32)
    if targets.dtype is not int64:
        targets = aten._to_copy.default(targets, dtype=int64)
    if targets.ndim > 2:
        raise RuntimeError(
            f"Expected 1 to 2 dimensions, but got {targets.ndim}-dimensional tensor for argument #2 'targets' "
            "(while checking arguments for ctc_loss)"
        )
    if targets.ndim == 0:
        targets = aten.reshape.default(targets, [1])
    given, wanted = (
        t if t.device == log_probs.device else aten._to_copy.default(t, device=log_probs.device)
        for t in (given, wanted)
    )
    loss = aten._ctc_each.default(log_probs, targets, given, wanted, blank, zero_infinity)
    if loss.dtype is not kind:
        loss = aten._to_copy.default(loss, dtype=kind)
    out = _ctc_reduced(loss, wanted, reduction)
    return aten.squeeze.dim(out, 0) if single and reduction == 0 else out


@composite(
    "ctc_loss.IntList(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank=0, int reduction=1, "
    "bool zero_infinity=False) -> Tensor",
    variants="function",
)
def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity):
    lengths = [(list(n), _vector(n, log_probs.device)) for n in (input_lengths, target_lengths)]
    return _ctc_checked(log_probs, targets, lengths, blank, reduction, zero_infinity)


@composite(
    "ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank=0, int reduction=1, "
    "bool zero_infinity=False) -> Tensor",
    variants="function",
)
def ctc_loss_tensor(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity):
    for name, t in (("input_lengths", input_lengths), ("target_lengths", target_lengths)):
        if t.dtype.is_floating_point or t.dtype.is_complex:
            raise RuntimeError(f"{name} must be integral")
    lengths = [(t.tolist(), t) for t in (_line(input_lengths), _line(target_lengths))]
    return _ctc_checked(log_probs, targets, lengths, blank, reduction, zero_infinity)


def _line(t):
    """Lengths as a vector of int64."""
    if t.ndim != 1:
        t = aten.reshape.default(t, [-1])
    return t if t.dtype is int64 else aten._to_copy.default(t, dtype=int64)
