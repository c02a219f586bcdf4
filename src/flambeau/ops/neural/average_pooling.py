"""Means of windows in one, two and three dimensions, and other sums over windows."""

from __future__ import annotations

import math

from ...base.shapes import spread
from ...core.declare import COMPLEX, INTEGERS, composite, explicit
from ...core.operator import namespace
from ...core.quantized import is_quantized, through_values
from .pool_windows import KERNEL_DTYPES, check, counts_of, windows_of

aten = namespace("aten")


@explicit(
    "_window_sums(Tensor self, int[2] kernel_size, int[2] stride, int[2] padding, SymInt[2] counts) -> Tensor",
    has_out=False,
    images=0,
    variants="",
)
def _window_sums(self, kernel_size, stride, padding, counts):
    """Sums over ``counts`` windows of the last two dimensions; what lies outside is zero."""
    windows = windows_of(self, 2, kernel_size, stride, padding, [1, 1], counts, 0.0)
    return aten.sum.dim_IntList(windows, [-1], dtype=self.dtype)


@explicit(
    "_window_sums_backward(Tensor grad_output, int[2] kernel_size, int[2] stride, int[2] padding, SymInt[2] sizes) -> Tensor",
    has_out=False,
    images=0,
    variants="",
)
def _window_sums_backward(grad_output, kernel_size, stride, padding, sizes):
    """Zeros of ``sizes``, and each element of the cotangent added to its window's places."""
    lead, first = list(grad_output.shape[:-2]), grad_output.ndim - 2
    reach = [(c - 1) * s + k for c, s, k in zip(grad_output.shape[first:], stride, kernel_size)]
    high, wide = (max(r, n + p) for r, n, p in zip(reach, sizes, padding))
    each = aten.unsqueeze.default(aten.unsqueeze.default(grad_output, -1), -1)
    each = aten.expand.default(each, [*grad_output.shape, *kernel_size])
    rows = [*lead, grad_output.shape[first], wide, kernel_size[0]]
    made = aten.unfold_backward.default(each, rows, first + 1, kernel_size[1], stride[1])
    made = aten.unfold_backward.default(made, [*lead, high, wide], first, kernel_size[0], stride[0])
    for d in range(2):
        made = aten.narrow.default(made, first + d, padding[d], sizes[d])
    return aten.contiguous.default(made)


_window_sums.derivative(
    (0,),
    self=lambda ct, self_like, kernel_size, stride, padding: _window_sums_backward(
        ct, kernel_size, stride, padding, list(self_like.shape[-2:])
    ),
)

_window_sums_backward.derivative(
    (0,),
    grad_output=lambda ct, grad_output_like, kernel_size, stride, padding: _window_sums(
        ct, kernel_size, stride, padding, list(grad_output_like.shape[-2:])
    ),
)


def _summed(op, backward: bool):
    """A native kernel on the CPU, in graphs and in eager calls, the first ones too, so that all have the same bits. Devices have loops of the body."""
    op.override("keep_fused", lambda x, *rest: x.dtype in KERNEL_DTYPES and x.device.type == "cpu")
    op.override("lower", lambda h, val, x, *how: h.window_sums(x, *how, backward=backward))
    op.override("rows", lambda h, x, *how: h.window_sums(x, *how, backward=backward))


_summed(_window_sums, False)

_summed(_window_sums_backward, True)


