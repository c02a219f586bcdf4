"""Operators whose result's size depends on values: nonzero, masked_select, unique, bincount."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from ... import _C
from ...base import dtypes, order, select
from ...base.dtypes import sortable
from ...base.kernels import Order
from ...base.records import replace
from ...base.shape_checks import current_env, data_dependent_size
from ...base.shapes import broadcast_shapes, contiguous_strides, normalize_dim
from ...core.declare import composite, explicit, extern
from ...core.definition import TensorMeta
from ...core.operator import namespace
from ...core.promotion import refused

aten = namespace("aten")


def _count_of_nonzero(self):
    """How many elements hold: one symbol for a fake tensor while nothing is written to it."""
    known = getattr(self, "__dict__", None)
    if known is None or self._inference:
        return data_dependent_size("nonzero", math.prod(self.shape))
    version, n = known.get("_count_of_nonzero", (None, None))
    if version != self._version or n.env is not current_env():
        n = data_dependent_size("nonzero", math.prod(self.shape))
        known["_count_of_nonzero"] = self._version, n
    return n


def _nonzero_meta(self):
    n = _count_of_nonzero(self)
    return TensorMeta(
        (n, self.ndim), (1, n), dtypes.int64, self.device
    )  # the coordinates of one dimension lie together, as in PyTorch


@extern("nonzero(Tensor self) -> Tensor", meta=_nonzero_meta, has_out=True, places=("self",), out_rules="scalar_type")
def nonzero(self):
    return select.nonzero(self)


nonzero.derivative()
nonzero.override("counted", lambda self: _C.nonzero)
nonzero.override("lower", lambda lowering, val, self: lowering.nonzero(val, self))


@nonzero.override("by_parts")
def _nonzero_by_parts(self):
    """The k-th of the elements that hold is where k of them have been met."""
    met = aten.cumsum.default(aten._to_copy.default(aten.reshape.default(_holds(self), [-1]), dtype=dtypes.int64), 0)
    n = int(met[-1].item()) if met.numel() else 0
    flat = aten.searchsorted.Tensor(met, aten.arange.start(1, n + 1, device=self.device)) if n else met[:0]
    if self.ndim == 1:
        return aten.reshape.default(flat, [n, 1])
    coordinates = []
    for size in reversed(self.shape):
        coordinates.append(aten.remainder.Scalar(flat, size))
        flat = aten.floor_divide.Scalar(flat, size)
    if not coordinates:
        return aten.new_zeros.default(self, [n, 0], dtype=dtypes.int64)
    return aten.t.default(aten.reshape.default(aten.cat.default(coordinates[::-1]), [self.ndim, n]))


def _holds(t):
    return t if t.dtype is dtypes.bool_ else aten.ne.Scalar(t, 0)


@composite("nonzero_numpy(Tensor self) -> Tensor[]", variants="")
def nonzero_numpy(self):
    if self.ndim == 0:
        self = aten.unsqueeze.default(self, 0)
    return list(aten.unbind.int(aten.nonzero.default(self), 1))


@composite("argwhere(Tensor self) -> Tensor")
def argwhere(self):
    return aten.nonzero.default(self)


argwhere.override("counted", lambda self: _C.nonzero)


def _masked_select_meta(self, mask):
    n = data_dependent_size("masked_select", math.prod(broadcast_shapes(tuple(self.shape), tuple(mask.shape))))
    return TensorMeta((n,), (1,), self.dtype, self.device)


@explicit(
    "masked_select(Tensor self, Tensor mask) -> Tensor",
    variants="function method",
    meta=_masked_select_meta,
    out_rules="outside",
)
def masked_select(self, mask):
    if mask.dtype.name != "bool":
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    shape = list(broadcast_shapes(tuple(self.shape), tuple(mask.shape)))
    return aten.index.Tensor(aten.expand.default(self, shape), [aten.expand.default(mask, shape)])


masked_select.override(
    "counted",
    lambda self, mask: (
        _C.take_mask if self.shape == mask.shape and self._strides == contiguous_strides(self.shape) else None
    ),
)
masked_select.override("lower", lambda lowering, val, self, mask: lowering.selected(val, self, mask))


def _masked_scatter_meta(self, mask, source):
    if mask.dtype.name != "bool":
        raise RuntimeError(
            f"masked_scatter_ only supports boolean masks, but got mask with dtype {mask.dtype.scalar_type}"
        )
    shape = broadcast_shapes(tuple(self.shape), tuple(mask.shape))
    return replace(aten.where.self.meta(mask, self, self), strides=contiguous_strides(shape))


@extern(
    "masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor",
    inplace=True,
    places=("mask",),
    same_dtype=(0, 2, "masked_scatter: expected self and source to have same dtypes but got {} and {}"),
    meta=_masked_scatter_meta,
)
def masked_scatter(self, mask, source):
    shape = broadcast_shapes(self.shape, mask.shape)
    out, where = np.array(np.broadcast_to(self, shape), order="C"), np.broadcast_to(mask, shape)
    n = int(where.sum())
    if source.size < n:
        raise RuntimeError(
            f"masked_scatter: expected self and source to have same dtypes and source to hold at least {n} elements, got {source.size}"
        )
    out[where] = source.reshape(-1)[:n]
    return out


def _masked_scatter_source(ct, mask, source_like):
    """Element k was read by the k-th place under the mask; the places beside it write into one more element, which is dropped."""
    n = source_like.numel()
    mask = aten.reshape.default(aten.expand.default(mask, list(ct.shape)), [-1])
    rank = aten.sub.Tensor(aten.cumsum.default(aten._to_copy.default(mask, dtype=dtypes.int64), 0), 1)
    flat = aten.where.ScalarOther(mask, aten.reshape.default(ct, [-1]), 0)
    out = aten.index_add.default(aten.new_zeros.default(ct, [n + 1]), 0, aten.where.ScalarOther(mask, rank, n), flat)
    return aten.reshape.default(aten.slice.Tensor(out, 0, 0, n), list(source_like.shape))


masked_scatter.override(
    "lower", lambda lowering, val, self, mask, source: lowering.write_under_mask(val, self, mask, source)
)
masked_scatter.derivative(self=lambda ct, mask: aten.masked_fill.Scalar(ct, mask, 0), source=_masked_scatter_source)


def _dense(shape, dtype, device):
    return TensorMeta(tuple(shape), contiguous_strides(shape), dtype, device)


def _unique_meta(self, inverse, counts, dim=None):
    """Metas of (values, inverse, counts); what isn't asked for is empty."""
    whole = math.prod(self.shape) if dim is None else self.shape[dim]
    n = data_dependent_size("unique", whole)
    where = (tuple(self.shape) if dim is None else (whole,)) if inverse else (0,)
    of = lambda shape: _dense(shape, dtypes.int64, self.device)  # noqa: E731
    values = _dense((n,), self.dtype, self.device) if dim is None else rows_meta(self, dim, n)
    return values, of(where), of((n,) if counts else (0,))


