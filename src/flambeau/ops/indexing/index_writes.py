"""Writes by index that combine: scatter_reduce, index_copy, index_fill, index_reduce, put; and the flat read take."""

from __future__ import annotations

import numpy as np

from ... import _C
from ...base.dtypes import bool_, int32, int64
from ...base.errors import OutOfBounds
from ...base.shapes import contiguous_strides, normalize_dim
from ...core.declare import composite, explicit, extern
from ...core.definition import TensorMeta
from ...core.operator import namespace
from .gather_scatter import check_scatter, check_slices, count_of

aten = namespace("aten")


def _along(self, dim, index, name):
    """(self with a dimension, index list that selects along ``dim``)."""
    if index.dtype is not int64 and not (name == "index_reduce" and index.dtype is int32):
        error = IndexError if name == "index_fill" else RuntimeError
        raise error(f"{name}_(): Expected dtype int64 for index, but got {index.dtype}")
    if index.ndim > 1:
        error = RuntimeError if name == "index_fill" else IndexError
        raise error(f"{name}(): Index is supposed to be a vector, but got dim: {index.ndim}")
    d = normalize_dim(dim, self.ndim)
    whole = self if self.ndim else aten.unsqueeze.default(self, 0)
    return whole, [*[None] * d, aten.reshape.default(index, [-1])]


def _filled(self, dim, index, value):
    whole, lists = _along(self, dim, index, "index_fill")
    out = aten.index_put.default(whole, lists, value)
    return out if self.ndim else aten.squeeze.default(out)


@explicit(
    "index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
    variants="function method",
    inplace=True,
    tags=("overlapping_writes",),
)
def index_fill(self, dim, index, value):
    return _filled(self, dim, index, aten.scalar_tensor.default(value, dtype=self.dtype, device=self.device))


index_fill.derivative(self=lambda ct, dim, index: aten.index_fill.int_Scalar(ct, dim, index, 0))


@explicit(
    "index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor",
    variants="function method",
    inplace=True,
    tags=("overlapping_writes",),
)
def index_fill_tensor(self, dim, index, value):
    if not isinstance(value, _C.TensorBase):
        return index_fill.definition.fn(self, dim, index, value)
    if value.ndim:
        raise RuntimeError(
            f"index_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s)."
        )
    if value.dtype.is_complex and not self.dtype.is_complex:
        raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not supported")
    return _filled(self, dim, index, aten._to_copy.default(value, dtype=self.dtype))


index_fill_tensor.derivative(
    self=lambda ct, dim, index: aten.index_fill.int_Scalar(ct, dim, index, 0),
    # A place that is named twice was filled once.
    value=lambda ct, dim, index: aten.sum.default(
        aten.where.ScalarOther(
            aten.index_fill.int_Scalar(aten.zeros_like.default(ct, dtype=bool_), dim, index, True), ct, 0
        )
    ),
)


@explicit(
    "index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor",
    variants="function method",
    inplace=True,
)
def index_copy(self, dim, index, source):
    whole, lists = _along(self, dim, index, "index_copy")
    if self.dtype is not source.dtype:
        raise RuntimeError(
            f"index_copy_(): self and source expected to have the same dtype, but got (self) {self.dtype} and (source) {source.dtype}"
        )
    if not source.ndim and lists[-1].shape[0] != 1:
        raise IndexError(
            f"index_copy_(): When source is scalar, index should have one element (got {lists[-1].shape[0]})"
        )
    if self.ndim and source.ndim and self.ndim != source.ndim:
        raise IndexError(
            "index_copy_(): When source and destination are not scalars, their dimensionality must match. Source dimensionality "
            f"({source.ndim}), destination dimensionality ({self.ndim})"
        )
    d = normalize_dim(dim, self.ndim)
    slices = [[n for e, n in enumerate(t.shape) if e != d] for t in (self, source)]
    if self.ndim and slices[0] != slices[1]:
        raise RuntimeError(
            f"index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: {slices[0]} at dimension {d} "
            f"and source slice shape: {slices[1]} at dimension {d}."
        )
    source = source if source.ndim else aten.unsqueeze.default(source, 0)
    if source.shape[d] != lists[-1].shape[0]:
        raise IndexError(
            f"index_copy_(): Number of indices ({lists[-1].shape[0]}) should be equal to source.size(dim) ({source.shape[d]})"
        )
    # No place is counted from the end: one below 0 is put outside, where index_put refuses it.
    places, n = lists[-1], whole.shape[d]
    lists[-1] = aten.where.self(aten.lt.Scalar(places, 0), aten.sub.Scalar(places, n), places)
    out = aten.contiguous.default(aten.index_put.default(whole, lists, source))
    return out if self.ndim else aten.squeeze.default(out)


