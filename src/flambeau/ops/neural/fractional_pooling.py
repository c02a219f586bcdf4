"""Maxima of windows whose places are drawn."""

from __future__ import annotations

import math

from ...core.declare import composite
from ...core.operator import namespace
from .pool_windows import flat_of

aten = namespace("aten")


def _check_samples(self, n, samples):
    """``samples``: (batch, channels, n), of the input's dtype."""
    if samples.dtype != self.dtype:
        raise RuntimeError("Expect _random_samples to have the same dtype as input")
    if samples.ndim != 3:
        raise RuntimeError(f"Expect _random_samples to have 3 dimensions, got {samples.ndim}")
    batch, channels = (1, *self.shape)[self.ndim - n - 1 : self.ndim - n + 1]
    if samples.shape[0] < batch:
        raise RuntimeError("Expect _random_samples.size(0) no less then input batch size.")
    if samples.shape[1] != channels:
        raise RuntimeError("Expect _random_samples.size(1) equals to input channel size.")
    if samples.shape[2] != n:
        raise RuntimeError(f"Expect _random_samples.size(2) equals to {n}; got {samples.shape[2]}.")


def _fractional_max_pool(n):
    @composite(
        f"fractional_max_pool{n}d(Tensor self, int[{n}] kernel_size, int[{n}] output_size, Tensor random_samples) -> (Tensor, Tensor)",
        variants="",
    )
    def fractional_max_pool(self, kernel_size, output_size, random_samples):
        """Graham, arXiv:1412.6071: window i begins at floor((i + u) * a) - floor(u * a), the last one at the end of the input."""
        for name, value in (("kernel_size", kernel_size), ("output_size", output_size)):
            if len(value) != n:
                raise RuntimeError(f"fractional_max_pool{n}d: {name} must either be a single int or tuple of {n} ints")
        kernel, sizes = list(kernel_size), list(output_size)
        first = self.ndim - n
        if first not in (1, 2) or any(size == 0 for size in self.shape[first - 1 :]):
            raise RuntimeError(
                f"fractional_max_pool{n}d(): Expected input to have non-zero size for non-batch dimensions, but got {list(self.shape)}"
            )
        _check_samples(self, n, random_samples)
        batched = self if first == 2 else aten.unsqueeze.default(self, 0)
        lead, shape = list(batched.shape[:2]), list(batched.shape[2:])
        flat = None
        for i in range(n):
            if sizes[i] + kernel[i] - 1 > shape[i]:
                raise RuntimeError(
                    f"fractional_max_pool{n}d(): pool size {kernel[i]} too large relative to input "
                    f"{('time', 'height', 'width')[i - n]} {shape[i]}"
                )
            # Samples are in the order of dimensions from the last to the first in two dimensions, and from the first in three.
            u = aten.unsqueeze.default(aten.select.int(random_samples, 2, n - 1 - i if n == 2 else i), -1)
            steps = aten.arange.default(sizes[i], device=self.device)
            alpha = (shape[i] - kernel[i]) / (sizes[i] - 1) if sizes[i] > 1 else 0.0
            start = aten.sub.Tensor(
                aten.trunc.default(aten.mul.Tensor(aten.add.Tensor(u, steps), alpha)),
                aten.trunc.default(aten.mul.Tensor(u, alpha)),
            )
            start = aten._to_copy.default(start, dtype=steps.dtype)
            start = aten.where.ScalarSelf(aten.eq.Scalar(steps, sizes[i] - 1), shape[i] - kernel[i], start)
            at = aten.add.Tensor(aten.unsqueeze.default(start, -1), aten.arange.default(kernel[i], device=self.device))
            shaped = [*lead, *[1] * (2 * n)]
            shaped[2 + i], shaped[2 + n + i] = sizes[i], kernel[i]
            at = aten.reshape.default(aten.mul.Tensor(at, math.prod(shape[i + 1 :])), shaped)
            flat = at if flat is None else aten.add.Tensor(flat, at)
        flat = aten.reshape.default(
            aten.expand.default(flat, [*lead, *sizes, *kernel]), [*lead, *sizes, math.prod(kernel)]
        )
        values = aten.gather.default(
            flat_of(batched, n), 2, aten.reshape.default(flat, [*lead, math.prod(flat.shape[2:])])
        )
        best, where = aten.max.dim(aten.reshape.default(values, list(flat.shape)), -1)
        indices = aten.squeeze.dim(aten.gather.default(flat, flat.ndim - 1, aten.unsqueeze.default(where, -1)), -1)
        return (best, indices) if first == 2 else (aten.squeeze.dim(best, 0), aten.squeeze.dim(indices, 0))


_fractional_max_pool(2)

_fractional_max_pool(3)
