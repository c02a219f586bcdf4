"""Operators along one dimension whose elements depend on each other: cumulative sums and products, sorting."""

from __future__ import annotations

import numpy as np

from ...base import blas, order
from ...base.dtypes import bool_, int64, sortable
from ...base.kernels import Order
from ...base.shapes import contiguous_strides, normalize_dim
from ...core.declare import COMPLEX, composite, extern, index
from ...core.definition import TensorMeta
from ...core.device_memory import elements
from ...core.dispatch import derivatives_asked
from ...core.layouts import dense_like, in_order, strides_of
from ...core.operator import namespace
from ...core.promotion import refused
from ...core.sharding import Apart
from .lines import by_lines

aten = namespace("aten")


def _transposed(self, dims) -> set[int]:
    transposed = {normalize_dim(d, len(self.shape)) for d in dims}
    if len(transposed) != len(dims):
        raise RuntimeError(f"flip: a dim appears multiple times in the list of dims {list(dims)}")
    return transposed


@index("flip(Tensor self, int[] dims) -> Tensor", mode="read", source="self", keeps_order=True, has_out=True)
def flip(ix, self, dims):
    transposed = _transposed(self, dims)
    return tuple(self.shape), lambda i, load, h: tuple(
        h.sub(n - 1, i[e]) if e in transposed else i[e] for e, n in enumerate(self.shape)
    )


flip.derivative(self=lambda ct, dims: aten.flip.default(ct, dims))


def _scanned(self, dim, dtype):
    normalize_dim(dim, len(self.shape))
    if dtype is bool_:
        refused("cumsum_out", dtype)
    return TensorMeta(
        tuple(self.shape),
        contiguous_strides(tuple(self.shape)),
        dtype or (int64 if self.dtype.category < 2 else self.dtype),
        self.device,
    )


def _scan(ufunc):
    def run(a, dim, dtype):
        normalize_dim(dim, a.ndim)
        if dtype is bool_:
            refused("cumsum_out", dtype)
        kind = dtype.np if dtype is not None else np.dtype(np.int64) if a.dtype.kind in "biu" else a.dtype
        if not a.ndim:
            return a.astype(kind)
        # Accumulated in a wider type and rounded once: a running sum in float32 is 4 % off after four million elements.
        if a.size and kind.char in "fdlq" and kind.isnative:
            return blas.scan(a.astype(kind, copy=False), normalize_dim(dim, a.ndim), ufunc is np.multiply)
        wide = {np.dtype(np.float32): np.float64, np.dtype(np.complex64): np.complex128}.get(kind)
        if wide is None:
            wide = np.float32 if kind.itemsize == 2 and kind.kind in "fV" else kind
        return ufunc.accumulate(a.astype(wide, copy=False), axis=dim, dtype=wide).astype(kind, order="C", copy=False)

    return run


cumsum = extern(
    "cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
    meta=_scanned,
    inplace=True,
    has_out=True,
    out_rules="casts dtype",
)(_scan(np.add))
cumprod = extern(
    "cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
    meta=_scanned,
    inplace=True,
    has_out=True,
    out_rules="casts dtype",
)(_scan(np.multiply))


cumsum.override("lower", lambda lowering, val, self, dim, dtype: lowering.scan(val, self, dim, False))
cumsum.override("sharding", Apart("dim", linear=True))
cumprod.override("sharding", Apart("dim"))
cumprod.override("lower", lambda lowering, val, self, dim, dtype: lowering.scan(val, self, dim, True))


def _reversed_cumsum(x, dim):
    return aten.flip.default(aten.cumsum.default(aten.flip.default(x, [dim]), dim), [dim])


cumsum.derivative(self=lambda ct, dim: _reversed_cumsum(ct, dim) if ct.ndim else ct)


def _cumprod_slope(ct, self, dim):
    """The same sum from all products (i, j) themselves, without division."""
    x, ct = aten.movedim.int(self, dim, -1), aten.movedim.int(ct, dim, -1)
    n = x.shape[-1]
    own = aten.eye.default(n, dtype=bool_, device=x.device)
    others = aten.where.ScalarSelf(
        own, 1, aten.unsqueeze.default(x, -2)
    )  # (..., i, k): the factors with the i-th left out
    terms = aten.mul.Tensor(aten.cumprod.default(others, -1), aten.unsqueeze.default(ct, -2))
    return aten.movedim.int(aten.sum.dim_IntList(aten.triu.default(terms), [-1]), -1, dim)


