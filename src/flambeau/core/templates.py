"""Calls of the runtime's templates (csrc/natives.c): what each is handed, written once against a handler ``h``.

The override "lower" of an operator says which template makes it; two handlers run it. Lowering makes a launch in a compiled graph, where sizes may
be expressions (inductor/lowering.py); recipes make a step of an eager call (eager/templates.py). A handler has

``launch(name, parts, outs, numbers, flops)``: the tensors that the template makes; ``outs`` has (shape, strides in elements, dtype, device) of each
``realize(x)``, ``contiguous(x)``: where a tensor lies, in C order: a part with ``shape`` and ``strides``
``image(x)``: the same in C order or with channels last; ``image_strides(shape, ruled, weight)``: how a result lies whose shape rule says ``ruled``
``part(part, shape, strides)``: the same memory seen with other sizes; ``in_memory(part, dtype, strides, device)``: it as a tensor
``as_dtype(x, dtype)``, ``biased(x, bias)`` (a tensor (N, C, ...) plus one of (C,)), ``full(shape, dtype, number, device)``: tensors
``message(text)``: the number of what an error of the template is about

NotImplementedError: there is no template for that.
"""

from __future__ import annotations

import math
import struct

from ..base import blas, dtypes, fft
from ..base.expr import at_least
from ..base.order import FIRST, KINDS, LONGEST, WHOLE
from ..base.select import SEARCHED
from ..base.shapes import normalize_dim
from ..base.sizes import dense_strides, size, sizes
from .layouts import dense_like

__all__ = [
    "arrange",
    "attention",
    "common_dtype",
    "convolution",
    "extreme",
    "logcumsumexp",
    "max_pool",
    "max_pool_backward",
    "packed_product_bf16",
    "product_bf16",
    "running",
    "scan",
    "search",
    "transform",
    "weight_only",
]


def _bits(x: float) -> int:
    return struct.unpack("q", struct.pack("d", x))[0]


def _single(dtype):
    """What a template computes in."""
    if dtype in (dtypes.float16, dtypes.bfloat16):
        return dtypes.float32
    if dtype not in (dtypes.float32, dtypes.float64):
        raise NotImplementedError(f"there is no template for {dtype}")
    return dtype


# ---- scans -------------------------------------------------------------------------------------------------------------


_SCANNED = {dtypes.float32: 0, dtypes.float64: 1, dtypes.int64: 2}


def scan(h, val, x, dim, product: bool):
    """Running sums or products along a dimension, see csrc/scan.c."""
    kind = dtypes.float32 if val.dtype in (dtypes.float16, dtypes.bfloat16) else val.dtype
    if kind not in _SCANNED or not x.ndim:
        raise NotImplementedError(f"there is no scan for {x.ndim} dimensions of {val.dtype}")
    # From its own dtype to the result's first, as eager does: an integer may not fit into the other's.
    x = h.as_dtype(h.as_dtype(x, val.dtype), kind)
    part = h.contiguous(x)
    out = (part.shape, dense_strides(part.shape), kind, val.device)
    numbers = [dim % len(part.shape), product, _SCANNED[kind]]
    return h.as_dtype(h.launch("scan", [part], [out], numbers, math.prod(part.shape))[0], val.dtype)


def running(h, vals, x, dim, least: bool):
    """[values, places] of cummax or cummin."""
    kind = KINDS.get(x.dtype.name)
    if kind is None or not x.ndim:
        raise NotImplementedError(f"there are no running extremes of {x.ndim} dimensions of {x.dtype}")
    part = h.contiguous(x)
    strides = dense_strides(part.shape)
    outs = [(part.shape, strides, v.dtype, v.device) for v in vals]
    return h.launch("running", [part], outs, [dim % x.ndim, kind, least], 4 * math.prod(part.shape))


def logcumsumexp(h, val, x, dim):
    wide = dtypes.float32 if x.dtype in (dtypes.float16, dtypes.bfloat16) else x.dtype
    if wide not in (dtypes.float32, dtypes.float64) or not x.ndim:
        raise NotImplementedError(f"there is no running logarithm of {x.ndim} dimensions of {x.dtype}")
    part = h.contiguous(h.as_dtype(x, wide))
    out = (part.shape, dense_strides(part.shape), wide, val.device)
    numbers = [dim % x.ndim, wide is dtypes.float64]
    made = h.launch("logcumsumexp", [part], [out], numbers, 60 * math.prod(part.shape))[0]
    return h.as_dtype(made, val.dtype)


