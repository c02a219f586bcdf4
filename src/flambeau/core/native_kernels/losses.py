"""Losses and distances."""

from __future__ import annotations

import math

from ...base import dtypes, kernels
from ...base.result_spec import ResultSpec
from ...base.sizes import dense_strides, sizes

__all__ = ["ctc", "label_margins", "pair_distances"]

_FLOAT = {dtypes.float32: "f32", dtypes.float64: "f64"}  # as base/blas.py names them


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
