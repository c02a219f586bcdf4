"""Pooling over windows in one, two and three dimensions.

A pooling is a view of windows (``unfold`` in each dimension) and a reduction over them. Maxima come with the flat position of the winner, through which
the derivative goes.
"""

from __future__ import annotations

import functools
import math

from ...base import dtypes
from ...base.memory_format import channels_last_3d, contiguous_format, has_format
from ...base.shapes import is_contiguous, normalize_dim, spread
from ...core.declare import COMPLEX, INTEGERS, composite, explicit
from ...core.images import as_image, as_images
from ...core.layouts import image_format, strides_of
from ...core.operator import namespace
from ...core.quantized import is_quantized, through_values
from ..reductions.basic import as_dtype, widened

aten = namespace("aten")


def _flat(x, n):
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


def _check(self, n, kernel, stride, padding, dilation, name):
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


def _counts(self, n, kernel, stride, padding, dilation, ceil_mode, name):
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


def _windows(self, n, kernel, stride, padding, dilation, counts, fill):
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


def _positions(sizes, kernel, stride, padding, dilation, counts, device):
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


def _max_parts(self, n, kernel_size, stride, padding, dilation, ceil_mode, name):
    kernel = spread(kernel_size, n)
    stride = spread(stride, n) if stride else kernel
    padding, dilation = spread(padding, n), spread(dilation, n)
    _check(self, n, kernel, stride, padding, dilation, name)
    counts = _counts(self, n, kernel, stride, padding, dilation, ceil_mode, name)
    fill = None
    if any(d != 1 for d in dilation):
        fill = -math.inf if self.dtype.is_floating_point else _lowest(self.dtype)
    windows = _windows(self, n, kernel, stride, padding, dilation, counts, fill)
    return windows, kernel, stride, padding, dilation, counts


def _lowest(dtype):
    return -(1 << (8 * dtype.itemsize - 1)) if dtype.is_signed else 0


_TEMPLATES = (dtypes.float32, dtypes.float64)


def _pool_of_two(forward, backward):
    """Lowered to a native kernel where there is one: float32 and float64, windows without gaps."""

    @forward.override("keep_fused")
    def _(self, kernel_size, stride, padding, dilation, ceil_mode):
        return self.dtype in _TEMPLATES and all(d == 1 for d in spread(dilation, 2))

    @forward.override("lower")
    def _(lowering, val, self, kernel_size, stride, padding, dilation, ceil_mode):
        kernel = spread(kernel_size, 2)
        return lowering.max_pool(val, self, kernel, spread(stride, 2) if stride else kernel, spread(padding, 2))

    @backward.override("keep_fused")
    def _(grad_output, *rest):
        return grad_output.dtype in _TEMPLATES

    @backward.override("lower")
    def _(lowering, val, grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices):
        return lowering.max_pool_backward(val, backward.name(), grad_output, indices)


def _of_volumes(n: int):
    """Of three dimensions: (C, D, H, W) is one volume, and lies channels last where a batch of it does. Of two, a body as it is."""

    def wrap(fn):
        batched = as_images(fn, 0, False, None)

        def run(self, *rest):
            if self.ndim != 4 or 0 in self.shape:
                return batched(self, *rest)
            x = aten.unsqueeze.default(self, 0)
            last = not is_contiguous(x.shape, strides_of(x)) and has_format(x.shape, strides_of(x), channels_last_3d)
            format = channels_last_3d if last else contiguous_format
            made = fn(x, *rest)
            if isinstance(made, (tuple, list)):
                return tuple(aten.squeeze.dim(as_image(t, format), 0) for t in made)
            return aten.squeeze.dim(as_image(made, format), 0)

        return functools.wraps(fn)(run) if n == 3 else fn

    return wrap