# ---- order -------------------------------------------------------------------------------------------------------------


def arrange(h, val, what, x, dim, descending=False, k=0, sorted=True, keepdim=True):
    """[values, places] as :func:`flambeau.base.order.arrange` gives them; ``val``: the results without data (of a median of all elements, one)."""
    kind = KINDS.get(x.dtype.name)
    if kind is None:
        raise NotImplementedError(f"there is no sorting of {x.dtype}")
    if not x.ndim:
        device = x.device
        return [h.in_memory(h.contiguous(x), x.dtype, (), device), h.full((), dtypes.int64, 0, device)]
    part = h.realize(x)
    shape = part.shape
    if not isinstance(val, (tuple, list)):  # of all elements
        shape = (math.prod(shape),)
        part, dim, keepdim = h.part(h.contiguous(x), shape, (1,)), 0, False
    dim %= len(shape)
    if type(shape[dim]) is int and shape[dim] > LONGEST:
        raise NotImplementedError("lines of more than 2 ** 31 elements")
    count = {WHOLE: shape[dim], FIRST: size(k)}.get(what, 1)
    if what != WHOLE and not at_least(count, 1):
        raise NotImplementedError("no element is wanted")
    out = (*shape[:dim], count, *shape[dim + 1 :])
    ruled = val[0] if what == WHOLE and isinstance(val, (tuple, list)) else None  # of a result by its shape rule
    strides = dense_strides(out) if ruled is None else sizes(ruled.stride())
    outs = [(out, strides, t, x.device) for t in (x.dtype, dtypes.int64)]
    numbers = [dim, what, kind, bool(descending), k, bool(sorted)]
    made = h.launch("order", [part], outs, numbers, 20 * math.prod(shape))
    if not keepdim:
        made = [_without(h, m, dim) for m in made]
    return made if isinstance(val, (tuple, list)) else made[0]


def extreme(h, x, dim, least: bool):
    """The places (without the dimension, int64) of the greatest or least elements along ``dim``; None: of all elements."""
    kind = KINDS.get(x.dtype.name)
    if kind is None or not x.ndim:
        raise NotImplementedError(f"there is no extreme of {x.ndim} dimensions of {x.dtype}")
    if dim is None:
        part, dim = h.part(h.contiguous(x), (math.prod(x.sizes),), (1,)), 0
    else:
        part, dim = h.realize(x), normalize_dim(dim, x.ndim)
    shape = (*part.shape[:dim], *part.shape[dim + 1 :])
    out = (shape, dense_strides(shape), dtypes.int64, x.device)
    return h.launch("extreme", [part], [out], [dim, kind, least], math.prod(part.shape))[0]


def _without(h, made, dim):
    """A tensor in memory without a dimension of size 1."""
    drop = lambda part: (*part[:dim], *part[dim + 1 :])  # noqa: E731
    part = h.realize(made)
    part = h.part(part, drop(part.shape), drop(part.strides))
    return h.in_memory(part, made.dtype, part.strides, made.device)


def common_dtype(*tensors):
    """The dtype of SEARCHED in which NumPy compares elements of these."""
    if any(t.dtype.is_complex for t in tensors):
        raise NotImplementedError("complex numbers have no order")
    kinds = {dtypes.float32 if t.dtype in (dtypes.float16, dtypes.bfloat16) else t.dtype for t in tensors}
    if kinds == {dtypes.float32}:
        return dtypes.float32
    if any(t.is_floating_point for t in kinds):
        return dtypes.float64
    if dtypes.uint64 in kinds:
        raise NotImplementedError("integers beyond those of int64")
    return dtypes.int64


def search(h, val, sequence, values, right: bool):
    """searchsorted; ``val``: int64 or int32."""
    if not sequence.ndim:
        raise NotImplementedError("a sequence without a dimension")
    common = common_dtype(sequence, values)
    parts = [h.contiguous(h.as_dtype(t, common)) for t in (sequence, values)]
    out = (parts[1].shape, dense_strides(parts[1].shape), val.dtype, val.device)
    numbers = [SEARCHED[common.name], right, val.dtype is dtypes.int32]
    return h.launch("search", parts, [out], numbers, 30 * math.prod(parts[1].shape))[0]


