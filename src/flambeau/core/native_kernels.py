"""Calls of native kernels (csrc/runtime/kernels.def): what each is handed, written once against a handler ``h``.

The override "lower" of an operator says which kernel makes it; two handlers run it. Lowering makes a launch in a compiled graph, where sizes may
be expressions (inductor/lowering/lowering.py); call plans make a step of an eager call (eager/native_kernels.py). A handler has

``launch(kernel, operands, outs, flops, **numbers)``: the tensors that a kernel makes; ``outs`` has the ResultSpec of
each, None for one that isn't wanted; ``flops``: about how many operations it makes; ``by_planes=True``: worth going on by finished planes
``realize(x)``, ``contiguous(x)``: where a tensor lies, in C order: a part with ``shape`` and ``strides``
``image(x)``: the same in C order or with channels last; ``image_strides(shape, ruled, as_ruled)``: how a result lies whose shape rule says ``ruled``
``part(part, shape, strides)``: the same memory seen with other sizes; ``in_memory(part, dtype, strides, device)``: it as a tensor
``as_dtype(x, dtype)``, ``copied(x)``, ``biased(x, bias)`` (a tensor (N, C, ...) plus one of (C,)), ``full(shape, dtype, number, device)``: tensors
``message(text, about)``: the number of what an error of the kernel is about (core/messages.py)

NotImplementedError: there is no kernel for that.
"""

from __future__ import annotations

import math

from ..base import blas, dtypes, fft, kernels
from ..base.expr import at_least
from ..base.kernels import ORDERED, Conv, Order, Segment, Sharing, Transform, Way, element
from ..base.memory_format import contiguous_format, is_last
from ..base.order import LONGEST
from ..base.result_spec import ResultSpec
from ..base.select import SEARCHED, common_dtype
from ..base.shapes import normalize_dim
from ..base.sizes import dense_strides, size, sizes
from .layouts import dense_like, image_format
from .messages import About

__all__ = [
    "arrange",
    "attention",
    "bags",
    "chosen_parameters",
    "combine",
    "conv_bytes",
    "convolution",
    "ctc",
    "exponential_units",
    "extreme",
    "grid_sample",
    "label_margins",
    "layer_norm",
    "line_products",
    "logcumsumexp",
    "max_pool",
    "max_pool_backward",
    "mode",
    "packed_product_bf16",
    "pair_distances",
    "pad_edges",
    "product_bf16",
    "product_bytes",
    "restride",
    "running",
    "scan",
    "search",
    "segments",
    "softmax",
    "transform",
    "weight_only",
    "window_sums",
    "without_nan",
]


def _single(dtype):
    """What a kernel computes in."""
    if dtype in (dtypes.float16, dtypes.bfloat16):
        return dtypes.float32
    if dtype not in (dtypes.float32, dtypes.float64):
        raise NotImplementedError(f"there is no kernel for {dtype}")
    return dtype


# ---- scans -------------------------------------------------------------------------------------------------------------


_SCANNED = ("float32", "float64", "int64")


def scan(h, val, x, dim, product: bool):
    """Running sums or products along a dimension, see csrc/kernels/scan.c."""
    kind = dtypes.float32 if val.dtype in (dtypes.float16, dtypes.bfloat16) else val.dtype
    if not x.ndim:
        normalize_dim(dim, 0)
        return h.copied(h.as_dtype(x, val.dtype))
    if kind.name not in _SCANNED:
        raise NotImplementedError(f"there is no scan for {x.ndim} dimensions of {val.dtype}")
    # From its own dtype to the result's first, as eager does: an integer may not fit into the other's.
    x = h.as_dtype(h.as_dtype(x, val.dtype), kind)
    part = h.contiguous(x)
    out = ResultSpec(part.shape, dense_strides(part.shape), kind, val.device)
    numbers = {"dim": normalize_dim(dim, len(part.shape)), "product": product, "element": element(kind)}
    return h.as_dtype(h.launch(kernels.scan, [part], [out], math.prod(part.shape), **numbers)[0], val.dtype)


