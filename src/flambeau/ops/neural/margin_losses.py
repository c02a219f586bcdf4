"""Losses with a margin: hinge, ranking, embedding, triplet, and over several labels."""

from __future__ import annotations

from ...base.dtypes import int64
from ...core.declare import composite, explicit
from ...core.operator import namespace
from ..reductions.basic import as_written
from .loss_reduction import reduced

aten = namespace("aten")


def _positive_part(x):
    return aten.clamp_min.default(x, 0)


@composite("soft_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", variants="")
def soft_margin_loss(self, target, reduction):
    if self.dtype.category < 2:
        raise RuntimeError(f"result type Float can't be cast to the desired output type {self.dtype.scalar_type}")
    z = as_written(self, aten.neg.default(aten.mul.Tensor(target, self)))
    return reduced(aten.log1p.default(aten.exp.default(z)), reduction)


@composite(
    "hinge_embedding_loss(Tensor self, Tensor target, float margin=1.0, int reduction=1) -> Tensor", variants="function"
)
def hinge_embedding_loss(self, target, margin, reduction):
    zero = aten.zeros_like.default(self)
    far = aten.where.self(aten.ne.Scalar(target, 1), _positive_part(aten.rsub.Scalar(self, margin)), zero)
    near = aten.where.self(aten.ne.Scalar(target, -1), self, zero)
    return reduced(aten.add.Tensor(far, near), reduction)


@composite(
    "margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=1) -> Tensor",
    variants="function",
)
def margin_ranking_loss(input1, input2, target, margin, reduction):
    apart = aten.sub.Tensor(input1, input2)
    z = aten.mul.Tensor(aten.neg.default(target), apart)
    return reduced(_positive_part(aten.add.Scalar(z, margin)), reduction)


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
    return reduced(aten.add.Tensor(near, far), reduction)


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
    return reduced(_positive_part(aten.sub.Tensor(aten.add.Scalar(near, margin), far)), reduction)


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
    z = _positive_part(aten.add.Tensor(x, aten.rsub.Scalar(aten.gather.default(x, 1, column), margin)))
    if p == 2:
        z = aten.mul.Tensor(z, z)
    if weight is not None:
        z = aten.mul.Tensor(z, aten.unsqueeze.default(aten.index_select.default(weight, 0, t), 1))
    each = aten.div.Tensor(aten.sum.dim_IntList(aten.scatter.value(z, 1, column, 0), [1]), x.shape[1])
    return reduced(aten.squeeze.dim(each, 0) if self.ndim < 2 and reduction == 0 else each, reduction)


def _check_margins(x, target, grad=None) -> None:
    """RuntimeError unless the kernel, which goes by the sizes of ``x``, finds all that it reads."""
    if len(x.shape) != 2 or tuple(target.shape) != tuple(x.shape):
        raise RuntimeError(f"inconsistent target size: {list(target.shape)} for input of size: {list(x.shape)}")
    if grad is not None and tuple(grad.shape) != tuple(x.shape[:1]):
        raise RuntimeError(f"inconsistent gradient size: {list(grad.shape)} for input of size: {list(x.shape)}")
    _check_labels(target)


def _margins_by_kernel(h, self, target, grad=None):
    _check_margins(self, target, grad)
    return h.label_margins(self, target, grad)


def _labels(x, t):
    """Whether each label counts, where it is, which classes are none, and the margins of all classes: (rows, label, class)."""
    # Labels count up to the first -1.
    valid = aten.eq.Scalar(aten.cumsum.default(aten.lt.Scalar(t, 0), 1), 0)
    # What is below -1 stays so and is refused by the read.
    safe = aten.add.Tensor(t, aten.eq.Scalar(t, -1))
    labelled = aten.scatter_add.default(
        aten.new_zeros.default(safe, list(x.shape)), 1, safe, aten._to_copy.default(valid, dtype=safe.dtype)
    )
    own = aten.gather.default(x, 1, safe)
    z = aten.add.Tensor(aten.sub.Tensor(aten.unsqueeze.default(x, 1), aten.unsqueeze.default(own, 2)), 1)
    other = aten.eq.Scalar(labelled, 0)
    return safe, z, aten.logical_and.default(aten.unsqueeze.default(valid, 2), aten.unsqueeze.default(other, 1))


@explicit("_label_margins(Tensor self, Tensor target) -> Tensor", has_out=False)
def _label_margins(self, target):
    """The mean margin of each row's labels over its other classes: eager calls have a kernel."""
    _check_margins(self, target)
    _, z, counts = _labels(self, target)
    return aten.div.Tensor(
        aten.sum.dim_IntList(aten.where.ScalarOther(counts, _positive_part(z), 0.0), [1, 2]), self.shape[1]
    )


@explicit("_label_margins_backward(Tensor grad_output, Tensor self, Tensor target) -> Tensor", has_out=False)
def _label_margins_backward(grad_output, self, target):
    _check_margins(self, target, grad_output)
    safe, z, counts = _labels(self, target)
    slope = aten.reshape.default(aten.div.Tensor(grad_output, self.shape[1]), [-1, 1, 1])
    each = aten.where.ScalarOther(aten.logical_and.default(counts, aten.ge.Scalar(z, 0)), slope, 0.0)
    of_labels, of_others = (aten.sum.dim_IntList(each, [d]) for d in (2, 1))
    return aten.scatter_add.default(of_others, 1, safe, aten.neg.default(of_labels))


def _double(ct, grad_output, self, target):
    """The backward is linear in its cotangents: those of ones, row by row."""
    ones = aten._label_margins_backward.default(aten.ones_like.default(grad_output), self, target)
    return aten.sum.dim_IntList(aten.mul.Tensor(ct, ones), [1])


_label_margins.derivative(self=lambda ct, self, target: aten._label_margins_backward.default(ct, self, target))
# Slopes are constant between kinks.
_label_margins_backward.derivative(grad_output=_double, self=lambda ct, self_like: None)
_label_margins.override("rows", _margins_by_kernel)
_label_margins_backward.override("rows", lambda h, grad, self, target: _margins_by_kernel(h, self, target, grad))


@composite("multilabel_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", variants="")
def multilabel_margin_loss(self, target, reduction):
    _check_rows(self, target)
    if self.shape != target.shape and (self.ndim > 1 or self.numel() != target.numel()):
        raise RuntimeError(f"inconsistent target size: {list(target.shape)} for input of size: {list(self.shape)}")
    _check_labels(target)
    x, t = (aten.reshape.default(v, [1, -1]) if v.ndim < 2 else v for v in (self, target))
    each = aten._label_margins.default(x, t)
    return reduced(aten.squeeze.dim(each, 0) if self.ndim == 1 and reduction == 0 else each, reduction)
