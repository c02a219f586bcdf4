"""SyncBatchNorm in training: means and variances of all ranks, joined as parallel variances are (Chan, Golub, LeVeque 1983)."""

from __future__ import annotations

from ..autograd.grad_mode import no_grad
from ..core.bindings import function
from .differentiable import all_gather

__all__ = ["normalized"]

stack, cat, tensor_full = function("stack"), function("cat"), function("full")


def normalized(module, input):
    """``input`` (N, C, *) normalised by the statistics of all ranks; the module's running statistics follow."""
    dims = [d for d in range(input.dim()) if d != 1]
    x = input.float() if input.element_size() < 4 else input
    count = x.numel() // x.shape[1]
    mean = x.mean(dims)
    square = ((x - _shaped(mean, x)) ** 2).sum(dims)
    own = cat([mean, square, tensor_full((1,), float(count), dtype=x.dtype)])
    every = stack(list(all_gather(own, module.process_group)))
    c = x.shape[1]
    means, squares, counts = every[:, :c], every[:, c : 2 * c], every[:, 2 * c :]
    total = counts.sum()
    mean = (means * counts).sum(0) / total
    variance = (squares + counts * (means - mean) ** 2).sum(0) / total
    if module.track_running_stats:
        with no_grad():
            momentum = 1.0 / float(module.num_batches_tracked) if module.momentum is None else module.momentum
            unbiased = variance * (total / (total - 1))
            module.running_mean.lerp_(mean.to(module.running_mean.dtype), momentum)
            module.running_var.lerp_(unbiased.to(module.running_var.dtype), momentum)
    scale = (variance + module.eps).rsqrt()
    out = (x - _shaped(mean, x)) * _shaped(scale, x)
    if module.weight is not None:
        out = out * _shaped(module.weight, x)
    if module.bias is not None:
        out = out + _shaped(module.bias, x)
    return out.to(input.dtype)


def _shaped(t, like):
    return t.view(1, -1, *([1] * (like.dim() - 2)))
