"""Scans and sorting: kinds of their own in NumPy, declared as extern with their shape rules and derivatives."""

from __future__ import annotations

import numpy as np

from ..base import dtypes
from ..base.shapes import contiguous_strides, normalize_dim
from ..core.declare import composite, extern
from ..core.definition import TensorMeta
from ..core.operator import namespace

aten = namespace("aten")


def _same(self, dtype=None):
    shape = tuple(self.shape)
    return TensorMeta(shape, contiguous_strides(shape), dtype or self.dtype, self.device)


def _scan_dtype(self_dtype, dtype):
    return dtype or (dtypes.int64 if self_dtype.category < 2 else self_dtype)


def _scan_meta(self, dim, dtype):
    normalize_dim(dim, len(self.shape))
    return _same(self, _scan_dtype(self.dtype, dtype))


def _scan(ufunc):
    def kernel(a, dim, dtype):
        dt = _scan_dtype(dtypes.from_numpy(a.dtype), dtype).np
        wide = np.dtype(np.float32) if dt.itemsize < 4 and dt.kind not in "biu" else dt
        if a.ndim == 0:
            return a.astype(dt)
        normalize_dim(dim, a.ndim)
        return np.ascontiguousarray(ufunc.accumulate(a.astype(wide, copy=False), axis=dim).astype(dt, copy=False))

    return kernel


cumsum = extern("cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", meta=_scan_meta, inplace=True, has_out=True)(_scan(np.add))
cumsum.derivative(self=lambda ct, dim: ct if ct.ndim == 0 else aten.flip.default(aten.cumsum.default(aten.flip.default(ct, [dim]), dim), [dim]))
cumprod = extern("cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", meta=_scan_meta, inplace=True, has_out=True)(_scan(np.multiply))


def _cumprod_vjp(ct, self, result, dim):
    """Where no element is zero: reversed cumulative sum of ct*result, over self."""
    if bool(aten.any.default(aten.eq.Scalar(self, 0)).item()):
        raise NotImplementedError("cumprod: the derivative at inputs with zeros is not built yet")
    total = aten.cumsum.default(aten.flip.default(aten.mul.Tensor(ct, result), [dim]), dim)
    return aten.div.Tensor(aten.flip.default(total, [dim]), self)


cumprod.derivative(self=_cumprod_vjp)


def _order(a, dim, descending, stable):
    """Indices that sort along ``dim``; NaN counts as the largest, as in PyTorch."""
    if a.ndim == 0:
        return np.zeros((), np.int64)
    if descending:
        # A stable descending order: sort the reversed array ascending and mirror the indices.
        n = a.shape[dim]
        idx = np.argsort(np.flip(a, dim), axis=dim, kind="stable")
        return np.ascontiguousarray(n - 1 - np.flip(idx, dim)).astype(np.int64, copy=False)
    return np.argsort(a, axis=dim, kind="stable").astype(np.int64, copy=False)


def _sort_meta(self, *args):
    return _same(self), _same(self, dtypes.int64)


def _sort(a, dim, descending):
    if a.ndim:
        normalize_dim(dim, a.ndim)
    idx = _order(a, dim, descending, True)
    return (np.take_along_axis(a, idx, dim) if a.ndim else a.copy()), idx


def _gathered_vjp(ct0, self, result1, dim):
    """The cotangent of picked values goes back where they were picked."""
    if self.ndim == 0:
        return ct0
    return aten.scatter.src(aten.new_zeros.default(ct0, list(self.shape)), dim, result1, ct0)


@extern("sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)", meta=_sort_meta, has_out=True)
def sort(a, dim, descending):
    return _sort(a, dim, descending)


sort.derivative(self=_gathered_vjp)


@extern("sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
        meta=lambda self, stable, dim, descending: _sort_meta(self), has_out=True)
def sort_stable(a, stable, dim, descending):
    return _sort(a, dim, descending)


sort_stable.derivative(self=_gathered_vjp)


@composite("argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor")
def argsort(self, dim, descending):
    return aten.sort.default(self, dim, descending)[1]


@composite("argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor")
def argsort_stable(self, stable, dim, descending):
    return aten.sort.stable(self, stable=stable, dim=dim, descending=descending)[1]


@composite("msort(Tensor self) -> Tensor")
def msort(self):
    return aten.sort.default(self, 0)[0]


def _topk_meta(self, k, dim, largest, sorted):
    n = self.shape[dim] if len(self.shape) else 1
    if not 0 <= k <= n:
        raise RuntimeError("selected index k out of range")
    shape = tuple(k if e == dim % max(len(self.shape), 1) else m for e, m in enumerate(self.shape))
    strides = contiguous_strides(shape)
    return TensorMeta(shape, strides, self.dtype, self.device), TensorMeta(shape, strides, dtypes.int64, self.device)


@extern("topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)", meta=_topk_meta, has_out=True)
def topk(a, k, dim, largest, sorted):
    if a.ndim == 0:
        return a.copy(), np.zeros((), np.int64)
    normalize_dim(dim, a.ndim)
    if not 0 <= k <= a.shape[dim]:
        raise RuntimeError("selected index k out of range")
    idx = np.ascontiguousarray(np.take(_order(a, dim, largest, True), np.arange(k), axis=dim))
    return np.take_along_axis(a, idx, dim), idx


topk.derivative(self=_gathered_vjp)


@composite("kthvalue(Tensor self, int k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)")
def kthvalue(self, k, dim, keepdim):
    values, indices = aten.sort.default(self, dim)
    pick = (lambda t: aten.slice.Tensor(t, dim, k - 1, k)) if keepdim else (lambda t: aten.select.int(t, dim, k - 1))  # noqa: E731
    return pick(values), pick(indices)