def running(h, vals, x, dim, least: bool):
    """[values, places] of cummax or cummin."""
    kind = element(x.dtype, ORDERED)
    if kind is None or not x.ndim:
        raise NotImplementedError(f"there are no running extremes of {x.ndim} dimensions of {x.dtype}")
    part = h.contiguous(x)
    strides = dense_strides(part.shape)
    outs = [ResultSpec(part.shape, strides, v.dtype, v.device) for v in vals]
    numbers = {"dim": normalize_dim(dim, x.ndim), "least": least, "element": kind}
    return h.launch(kernels.running, [part], outs, 4 * math.prod(part.shape), **numbers)


def logcumsumexp(h, val, x, dim):
    wide = dtypes.float32 if x.dtype in (dtypes.float16, dtypes.bfloat16) else x.dtype
    if wide not in (dtypes.float32, dtypes.float64) or not x.ndim:
        raise NotImplementedError(f"there is no running logarithm of {x.ndim} dimensions of {x.dtype}")
    part = h.contiguous(h.as_dtype(x, wide))
    out = ResultSpec(part.shape, dense_strides(part.shape), wide, val.device)
    numbers = {"dim": normalize_dim(dim, x.ndim), "f64": wide is dtypes.float64}
    made = h.launch(kernels.logcumsumexp, [part], [out], 60 * math.prod(part.shape), **numbers)[0]
    return h.as_dtype(made, val.dtype)


# ---- order -------------------------------------------------------------------------------------------------------------


def arrange(h, val, what: Order, x, dim, descending=False, k=0, sorted=True, keepdim=True):
    """[values, places] as :func:`flambeau.base.order.arrange` gives them; ``val``: the results without data (of a median of all elements, one)."""
    kind = element(x.dtype, ORDERED)
    if kind is None:
        raise NotImplementedError(f"there is no sorting of {x.dtype}")
    if not x.ndim:
        normalize_dim(dim, 0)
        device = x.device
        return [h.in_memory(h.contiguous(x), x.dtype, (), device), h.full((), dtypes.int64, 0, device)]
    part = h.realize(x)
    shape = part.shape
    if not isinstance(val, (tuple, list)):  # of all elements
        shape = (math.prod(shape),)
        part, dim, keepdim = h.part(h.contiguous(x), shape, (1,)), 0, False
    dim = normalize_dim(dim, len(shape))
    if type(shape[dim]) is int and shape[dim] > LONGEST:
        raise NotImplementedError("lines of more than 2 ** 31 elements")
    count = {Order.WHOLE: shape[dim], Order.FIRST: size(k)}.get(what, 1)
    if what != Order.WHOLE and not at_least(count, 1):
        raise NotImplementedError("no element is wanted")
    out = (*shape[:dim], count, *shape[dim + 1 :])
    ruled = val[0] if what == Order.WHOLE and isinstance(val, (tuple, list)) else None  # of a result by its shape rule
    strides = dense_strides(out) if ruled is None else sizes(ruled.stride())
    outs = [ResultSpec(out, strides, t, x.device) for t in (x.dtype, dtypes.int64)]
    numbers = {"part": what, "k": k, "descending": bool(descending), "sorted": bool(sorted), "element": kind}
    made = h.launch(kernels.order, [part], outs, 20 * math.prod(shape), dim=dim, **numbers)
    if not keepdim:
        made = [_without(h, m, dim) for m in made]
    return made if isinstance(val, (tuple, list)) else made[0]


def extreme(h, x, dim, least: bool):
    """The places (without the dimension, int64) of the greatest or least elements along ``dim``; None: of all elements."""
    kind = element(x.dtype, ORDERED)
    if kind is None or not x.ndim:
        raise NotImplementedError(f"there is no extreme of {x.ndim} dimensions of {x.dtype}")
    if dim is None:
        part, dim = h.part(h.contiguous(x), (math.prod(x.sizes),), (1,)), 0
    else:
        part, dim = h.realize(x), normalize_dim(dim, x.ndim)
    shape = (*part.shape[:dim], *part.shape[dim + 1 :])
    out = ResultSpec(shape, dense_strides(shape), dtypes.int64, x.device)
    numbers = {"dim": dim, "least": least, "element": kind}
    return h.launch(kernels.extreme, [part], [out], math.prod(part.shape), **numbers)[0]


