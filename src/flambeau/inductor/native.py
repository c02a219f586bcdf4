"""Templates of csrc/natives.c in a graph: convolutions, attention, pooling and scans as launches between kernels, their results in the arena."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import Any

from ..base import blas, dtypes
from ..base.expr import at_least
from ..core.layouts import dense_like
from .ir import ExternCall, Region, dense_strides
from .sizes import size, sizes
from .values import short

__all__ = ["Native", "as_dtype", "attention", "convolution", "max_pool", "max_pool_backward", "scan", "weight_only"]


@dataclass(slots=True)
class Native:
    """A template's name, the integers it takes, and about how many operations it makes."""

    name: str
    numbers: list
    flops: Any


def launch(lowering, name, inputs, outs, numbers, flops, effect=False) -> list:
    """A launch of a template on ``inputs`` (regions); the Lazies of its results: ``outs`` has (shape, strides, dtype, device) of each. ``effect``: it
    runs in program order, wanted or not."""
    if any(not at_least(n, 1) for r in inputs for n in r.shape):
        raise NotImplementedError(f"{name} of what may be empty")
    made = []
    for shape, strides, dtype, device in outs:
        buffer = lowering.new_buffer(shape, strides, short(dtype))
        made.append(lowering.in_memory(Region(buffer.name, shape, buffer.strides), dtype, buffer.strides, device))
    plan = Native(name, [size(n) for n in numbers], flops)
    lowering.add(ExternCall("native", name, list(inputs), [x.region.buffer for x in made], plan, effect))
    return made


def _bits(x: float) -> int:
    return struct.unpack("q", struct.pack("d", x))[0]


def as_dtype(lowering, x, dtype):
    """The tensor in another dtype, not in memory yet."""
    if x is None or x.dtype is dtype:
        return x
    t = short(dtype)
    return lowering.lazy(x.sizes, dtype, lambda c: lowering.values.cast(x.at(c), t), strides=x.strides, device=x.device)


def _single(dtype):
    """What a template computes in."""
    if dtype in (dtypes.float16, dtypes.bfloat16):
        return dtypes.float32
    if dtype not in (dtypes.float32, dtypes.float64):
        raise NotImplementedError(f"there is no template for {dtype}")
    return dtype


# ---- scans -------------------------------------------------------------------------------------------------------------


_SCANNED = {dtypes.float32: 0, dtypes.float64: 1, dtypes.int64: 2}


def scan(lowering, val, x, dim, product: bool):
    """Running sums or products along a dimension, see csrc/scan.c."""
    kind = dtypes.float32 if val.dtype in (dtypes.float16, dtypes.bfloat16) else val.dtype
    if kind not in _SCANNED or not x.ndim:
        raise NotImplementedError(f"there is no scan for {x.ndim} dimensions of {val.dtype}")
    # From its own dtype to the result's first, as eager does: an integer may not fit into the other's.
    x = as_dtype(lowering, as_dtype(lowering, x, val.dtype), kind)
    region = lowering.contiguous(x)
    out = (region.shape, dense_strides(region.shape), kind, val.device)
    numbers = [dim % len(region.shape), product, _SCANNED[kind]]
    return as_dtype(lowering, launch(lowering, "scan", [region], [out], numbers, math.prod(region.shape))[0], val.dtype)


# ---- convolutions ------------------------------------------------------------------------------------------------------

FORWARD, INPUT, WEIGHT = range(3)


def convolution(lowering, what, a, b, bias, shape, val, how):
    """``what`` FORWARD: of (input, weight), INPUT and WEIGHT: the adjoints, of (output's cotangent, weight) and (that, input). ``shape``: of the
    result; ``how``: stride, padding, dilation, groups. See csrc/conv.c."""
    stride, padding, dilation, groups = how
    kind = _single(val.dtype)
    n = len(shape) - 2
    if not 1 <= n <= 3:
        raise NotImplementedError(f"there is no convolution of {n} dimensions")
    if not blas.gemm_address(short(kind)):
        raise NotImplementedError("convolutions are made with a BLAS library, and this process has none")
    if any(not at_least(size(p), 0) for p in padding):
        raise NotImplementedError(f"the padding of a convolution may be negative: {list(padding)}")
    late = bias if what == INPUT else None  # a transposed convolution's is added by whoever reads the result
    bias = bias if what == FORWARD else None
    inputs = [lowering.contiguous(as_dtype(lowering, x, kind)) for x in (a, b, bias) if x is not None]
    numbers = [what, kind is dtypes.float64, bias is not None, groups]
    for part, fill in ((stride, 1), (padding, 0), (dilation, 1)):
        numbers += [*[fill] * (3 - n), *part]
    shape = sizes(shape)
    out = (shape, dense_strides(shape), kind, val.device)
    flops = 2 * math.prod(inputs[0].shape) * math.prod(inputs[1].shape[1:])
    made = launch(lowering, "convolution", inputs, [out], numbers, flops)[0]
    if late is not None:
        t, late, product = short(kind), as_dtype(lowering, late, kind), made
        add = lambda c: lowering.values.make("add", (product.at(c), late.at((c[1],))), t)  # noqa: E731
        made = lowering.lazy(shape, kind, add, strides=product.strides, device=val.device)
    return as_dtype(lowering, made, val.dtype)