def _cumprod_vjp(ct, self, result, dim):
    """sum over j >= i of ct_j * (product of the factors up to j but for i).

    Before the first zero of a line that is ct_j * result_j / self_i; at the first zero it is the same sum with the zero left out of the product;
    after it every product contains the zero.
    """
    if not self.ndim:
        return ct
    values = elements(self) if derivatives_asked() else None
    if values is not None and not values.all():
        # What follows is right as a gradient, but not as a function to differentiate once more: after a zero it is a constant.
        return _cumprod_slope(ct, self, dim)
    zeros = aten.cumsum.default(aten.eq.Scalar(self, 0), dim)
    before = aten.eq.Scalar(zeros, 0)
    first = aten.logical_and.default(aten.eq.Scalar(self, 0), aten.eq.Scalar(zeros, 1))
    without = aten.cumprod.default(aten.masked_fill.Scalar(self, first, 1), dim)
    at_zero = _reversed_cumsum(aten.where.ScalarOther(aten.ge.Scalar(zeros, 1), aten.mul.Tensor(ct, without), 0), dim)
    plain = aten.div.Tensor(
        _reversed_cumsum(aten.mul.Tensor(ct, result), dim), aten.masked_fill.Scalar(self, aten.eq.Scalar(self, 0), 1)
    )
    return aten.where.self(before, plain, aten.where.ScalarOther(first, at_zero, 0))


cumprod.derivative(self=_cumprod_vjp)


# ---- sorting: NaN is the greatest, equal elements keep their order --------------------------------------------------------


def _order(a, dim, descending):
    """Indices that sort ``a`` stably along ``dim``."""
    if not descending:
        return np.argsort(a, axis=dim, kind="stable")
    # Reversed twice: a stable descending order, with NaN first.
    transposed = np.argsort(np.flip(a, dim), axis=dim, kind="stable")
    return np.flip(a.shape[dim] - 1 - transposed, dim)


def _sorted_pair(a, dim, descending, k=None):
    d = normalize_dim(dim, a.ndim)
    if not a.ndim:
        return a.copy(), np.zeros((), np.int64)
    like = dense_like(a.shape, strides_of(a)) if k is None else None
    made = order.arrange(Order.WHOLE if k is None else Order.FIRST, a, d, descending, k or 0, like)
    if made is not None:
        return made
    places = _order(sortable(a), dim, descending)
    if k is not None:
        places = np.take(places, range(k), axis=dim)
        return np.take_along_axis(a, places, dim), np.ascontiguousarray(places)
    return in_order(np.take_along_axis(a, places, dim), like), in_order(places, like)


def _pair_meta(self, shape, strides=None):
    strides = strides or contiguous_strides(shape)
    return TensorMeta(shape, strides, self.dtype, self.device), TensorMeta(shape, strides, int64, self.device)


def _sorted_meta(self, dim):
    normalize_dim(dim, len(self.shape))
    shape = tuple(self.shape)
    return _pair_meta(self, shape, dense_like(shape, strides_of(self)))


def _scatter_back(ct0, self_like, result1, dim):
    if not self_like.ndim:
        return ct0
    return aten.scatter.src(aten.new_zeros.default(ct0, list(self_like.shape)), dim, result1, ct0)


sort = extern(
    "sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
    refuse=COMPLEX,
    has_out=True,
    meta=lambda self, dim, descending: _sorted_meta(self, dim),
)(_sorted_pair)
sort.derivative(self=_scatter_back)
sort_stable = extern(
    "sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
    refuse=COMPLEX,
    has_out=True,
    meta=lambda self, stable, dim, descending: _sorted_meta(self, dim),
)(lambda a, stable, dim, descending: _sorted_pair(a, dim, descending))
sort_stable.derivative(self=_scatter_back)


sort.override("sharding", Apart("dim"))
sort_stable.override("sharding", Apart("dim"))


