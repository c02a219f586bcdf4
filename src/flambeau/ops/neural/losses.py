"""The losses beside cross-entropy and squares. ``reduction``: 0 none, 1 mean, 2 sum."""

from __future__ import annotations

import math

from ...base.dtypes import int64
from ...core.declare import COMPLEX, composite
from ...core.operator import namespace
from ..reductions.basic import as_written

aten = namespace("aten")


def _reduced(loss, reduction):
    return loss if reduction == 0 else aten.mean.default(loss) if reduction == 1 else aten.sum.default(loss)


def _positive_part(x):
    return aten.clamp_min.default(x, 0)


@composite(
    "kl_div(Tensor self, Tensor target, int reduction=1, *, bool log_target=False) -> Tensor",
    refuse=COMPLEX,
    variants="function",
)
def kl_div(self, target, reduction, log_target):
    if log_target:
        loss = aten.mul.Tensor(aten.exp.default(target), aten.sub.Tensor(target, self))
    else:
        likelihood = aten.mul.Tensor(target, self)
        loss = aten.sub.Tensor(aten.xlogy.Tensor(target, target), likelihood)
    return _reduced(loss, reduction)


@composite(
    "poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, int reduction) -> Tensor",
    variants="function",
)
def poisson_nll_loss(input, target, log_input, full, eps, reduction):
    if log_input:
        likelihood = aten.mul.Tensor(target, input)
        loss = aten.sub.Tensor(aten.exp.default(input), likelihood)
    else:
        loss = aten.sub.Tensor(input, aten.mul.Tensor(target, aten.log.default(aten.add.Tensor(input, eps))))
    if full:
        stirling = aten.sub.Tensor(aten.mul.Tensor(target, aten.log.default(target)), target)
        stirling = aten.add.Tensor(
            stirling, aten.mul.Tensor(aten.log.default(aten.mul.Tensor(target, 2 * math.pi)), 0.5)
        )
        loss = aten.add.Tensor(loss, aten.masked_fill.Scalar(stirling, aten.le.Scalar(target, 1), 0))
    return _reduced(loss, reduction)


@composite("soft_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", variants="")
def soft_margin_loss(self, target, reduction):
    z = as_written(self, aten.neg.default(aten.mul.Tensor(target, self)))
    return _reduced(aten.log1p.default(aten.exp.default(z)), reduction)


@composite(
    "hinge_embedding_loss(Tensor self, Tensor target, float margin=1.0, int reduction=1) -> Tensor", variants="function"
)
def hinge_embedding_loss(self, target, margin, reduction):
    zero = aten.zeros_like.default(self)
    far = aten.where.self(aten.ne.Scalar(target, 1), _positive_part(aten.rsub.Scalar(self, margin)), zero)
    near = aten.where.self(aten.ne.Scalar(target, -1), self, zero)
    return _reduced(aten.add.Tensor(far, near), reduction)


@composite(
    "margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=1) -> Tensor",
    variants="function",
)
def margin_ranking_loss(input1, input2, target, margin, reduction):
    apart = aten.sub.Tensor(input1, input2)
    z = aten.mul.Tensor(aten.neg.default(target), apart)
    return _reduced(_positive_part(aten.add.Scalar(z, margin)), reduction)


@composite(
    "cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=1) -> Tensor",
    variants="function",
)
def cosine_embedding_loss(input1, input2, target, margin, reduction):
    if target.ndim not in (0, 1) or input1.ndim != target.ndim + 1 or input1.shape != input2.shape:
        raise RuntimeError(
            f"{target.ndim}D target tensor expects {target.ndim + 1}D input tensors, but found inputs with sizes {list(input1.shape)} and "
            f"{list(input2.shape)}."
        )
    last = input1.ndim - 1
    eps = 1e-12
    product = aten.sum.dim_IntList(aten.mul.Tensor(input1, input2), [last])
    squares = [aten.add.Tensor(aten.sum.dim_IntList(aten.mul.Tensor(t, t), [last]), eps) for t in (input1, input2)]
    cosine = aten.div.Tensor(product, aten.sqrt.default(aten.mul.Tensor(*squares)))
    zero = aten.zeros_like.default(cosine)
    near = aten.where.self(aten.eq.Scalar(target, 1), aten.rsub.Scalar(cosine, 1), zero)
    far = aten.where.self(aten.eq.Scalar(target, -1), _positive_part(aten.sub.Tensor(cosine, margin)), zero)
    return _reduced(aten.add.Tensor(near, far), reduction)


@composite(
    "pairwise_distance(Tensor x1, Tensor x2, float p=2, float eps=1e-06, bool keepdim=False) -> Tensor",
    variants="function",
)
def pairwise_distance(x1, x2, p, eps, keepdim):
    return aten.norm.ScalarOpt_dim(aten.add.Scalar(aten.sub.Tensor(x1, x2), eps), p, [-1], keepdim)