index_copy.derivative(
    self=lambda ct, dim, index: aten.index_fill.int_Scalar(ct, dim, index, 0),
    source=lambda ct, dim, index, source_like: aten.reshape.default(
        aten.index_select.default(ct, dim, index), list(source_like.shape)
    ),
)


@explicit("take(Tensor self, Tensor index) -> Tensor", variants="function method", out_rules="outside")
def take(self, index):
    if index.dtype.name != "int64":
        raise RuntimeError(f"take(): Expected a long tensor for index, but got {index.dtype}")
    if not self.numel() and index.numel():
        raise IndexError("take(): tried to take from an empty tensor")
    return aten.contiguous.default(aten.index.Tensor(aten.reshape.default(self, [-1]), [index]))


@explicit(
    "put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor",
    variants="function method",
    inplace=True,
)
def put(self, index, source, accumulate):
    if index.dtype.name != "int64":
        raise RuntimeError(f"put_(): Expected a long tensor for index, but got {index.dtype}")
    if index.numel() != source.numel():
        raise IndexError(
            f"put_(): Expected source and index to have the same number of elements, but got source.numel() = {source.numel()}, "
            f"index.numel() = {index.numel()}"
        )
    if self.dtype is not source.dtype:
        raise RuntimeError(
            f"put_(): self and source expected to have the same dtype, but got self.dtype = {self.dtype.scalar_type} and "
            f"source.dtype = {source.dtype.scalar_type}"
        )
    flat = aten.reshape.default(self, [-1])
    out = aten.index_put.default(
        flat, [aten.reshape.default(index, [-1])], aten.reshape.default(source, [-1]), accumulate
    )
    return aten.copy.default(self, aten.reshape.default(out, list(self.shape)))  # in the order of self


put.derivative(
    self=lambda ct, index, source_like, accumulate: (
        ct
        if accumulate
        else aten.put.default(
            ct, index, aten.zeros.default(list(source_like.shape), dtype=ct.dtype, device=ct.device), False
        )
    ),
    source=lambda ct, index, source_like: aten.reshape.default(aten.take.default(ct, index), list(source_like.shape)),
)


# ---- scatter_reduce --------------------------------------------------------------------------------------------------------

_COMBINE = {"sum": np.add, "mean": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum}


def _least(dtype):
    return np.iinfo(dtype).min if dtype.kind in "iu" else False if dtype.kind == "b" else -np.inf


def _greatest(dtype):
    return np.iinfo(dtype).max if dtype.kind in "iu" else True if dtype.kind == "b" else np.inf


_IDENTITY = {"sum": lambda d: 0, "mean": lambda d: 0, "prod": lambda d: 1, "amax": _least, "amin": _greatest}


def _check_reduce(self, dim, index, src, reduce) -> None:
    if reduce not in _COMBINE:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    check_scatter(self, dim, index, src)


def _reduce_meta(self, dim, index, src, reduce, include_self):
    _check_reduce(self, dim, index, src, reduce)
    shape = tuple(self.shape)
    return TensorMeta(shape, contiguous_strides(shape), self.dtype, self.device)


@extern(
    "scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> Tensor",
    meta=_reduce_meta,
    inplace=True,
    has_out=True,
    places=("index",),
)
def scatter_reduce(self, dim, index, src, reduce, include_self):
    _check_reduce(self, dim, index, src, reduce)
    d = normalize_dim(dim, self.ndim)
    dtype = self.dtype
    wide = np.float32 if dtype.kind == "V" or dtype == np.float16 else dtype
    out = np.array(self, wide, order="C").reshape(self.shape or (1,))
    index, src = index.reshape(index.shape or (1,)), src.astype(wide).reshape(src.shape or (1,))
    if not index.size:
        return out.reshape(self.shape).astype(dtype)
    if index.min() < 0 or index.max() >= out.shape[d]:
        bad = index.min() if index.min() < 0 else index.max()
        raise OutOfBounds(f"index {bad} is out of bounds for dimension {d} with size {out.shape[d]}", int(bad))
    where = list(np.ogrid[tuple(slice(n) for n in index.shape)])
    where[d] = index
    where, src = tuple(where), src[tuple(slice(n) for n in index.shape)]
    if not include_self:
        out[where] = _IDENTITY[reduce](np.dtype(wide))
    _COMBINE[reduce].at(out, where, src)
    if reduce == "mean":
        count = np.full(out.shape, 1 if include_self else 0, np.int64)
        np.add.at(count, where, 1)
        count = np.maximum(count, 1)
        out = out // count if out.dtype.kind in "iu" else out / count
    return out.reshape(self.shape).astype(dtype)