def rows_meta(self, dim, n):
    """``n`` slices along ``dim``, one after the other in memory."""
    shape = (n, *self.shape[:dim], *self.shape[dim + 1 :])
    first, *strides = contiguous_strides(shape)
    moved = lambda head, rest: (*rest[:dim], head, *rest[dim:])  # noqa: E731
    return TensorMeta(moved(n, shape[1:]), moved(first, strides), self.dtype, self.device)


def has_rows(a, dim) -> bool:
    """Whether there are slices along ``dim``; RuntimeError where they are empty."""
    if sum(n == 0 for n in a.shape) > 1:
        raise RuntimeError("Number of zero sized dimensions is more than one, so unique cannot be applied")
    if a.size == 0 and a.shape[dim]:
        raise RuntimeError("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")
    return a.size != 0


@extern(
    "_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor)",
    meta=lambda self, sorted, inverse, counts: _unique_meta(self, inverse or counts, counts),
    variants="",
)
def _unique2(self, sorted, return_inverse, return_counts):
    if not return_inverse and not return_counts and self.dtype.char in "fdlqi" and 0 < self.size < _SHORT:
        x = self.reshape(-1).copy()
        x.sort(kind="stable")
        found = _C.runs(x)
        return x[_begins(x)] if found is None else found[0], np.empty(0, np.int64), np.empty(0, np.int64)
    values, inverse, counts = distinct(self.reshape(-1), return_inverse or return_counts)
    return (
        values,
        inverse.reshape(self.shape) if return_inverse or return_counts else np.empty(0, np.int64),
        counts if return_counts else np.empty(0, np.int64),
    )


