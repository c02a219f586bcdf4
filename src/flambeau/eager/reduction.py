"""Reduction kernels: map, ufunc.reduce, finalize."""

from __future__ import annotations

import math

import numpy as np

from .. import _C
from ..base.shapes import normalize_dims
from ..core.body import TABLE
from ..core.operator import OpOverload
from ..core.reductions import arguments
from .backend import rule
from .pointwise import NUMPY


@rule("reduction")
def reduction(op: OpOverload):
    d = op.definition
    spec = arguments(op)
    from_array = _C.from_array
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
            raise IndexError(
                f"{op._opname}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim "
                "with the 'dim' argument."
            )
        if r.acc.np.kind == "b" and x.dtype.kind != "b":
            x = x != 0
        out = ufunc.reduce(x, axis=axes, dtype=r.acc.np)
        if d.finalize is not None:
            out = d.finalize(NUMPY, out, n, *r.params)
        out = np.asarray(out, r.out.np, order="C")  # row-major whatever the input's order, as in PyTorch
        return from_array(out.reshape([1 if k in axes else m for k, m in enumerate(x.shape)]) if r.keepdim else out)

    return run


def _argument(combine, x, dims, axes, keepdim, op):
    fn = np.argmax if combine == "argmax" else np.argmin
    if x.size == 0:
        raise IndexError(
            f"{op._opname}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the "
            "'dim' argument."
        )
    if dims is None:
        out = np.asarray(fn(x))
        return out.reshape((1,) * x.ndim) if keepdim else out
    if x.ndim == 0:
        return np.zeros((), np.int64)
    out = np.asarray(fn(x, axis=axes[0]), order="C")
    return out.reshape([1 if k in axes else m for k, m in enumerate(x.shape)]) if keepdim else out