# ---- convolutions ------------------------------------------------------------------------------------------------------

FORWARD, INPUT, WEIGHT = range(3)


def convolution(h, what, a, b, bias, shape, val, how):
    """``what`` FORWARD: of (input, weight), INPUT and WEIGHT: the adjoints, of (output's cotangent, weight) and (that, input). ``shape``: of the
    result; ``how``: stride, padding, dilation, groups. See csrc/conv.c."""
    stride, padding, dilation, groups = how
    kind = _single(val.dtype)
    n = len(shape) - 2
    if not 1 <= n <= 3:
        raise NotImplementedError(f"there is no convolution of {n} dimensions")
    if not blas.gemm_address(_FLOAT[kind]):
        raise NotImplementedError("convolutions are made with a BLAS library, and this process has none")
    if any(not at_least(size(p), 0) for p in padding):
        raise NotImplementedError(f"the padding of a convolution may be negative: {list(padding)}")
    late = bias if what == INPUT else None  # a transposed convolution's is added to what is made
    bias = bias if what == FORWARD else None
    inputs = [h.image(h.as_dtype(x, kind)) for x in (a, b, bias) if x is not None]
    numbers = [what, kind is dtypes.float64, bias is not None, groups]
    for given, fill in ((stride, 1), (padding, 0), (dilation, 1)):
        numbers += [*[fill] * (3 - n), *given]
    numbers.append(0)  # the way: what sizes let expect
    shape = sizes(shape)
    out = (shape, h.image_strides(shape, sizes(val.stride()), what == WEIGHT), kind, val.device)
    flops = 2 * math.prod(inputs[0].shape) * math.prod(inputs[1].shape[1:])
    made = h.launch("convolution", inputs, [out], numbers, flops)[0]
    if late is not None:
        made = h.biased(made, h.as_dtype(late, kind))
    return h.as_dtype(made, val.dtype)


# ---- attention ---------------------------------------------------------------------------------------------------------

_FLOAT = {dtypes.float32: "f32", dtypes.float64: "f64"}  # as base/blas.py names them


def _rows(h, x):
    """In memory with rows side by side, as the kernel reads it."""
    part = h.realize(x)
    _, _, t, e = part.shape
    if (part.strides[3] == 1 or e == 1) and (t == 1 or at_least(part.strides[2] - e, 0)):
        return part
    return h.contiguous(x)


def attention(h, vals, tensors, mask, causal, scale, backward=(), kept=None, boost=1.0):
    """softmax(scale q k^T + mask) v and its logarithmic sums, or with ``backward`` (the cotangent, the output, the sums) the cotangents of q, k and
    v, and of the mask where there are four ``vals``, the results' shapes and strides. ``kept``: bits, the weights that dropout leaves, times
    ``boost``. See csrc/attention.c."""
    kind = vals[0].dtype
    if kind not in _FLOAT or not blas.gemm_address(_FLOAT[kind]):
        raise NotImplementedError(f"there is no attention in {kind}")
    if hasattr(scale, "__sym__"):
        raise NotImplementedError("the scale depends on a size")
    parts = [_rows(h, x) for x in tensors]
    (b, heads, t, e), s = parts[0].shape, parts[1].shape[2]
    if mask is not None:
        p, whole = h.realize(mask), (b, heads, t, s)
        skip = 4 - len(p.shape)
        strides = [0] * skip + [0 if n == 1 else st for n, st in zip(p.shape, p.strides)]
        parts.append(h.part(p, whole, tuple(strides)))
    if kept is not None:
        parts.append(h.contiguous(kept))
    if backward:
        cotangent, out, sums = backward
        parts += [_rows(h, cotangent), _rows(h, out), h.realize(sums)]
    outs = []
    for v in vals:
        shape, strides = sizes(v.shape), sizes(v.stride())
        if len(outs) == 3:
            strides = dense_strides(shape)
        elif len(shape) == 4 and not (strides[3] == 1 and at_least(strides[2] - shape[3], 0)):
            strides = dense_like(shape, dense_strides(shape))
        outs.append((shape, strides, kind, v.device))
    masked = 0 if mask is None else 2 if mask.dtype is dtypes.bool_ else 1
    numbers = [causal, _bits(float(scale)), masked, kind is dtypes.float64, kept is not None, _bits(boost)]
    flops = (10 if backward else 4) * b * heads * t * s * e
    return h.launch("attention_backward" if backward else "attention", parts, outs, numbers, flops)