_SHORT = 1 << 12  # elements of a line that NumPy sorts as fast


def _begins(x):
    """Whether each element of a line (not empty) differs from the one before it."""
    new = np.empty(len(x), np.bool_)
    new[0] = True
    np.not_equal(x[1:], x[:-1], out=new[1:])
    return new


def distinct(a, inverse: bool):
    """(values of a line in order, the place among them of each element, how often each occurs): nan differs from nan. Integers of a short range are
    counted, everything else is sorted."""
    if a.dtype.kind in "iu" and a.size:
        low, high = int(a.min()), int(a.max())
        if high - low < 4 * a.size + 1024:
            offset = (
                np.subtract(a, low, dtype=np.int64, casting="unsafe")
                if a.dtype != np.uint64
                else (a - np.uint64(low)).astype(np.int64)
            )
            counts = np.bincount(offset)
            held = np.flatnonzero(counts)
            places = (np.cumsum(counts != 0) - 1)[offset] if inverse else None
            return (held + low).astype(a.dtype), places, counts[held]
    made = order.arrange(Order.WHOLE, a, 0) if a.size else None
    if made is None:
        values, places, counts = np.unique(sortable(a), return_inverse=True, return_counts=True, equal_nan=False)
        return values.astype(a.dtype), places.reshape(-1), counts
    x, at = made
    new = _begins(x)
    begins = np.flatnonzero(new)
    places = None
    if inverse:
        places = np.empty(len(x), np.int64)
        places[at] = np.cumsum(new) - 1
    return x[begins], places, np.diff(begins, append=len(x))


@extern(
    "unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor)",
    meta=lambda self, dim, sorted, inverse, counts: _unique_meta(self, True, True, normalize_dim(dim, self.ndim)),
    variants="",
)
def unique_dim(self, dim, sorted, return_inverse, return_counts):
    dim = normalize_dim(dim, self.ndim)
    if not has_rows(self, dim):
        return self.copy(), np.empty(0, np.int64), np.empty(0, np.int64)
    values, inverse, counts = np.unique(
        sortable(self), return_inverse=True, return_counts=True, axis=dim, equal_nan=False
    )
    return values.astype(self.dtype), inverse.reshape(-1), counts


@extern(
    "unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None) -> (Tensor, Tensor, Tensor)",
    meta=lambda self, inverse, counts, dim: _unique_meta(
        self, True, True, None if dim is None else normalize_dim(dim, self.ndim)
    ),
    variants="",
)
def unique_consecutive(self, return_inverse, return_counts, dim):
    dim = None if dim is None else normalize_dim(dim, self.ndim)
    x = self.reshape(-1) if dim is None else np.moveaxis(self, dim, 0)
    if not (has_rows(self, dim) if dim is not None else len(x)):
        x, where = (x.copy(), np.empty(self.shape, np.int64)) if dim is None else (self.copy(), np.empty(0, np.int64))
        return x, where, np.empty(0, np.int64)
    found = _C.runs(x)
    if found is not None:
        values, inverse, counts = found
        return values, inverse.reshape(self.shape) if dim is None else inverse, counts
    if x.ndim == 1:
        new = _begins(x)
    else:
        new = np.concatenate([[True], (x[1:] != x[:-1]).any(tuple(range(1, x.ndim)))])
    at, inverse = new.nonzero()[0], new.cumsum()
    inverse -= 1
    values = x[at] if dim is None else np.moveaxis(np.ascontiguousarray(x[at]), 0, dim)
    counts = np.empty_like(at)
    np.subtract(at[1:], at[:-1], out=counts[:-1])
    counts[-1] = len(x) - at[-1]
    return values, inverse.reshape(self.shape) if dim is None else inverse, counts