def _max_pool_with_indices(n):
    name = f"max_pool{n}d_with_indices"

    @explicit(
        f"{name}(Tensor self, int[{n}] kernel_size, int[{n}] stride=[], int[{n}] padding=0, int[{n}] dilation=1, bool ceil_mode=False) "
        "-> (Tensor, Tensor)",
        variants="nn",
        has_out=False,
        images=None if n == 3 else 0,
    )
    @_of_volumes(n)
    def forward(self, kernel_size, stride, padding, dilation, ceil_mode):
        windows, kernel, stride, padding, dilation, counts = _max_parts(
            self, n, kernel_size, stride, padding, dilation, ceil_mode, f"max_pool{n}d"
        )
        values, where = aten.max.dim(windows, -1)
        sizes = list(self.shape[self.ndim - n :])
        flat = _positions(sizes, kernel, stride, padding, dilation, counts, self.device)
        flat = aten.expand.default(flat, list(windows.shape))
        return values, aten.squeeze.dim(
            aten.gather.default(flat, windows.ndim - 1, aten.unsqueeze.default(where, -1)), -1
        )

    @explicit(
        f"{name}_backward(Tensor grad_output, Tensor self, int[{n}] kernel_size, int[{n}] stride, int[{n}] padding, int[{n}] dilation, "
        "bool ceil_mode, Tensor indices) -> Tensor",
        has_out=False,
        images=1,
    )
    def backward(grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices):
        lead = list(self.shape[: self.ndim - n])
        flat = aten.new_zeros.default(grad_output, [*lead, math.prod(self.shape[self.ndim - n :])])
        at, values = (_flat(t, n) for t in (indices, grad_output))
        out = aten.scatter_add.default(flat, len(lead), at, values)
        return aten.reshape.default(out, list(self.shape))

    forward.derivative(
        (0,),
        self=lambda ct0, self, kernel_size, stride, padding, dilation, ceil_mode, result1: backward(
            ct0, self, kernel_size, stride, padding, dilation, ceil_mode, result1
        ),
    )

    if n == 2:
        _pool_of_two(forward, backward)

    def picked(ct, indices):
        values = aten.gather.default(_flat(ct, n), indices.ndim - n, _flat(indices, n))
        return aten.reshape.default(values, list(indices.shape))

    backward.derivative(
        grad_output=picked, self=lambda ct, self_like: aten.new_zeros.default(ct, list(self_like.shape))
    )
    return forward


_with_indices = {n: _max_pool_with_indices(n) for n in (2, 3)}


@composite(
    "max_pool1d_with_indices(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, int[1] dilation=1, bool ceil_mode=False) "
    "-> (Tensor, Tensor)",
    variants="function nn",
    images=(0, True),
)
def max_pool1d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode):
    if self.ndim not in (2, 3):
        raise RuntimeError(f"max_pool1d() Expected 2D or 3D input tensor, but got {list(self.shape)}")
    values, indices = _with_indices[2](
        aten.unsqueeze.default(self, -2),
        [1, *spread(kernel_size, 1)],
        [1, *spread(stride, 1)] if stride else [],
        [0, *spread(padding, 1)],
        [1, *spread(dilation, 1)],
        ceil_mode,
    )
    return aten.squeeze.dim(values, -2), aten.squeeze.dim(indices, -2)


def _max_pool(n):
    @composite(
        f"max_pool{n}d(Tensor self, int[{n}] kernel_size, int[{n}] stride=[], int[{n}] padding=0, int[{n}] dilation=1, bool ceil_mode=False) "
        "-> Tensor",
        refuse=(*(INTEGERS if n == 1 else ["bool"]), *COMPLEX),
        variants="function",
        images=None if n == 3 else 0,
    )
    @_of_volumes(n)
    def max_pool(self, kernel_size, stride, padding, dilation, ceil_mode):
        if n == 2 and self.dtype in _TEMPLATES:
            return _with_indices[2](self, kernel_size, stride, padding, dilation, ceil_mode)[0]
        windows = _max_parts(self, n, kernel_size, stride, padding, dilation, ceil_mode, f"max_pool{n}d")[0]
        return aten.max.dim(windows, -1)[0]

    return max_pool


