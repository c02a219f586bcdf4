"""Distances between the rows of two matrices, and their derivative."""

from __future__ import annotations

import math

import numpy as np

from ...base import kernels
from ...base.shapes import broadcast_shapes
from ...core.declare import COMPLEX, composite, explicit
from ...core.operator import namespace
from ...core.promotion import _scalar_name
from .checks import batched, dense, extern

aten = namespace("aten")


def _check_points(x1, x2) -> None:
    for name, x in (("X1", x1), ("X2", x2)):
        if len(x.shape) < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {len(x.shape)}D")
    if x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {x1.shape[-1]} X2: {x2.shape[-1]}")


def _cdist_meta(x1, x2, p, compute_mode=None):
    _check_points(x1, x2)
    batch = broadcast_shapes(tuple(x1.shape[:-2]), tuple(x2.shape[:-2]))
    return dense((*batch, x1.shape[-2], x2.shape[-2]), x1)


def _powered(diff, p):
    """The p-norm of the last dimension."""
    if p == 2:
        return np.sqrt((diff * diff).sum(-1))
    size = np.abs(diff)
    if p == 0:
        return (size != 0).sum(-1).astype(diff.dtype)
    if p == 1:
        return size.sum(-1)
    if p == math.inf:
        return size.max(-1, initial=0)
    return (size**p).sum(-1) ** (1 / p)


@extern(
    "_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor",
    refuse=COMPLEX,
    meta=_cdist_meta,
    variants="function",
)
def _cdist_forward(a, b, p, compute_mode):
    _check_points(a, b)
    if a.dtype in (np.float32, np.float64) and a.dtype == b.dtype:
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        count, out = math.prod(batch), np.empty((*batch, a.shape[-2], b.shape[-2]), a.dtype)
        points = [
            np.ascontiguousarray(np.broadcast_to(x, (*batch, *x.shape[-2:]))).reshape(count, *x.shape[-2:])
            for x in (a, b)
        ]
        if out.size:
            kernels.distances(points, [out.reshape(count, *out.shape[-2:])], f64=a.itemsize == 8, p=p, pairs=False)
        return out
    return np.ascontiguousarray(_powered(a[..., :, None, :] - b[..., None, :, :], p).astype(a.dtype, copy=False))


batched(_cdist_forward).override("lower", lambda low, val, x1, x2, p, mode: low.distances(val, x1, x2, p))


def _distance_slope(g, diff, dist, p):
    """Cotangents of the differences: 0 where points coincide."""
    g, dist = aten.unsqueeze.default(g, -1), aten.unsqueeze.default(dist, -1)
    if p == 0:
        return aten.zeros_like.default(aten.mul.Tensor(g, diff))
    none = aten.eq.Scalar(dist, 0)
    if p == 1:
        return aten.mul.Tensor(g, aten.sgn.default(diff))
    if p == math.inf:
        hit = aten.eq.Tensor(aten.abs.default(diff), dist)
        return aten.where.ScalarOther(hit, aten.mul.Tensor(g, aten.sgn.default(diff)), 0)
    if p == 2:
        slope = aten.mul.Tensor(g, aten.div.Tensor(diff, aten.masked_fill.Scalar(dist, none, 1)))
    else:
        size = aten.abs.default(diff)
        still = aten.eq.Scalar(size, 0)
        scale = aten.mul.Tensor(g, aten.pow.Tensor_Scalar(aten.masked_fill.Scalar(dist, none, 1), 1 - p))
        powers = aten.pow.Tensor_Scalar(aten.masked_fill.Scalar(size, still, 1), p - 1)
        slope = aten.mul.Tensor(scale, aten.mul.Tensor(aten.sgn.default(diff), powers))
    return aten.masked_fill.Scalar(slope, none, 0)


def _cdist_vjp(ct, x1, x2, p, result, mask):
    diff = aten.sub.Tensor(aten.unsqueeze.default(x1, -2), aten.unsqueeze.default(x2, -3))
    slope = _distance_slope(ct, diff, result, p)
    return (
        aten.sum_to_size.default(aten.sum.dim_IntList(slope, [-2]), list(x1.shape)) if mask[0] else None,
        aten.sum_to_size.default(aten.neg.default(aten.sum.dim_IntList(slope, [-3])), list(x2.shape))
        if mask[1]
        else None,
    )


_cdist_forward.derivative(x1__x2=_cdist_vjp)


@explicit(
    "_cdist_backward(Tensor grad, Tensor x1, Tensor x2, float p, Tensor cdist) -> Tensor",
    refuse=COMPLEX,
    variants="function",
)
def _cdist_backward(grad, x1, x2, p, cdist):
    return _cdist_vjp(grad, x1, x2, p, cdist, (True, False))[0]


@composite("cdist(Tensor x1, Tensor x2, float p=2, int? compute_mode=None) -> Tensor", variants="function")
def cdist(x1, x2, p, compute_mode):
    _check_points(x1, x2)
    for name, x in (("X1", x1), ("X2", x2)):
        if not x.dtype.is_floating_point:
            raise RuntimeError(f"cdist only supports floating-point dtypes, {name} got: {_scalar_name(x.dtype)}")
    if not p >= 0:
        raise RuntimeError("cdist only supports non-negative p values")
    if x1.dtype is not x2.dtype:
        raise RuntimeError(f"expected scalar type {_scalar_name(x1.dtype)} but found {_scalar_name(x2.dtype)}")
    if compute_mode is not None and not 0 <= compute_mode <= 2:
        raise RuntimeError(f"possible modes: 0, 1, 2, but was: {compute_mode}")
    return aten._cdist_forward.default(x1, x2, p, compute_mode)
