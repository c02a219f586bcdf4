"""What the losses share: the reduction (0 none, 1 mean, 2 sum) and its derivative."""

from __future__ import annotations

from ...core.operator import namespace

aten = namespace("aten")


def reduced(loss, reduction):
    return loss if reduction == 0 else aten.mean.default(loss) if reduction == 1 else aten.sum.default(loss)


def per_element(grad_output, slope, weight, reduction):
    """Cotangent of each element of a loss from that of its reduction."""
    out = aten.mul.Tensor(slope if weight is None else aten.mul.Tensor(slope, weight), grad_output)
    return aten.div.Tensor(out, float(max(slope.numel(), 1))) if reduction == 1 else out