_max_pool(1).override("watched", lambda *args: max_pool1d_with_indices(*args)[0])
_max_pool(2)
_max_pool(3).override("watched", lambda *args: _with_indices[3](*args)[0])


@explicit(
    "_window_sums(Tensor self, int[2] kernel_size, int[2] stride, int[2] padding, SymInt[2] counts) -> Tensor",
    has_out=False,
    images=0,
    variants="",
)
def _window_sums(self, kernel_size, stride, padding, counts):
    """Sums over ``counts`` windows of the last two dimensions; what lies outside is zero."""
    windows = _windows(self, 2, kernel_size, stride, padding, [1, 1], counts, 0.0)
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
    op.override("keep_fused", lambda x, *rest: x.dtype in _TEMPLATES and x.device.type == "cpu")
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
        _check(self, n, kernel, stride, padding, ones, f"avg_pool{n}d")
        if divisor_override == 0:
            raise RuntimeError("divisor must be not zero")
        counts = _counts(self, n, kernel, stride, padding, ones, ceil_mode, f"avg_pool{n}d")
        if n == 2 and self.dtype in _TEMPLATES:
            total = _window_sums(self, kernel, stride, padding, counts)
        elif n == 3 and self.dtype in _TEMPLATES:
            total = _volume_sums(self, kernel, stride, padding, counts)
        else:
            total = aten.sum.dim_IntList(_windows(self, n, kernel, stride, padding, ones, counts, 0.0), [-1])
        if divisor_override is not None:
            return _divided(total, divisor_override)
        if not ceil_mode and (count_include_pad or all(p == 0 for p in padding)):
            return _divided(total, math.prod(kernel))
        return _divided(total, _areas(self, n, kernel, stride, padding, counts, count_include_pad))

    return avg_pool


