"""Connectionist temporal classification (Graves et al., 2006)."""

from __future__ import annotations

import math

from ...base.dtypes import int64
from ...core.declare import composite
from ...core.operator import namespace
from .loss_reduction import reduced

aten = namespace("aten")


def _ctc(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity):
    """Loss of each sequence: forward algorithm of Graves et al. 2006 over the labels with blanks between, in logarithms."""
    steps, batch, _ = log_probs.shape
    longest = max(target_lengths) if len(target_lengths) else 0
    device = log_probs.device
    lengths = aten.scalar_tensor.default(0, dtype=int64) if not batch else _vector(target_lengths, device)
    if targets.ndim == 1:  # one after the other
        starts, at = [], 0
        for n in target_lengths:
            starts.append(at)
            at += n
        places = aten.add.Tensor(
            aten.unsqueeze.default(_vector(starts, device), 1), aten.arange.default(longest, device=device)
        )
        places = aten.clamp.default(places, 0, max(targets.shape[0] - 1, 0))
        labels = aten.reshape.default(
            aten.index_select.default(targets, 0, aten.reshape.default(places, [-1])), [batch, longest]
        )
    else:
        labels = aten.slice.Tensor(targets, 1, 0, longest)
    labels = aten._to_copy.default(labels, dtype=int64)
    inside = aten.lt.Tensor(aten.arange.default(longest, device=device), aten.unsqueeze.default(lengths, 1))
    labels = aten.where.ScalarOther(inside, labels, blank)
    blanks = aten.full_like.default(labels, blank)
    paths = aten.reshape.default(aten.stack.default([blanks, labels], 2), [batch, 2 * longest])
    paths = aten.constant_pad_nd.default(paths, [0, 1], blank)  # (batch, 2 * longest + 1)
    width = 2 * longest + 1
    before = aten.constant_pad_nd.default(aten.slice.Tensor(paths, 1, 0, max(width - 2, 0)), [min(2, width), 0], blank)
    skip = aten.logical_and.default(aten.ne.Scalar(paths, blank), aten.ne.Tensor(paths, before))
    lowest = -math.inf
    emit = aten.gather.default(
        log_probs, 2, aten.expand.default(aten.unsqueeze.default(paths, 0), [steps, batch, width])
    )
    position = aten.arange.default(width, device=device)
    alpha = aten.where.ScalarOther(aten.lt.Scalar(position, 2), aten.select.int(emit, 0, 0), lowest)
    ends = _vector(input_lengths, device)
    last = alpha
    rows = [alpha]
    for t in range(1, steps):
        one = aten.constant_pad_nd.default(aten.slice.Tensor(last, 1, 0, width - 1), [1, 0], lowest)
        two = aten.constant_pad_nd.default(aten.slice.Tensor(last, 1, 0, max(width - 2, 0)), [min(2, width), 0], lowest)
        two = aten.where.ScalarOther(skip, two, lowest)
        last = aten.add.Tensor(_logsumexp3(last, one, two), aten.select.int(emit, 0, t))
        rows.append(last)
    table = aten.stack.default(rows, 0)
    row = aten.reshape.default(aten.clamp_min.default(aten.sub.Tensor(ends, 1), 0), [1, batch, 1])
    final = aten.squeeze.dim(aten.gather.default(table, 0, aten.expand.default(row, [1, batch, width])), 0)
    end = aten.unsqueeze.default(aten.mul.Tensor(lengths, 2), 1)
    a = aten.squeeze.dim(aten.gather.default(final, 1, end), 1)
    b = aten.squeeze.dim(aten.gather.default(final, 1, aten.clamp_min.default(aten.sub.Tensor(end, 1), 0)), 1)
    b = aten.where.ScalarOther(aten.gt.Scalar(lengths, 0), b, lowest)
    loss = aten.neg.default(_logsumexp3(a, b, aten.full_like.default(a, lowest)))
    if 0 in input_lengths:
        # Without steps there is one path for an empty target and none for another.
        none = aten.where.self(
            aten.eq.Scalar(lengths, 0), aten.zeros_like.default(loss), aten.full_like.default(loss, math.inf)
        )
        loss = aten.where.self(aten.eq.Scalar(ends, 0), none, loss)
    if zero_infinity:
        loss = aten.where.ScalarOther(aten.ne.Scalar(loss, math.inf), loss, 0.0)
    return loss


def _logsumexp3(a, b, c):
    """log(e^a + e^b + e^c), -inf where all are; its derivative there is zero."""
    top = aten.maximum.default(aten.maximum.default(a, b), c)
    dead = aten.eq.Scalar(top, -math.inf)
    safe = aten.where.ScalarSelf(dead, 0.0, aten.detach.default(top))
    parts = [
        aten.exp.default(aten.sub.Tensor(aten.where.ScalarSelf(aten.eq.Scalar(x, -math.inf), -1e30, x), safe))
        for x in (a, b, c)
    ]
    total = aten.add.Tensor(aten.add.Tensor(parts[0], parts[1]), parts[2])
    total = aten.where.ScalarSelf(dead, 1.0, total)
    return aten.where.ScalarSelf(dead, -math.inf, aten.add.Tensor(aten.log.default(total), safe))


def _vector(values, device):
    parts = [aten.full.default([1], v, dtype=int64, device=device) for v in values]
    return aten.cat.default(parts, 0) if parts else aten.zeros.default([0], dtype=int64, device=device)


def _ctc_reduced(loss, target_lengths, reduction):
    if reduction == 1:
        sizes = _vector([max(n, 1) for n in target_lengths], loss.device)
        return aten.mean.default(aten.div.Tensor(loss, aten._to_copy.default(sizes, dtype=loss.dtype)))
    return reduced(loss, reduction)


def _ctc_checked(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity):
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
    loss = _ctc(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity)
    out = _ctc_reduced(loss, target_lengths, reduction)
    return aten.squeeze.dim(out, 0) if single and reduction == 0 else out


@composite(
    "ctc_loss.IntList(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank=0, int reduction=1, "
    "bool zero_infinity=False) -> Tensor",
    variants="function",
)
def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity):
    return _ctc_checked(log_probs, targets, list(input_lengths), list(target_lengths), blank, reduction, zero_infinity)


@composite(
    "ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank=0, int reduction=1, "
    "bool zero_infinity=False) -> Tensor",
    variants="function",
)
def ctc_loss_tensor(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity):
    for name, t in (("input_lengths", input_lengths), ("target_lengths", target_lengths)):
        if t.dtype.is_floating_point or t.dtype.is_complex:
            raise RuntimeError(f"{name} must be integral")
    lengths = [aten.reshape.default(t, [-1]).tolist() for t in (input_lengths, target_lengths)]
    return _ctc_checked(log_probs, targets, *lengths, blank, reduction, zero_infinity)