@scatter_reduce.override("lower")
def _lower_scatter_reduce(lowering, val, self, dim, index, src, reduce, include_self):
    wide = np.dtype(np.float32) if self.dtype.itemsize == 2 and self.dtype.is_floating_point else self.dtype.np
    identity = None if include_self else _IDENTITY[reduce](wide)
    return lowering.reduce_into(val, self, dim, index, src, reduce, identity)


@scatter_reduce.override("rows")
def _scatter_reduce_rows(h, self, dim, index, src, reduce, include_self):
    return h.combine(self, dim, index, src, reduce, include_self)


def _scatter_reduce_vjp(ct, self, dim, index, src, reduce, include_self, result):
    gather = lambda x: aten.gather.default(x, dim, index)  # noqa: E731
    if reduce == "sum":
        of_self, of_src = ct, gather(ct)
    elif reduce == "mean":
        ones = aten.ones_like.default(src)
        count = aten.ones_like.default(self) if include_self else aten.zeros_like.default(self)
        count = aten.scatter_add.default(count, dim, index, ones)
        count = aten.clamp_min.default(aten.real.default(count) if count._dtype.is_complex else count, 1)
        of_self = aten.div.Tensor(ct, count)
        of_src = gather(of_self)
    elif reduce == "prod":
        zero = aten.eq.Scalar(self, 0)
        without = aten.masked_fill.Scalar(self, zero, 1)
        others = aten.scatter_reduce.two(without, dim, index, src, "prod", include_self=include_self)
        of_self = aten.div.Tensor(aten.mul.Tensor(ct, others), without)
        zero = aten.eq.Scalar(src, 0)
        count = aten.scatter_add.default(
            aten.zeros_like.default(self), dim, index, aten._to_copy.default(zero, dtype=self.dtype)
        )
        alone, of_two = (aten.logical_and.default(zero, aten.eq.Scalar(gather(count), n)) for n in (1, 2))
        # The product of what isn't zero: all the others of a single zero. A zero of two has the other one too, which is nothing itself
        # but has a derivative.
        rest = aten.scatter_reduce.two(
            self, dim, index, aten.masked_fill.Scalar(src, zero, 1), "prod", include_self=include_self
        )
        zeros = aten.where.ScalarOther(zero, src, 0)
        sums = aten.scatter_add.default(aten.zeros_like.default(self), dim, index, zeros)
        other = aten.sub.Tensor(gather(sums), zeros)
        of_rest = gather(aten.mul.Tensor(ct, rest))
        plain = aten.div.Tensor(gather(aten.mul.Tensor(ct, result)), aten.masked_fill.Scalar(src, zero, 1))
        of_src = aten.where.self(alone, of_rest, aten.where.self(of_two, aten.mul.Tensor(of_rest, other), plain))
    else:  # the extreme is shared by all that have it
        own = aten._to_copy.default(aten.eq.Tensor(self, result), dtype=self.dtype)
        theirs = aten.eq.Tensor(src, gather(result))
        count = aten.scatter_add.default(own, dim, index, aten._to_copy.default(theirs, dtype=self.dtype))
        each = aten.div.Tensor(ct, count)
        of_self = aten.where.ScalarOther(aten.eq.Tensor(self, result), each, 0)
        of_src = aten.where.ScalarOther(theirs, gather(each), 0)
    if not include_self:
        of_self = aten.scatter.value(of_self, dim, index, 0)
    return of_self, of_src


def _reduce_formula(ct, self, dim, index, src, reduce, include_self, result, mask):
    of_self, of_src = _scatter_reduce_vjp(ct, self, dim, index, src, reduce, include_self, result)
    return of_self if mask[0] else None, of_src if mask[1] else None


scatter_reduce.derivative(self__src=_reduce_formula)


@explicit(
    "index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) -> Tensor",
    variants="function method",
    inplace=True,
    has_out=True,
)
def index_reduce(self, dim, index, source, reduce, include_self):
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    _along(self, dim, index, "index_reduce")
    if self.dtype is not source.dtype:
        raise RuntimeError(
            f"index_reduce(): self ({self.dtype}) and source ({source.dtype}) must have the same scalar type"
        )
    count_of(self, index, source, dim, "index_reduce")
    check_slices(self, source, dim)
    d = normalize_dim(dim, self.ndim)
    wide = aten.reshape.default(index, [-1 if e == d else 1 for e in range(max(source.ndim, 1))])
    wide = aten.expand.default(wide, list(source.shape) or [1])
    if not source.ndim:
        wide = aten.squeeze.default(wide)
    return aten.scatter_reduce.two(self, dim, wide, source, reduce, include_self=include_self)


@composite("type_as(Tensor self, Tensor other) -> Tensor", variants="method")
def type_as(self, other):
    return self.to(other.device, other.dtype)
