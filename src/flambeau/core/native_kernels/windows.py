"""Pooling, sums over windows, and edges."""

from __future__ import annotations

import math

from ...base import dtypes, kernels
from ...base.expr import at_least
from ...base.memory_format import contiguous_format, is_last
from ...base.result_spec import ResultSpec
from ...base.sizes import dense_strides, size, sizes
from ..layouts import image_format

__all__ = ["line_products", "max_pool", "max_pool_backward", "pad_edges", "window_sums"]


def max_pool(h, vals, x, kernel, stride, padding):
    """Maxima over windows of the last two dimensions and their places in the plane, see csrc/kernels/pool.c."""
    part = h.image(x)
    if not at_least(2**31 - 1 - part.shape[-2] * part.shape[-1], 0) and type(part.shape[-1]) is int:
        raise NotImplementedError("planes of more than 2 ** 31 elements")
    last = is_last(part.shape, part.strides)
    outs = [ResultSpec(shape, _by_pixels(shape, last), v.dtype, v.device) for v in vals for shape in [sizes(v.shape)]]
    flops = math.prod(outs[0].shape) * math.prod(map(size, kernel))
    window = {"kernel": kernel, "stride": stride, "padding": padding}
    return h.launch(kernels.max_pool, [part], outs, flops, **window, last=last, f64=x.dtype is dtypes.float64)


def _by_pixels(shape, last: bool) -> tuple:
    """Strides of images in C order, or with the channels ``last``."""
    if not last:
        return dense_strides(shape)
    strides = dense_strides([shape[d] for d in (0, 2, 3, 1)])
    return tuple(strides[d] for d in (0, 3, 1, 2))


def max_pool_backward(h, val, name, cotangent, places):
    """The cotangent of what was pooled; a place outside of its plane is an IndexError that names the operator."""
    shape = sizes(val.shape)
    parts = [h.image(x) for x in (cotangent, places)]
    last = all(is_last(p.shape, p.strides) for p in parts)
    if not last:
        parts = [h.contiguous(x) for x in (cotangent, places)]
    out = ResultSpec(shape, _by_pixels(shape, last), val.dtype, val.device)
    numbers = {"f64": val.dtype is dtypes.float64, "last": last, "outside": h.message(name)}
    return h.launch(kernels.max_pool_backward, parts, [out], math.prod(shape), **numbers)[0]


def window_sums(h, x, kernel, stride, padding, counts, backward=False):
    """Sums over ``counts`` windows of the last two dimensions, or ``backward`` what a cotangent of them is to their terms, so many: see
    csrc/kernels/pool_sums.c."""
    if x.dtype not in (dtypes.float32, dtypes.float64):
        raise NotImplementedError(f"there are no sums over windows of {x.dtype}")
    part = h.image(x)
    shape = (*part.shape[:-2], *map(size, counts))
    last = is_last(part.shape, part.strides)
    out = ResultSpec(shape, _by_pixels(shape, last), x.dtype, x.device)
    flops = math.prod(part.shape if backward else shape) * math.prod(map(size, kernel))
    numbers = {"kernel": kernel, "stride": stride, "padding": padding, "last": last, "f64": x.dtype is dtypes.float64}
    made = kernels.window_sums_backward if backward else kernels.window_sums
    return h.launch(made, [part], [out], flops, **numbers)[0]


def line_products(h, x):
    """The products of lines (lines, terms) in C order, see csrc/kernels/products.c."""
    count = x.shape[0]
    out = ResultSpec((count,), (1,), x.dtype, x.device)
    return h.launch(kernels.line_products, [x], [out], math.prod(x.shape), f64=x.dtype is dtypes.float64)[0]


def pad_edges(h, x, padding, mirror: bool):
    """An array in C order with edges around it, see csrc/kernels/edges.c; ``padding``: pairs from the last dimension on, as PyTorch's."""
    count, shape = len(padding) // 2, tuple(x.shape)
    pairs = [(0, 0)] * (len(shape) - count) + [tuple(padding[2 * k : 2 * k + 2]) for k in reversed(range(count))]
    if count > 3 or not math.prod(shape) or any(a < 0 or b < 0 for a, b in pairs) or x.dtype.itemsize > 16:
        raise NotImplementedError("an array of other sizes")
    if mirror and any(max(pair) >= n for pair, n in zip(pairs, shape) if pair != (0, 0)):
        raise NotImplementedError("more is mirrored than there is")
    if image_format(shape, x.strides) is not contiguous_format:
        raise NotImplementedError("images with their channels last")
    made = tuple(n + a + b for n, (a, b) in zip(shape, pairs))
    out = ResultSpec(made, dense_strides(made), x.dtype, x.device)
    numbers = {"item": x.dtype.itemsize, "mirror": mirror, "before": [a for a, _ in pairs[len(shape) - count :]]}
    return h.launch(kernels.pad_edges, [h.contiguous(x)], [out], math.prod(made), **numbers)[0]