def _avg_pool(n):
    extra = ", int? divisor_override=None" if n > 1 else ""

    @composite(
        f"avg_pool{n}d(Tensor self, int[{n}] kernel_size, int[{n}] stride=[], int[{n}] padding=0, bool ceil_mode=False, "
        f"bool count_include_pad=True{extra}) -> Tensor",
        refuse=(*(t for t in INTEGERS if t != "int64"), *COMPLEX),
        variants="nn" if n > 1 else "nn function",
        images=(0, n == 1) if n < 3 else None,
        out_rules="exact",
    )
    def avg_pool(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override=None):
        if is_quantized(self):
            more = () if n == 1 else (divisor_override,)
            return through_values(
                _avg_pools[n], self, kernel_size, stride, padding, ceil_mode, count_include_pad, *more
            )
        kernel = spread(kernel_size, n)
        stride = spread(stride, n) if stride else kernel
        padding, ones = spread(padding, n), [1] * n
        check(self, n, kernel, stride, padding, ones, f"avg_pool{n}d")
        if divisor_override == 0:
            raise RuntimeError("divisor must be not zero")
        counts = counts_of(self, n, kernel, stride, padding, ones, ceil_mode, f"avg_pool{n}d")
        if n == 2 and self.dtype in KERNEL_DTYPES:
            total = _window_sums(self, kernel, stride, padding, counts)
        elif n == 3 and self.dtype in KERNEL_DTYPES:
            total = _volume_sums(self, kernel, stride, padding, counts)
        else:
            total = aten.sum.dim_IntList(windows_of(self, n, kernel, stride, padding, ones, counts, 0.0), [-1])
        if divisor_override is not None:
            return _divided(total, divisor_override)
        if not ceil_mode and (count_include_pad or all(p == 0 for p in padding)):
            return _divided(total, math.prod(kernel))
        return _divided(total, _areas(self, n, kernel, stride, padding, counts, count_include_pad))

    return avg_pool


def _volume_sums(self, kernel, stride, padding, counts):
    """Sums over windows of the last three dimensions: of planes first, then in the planes."""
    size = list(self.shape[-2:])
    layers = windows_of(
        self, 3, [kernel[0], 1, 1], [stride[0], 1, 1], [padding[0], 0, 0], [1] * 3, [counts[0], *size], 0.0
    )
    sums = aten.sum.dim_IntList(layers, [-1])
    if kernel[1:] == stride[1:] == [1, 1] and padding[1:] == [0, 0]:
        return sums
    lead = list(sums.shape[:-2])
    planes = aten.reshape.default(sums, [math.prod(lead), *size])
    sums = _window_sums(planes, kernel[1:], stride[1:], padding[1:], counts[1:])
    return aten.reshape.default(sums, [*lead, *counts[1:]])


def _divided(total, count):
    """Integers stay integers, cut off."""
    if total.dtype.category <= 1:
        return aten.div.Tensor_mode(total, count, rounding_mode="trunc")
    return aten.div.Tensor(total, count)


def _areas(self, n, kernel, stride, padding, counts, include):
    """(counts): how many positions of each window count."""
    area = None
    for i in range(n):
        size = self.shape[self.ndim - n + i]
        start = aten.sub.Tensor(
            aten.mul.Tensor(aten.arange.default(counts[i], device=self.device), stride[i]), padding[i]
        )
        end = aten.clamp.default(aten.add.Tensor(start, kernel[i]), None, size + padding[i])
        if not include:
            start, end = aten.clamp.default(start, 0), aten.clamp.default(end, None, size)
        length = aten.reshape.default(aten.sub.Tensor(end, start), [-1, *[1] * (n - 1 - i)])
        area = length if area is None else aten.mul.Tensor(area, length)
    return area


_avg_pools = {n: _avg_pool(n) for n in (1, 2, 3)}


@_avg_pools[1].override("watched")
def _avg_pool1d(self, kernel_size, stride, padding, ceil_mode, count_include_pad):
    if self.ndim not in (2, 3):
        return _avg_pools[1].definition.fn(self, kernel_size, stride, padding, ceil_mode, count_include_pad)
    kernel, padding = [1, *spread(kernel_size, 1)], [0, *spread(padding, 1)]
    stride = [1, *spread(stride, 1)] if stride else []
    rows = aten.unsqueeze.default(self, -2)
    return aten.squeeze.dim(_avg_pools[2](rows, kernel, stride, padding, ceil_mode, count_include_pad), -2)
