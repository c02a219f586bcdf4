"""Reduction kernels: map, ufunc.reduce, finalize."""

from __future__ import annotations

import math

import numpy as np

from .. import _C
from ..base.products import line_products
from ..base.shapes import normalize_dims
from ..core.body import TABLE
from ..core.operator import OpOverload
from ..core.reductions import arguments
from .backend import rule
from .pointwise import NUMPY

LONG = 512  # terms that are added one after the other without a loss that shows


def _sum(x, axis, dtype):
    """Sum in blocks. NumPy adds pairwise along the fastest dimension only; along another one the error grows with the number of terms."""
    x = x.astype(dtype, copy=False)
    for d in sorted(axis, key=lambda d: -abs(x.strides[d])):
        n = x.shape[d]
        if n > LONG and abs(x.strides[d]) > x.itemsize:
            whole = n // LONG * LONG
            head, tail = np.split(x, [whole], d)
            blocks = head.reshape(*x.shape[:d], n // LONG, LONG, *x.shape[d + 1 :]).sum(d + 1)
            x = _sum(np.concatenate([blocks, tail.sum(d, keepdims=True)], d), (d,), dtype)
            x = np.expand_dims(x, d)
        else:
            x = np.add.reduce(x, axis=d, keepdims=True)
    return x.reshape([m for k, m in enumerate(x.shape) if k not in axis])


@rule("reduction")
def reduction(op: OpOverload):
    d = op.definition
    spec = arguments(op)
    from_array = _C.computed
    arg = d.combine in ("argmax", "argmin")
    ufunc = None if arg else TABLE[d.combine].numpy

    def run(*args):
        r = spec(args)
        x = r.input._array
        axes = normalize_dims(r.dims, x.ndim)
        if arg:
            return from_array(_argument(d.combine, x, r.dims, axes, r.keepdim, op))
        if d.map is not None:
            x = d.map(NUMPY, x, *r.params) if x.dtype == r.acc.np else d.map(NUMPY, x.astype(r.acc.np), *r.params)
        n = math.prod(x.shape[a] for a in axes)
        if d.init is None and n == 0 and x.ndim:
            _refuse_empty(op, x.shape, r.dims)
        if r.acc.np.kind == "b" and x.dtype.kind != "b":
            x = x != 0
        if ufunc is np.multiply:
            reduce = line_products
        else:
            reduce = _sum if ufunc is np.add and x.size > LONG and r.acc.np.kind == "f" else ufunc.reduce
        out = reduce(x, axes, r.acc.np)
        if d.finalize is not None:
            out = d.finalize(NUMPY, out, n, *r.params)
        out = np.asarray(out, r.out.np, order="C")  # row-major whatever the input's order, as in PyTorch
        return from_array(out.reshape([1 if k in axes else m for k, m in enumerate(x.shape)]) if r.keepdim else out)

    return run


def _refuse_empty(op, shape, dims):
    """There is no extreme of nothing."""
    if dims is None or dims == []:
        kind = IndexError if op.definition.combine.startswith("arg") else RuntimeError
        raise kind(
            f"{op._opname}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' "
            "argument."
        )
    d = next(d for d in normalize_dims(dims, len(shape)) if shape[d] == 0)
    raise IndexError(f"{op._opname}(): Expected reduction dim {d} to have non-zero size.")


def _argument(combine, x, dims, axes, keepdim, op):
    fn = np.argmax if combine == "argmax" else np.argmin
    if x.size == 0 and x.ndim:
        if dims is None or 0 in [x.shape[a] for a in axes]:
            _refuse_empty(op, x.shape, dims)
        kept = [1 if k in axes else m for k, m in enumerate(x.shape) if keepdim or k not in axes]
        return np.zeros(kept, np.int64)
    if dims is None:
        out = np.asarray(fn(x))
        return out.reshape((1,) * x.ndim) if keepdim else out
    if x.ndim == 0:
        return np.zeros((), np.int64)
    out = np.asarray(fn(x, axis=axes[0]), order="C")
    return out.reshape([1 if k in axes else m for k, m in enumerate(x.shape)]) if keepdim else out