# ---- linear layers of few bits -----------------------------------------------------------------------------------------


def weight_only(h, val, x, weight, scales, group):
    """The product of x (M, K) with a weight of 8 bits (N, K), ``group`` 0, or of 4 (N, K / 2), and its scales: see csrc/weight_only.c."""
    shape, kind = sizes(val.shape), dtypes.float32
    parts = [h.contiguous(y) for y in (h.as_dtype(x, kind), weight, h.as_dtype(scales, kind))]
    out = (shape, dense_strides(shape), kind, val.device)
    made = h.launch("weight_only", parts, [out], [group], 2 * math.prod(shape) * size(x.sizes[1]))[0]
    return h.as_dtype(made, val.dtype)


def product_bf16(h, val, a, b, addend=None, beta=1, alpha=1):
    """``alpha * a @ b + beta * addend`` of what ``blas.takes_bf16`` takes, rounded once; without an addend, the product."""
    return _product_bf16(h, "product_bf16", val, [_by_lines(h, a), _by_lines(h, b)], addend, beta, alpha)


def packed_product_bf16(h, val, a, packed, addend):
    """``a`` times what was packed (csrc/product_bf16.c) plus ``addend``, which may be None."""
    return _product_bf16(h, "product_bf16_packed", val, [_by_lines(h, a), h.contiguous(packed)], addend, 1, 1)


def _by_lines(h, x):
    """A matrix in memory whose rows or columns are contiguous."""
    part = h.realize(x)
    by_lines = any(part.strides[d] == 1 or part.shape[d] == 1 for d in (-1, -2))
    return part if by_lines else h.contiguous(x)


def _product_bf16(h, name, val, given, addend, beta, alpha):
    shape, weights = sizes(val.shape), []
    if addend is not None:
        part = h.realize(addend)
        lead = len(shape) - len(part.shape)
        strides = [0 if n == 1 else s for n, s in zip(part.shape, part.strides)]
        given.append(h.part(part, shape, (*[0] * lead, *strides)))
        weights = [_bits(float(alpha)), _bits(float(beta))]
    out = (shape, dense_strides(shape), dtypes.bfloat16, val.device)
    return h.launch(name, given, [out], weights, 2 * math.prod(shape) * given[0].shape[-1])[0]


# ---- pooling -----------------------------------------------------------------------------------------------------------


def max_pool(h, vals, x, kernel, stride, padding):
    """Maxima over windows of the last two dimensions and their places in the plane, see csrc/pool.c."""
    part = h.contiguous(x)
    if not at_least(2**31 - 1 - part.shape[-2] * part.shape[-1], 0) and type(part.shape[-1]) is int:
        raise NotImplementedError("planes of more than 2 ** 31 elements")
    outs = [(sizes(v.shape), dense_strides(sizes(v.shape)), v.dtype, v.device) for v in vals]
    numbers = [*kernel, *stride, *padding, x.dtype is dtypes.float64]
    return h.launch("max_pool", [part], outs, numbers, math.prod(outs[0][0]) * math.prod(map(size, kernel)))


def max_pool_backward(h, val, name, cotangent, places):
    """The cotangent of what was pooled; a place outside of its plane is an IndexError that names the operator."""
    shape = sizes(val.shape)
    parts = [h.contiguous(x) for x in (cotangent, places)]
    out = (shape, dense_strides(shape), val.dtype, val.device)
    numbers = [val.dtype is dtypes.float64, h.message(name)]
    return h.launch("max_pool_backward", parts, [out], numbers, math.prod(shape))[0]


# ---- Fourier transforms ------------------------------------------------------------------------------------------------


def transform(h, kind, x, dims, shape, strides, dtype, scale):
    """A kind of transform of base/fft.py along ``dims`` in its order, of lengths that its ``suits`` takes; strides and dtype: the result's."""
    out = (sizes(shape), sizes(strides), dtype, x.device)
    numbers = fft.described(kind, dtype.np, dims, scale)
    return h.launch("fft", [h.realize(x)], [out], numbers, 60 * math.prod(out[0]))[0]