def mode(h, vals, x, dim, keepdim: bool):
    """[values, places] of the most frequent elements along ``dim``."""
    kind = element(x.dtype, ORDERED)
    if kind is None or not x.ndim or not at_least(math.prod(x.sizes), 1):
        raise NotImplementedError(f"there is no order of {x.ndim} dimensions of {x.dtype}, or nothing")
    d, part = normalize_dim(dim, x.ndim), h.realize(x)
    last = lambda t: (*t[:d], *t[d + 1 :], t[d])  # noqa: E731
    lines = h.part(part, last(part.shape), last(part.strides))
    lines = h.in_memory(lines, x.dtype, lines.strides, x.device)
    *rest, n = lines.sizes
    count = math.prod(rest)
    parts = [h.part(h.realize(t), (count, n), (n, 1)) for t in arrange(h, (None, None), Order.WHOLE, lines, len(rest))]
    outs = [ResultSpec((count,), (1,), t, x.device) for t in (dtypes.int64, x.dtype)]
    places, values = h.launch(kernels.mode, parts, outs, 4 * count * n, element=kind)
    shape = sizes(vals[0].shape)
    made = [h.part(h.realize(t), shape, dense_strides(shape)) for t in (values, places)]
    return [h.in_memory(t, v.dtype, t.strides, x.device) for t, v in zip(made, vals)]


def _without(h, made, dim):
    """A tensor in memory without a dimension of size 1."""
    drop = lambda part: (*part[:dim], *part[dim + 1 :])  # noqa: E731
    part = h.realize(made)
    part = h.part(part, drop(part.shape), drop(part.strides))
    return h.in_memory(part, made.dtype, part.strides, made.device)


def search(h, val, sequence, values, right: bool):
    """searchsorted; ``val``: int64 or int32."""
    if not sequence.ndim:
        raise NotImplementedError("a sequence without a dimension")
    common = common_dtype(sequence, values)
    parts = [h.contiguous(h.as_dtype(t, common)) for t in (sequence, values)]
    out = ResultSpec(parts[1].shape, dense_strides(parts[1].shape), val.dtype, val.device)
    numbers = {"right": bool(right), "narrow": val.dtype is dtypes.int32, "element": element(common, SEARCHED)}
    return h.launch(kernels.search, parts, [out], 30 * math.prod(parts[1].shape), **numbers)[0]


# ---- sequences ---------------------------------------------------------------------------------------------------------


def ctc(h, val, name, log_probs, parts, blank: int, **numbers):
    """Losses, or with their cotangents first among ``parts`` (labels and lengths, int64) the cotangent of ``log_probs``: csrc/kernels/ctc.c."""
    if val.dtype not in _FLOAT or any(x.dtype is not dtypes.int64 for x in parts[-3:]):
        raise NotImplementedError(f"there is no kernel for {val.dtype}, or for lengths that aren't int64")
    *cotangents, labels, given, wanted = (h.contiguous(x) for x in parts)
    shape, read = sizes(val.shape), h.contiguous(log_probs)
    out = ResultSpec(shape, dense_strides(shape), val.dtype, val.device)
    numbers |= {"blank": blank, "f64": val.dtype is dtypes.float64, "outside": h.message(name)}
    kernel = kernels.ctc_backward if cotangents else kernels.ctc
    flops = 50 * math.prod(read.shape[:2]) * labels.shape[-1]
    return h.launch(kernel, [*cotangents, read, labels, given, wanted], [out], flops, **numbers)[0]


# ---- convolutions ------------------------------------------------------------------------------------------------------


def convolution(h, what: Conv, a, b, bias, shape, val, how):
    """``what`` FORWARD: of (input, weight), INPUT and WEIGHT: the adjoints, of (output's cotangent, weight) and (that, input). ``shape``: of the
    result; ``how``: stride, padding, dilation, groups. See csrc/kernels/conv.c."""
    stride, padding, dilation, groups = how
    kind = _single(val.dtype)
    n = len(shape) - 2
    if not 1 <= n <= 3:
        raise NotImplementedError(f"there is no convolution of {n} dimensions")
    if not blas.gemm_address(_FLOAT[kind]):
        raise NotImplementedError("convolutions are made with a BLAS library, and this process has none")
    if any(not at_least(size(p), 0) for p in padding):
        raise NotImplementedError(f"the padding of a convolution may be negative: {list(padding)}")
    late = bias if what == Conv.INPUT else None  # a transposed convolution's is added to what is made
    bias = bias if what == Conv.FORWARD else None
    inputs = [x if x is None else h.image(h.as_dtype(x, kind)) for x in (a, b, bias)]
    numbers = {"direction": what, "f64": kind is dtypes.float64, "groups": groups, "way": Way.USUAL}
    for name, given, fill in (("stride", stride, 1), ("padding", padding, 0), ("dilation", dilation, 1)):
        numbers[name] = (*[fill] * (3 - n), *given)
    shape = sizes(shape)
    pixels = what != Conv.WEIGHT and kind is dtypes.float32 and _stays_last(inputs, shape, how)
    as_ruled = pixels or what == Conv.WEIGHT
    out = ResultSpec(shape, h.image_strides(shape, sizes(val.stride()), as_ruled), kind, val.device)
    flops = 2 * math.prod(inputs[0].shape) * math.prod(inputs[1].shape[1:])
    made = h.launch(kernels.convolution, inputs, [out], flops, by_planes=not as_ruled, **numbers)[0]
    if late is not None:
        made = h.biased(made, h.as_dtype(late, kind))
    return h.as_dtype(made, val.dtype)