# ---- attention ---------------------------------------------------------------------------------------------------------


def _rows(lowering, x):
    """In memory with rows side by side, as the kernel reads it."""
    region = lowering.realize(x)
    _, _, t, e = region.shape
    if (region.strides[3] == 1 or e == 1) and (t == 1 or at_least(region.strides[2] - e, 0)):
        return region
    return lowering.contiguous(lowering.lazy(x.sizes, x.dtype, x.at))


def attention(lowering, vals, tensors, mask, causal, scale, backward=(), kept=None, boost=1.0):
    """softmax(scale q k^T + mask) v and its logarithmic sums, or with ``backward`` (the cotangent, the output, the sums) the cotangents of q, k and
    v, and of the mask where there are four ``vals``, the results' shapes and strides. ``kept``: the weights that dropout leaves, times ``boost``.
    See csrc/attention.c."""
    kind = vals[0].dtype
    if kind not in (dtypes.float32, dtypes.float64) or not blas.gemm_address(short(kind)):
        raise NotImplementedError(f"there is no attention in {kind}")
    if hasattr(scale, "__sym__"):
        raise NotImplementedError("the scale depends on a size")
    regions = [_rows(lowering, x) for x in tensors]
    (b, h, t, e), s = regions[0].shape, regions[1].shape[2]
    if mask is not None:
        r, whole = lowering.realize(mask), (b, h, t, s)
        skip = 4 - len(r.shape)
        strides = [0] * skip + [0 if n == 1 else st for n, st in zip(r.shape, r.strides)]
        regions.append(Region(r.buffer, whole, tuple(strides), r.offset))
    if kept is not None:
        regions.append(lowering.contiguous(kept))
    if backward:
        cotangent, out, sums = backward
        regions += [_rows(lowering, cotangent), _rows(lowering, out), lowering.realize(sums)]
    outs = []
    for v in vals:
        shape, strides = sizes(v.shape), sizes(v.stride())
        if len(outs) == 3:
            strides = dense_strides(shape)
        elif len(shape) == 4 and not (strides[3] == 1 and at_least(strides[2] - shape[3], 0)):
            strides = dense_like(shape, dense_strides(shape))
        outs.append((shape, strides, kind, v.device))
    numbers = [causal, _bits(float(scale)), mask is not None, kind is dtypes.float64, kept is not None, _bits(boost)]
    flops = (10 if backward else 4) * b * h * t * s * e
    return launch(lowering, "attention_backward" if backward else "attention", regions, outs, numbers, flops)


# ---- linear layers of few bits -----------------------------------------------------------------------------------------


def weight_only(lowering, val, x, weight, scales, group):
    """The product of x (M, K) with a weight of 8 bits (N, K), ``group`` 0, or of 4 (N, K / 2), and its scales: see csrc/weight_only.c."""
    shape, kind = sizes(val.shape), dtypes.float32
    regions = [lowering.contiguous(y) for y in (as_dtype(lowering, x, kind), weight, as_dtype(lowering, scales, kind))]
    out = (shape, dense_strides(shape), kind, val.device)
    made = launch(lowering, "weight_only", regions, [out], [group], 2 * math.prod(shape) * size(x.sizes[1]))[0]
    return as_dtype(lowering, made, val.dtype)


# ---- pooling -----------------------------------------------------------------------------------------------------------


def max_pool(lowering, vals, x, kernel, stride, padding):
    """Maxima over windows of the last two dimensions and their places in the plane, see csrc/pool.c."""
    region = lowering.contiguous(x)
    if not at_least(2**31 - 1 - region.shape[-2] * region.shape[-1], 0) and type(region.shape[-1]) is int:
        raise NotImplementedError("planes of more than 2 ** 31 elements")
    outs = [(sizes(v.shape), dense_strides(sizes(v.shape)), v.dtype, v.device) for v in vals]
    numbers = [*kernel, *stride, *padding, x.dtype is dtypes.float64]
    return launch(lowering, "max_pool", [region], outs, numbers, math.prod(outs[0][0]) * math.prod(map(size, kernel)))


def max_pool_backward(lowering, val, name, cotangent, places):
    """The cotangent of what was pooled; a place outside of its plane is an IndexError that names the operator."""
    shape, tag = sizes(val.shape), len(lowering.messages)
    lowering.messages.append(name)
    regions = [lowering.contiguous(x) for x in (cotangent, places)]
    out = (shape, dense_strides(shape), val.dtype, val.device)
    return launch(lowering, "max_pool_backward", regions, [out], [val.dtype is dtypes.float64, tag], math.prod(shape))[
        0
    ]