@composite(
    "triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, float p=2, float eps=1e-06, bool swap=False, "
    "int reduction=1) -> Tensor",
    variants="function",
)
def triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction):
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError(
            f"The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: anchor {anchor.ndim}D, "
            f"positive {positive.ndim}D, and negative {negative.ndim}D inputs"
        )
    near = aten.pairwise_distance.default(anchor, positive, p, eps)
    far = aten.pairwise_distance.default(anchor, negative, p, eps)
    if swap:
        far = aten.minimum.default(far, aten.pairwise_distance.default(positive, negative, p, eps))
    return _reduced(_positive_part(aten.sub.Tensor(aten.add.Scalar(near, margin), far)), reduction)


def _check_rows(self, target):
    if self.ndim > 2 or (self.ndim and self.shape[-1] == 0):
        raise RuntimeError(
            f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(self.shape)}"
        )


def _check_labels(target):
    if target.dtype is not int64:
        raise RuntimeError(f"expected scalar type Long but found {target.dtype.scalar_type}")


@composite(
    "multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? weight=None, int reduction=1) -> Tensor",
    variants="",
)
def multi_margin_loss(self, target, p, margin, weight, reduction):
    if p not in (1, 2):
        raise RuntimeError("only p == 1 and p == 2 supported")
    _check_rows(self, target)
    x = aten.reshape.default(self, [1, -1]) if self.ndim < 2 else self
    t = aten.reshape.default(target, [-1])
    if x.shape[0] != t.shape[0] or target.ndim > 1:
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch size). Expected target size "
            f"[{x.shape[0]}], but got {list(target.shape)}."
        )
    if weight is not None and (weight.ndim != 1 or weight.shape[0] != x.shape[1]):
        raise RuntimeError(f"inconsistent weight size, expected {x.shape[1]} but got {list(weight.shape)}")
    _check_labels(target)
    column = aten.unsqueeze.default(t, 1)
    z = _positive_part(aten.add.Tensor(aten.sub.Tensor(x, aten.gather.default(x, 1, column)), margin))
    if p == 2:
        z = aten.mul.Tensor(z, z)
    if weight is not None:
        z = aten.mul.Tensor(z, aten.unsqueeze.default(aten.index_select.default(weight, 0, t), 1))
    own = aten.eq.Tensor(aten.arange.default(x.shape[1], device=x.device), column)
    each = aten.div.Tensor(aten.sum.dim_IntList(aten.masked_fill.Scalar(z, own, 0), [1]), x.shape[1])
    return _reduced(aten.squeeze.dim(each, 0) if self.ndim < 2 and reduction == 0 else each, reduction)


@composite("multilabel_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", variants="")
def multilabel_margin_loss(self, target, reduction):
    _check_rows(self, target)
    if self.shape != target.shape and (self.ndim > 1 or self.numel() != target.numel()):
        raise RuntimeError(f"inconsistent target size: {list(target.shape)} for input of size: {list(self.shape)}")
    _check_labels(target)
    x, t = (aten.reshape.default(v, [1, -1]) if v.ndim < 2 else v for v in (self, target))
    n, c = x.shape
    # Labels count up to the first -1.
    valid = aten.eq.Scalar(aten.cumsum.default(aten.lt.Scalar(t, 0), 1), 0)
    # What is below -1 stays so and is refused by the read.
    safe = aten.add.Tensor(t, aten.eq.Scalar(t, -1))
    labelled = aten.scatter_add.default(
        aten.new_zeros.default(safe, [n, c]), 1, safe, aten._to_copy.default(valid, dtype=safe.dtype)
    )
    other = aten.eq.Scalar(labelled, 0)
    own = aten.gather.default(x, 1, safe)
    z = _positive_part(
        aten.add.Tensor(aten.sub.Tensor(aten.unsqueeze.default(x, 1), aten.unsqueeze.default(own, 2)), 1)
    )
    counts = aten.logical_and.default(aten.unsqueeze.default(valid, 2), aten.unsqueeze.default(other, 1))
    each = aten.div.Tensor(aten.sum.dim_IntList(aten.where.ScalarOther(counts, z, 0.0), [1, 2]), c)
    return _reduced(aten.squeeze.dim(each, 0) if self.ndim == 1 and reduction == 0 else each, reduction)


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
    return _reduced(loss, reduction)


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
    lengths = [aten.reshape.default(t, [-1]).tolist() for t in (input_lengths, target_lengths)]
    return _ctc_checked(log_probs, targets, *lengths, blank, reduction, zero_infinity)


@composite("pdist(Tensor self, float p=2) -> Tensor", refuse=COMPLEX, variants="function")
def pdist(self, p):
    """Distances of all pairs of rows, in the order (0, 1), (0, 2), ..., (1, 2), ..."""
    if self.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {self.ndim}D")
    rows, columns = aten.triu_indices.default(self.shape[0], self.shape[0], 1).unbind(0)
    a, b = aten.index_select.default(self, 0, rows), aten.index_select.default(self, 0, columns)
    return aten.norm.ScalarOpt_dim(aten.sub.Tensor(a, b), p, [1])