def _stays_last(inputs, shape, how) -> bool:
    """Whether a convolution is best left in channels-last order, see csrc/kernels/conv_pixels.c: its images lie so, have enough channels for
    vectors of them, and neither Winograd's transforms nor a plain product makes it, which read and write either order."""
    image, weight = inputs[:2]
    stride, _, dilation, groups = how
    if not is_last(image.shape, image.strides) or any(type(n) is not int for n in (image.shape[1], *weight.shape)):
        return False
    taps = tuple(weight.shape[2:])
    unit = all(n == 1 for n in (*stride, *dilation))
    elsewhere = unit and (math.prod(taps) == 1 or (taps == (3, 3) and groups == 1))
    return not elsewhere and min(weight.shape[0] // groups, weight.shape[1], image.shape[1] // groups) >= 16


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
    ``boost``. See csrc/kernels/attention.c."""
    kind = vals[0].dtype
    if kind not in _FLOAT or not blas.gemm_address(_FLOAT[kind]):
        raise NotImplementedError(f"there is no attention in {kind}")
    parts = [_rows(h, x) for x in tensors]
    (b, heads, t, e), s = parts[0].shape, parts[1].shape[2]
    if mask is not None:
        p, whole = h.realize(mask), (b, heads, t, s)
        skip = 4 - len(p.shape)
        strides = [0] * skip + [0 if n == 1 else st for n, st in zip(p.shape, p.strides)]
        parts.append(h.part(p, whole, tuple(strides)))
    else:
        parts.append(None)
    parts.append(kept if kept is None else h.contiguous(kept))
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
        outs.append(ResultSpec(shape, strides, kind, v.device))
    numbers = {"causal": causal, "scale": scale, "boost": boost, "f64": kind is dtypes.float64}
    numbers["truths"] = mask is not None and mask.dtype is dtypes.bool_
    flops = (10 if backward else 4) * b * heads * t * s * e
    return h.launch(kernels.attention_backward if backward else kernels.attention, parts, outs, flops, **numbers)


# ---- linear layers of few bits -----------------------------------------------------------------------------------------


def weight_only(h, val, x, weight, scales, group):
    """The product of x (M, K) with a weight of 8 bits (N, K), ``group`` 0, or of 4 (N, K / 2), and its scales: see csrc/kernels/weight_only.c."""
    shape, kind = sizes(val.shape), dtypes.float32
    parts = [h.contiguous(y) for y in (h.as_dtype(x, kind), weight, h.as_dtype(scales, kind))]
    out = ResultSpec(shape, dense_strides(shape), kind, val.device)
    made = h.launch(kernels.weight_only, parts, [out], 2 * math.prod(shape) * size(x.sizes[1]), group=group)[0]
    return h.as_dtype(made, val.dtype)


def product_bytes(h, val, x, weight, zero_point, weight_zero_point):
    """The exact product of codes x (..., K) with those of a weight (N, K), less their zero points: see csrc/kernels/product_bytes.c."""
    shape = sizes(val.shape)
    rows = (math.prod(shape[:-1]), size(x.sizes[-1]))
    parts = [h.contiguous(y) for y in (x, weight, zero_point)] + [h.realize(weight_zero_point)]
    parts[0] = h.part(parts[0], rows, dense_strides(rows))
    out = ResultSpec((rows[0], shape[-1]), dense_strides((rows[0], shape[-1])), val.dtype, val.device)
    signed = {"a_signed": x.dtype is dtypes.int8, "b_signed": weight.dtype is dtypes.int8}
    made = h.launch(kernels.product_bytes, parts, [out], math.prod(shape) * rows[1] // 8, **signed)[0]
    strides = dense_strides(shape)
    return h.in_memory(h.part(h.realize(made), shape, strides), val.dtype, strides, val.device)


def conv_bytes(h, val, x, weight, zero_point, weight_zero_point, stride, padding, dilation, groups):
    """The exact sums of a convolution of codes (N, C, *sizes) with int8 ones of a weight, less their zero points: see csrc/kernels/conv_bytes.c."""
    if weight.dtype is not dtypes.int8:
        raise NotImplementedError(f"there is no convolution of codes with a weight of {weight.dtype}")
    n = len(val.shape) - 2
    parts = [h.realize(x), *map(h.contiguous, (weight, zero_point)), h.realize(weight_zero_point)]
    for i in (0, 1):
        p, fill = parts[i], 3 - n
        parts[i] = h.part(p, (*p.shape[:2], *[1] * fill, *p.shape[2:]), (*p.strides[:2], *[0] * fill, *p.strides[2:]))
    shape = sizes(val.shape)
    whole = (*shape[:2], *[1] * (3 - n), *shape[2:])
    out = ResultSpec(whole, dense_strides(whole), val.dtype, val.device)
    numbers = {"x_signed": x.dtype is dtypes.int8, "groups": groups}
    for name, given, fill in (("stride", stride, 1), ("padding", padding, 0), ("dilation", dilation, 1)):
        numbers[name] = (*[fill] * (3 - n), *given)
    flops = math.prod(shape) * math.prod(map(size, weight.shape[1:])) // 8
    made = h.launch(kernels.conv_bytes, parts, [out], flops, **numbers)[0]
    strides = dense_strides(shape)
    return h.in_memory(h.part(h.realize(made), shape, strides), val.dtype, strides, val.device)


def chosen_parameters(h, vals, x, low: int, high: int):
    """[scale, zero point] of codes from ``low`` to ``high`` for the whole of ``x``: see csrc/kernels/affine.c."""
    if x.dtype is not dtypes.float32:
        raise NotImplementedError(f"there is no kernel that chooses a scale for {x.dtype}")
    outs = [ResultSpec((), (), v.dtype, v.device) for v in vals]
    why = h.message("quantized: a scale can't be chosen for values that aren't finite", About.CONDITION)
    part = h.contiguous(x)
    flops = 4 * math.prod(part.shape)
    return h.launch(kernels.chosen_parameters, [part], outs, flops, low=low, high=high, not_finite=why)


def product_bf16(h, val, a, b, addend=None, beta=1, alpha=1):
    """``alpha * a @ b + beta * addend`` of what ``blas.takes_bf16`` takes, rounded once; without an addend, the product."""
    return _product_bf16(h, kernels.product_bf16, val, [_by_lines(h, a), _by_lines(h, b)], addend, beta, alpha)


def packed_product_bf16(h, val, a, packed, addend):
    """``a`` times what was packed (csrc/kernels/product_bf16.c) plus ``addend``, which may be None."""
    return _product_bf16(h, kernels.product_bf16_packed, val, [_by_lines(h, a), h.contiguous(packed)], addend, 1, 1)


def _by_lines(h, x):
    """A matrix in memory whose rows or columns are contiguous."""
    part = h.realize(x)
    by_lines = any(part.strides[d] == 1 or part.shape[d] == 1 for d in (-1, -2))
    return part if by_lines else h.contiguous(x)


def _product_bf16(h, kernel, val, given, addend, beta, alpha):
    shape = sizes(val.shape)
    if addend is not None:
        part = h.realize(addend)
        lead = len(shape) - len(part.shape)
        strides = [0 if n == 1 else s for n, s in zip(part.shape, part.strides)]
        given.append(h.part(part, shape, (*[0] * lead, *strides)))
    out = ResultSpec(shape, dense_strides(shape), dtypes.bfloat16, val.device)
    flops = 2 * math.prod(shape) * given[0].shape[-1]
    return h.launch(kernel, given, [out], flops, alpha=alpha, beta=beta)[0]


# ---- pooling -----------------------------------------------------------------------------------------------------------


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


# ---- elements ----------------------------------------------------------------------------------------------------------


def _elementwise(h, kernel, x, **numbers):
    shape, strides = tuple(x.shape), tuple(x.strides)
    if x.dtype not in _FLOAT or not math.prod(shape) or strides != tuple(dense_strides(shape)):
        raise NotImplementedError(f"there is no one pass over {x.dtype} and sizes {list(shape)}")
    out = ResultSpec(shape, strides, x.dtype, x.device)
    return h.launch(kernel, [x], [out], 4 * math.prod(shape), f64=x.dtype is dtypes.float64, **numbers)[0]


def exponential_units(h, x, scale, below, inner):
    """``scale * x`` above 0, else ``below * expm1(inner * x)``, with the bits of these operations: see csrc/kernels/elementwise.c."""
    numbers = {"scale": scale, "below": below, "inner": inner}
    if any(type(n) not in (int, float) for n in numbers.values()) or not inner:
        raise NotImplementedError(f"the body has its own words for {numbers}")
    return _elementwise(h, kernels.exponential_units, x, **{name: float(n) for name, n in numbers.items()})


def without_nan(h, x):
    """The elements, and 0 in place of nan."""
    return _elementwise(h, kernels.without_nan, x)


# ---- segments ----------------------------------------------------------------------------------------------------------


def segments(h, val, x, reduce: str, lengths, offsets, axis: int, unsafe: bool, initial, refused: str):
    """segment_reduce; ``refused``: what is said of lengths that aren't those of the rows."""
    if val.dtype not in _FLOAT or reduce.upper() not in Segment.__members__ or (lengths is offsets is None):
        raise NotImplementedError(f"there is no reduction {reduce} of segments of {val.dtype}")
    shape, given = sizes(val.shape), offsets if lengths is None else lengths
    before, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    if math.prod(given.sizes[:-1]) != before:
        raise NotImplementedError("lengths may be of other rows")
    data, where = h.contiguous(x), h.contiguous(h.as_dtype(given, dtypes.int64))
    rows, count = x.sizes[axis], where.shape[-1]
    parts = [
        h.part(data, (before, rows, inner), (rows * inner, inner, 1)),
        h.part(where, (before, count), (count, 1)),
    ]
    out = ResultSpec((before, shape[axis], inner), (shape[axis] * inner, inner, 1), val.dtype, val.device)
    numbers = {"reduce": Segment[reduce.upper()], "offsets": lengths is None, "unsafe": bool(unsafe)}
    numbers |= {"started": initial is not None, "initial": initial or 0.0, "f64": val.dtype is dtypes.float64}
    tag = h.message(refused, About.CONDITION)
    flops = math.prod(x.sizes)
    made = h.launch(kernels.segment_reduce, parts, [out], flops, effect=not unsafe, **numbers, refused=tag)[0]
    strides = dense_strides(shape)
    return h.in_memory(h.part(h.realize(made), shape, strides), val.dtype, strides, val.device)


def combine(h, x, dim, index, source, reduce: str, included: bool):
    """scatter_reduce with an index of equally many dimensions: see csrc/kernels/combine.c."""
    kind = dtypes.float32 if x.dtype in (dtypes.float16, dtypes.bfloat16) else x.dtype
    way = Segment.__members__.get({"amax": "MAX", "amin": "MIN"}.get(reduce, reduce.upper()))
    if kind not in (*_FLOAT, dtypes.int64) or way is None or (kind is dtypes.int64 and way == Segment.MEAN):
        raise NotImplementedError(f"there is no reduction {reduce} of {x.dtype} by places")
    shape, d = tuple(x.shape), normalize_dim(dim, len(x.shape))
    fits = x.dtype is source.dtype and index.dtype in (dtypes.int64, dtypes.int32)
    fits = fits and 0 < len(shape) == len(index.shape) == len(source.shape) <= 8
    if not fits or any(
        i > s or (e != d and i > n) for e, (n, i, s) in enumerate(zip(shape, index.shape, source.shape))
    ):
        raise NotImplementedError("an index that isn't as large")
    into, source = (h.as_dtype(t, kind) for t in (x, source))
    source = h.realize(source)
    parts = [
        h.contiguous(into),
        h.realize(h.as_dtype(index, dtypes.int64)),
        h.part(source, index.shape, source.strides),
    ]
    out = ResultSpec(shape, dense_strides(shape), kind, x.device)
    numbers = {"dim": d, "reduce": way, "included": bool(included), "element": element(kind)}
    flops = math.prod(shape) + 4 * math.prod(index.shape)
    return h.as_dtype(h.launch(kernels.combine, parts, [out], flops, **numbers)[0], x.dtype)


def bags(h, table, indices, starts, mode: int, weights, padding: int):
    """[rows of a table combined by bags, the bag of each index, the sizes of bags, where maxima are]; ``mode``: sum, mean, maximum."""
    kind, (_, width) = table.dtype, table.shape
    if kind not in _FLOAT or not math.prod((*table.shape, *indices.shape, *starts.shape)):
        raise NotImplementedError(f"there are no bags of {kind} and sizes {list(table.shape)}")
    whole = (dtypes.int64, dtypes.int32)
    if indices.dtype not in whole or starts.dtype not in whole or len(indices.shape) != 1 or len(starts.shape) != 1:
        raise NotImplementedError("indices of other kinds")
    if weights is not None and (weights.dtype is not kind or tuple(weights.shape) != tuple(indices.shape)):
        raise NotImplementedError("weights of other kinds")
    count, shape = starts.shape[0], (starts.shape[0], width)
    parts = [h.contiguous(table), *(h.contiguous(h.as_dtype(t, dtypes.int64)) for t in (indices, starts))]
    parts.append(None if weights is None else h.contiguous(weights))
    wanted = [(shape, kind), (tuple(indices.shape), dtypes.int64), ((count,), dtypes.int64)]
    outs = [ResultSpec(s, dense_strides(s), t, table.device) for s, t in [*wanted, (shape, dtypes.int64)]]
    if mode != 2:
        outs[3] = None
    numbers = {"padding": padding, "mean": mode == 1, "f64": kind is dtypes.float64}
    flops = 2 * math.prod(indices.shape) * width
    made = h.launch(kernels.embedding_bag, parts, outs, flops, **numbers)
    made[2] = h.as_dtype(made[2], indices.dtype)
    return [*made[:3], made[3] if mode == 2 else made[2]]


def label_margins(h, x, target, cotangents=None):
    """The mean margin of each row's labels over its other classes, or with cotangents the gradient: see csrc/kernels/margins.c."""
    shape, kind = tuple(x.shape), x.dtype
    if kind not in _FLOAT or not math.prod(shape) or (cotangents is not None and cotangents.dtype is not kind):
        raise NotImplementedError(f"there are no margins of {kind} and sizes {list(shape)}")
    parts = [h.contiguous(t) for t in (x, target)]
    made = shape[:1] if cotangents is None else shape
    out = ResultSpec(made, dense_strides(made), kind, x.device)
    flops, f64 = math.prod(shape) * shape[1], kind is dtypes.float64
    if cotangents is None:
        return h.launch(kernels.label_margins, parts, [out], flops, f64=f64)[0]
    return h.launch(kernels.label_margins_backward, [h.contiguous(cotangents), *parts], [out], flops, f64=f64)[0]


def pair_distances(h, x, p: float):
    """Distances of all pairs of the rows of a matrix, see csrc/kernels/special.c."""
    n, m = tuple(x.shape)
    if x.dtype not in _FLOAT or n < 2 or not m:
        raise NotImplementedError(f"there are no distances of {x.dtype} and sizes {[n, m]}")
    part, count = h.part(h.contiguous(x), (1, n, m), (n * m, m, 1)), n * (n - 1) // 2
    out = ResultSpec((count,), (1,), x.dtype, x.device)
    numbers = {"f64": x.dtype is dtypes.float64, "p": p, "pairs": True}
    return h.launch(kernels.distances, [part, part], [out], 3 * count * m, **numbers)[0]


# ---- Fourier transforms ------------------------------------------------------------------------------------------------


def restride(h, val, x, source, made, sharing: Sharing):
    """Elements of ``x`` put into memory by the strides and offset ``source``, and read from there by ``made``; see csrc/kernels/strides.c."""
    (source_strides, source_offset), (made_strides, made_offset) = source, made
    shape = sizes(val.shape)
    numbers = [*x.shape, *shape, *source_strides, *made_strides, source_offset, made_offset]
    if x.dtype not in (dtypes.float32, dtypes.float64) or max(x.ndim, len(shape)) > 8:
        raise NotImplementedError(f"there are no views by strides of {x.ndim} dimensions of {x.dtype}")
    if not all(type(n) is int for n in numbers):
        raise NotImplementedError("strides that aren't known")
    out = ResultSpec(shape, dense_strides(shape), x.dtype, val.device)
    places = {"source_strides": tuple(source_strides), "made_strides": tuple(made_strides)}
    offsets = {"source_offset": source_offset, "made_offset": made_offset}
    flops = math.prod(x.shape) + 2 * math.prod(shape)
    part = h.contiguous(x)
    return h.launch(
        kernels.restride, [part], [out], flops, sharing=sharing, f64=x.dtype is dtypes.float64, **places, **offsets
    )[0]


def transform(h, kind: Transform, x, dims, shape, strides, dtype, scale):
    """A kind of transform of base/fft.py along ``dims`` in its order, of lengths that its ``suits`` takes; strides and dtype: the result's."""
    out = ResultSpec(sizes(shape), sizes(strides), dtype, x.device)
    numbers = fft.numbers(kind, dtype.np, dims, scale)
    return h.launch(kernels.fft, [h.realize(x)], [out], 60 * math.prod(out.shape), **numbers)[0]


# ---- rows, in eager calls ------------------------------------------------------------------------------------------------


def softmax(h, x, dim, logarithm: bool):
    """Softmax, or its logarithm, along a dimension, see csrc/kernels/normal.c."""
    kind, shape = _single(x.dtype), tuple(x.shape)
    if not math.prod(shape) or not shape:
        raise NotImplementedError("there is nothing to normalize")
    d = normalize_dim(dim, len(shape))
    rows = (math.prod(shape[:d]), shape[d], math.prod(shape[d + 1 :]))
    part = h.part(h.contiguous(h.as_dtype(x, kind)), rows, dense_strides(rows))
    out = ResultSpec(rows, dense_strides(rows), kind, x.device)
    made = h.launch(
        kernels.softmax, [part], [out], 20 * math.prod(shape), logarithm=logarithm, f64=kind is dtypes.float64
    )
    return h.as_dtype(h.part(made[0], shape, dense_strides(shape)), x.dtype)


def grid_sample(h, image, grid, nearest: bool, border: bool, corners: bool):
    """Images (N, C, H, W) at the points of a grid (N, h, w, 2): see csrc/kernels/grid_sample.c."""
    kind, (n, channels, height, width), points = image.dtype, tuple(image.shape), tuple(grid.shape[1:3])
    if kind not in (dtypes.float32, dtypes.float64) or not math.prod((*image.shape, *points)):
        raise NotImplementedError(f"images of {kind} and sizes {list(image.shape)} aren't sampled here")
    if height * width >= 1 << 31:
        raise NotImplementedError("places in an image are 32-bit numbers")
    line, shape = (n, math.prod(points), 2), (n, channels, *points)
    operands = [h.contiguous(image), h.part(h.contiguous(grid), line, dense_strides(line))]
    out = ResultSpec(shape, dense_strides(shape), kind, image.device)
    numbers = {"nearest": nearest, "border": border, "corners": corners, "f64": kind is dtypes.float64}
    return h.launch(kernels.grid_sample, operands, [out], 20 * math.prod(shape), **numbers)[0]


def layer_norm(h, x, count: int, weight, bias, eps: float):
    """[output, mean, reciprocal deviation] over the last ``count`` dimensions; weight and bias of their sizes, or None."""
    kind, shape = _single(x.dtype), tuple(x.shape)
    if not math.prod(shape):
        raise NotImplementedError("there is nothing to normalize")
    lead = shape[: len(shape) - count]
    rows, each = (math.prod(lead), math.prod(shape[len(lead) :])), (*lead, *[1] * count)
    part = h.part(h.contiguous(h.as_dtype(x, kind)), rows, dense_strides(rows))
    affine = [t and h.part(h.contiguous(h.as_dtype(t, kind)), rows[1:], (1,)) for t in (weight, bias)]
    outs = [ResultSpec(s, dense_strides(s), kind, x.device) for s in (rows, rows[:1], rows[:1])]
    made = h.launch(
        kernels.layer_norm, [part, *affine], outs, 10 * math.prod(shape), eps=float(eps), f64=kind is dtypes.float64
    )
    shapes = (shape, each, each)
    return [h.as_dtype(h.part(m, s, dense_strides(s)), x.dtype) for m, s in zip(made, shapes)]
