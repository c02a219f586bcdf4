"""Windows that are pooled: how many there are, their elements, and where these lie."""

from __future__ import annotations

import math

from ...base import dtypes
from ...core.operator import namespace

aten = namespace("aten")
KERNEL_DTYPES = (dtypes.float32, dtypes.float64)  # of which pooling has native kernels


def flat_of(x, n):
    """The last ``n`` dimensions as one."""
    lead = x.ndim - n
    return aten.reshape.default(x, [*x.shape[:lead], math.prod(x.shape[lead:])])


def output_size(size, kernel, stride, padding, dilation, ceil_mode):
    """How many windows there are along a dimension; with ``ceil_mode`` one more that begins inside and ends outside."""
    reach = size + 2 * padding - dilation * (kernel - 1) - 1
    count = (reach + stride - 1 if ceil_mode else reach) // stride + 1
    if ceil_mode and (count - 1) * stride >= size + padding:
        count -= 1
    return count


def check(self, n, kernel, stride, padding, dilation, name):
    """RuntimeError for an input, or for windows, that pooling doesn't take."""

    def refuse():
        raise RuntimeError(
            f"{name}: Expected {n + 1}D or {n + 2}D (batch mode) tensor with optional 0 dim batch size for input, but got:{list(self.shape)}"
        )

    if self.ndim not in (n + 1, n + 2):
        refuse()
    if n > 1 and max(*kernel, *stride, *padding, *dilation) >= 2**31:
        raise RuntimeError("value cannot be converted to type int without overflow")
    if any(d <= 0 for d in dilation):
        raise RuntimeError(f"{name}() dilation must be greater than zero, but got {', '.join(map(str, dilation))}")
    for k, p, d in zip(kernel, padding, dilation):
        if k <= 0:
            raise RuntimeError(f"{name}: kernel size should be greater than zero, but got {kernel}")
        if p < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {p}")
        if p > ((k - 1) * d + 1) // 2:
            raise RuntimeError(
                f"pad should be at most half of effective kernel size, but got pad={p}, kernel_size={k} and dilation={d}"
            )
    if 0 in self.shape[self.ndim - n - 1 :]:
        refuse()
    if any(s <= 0 for s in stride):
        if n == 1 and name == "max_pool1d":
            raise RuntimeError(f"max_pool1d() stride must be greater than zero, but got {stride[0]}")
        raise RuntimeError(f"{name}: stride should not be zero")


def counts_of(self, n, kernel, stride, padding, dilation, ceil_mode, name):
    """How many windows there are along each dimension. RuntimeError where there is none."""
    out = [
        output_size(self.shape[self.ndim - n + i], kernel[i], stride[i], padding[i], dilation[i], ceil_mode)
        for i in range(n)
    ]
    if any(c < 1 for c in out):
        if name == "max_pool1d":
            raise RuntimeError(f"{name}() Invalid computed output size: {out[0]}")
        lead, line = self.shape[self.ndim - n - 1], [1] if n == 1 else []
        given, made = ((lead, *line, *sizes) for sizes in (self.shape[self.ndim - n :], out))
        raise RuntimeError(
            f"Given input size: ({'x'.join(map(str, given))}). Calculated output size: ({'x'.join(map(str, made))}). Output size is too small"
        )
    return out


def windows_of(self, n, kernel, stride, padding, dilation, counts, fill):
    """(..., counts, product of kernel): the elements of each window last, ``fill`` outside of the input. None repeats the outermost elements, each of
    which is in every window (not a dilated one) that reaches over its edge, so that a maximum never comes from the padding."""
    first = self.ndim - n
    amounts = []
    for i in range(n):
        size = self.shape[first + i]
        right = (counts[i] - 1) * stride[i] + (kernel[i] - 1) * dilation[i] + 1 - size - padding[i]
        amounts = [padding[i], right if right > 0 else 0, *amounts]
    if fill is None:
        self = _repeat_edges(self, n, amounts)
    elif any(a != 0 for a in amounts):
        self = aten.constant_pad_nd.default(self, amounts, fill)
    for i in range(n):
        self = aten.unfold.default(self, first + i, (kernel[i] - 1) * dilation[i] + 1, stride[i])
        if dilation[i] != 1:
            self = aten.slice.Tensor(self, self.ndim - 1, 0, None, dilation[i])
        if self.shape[first + i] != counts[i]:
            self = aten.slice.Tensor(self, first + i, 0, counts[i])
    return aten.reshape.default(self, [*self.shape[: first + n], math.prod(kernel)])


def _repeat_edges(x, n, amounts):
    for i in range(n):
        dim, (before, after) = x.ndim - 1 - i, amounts[2 * i : 2 * i + 2]
        parts = [x]
        for amount, first in ((before, True), (after, False)):
            if amount != 0:
                end = aten.narrow.default(x, dim, 0 if first else x.shape[dim] - 1, 1)
                end = aten.expand.default(end, [amount if d == dim else s for d, s in enumerate(x.shape)])
                parts = [end, *parts] if first else [*parts, end]
        if len(parts) > 1:
            x = aten.cat.default(parts, dim)
    return x


def positions_of(sizes, kernel, stride, padding, dilation, counts, device):
    """(counts, product of kernel): flat position in the input of each element of each window; those outside stand for the nearest inside."""
    n = len(sizes)
    total = None
    for i in range(n):
        start = aten.sub.Tensor(aten.mul.Tensor(aten.arange.default(counts[i], device=device), stride[i]), padding[i])
        at = aten.add.Tensor(
            aten.unsqueeze.default(start, 1),
            aten.mul.Tensor(aten.arange.default(kernel[i], device=device), dilation[i]),
        )
        at = aten.clamp.default(at, 0, sizes[i] - 1)
        shape = [1] * (2 * n)
        shape[i], shape[n + i] = counts[i], kernel[i]
        at = aten.reshape.default(aten.mul.Tensor(at, math.prod(sizes[i + 1 :])), shape)
        total = at if total is None else aten.add.Tensor(total, at)
    return aten.reshape.default(total, [*counts, math.prod(kernel)])


def lowest(dtype):
    """The least number of an integer dtype."""
    return -(1 << (8 * dtype.itemsize - 1)) if dtype.is_signed else 0