def _lower_unique(lowering, vals, self, sorted, inverse, counts):
    return lowering.runs(vals, self, None, True, (inverse or counts, counts))


def _lower_consecutive(lowering, vals, self, inverse, counts, dim):
    d = None if dim is None else normalize_dim(dim, self.ndim)
    return lowering.runs(vals, self, d, False, (True, True))


_unique2.override("lower", _lower_unique)


@_unique2.override("by_parts")
def _unique_by_parts(self, sorted, return_inverse, return_counts):
    """Runs of the sorted elements."""
    line = aten.reshape.default(self, [-1])
    n, wanted = line.shape[0], return_inverse or return_counts
    none = aten.new_empty.default(self, [0], dtype=dtypes.int64)
    if not n:
        return line, aten.new_empty.default(self, list(self.shape), dtype=dtypes.int64) if wanted else none, none
    values, places = aten.sort.stable(line, stable=True)
    first = aten.new_ones.default(line, [1], dtype=dtypes.bool_)
    new = aten.cat.default([first, aten.ne.Tensor(values[1:], values[:-1])])
    begins = aten.reshape.default(aten.nonzero.default(new), [-1])
    inverse = counts = none
    if wanted:
        runs = aten.sub.Tensor(aten.cumsum.default(aten._to_copy.default(new, dtype=dtypes.int64), 0), 1)
        inverse = aten.reshape.default(
            aten.scatter.src(aten.zeros_like.default(runs), 0, places, runs), list(self.shape)
        )
    if return_counts:
        ends = aten.cat.default([begins[1:], aten.new_full.default(begins, [1], n)])
        counts = aten.sub.Tensor(ends, begins)
    return aten.index_select.default(values, 0, begins), inverse, counts


unique_consecutive.override("lower", _lower_consecutive)
unique_dim.override(
    "lower",
    lambda lowering, vals, self, dim, *_: lowering.runs(vals, self, normalize_dim(dim, self.ndim), True, (True, True)),
)


def no_gradient(opname):
    """The formula of a gradient that PyTorch has none of either."""

    def formula(ct):
        raise NotImplementedError(f"the derivative for '{opname}' is not implemented.")

    return formula


for _op in (_unique2, unique_dim, unique_consecutive):
    _op.derivative((0,), self=no_gradient(_op._opname))


def _bincount_meta(self, weights, minlength):
    dtype = dtypes.int64 if weights is None else weights.dtype if weights.dtype is dtypes.float32 else dtypes.float64
    return _dense((data_dependent_size("bincount"),), dtype, self.device)


@extern(
    "bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor", meta=_bincount_meta, places=("self",)
)
def bincount(self, weights, minlength):
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if weights is not None and weights.shape != self.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    if self.dtype.kind not in "iu":
        refused("bincount", dtypes.from_numpy(self.dtype))
    if self.ndim != 1 or (self.size and self.min() < 0):
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if self.size and self.max() == np.iinfo(np.int64).max:
        # One more is a negative number: NumPy makes no counts and writes beside them.
        raise RuntimeError("bincount: Storage size calculation overflowed: counts of numbers up to 2**63 - 1")
    out = np.bincount(self, weights, minlength)
    return out.astype(weights.dtype) if weights is not None and weights.dtype == np.float32 else out


bincount.override(
    "counted",
    lambda self, weights, minlength: (
        partial(_C.bincount, minlength) if weights is None and 0 <= minlength < 1 << 24 else None
    ),
)
bincount.override(
    "lower",
    lambda lowering, val, self, weights, minlength: lowering.bincount(val, self, weights, minlength),
)
