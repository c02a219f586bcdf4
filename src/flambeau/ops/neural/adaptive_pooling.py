"""Windows that share the input evenly: from floor(i * size / parts) to ceil((i + 1) * size / parts)."""

from __future__ import annotations

import math

from ...base import dtypes
from ...base.shapes import normalize_dim, spread
from ...core.declare import COMPLEX, INTEGERS, composite
from ...core.images import as_image
from ...core.layouts import image_format, strides_of
from ...core.operator import namespace
from ...core.quantized import is_quantized
from ..reductions.basic import as_dtype, widened
from .pool_windows import lowest

aten = namespace("aten")


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
        least = -math.inf if self.dtype.is_floating_point else lowest(self.dtype)
        out = aten.masked_fill.Scalar(out, outside, least)
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