@sort.override("lower")
def _lower_sort(lowering, val, self, dim, descending):
    return lowering.arrange(val, Order.WHOLE, self, dim, descending)


@sort_stable.override("lower")
def _lower_stable_sort(lowering, val, self, stable, dim, descending):
    return lowering.arrange(val, Order.WHOLE, self, dim, descending)


def _topk_meta(self, k, dim, largest, sorted):
    if self.dtype.name == "bool":
        raise RuntimeError("topk does not support bool dtypes on CPU")
    n = len(self.shape)
    d = normalize_dim(dim, n)
    size = self.shape[d] if n else 1
    if not 0 <= k <= size:
        raise RuntimeError(f"selected index k out of range: k is {k}, dimension {dim} has size {size}")
    return _pair_meta(self, tuple(k if e == d else m for e, m in enumerate(self.shape)))


@extern(
    "topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)",
    refuse=COMPLEX,
    meta=_topk_meta,
    has_out=True,
)
def topk(a, k, dim, largest, sorted):
    if a.dtype == bool:
        raise RuntimeError("topk does not support bool dtypes on CPU")
    if not 0 <= k <= (a.shape[normalize_dim(dim, a.ndim)] if a.ndim else 1):
        raise RuntimeError(
            f"selected index k out of range: k is {k}, dimension {dim} has size {a.shape[dim] if a.ndim else 1}"
        )
    return _sorted_pair(a, dim, largest, k)


topk.derivative(self=_scatter_back)


topk.override("sharding", Apart("dim"))


@topk.override("lower")
def _lower_topk(lowering, val, self, k, dim, largest, sorted):
    return lowering.arrange(val, Order.FIRST, self, dim, largest, k, sorted)


@composite("argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor")
def argsort(self, dim, descending):
    return aten.sort.default(self, dim, descending)[1]


@composite("argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor")
def argsort_stable(self, stable, dim, descending):
    return aten.sort.stable(self, stable=stable, dim=dim, descending=descending)[1]


@composite("msort(Tensor self) -> Tensor", has_out=True, out_rules="exact")
def msort(self):
    return aten.sort.default(self, 0)[0]


def _kth_dim(shape, k, dim) -> int:
    """The dimension, counted from the front. IndexError for one without elements, RuntimeError for a ``k`` beyond it."""
    d = normalize_dim(dim, len(shape))
    size = shape[d] if shape else 1
    if size == 0:
        raise IndexError(f"kthvalue(): Expected reduction dim {dim} to have non-zero size.")
    if not 1 <= k <= size:
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {dim}")
    return d


def _kth_meta(self, k, dim, keepdim):
    shape = tuple(self.shape)
    d = _kth_dim(shape, k, dim)
    return _pair_meta(self, (*shape[:d], *((1,) if keepdim else ()), *shape[d + 1 :]) if shape else ())


@extern(
    "kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
    refuse=("bool", *COMPLEX),
    meta=_kth_meta,
    has_out=True,
    out_rules="outside",
)
def kthvalue(a, k, dim, keepdim):
    d = _kth_dim(a.shape, k, dim)
    if not a.ndim:
        return a.copy(), np.zeros((), np.int64)
    made = order.arrange(Order.RANK, a, d, k=k - 1)
    if made is None:
        places = np.take(_order(sortable(a), d, False), [k - 1], axis=d)
        made = np.take_along_axis(a, places, d), places
    return made if keepdim else tuple(np.squeeze(x, d) for x in made)


kthvalue.override("sharding", Apart("dim"))
kthvalue.override(
    "lower",
    lambda lowering, val, self, k, dim, keepdim: lowering.arrange(val, Order.RANK, self, dim, k=k - 1, keepdim=keepdim),
)


def _kth_vjp(ct0, self_like, result1, dim, keepdim):
    if self_like.ndim and not keepdim:
        ct0, result1 = aten.unsqueeze.default(ct0, dim), aten.unsqueeze.default(result1, dim)
    return _scatter_back(ct0, self_like, result1, dim)


kthvalue.derivative(self=_kth_vjp)


for _op in (cumsum, cumprod, sort, sort_stable, topk, kthvalue):
    by_lines(_op)