def _volume_sums(self, kernel, stride, padding, counts):
    """Sums over windows of the last three dimensions: of planes first, then in the planes."""
    size = list(self.shape[-2:])
    layers = _windows(
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


# ---- adaptive: windows that share the input evenly, floor(i * size / parts) to ceil((i + 1) * size / parts) -------------------------------


def _bounds(size, parts, device):
    i = aten.arange.default(parts, device=device)
    start = aten.floor_divide.default(aten.mul.Tensor(i, size), parts)
    end = aten.floor_divide.default(aten.add.Tensor(aten.mul.Tensor(aten.add.Tensor(i, 1), size), parts - 1), parts)
    return start, end


def _adaptive_mean(x, dim, parts):
    """``parts`` means along ``dim``."""
    size = x.shape[dim]
    d = normalize_dim(dim, x.ndim)
    if size and size % parts == 0:
        split = aten.reshape.default(x, [*x.shape[:d], parts, size // parts, *x.shape[d + 1 :]])
        return aten.mean.dim(split, [d + 1])
    if parts > size:  # windows of one element or two: no list of them
        start, end = _bounds(size, parts, x.device)
        both = [aten.index_select.default(x, d, at) for at in (start, aten.sub.Tensor(end, 1))]
        alone = aten.reshape.default(aten.eq.Tensor(aten.sub.Tensor(end, start), 1), [parts] + [1] * (x.ndim - d - 1))
        halves = [aten.mul.Tensor(widened(t), 0.5) for t in both]
        return aten.where.self(alone, both[0], as_dtype(x.dtype, aten.add.Tensor(*halves)))
    ends = [(i * size // parts, -(-(i + 1) * size // parts)) for i in range(parts)]
    return aten.cat.default([aten.mean.dim(aten.narrow.default(x, d, a, b - a), [d], True) for a, b in ends], d)


def _adaptive_sizes(self, n, wanted, name):
    given = wanted if isinstance(wanted, (list, tuple)) else [wanted]
    if len(given) not in (1, n):
        raise RuntimeError(
            f"{name}: output_size must be {n}"
            if n > 1
            else f"{name}() argument 'output_size' should contain one int (got {len(given)})"
        )
    if any(w is not None and w < 0 for w in given):
        raise RuntimeError(
            f"{name}: elements of output_size must be greater than or equal to 0 but received {list(given)}: Trying to create tensor with "
            "negative dimension"
        )
    if self.ndim not in (n + 1, n + 2):
        raise RuntimeError(f"{name}(): Expected {n + 1}D or {n + 2}D tensor, but got {list(self.shape)}")
    return [self.shape[self.ndim - n + i] if w is None else w for i, w in enumerate(spread(wanted, n))]


def _nonempty(self, first, name):
    empty = next((d for d in range(first, self.ndim) if self.shape[d] == 0), None)
    if empty is not None:
        raise RuntimeError(
            f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes {list(self.shape)} with "
            f"dimension {empty} being empty"
        )


def _adaptive_avg_pool(n):
    @composite(
        f"adaptive_avg_pool{n}d(Tensor self, SymInt[{n}] output_size) -> Tensor",
        refuse=INTEGERS,
        variants="nn function" if n == 1 else "nn",
        images=(0, n == 1) if n < 3 else None,
    )
    def adaptive_avg_pool(self, output_size):
        sizes = _adaptive_sizes(self, n, output_size, f"adaptive_avg_pool{n}d")
        if n == 2 and all(s == 1 for s in sizes):
            return aten.mean.dim(self, [-1, -2], True)
        if n == 3 and all(s == 1 for s in sizes):
            format = image_format(tuple(self.shape), strides_of(self))
            return as_image(aten.mean.dim(self, [-1, -2, -3], True), format)
        _nonempty(self, self.ndim - n if n < 3 else 1, f"adaptive_avg_pool{n}d")
        if n > 1 and is_quantized(self):
            # Rounded to codes once, not in each dimension.
            return getattr(aten, f"_adaptive_avg_pool{n}d").default(self, sizes)
        if 0 in sizes:
            return aten.new_zeros.default(self, [*self.shape[: self.ndim - n], *sizes])
        for i, parts in enumerate(sizes):
            self = _adaptive_mean(self, i - n, parts)
        return self

    @adaptive_avg_pool.override("watched")
    def parts(self, output_size):
        sizes = _adaptive_sizes(self, n, output_size, f"adaptive_avg_pool{n}d")
        if n > 1 and all(s == 1 for s in sizes):
            return adaptive_avg_pool.definition.fn(self, output_size)
        if n > 1:
            return getattr(aten, f"_adaptive_avg_pool{n}d").default(self, sizes)
        return aten.squeeze.dim(aten._adaptive_avg_pool2d.default(aten.unsqueeze.default(self, -2), [1, *sizes]), -2)


for _n in (1, 2, 3):
    _adaptive_avg_pool(_n)


def _adaptive_max_pool(n):
    @composite(
        f"adaptive_max_pool{n}d(Tensor self, int[{n}] output_size) -> (Tensor, Tensor)",
        variants="function" if n == 1 else "",
        images=(0, n == 1) if n < 3 else None,
        refuse=(*INTEGERS, *COMPLEX),
    )
    def adaptive_max_pool(self, output_size):
        """The windows as a gather of the longest length in each dimension, positions beyond a window's end left out."""
        sizes = _adaptive_sizes(self, n, output_size, f"adaptive_max_pool{n}d")
        _nonempty(self, 1, f"adaptive_max_pool{n}d")
        first = self.ndim - n
        shape = list(self.shape[first:])
        if 0 in sizes:
            empty = [*self.shape[:first], *sizes]
            return aten.new_empty.default(self, empty), aten.new_empty.default(self, empty, dtype=dtypes.int64)
        out, flat, outside = self, None, None
        longest = []
        for i, parts in enumerate(sizes):
            start, end = (aten.unsqueeze.default(t, 1) for t in _bounds(shape[i], parts, self.device))
            length = -(-shape[i] // parts) + (0 if shape[i] % parts == 0 else 1)
            longest.append(length)
            at = aten.add.Tensor(start, aten.arange.default(length, device=self.device))
            beyond = aten.ge.Tensor(at, end)
            at = aten.clamp.default(at, None, shape[i] - 1)
            picked = aten.index_select.default(out, first + i, aten.reshape.default(at, [-1]))
            out = picked
            shaped = [1] * (2 * n)
            shaped[i], shaped[n + i] = parts, length
            at = aten.reshape.default(aten.mul.Tensor(at, math.prod(shape[i + 1 :])), shaped)
            beyond = aten.reshape.default(beyond, shaped)
            flat = at if flat is None else aten.add.Tensor(flat, at)
            outside = beyond if outside is None else aten.logical_or.default(outside, beyond)
        lead = list(self.shape[:first])
        split = [v for pair in zip(sizes, longest) for v in pair]
        out = aten.reshape.default(out, [*lead, *split])
        order = [*range(first), *(first + 2 * i for i in range(n)), *(first + 2 * i + 1 for i in range(n))]
        out = aten.permute.default(out, order)
        lowest = -math.inf if self.dtype.is_floating_point else _lowest(self.dtype)
        out = aten.masked_fill.Scalar(out, outside, lowest)
        window = math.prod(longest)
        values, where = aten.max.dim(aten.reshape.default(out, [*lead, *sizes, window]), -1)
        flat = aten.reshape.default(aten.expand.default(flat, [*sizes, *longest]), [*sizes, window])
        flat = aten.expand.default(flat, [*lead, *flat.shape])
        return values, aten.squeeze.dim(aten.gather.default(flat, flat.ndim - 1, aten.unsqueeze.default(where, -1)), -1)

    return adaptive_max_pool


_adaptive_max_pools = {n: _adaptive_max_pool(n) for n in (1, 2, 3)}


@_adaptive_max_pools[1].override("watched")
def _adaptive_max_pool1d(self, output_size):
    sizes = _adaptive_sizes(self, 1, output_size, "adaptive_max_pool1d")
    found = _adaptive_max_pools[2](aten.unsqueeze.default(self, -2), [1, *sizes])
    return tuple(aten.squeeze.dim(t, -2) for t in found)


# ---- the way back ----------------------------------------------------------------------------------------------------------


def _max_unpool(n, opname):
    extra = f", int[{n}] stride, int[{n}] padding" if n == 3 else ""

    @composite(
        f"{opname}(Tensor self, Tensor indices, SymInt[{n}] output_size{extra}) -> Tensor",
        variants="",
        images=0 if n == 2 else None,
    )
    def max_unpool(self, indices, output_size, *_):
        """Zeros, and the values at the flat positions that pooling gave."""
        if indices.dtype.name != "int64":
            raise RuntimeError(f"elements in indices should be type int64 but got: {indices.dtype}")
        if list(indices.shape) != list(self.shape):
            raise RuntimeError(
                f"Expected shape of indices to be same as that of the input tensor ({list(self.shape)}) but got indices tensor with shape: "
                f"{list(indices.shape)}"
            )
        lead = list(self.shape[: self.ndim - n])
        flat = aten.new_zeros.default(self, [*lead, math.prod(output_size)])
        at, values = (_flat(t, n) for t in (indices, self))
        return aten.reshape.default(aten.scatter.src(flat, len(lead), at, values), [*lead, *output_size])


_max_unpool(2, "max_unpool2d")
_max_unpool(3, "max_unpool3d")


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
            _flat(batched, n), 2, aten.reshape.default(flat, [*lead, math.prod(flat.shape[2:])])
        )
        best, where = aten.max.dim(aten.reshape.default(values, list(flat.shape)), -1)
        indices = aten.squeeze.dim(aten.gather.default(flat, flat.ndim - 1, aten.unsqueeze.default(where, -1)), -1)
        return (best, indices) if first == 2 else (aten.squeeze.dim(best, 0), aten.squeeze.dim(indices, 0))


_fractional_max_pool(2)
_fractional_max_pool(3)
