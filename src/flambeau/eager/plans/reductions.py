"""The rule of reductions."""

from __future__ import annotations

import math

import numpy as np

from ...base import products
from ...base.shapes import contiguous_strides, normalize_dims
from ...core.body import TABLE, Input, trace
from ...core.operator import OpOverload
from ...core.reductions import arguments
from ..reduction import LONG
from .expressions import expression
from .program import Program
from .rules import rule
from .values import NotPlanned, bytes_of, narrow, value_meta

_START = {
    np.add: lambda d: 0,
    np.multiply: lambda d: 1,
    np.logical_and: lambda d: True,
    np.logical_or: lambda d: False,
    np.maximum: lambda d: -np.inf if d.kind == "f" else np.iinfo(d).min,
    np.minimum: lambda d: np.inf if d.kind == "f" else np.iinfo(d).max,
}


@rule("reduction")
def _reduction(p: Program, op: OpOverload, values, out):
    d = op.definition
    r = arguments(op)([value_meta(values[0]), *values[1:]])
    if d.combine in ("argmax", "argmin"):
        from . import native_kernels

        return native_kernels.extreme(p, values[0], r.dims, r.keepdim, d.combine == "argmin")
    x, acc = values[0], r.acc.np
    if narrow(acc):  # an extreme, say: in float32 it is the same
        if d.map is not None or d.finalize is not None or d.combine not in ("maximum", "minimum"):
            raise NotPlanned
        acc = np.dtype(np.float32)
    axes = normalize_dims(r.dims, len(x.shape))
    ufunc = TABLE[d.combine].numpy
    if ufunc not in _START or (acc.kind == "b" and ufunc not in (np.logical_and, np.logical_or)):
        raise NotPlanned
    if d.map is not None:
        root, _ = trace(lambda s, *a: d.map(s, *a), [Input("x"), *r.params])
        x = expression(p, root, {"x": p.cast(x, acc)}, x.shape, None, acc)
    else:
        x = p.cast(x, acc)
    if ufunc is np.add and any(x.shape[a] > LONG and abs(x.strides[a]) > acc.itemsize for a in axes):
        raise NotPlanned  # the kernel adds in blocks
    if (
        ufunc is np.add
        and acc.kind == "f"
        and len(axes) < len(x.shape) + (x.strides != bytes_of(contiguous_strides(x.shape), acc))
    ):
        if any(x.shape[a] > LONG and abs(x.strides[a]) > acc.itemsize for a in axes):
            raise NotPlanned  # long sums are taken in blocks, which only the kernel does
    n = math.prod(x.shape[a] for a in axes)
    kept = tuple(1 if k in axes else m for k, m in enumerate(x.shape))
    shape = kept if r.keepdim else tuple(m for k, m in enumerate(x.shape) if k not in axes)
    last = d.finalize is None and acc == r.out.np
    found = products.lines(x.shape, x.strides, acc, axes) if ufunc is np.multiply else None
    if found is not None:
        from . import native_kernels

        made = native_kernels.line_products(p, x.seen(found, bytes_of(contiguous_strides(found), acc), dtype=acc))
        made = made.seen(shape, bytes_of(contiguous_strides(shape), acc))
        return made if last else p.copy(made, p.memory(out, shape, r.out.np))
    total = p.memory(out if last else None, shape, acc)
    over = total.seen(kept, bytes_of(contiguous_strides(kept), acc))
    if bytes_of(contiguous_strides(shape), acc) != total.strides:
        raise NotPlanned
    p.copy(p.constant(_START[ufunc](acc), acc), total)
    strides = [over.broadcast(x.shape), x.strides, over.broadcast(x.shape)]
    num = acc.num
    # Sums of several dimensions are sums of sums, as NumPy's: what is added to what is a matter of the inner loop.
    transposed = sum(x.shape[a] > 1 for a in axes) < 2
    p.loops(
        ("ufunc", ufunc, (num, num, num)), x.shape, [over, x, over], strides, order=x.strides, transposed=transposed
    )
    if last:
        return total
    if d.finalize is None:
        return p.copy(total, p.memory(out, shape, r.out.np))
    root, _ = trace(lambda s, a: d.finalize(s, a, n, *r.params), [Input("acc")])
    return expression(p, root, {"acc": total}, shape, out, r.out.np)
