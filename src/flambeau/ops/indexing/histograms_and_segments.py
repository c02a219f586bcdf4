"""Sets and counts: unique values, histograms of one and more dimensions, positions up to a fixed number; parts of floating-point numbers."""

from __future__ import annotations

import math

import numpy as np

from ...base import kernels, select
from ...base.dtypes import int32, int64, sortable
from ...base.kernels import Segment
from ...base.shape_checks import data_dependent_size
from ...base.shapes import contiguous_strides, normalize_dim
from ...core.declare import COMPLEX, composite, extern
from ...core.definition import TensorMeta
from ...core.layouts import dense_like, in_order, strides_of
from ...core.operator import namespace
from ...core.out_lists import declare_out_list
from .data_dependent import distinct, has_rows, no_gradient, rows_meta

aten = namespace("aten")


def _dense(shape, dtype, like):
    shape = tuple(shape)
    return TensorMeta(shape, contiguous_strides(shape), dtype, like.device)


def _nothing():
    return np.zeros((0,), np.int64)


# ---- unique --------------------------------------------------------------------------------------------------------------


def _unique_meta(self, *rest):
    n = data_dependent_size("_unique", math.prod(self.shape))
    flags = rest[-2:]
    shape = tuple(self.shape)
    return (
        _dense((n,), self.dtype, self),
        _dense(shape if flags[0] else (0,), int64, self),
        _dense((n,) if flags[1] else (0,), int64, self),
    )


def _unique(a, return_inverse, return_counts):
    values, inverse, counts = distinct(a.reshape(-1), return_inverse)
    return values, inverse.reshape(a.shape) if return_inverse else _nothing(), counts if return_counts else _nothing()


extern(
    "_unique(Tensor self, bool sorted=True, bool return_inverse=False) -> (Tensor, Tensor)",
    meta=lambda self, sorted, inverse: _unique_meta(self, inverse, False)[:2],
    variants="function",
)(lambda a, sorted, return_inverse: _unique(a, return_inverse, False)[:2]).derivative((0,), self=no_gradient("_unique"))


def _rows_meta(self, dim, *flags):
    d = normalize_dim(dim, len(self.shape))
    n = data_dependent_size("unique_dim_consecutive", self.shape[d])
    flags = flags[-2:]
    return (
        rows_meta(self, d, n),
        _dense((self.shape[d],) if flags[0] else (0,), int64, self),
        _dense((n,) if flags[1] else (0,), int64, self),
    )


def _runs(changes, n):
    """(positions where runs begin, run of each element, lengths), from where an element differs from the one before."""
    begins = np.flatnonzero(np.concatenate([[True], changes])) if n else np.zeros(0, np.int64)
    inverse = np.cumsum(np.concatenate([[0], changes])) if n else np.zeros(0, np.int64)
    return begins, inverse.astype(np.int64), np.diff(np.append(begins, n)).astype(np.int64)


def _consecutive_rows(a, dim, return_inverse, return_counts):
    d = normalize_dim(dim, a.ndim)
    if not has_rows(a, d):
        return a.copy(), _nothing(), _nothing()
    rows = np.moveaxis(a, d, 0).reshape(a.shape[d], -1)
    begins, inverse, counts = _runs((rows[1:] != rows[:-1]).any(1), len(rows))
    return (
        np.moveaxis(np.ascontiguousarray(rows[begins]).reshape(-1, *a.shape[:d], *a.shape[d + 1 :]), 0, d),
        inverse if return_inverse else _nothing(),
        counts if return_counts else _nothing(),
    )


extern(
    "unique_dim_consecutive(Tensor self, int dim, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor)",
    meta=_rows_meta,
    variants="",
)(_consecutive_rows).derivative()


@extern(
    "nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor",
    meta=lambda self, size, fill_value: _dense((size, len(self.shape)), int64, self),
    has_out=True,
    places=("self",),
)
def nonzero_static(a, size, fill_value):
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    found = select.nonzero(a)[:size]
    out = np.full((size, a.ndim), fill_value, np.int64)
    out[: len(found)] = found
    return out


nonzero_static.derivative()
nonzero_static.override(
    "lower", lambda lowering, val, self, size, fill_value: lowering.nonzero(val, self, fill=fill_value)
)

# ---- histograms ------------------------------------------------------------------------------------------------------------


def _edges(lows, highs, bins, dtype):
    """Edges of bins that cover [low, high]; a range of no width is widened by one half."""
    out = []
    for d, (low, high, n) in enumerate(zip(lows, highs, bins)):
        if n <= 0:
            raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {n} for dimension {d}")
        if not (np.isfinite(low) and np.isfinite(high)):
            raise RuntimeError(f"torch.histogramdd: dimension 0's range [{low}, {high}] is not finite")
        if low > high:
            raise RuntimeError(
                f"torch.histogramdd: min should not exceed max, but got min {low} max {high} for dimension 0"
            )
        if low == high:
            low, high = low - 0.5, high + 0.5
        out.append(np.linspace(low, high, n + 1).astype(dtype))
    return out


def _counted(points, edges, weight, density, dtype):
    """Weights of the points (rows) summed in the cells between the edges; the last cell of each dimension is closed."""
    shape = tuple(len(e) - 1 for e in edges)
    if len(edges) == 1 and not density and shape[0] and points.dtype == dtype and dtype.name in ("float32", "float64"):
        return select.between(points, edges[0], weight).astype(dtype)
    inside = np.ones(len(points), bool)
    at = []
    for x, e in zip(points.T, edges):
        inside &= (x >= e[0]) & (x <= e[-1])
        at.append(np.minimum(np.searchsorted(e, x, "right") - 1, len(e) - 2))
    index = np.ravel_multi_index([np.where(inside, k, 0) for k in at], shape) if len(points) else np.zeros(0, np.int64)
    weights = np.ones(len(points)) if weight is None else weight.reshape(-1).astype(np.float64)
    hist = np.bincount(index[inside], weights[inside], math.prod(shape)).reshape(shape)
    if density:
        volume = np.ones(())
        for e in edges:
            volume = np.multiply.outer(volume, np.diff(e.astype(np.float64)))
        hist = hist / (volume * hist.sum())
    return hist.astype(dtype)


def _check_points(points):
    """NotImplementedError for points that aren't float32 or float64, the only ones that PyTorch counts, too."""
    if points.dtype.name not in ("float32", "float64"):
        raise NotImplementedError(f"\"histogramdd\" not implemented for '{points.dtype.name}'")


def _check_kind(weight, points):
    """RuntimeError unless weights are of the points' dtype."""
    if weight is not None and weight.dtype != points.dtype:
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should have the same dtype, but got "
            f"input({points.dtype}), and weight({weight.dtype})"
        )


def _check_weight(weight, shape):
    """RuntimeError unless there is a weight for each point; one number counts as a line of one."""
    if weight is not None and (weight.shape or (1,)) != shape:
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided it should have the same shape as the input tensor excluding its innermost "
            f"dimension, but got points of shape {list(shape)} and weights of shape {list(weight.shape)}"
        )


def _floating(name, dtype):
    if dtype.name not in ("float32", "float64"):
        raise RuntimeError(f"{name}: input tensor should be of floating dtype")


@extern(
    "histogram.bins_tensor(Tensor self, Tensor bins, *, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor bin_edges)",
    meta=lambda self, bins, weight, density: (
        _dense((bins.shape[0] - 1,), self.dtype, self),
        _dense(bins.shape, self.dtype, self),
    ),
    has_out=True,
)
def histogram_edges(a, bins, weight, density):
    _check_points(a)
    if bins.ndim != 1:
        raise RuntimeError(
            f"torch.histogram: bins tensor should have one dimension, but got {bins.ndim} dimensions in the bins tensor"
        )
    if a.dtype != bins.dtype:
        raise RuntimeError(
            f"torch.histogram: input tensor and bins tensors should have the same dtype, but got input with dtype {a.dtype} and bins {bins.dtype}"
        )
    _check_kind(weight, a)
    _check_weight(weight, a.shape or (1,))
    return _counted(a.reshape(-1, 1), [bins], weight, density, a.dtype), bins.copy()


@extern(
    "histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor bin_edges)",
    meta=lambda self, bins, range, weight, density: (
        _dense((bins,), self.dtype, self),
        _dense((bins + 1,), self.dtype, self),
    ),
    has_out=True,
)
def histogram_count(a, bins, range, weight, density):
    _check_points(a)
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    _check_kind(weight, a)
    _check_weight(weight, a.shape or (1,))
    low, high = range if range is not None else (a.min(), a.max()) if a.size else (0.0, 1.0)
    edges = _edges([float(low)], [float(high)], [bins], a.dtype)
    return _counted(a.reshape(-1, 1), edges, weight, density, a.dtype), edges[0]


histogram_edges.override(
    "lower",
    lambda lowering, vals, self, bins, weight, density: lowering.by_edges(vals, self, bins, None, weight, density),
)
histogram_count.override(
    "lower",
    lambda lowering, vals, self, bins, range, weight, density: lowering.by_edges(
        vals, self, bins, range, weight, density
    ),
)


def _cells_meta(self, bins, range, weight, density):
    return _dense(tuple(bins), self.dtype, self)


def _ranges(a, bins, range):
    _check_points(a)
    points = a.reshape(-1, a.shape[-1])
    d = points.shape[1]
    if len(bins) != d:
        raise RuntimeError("torch.histogramdd: The size of bins must be equal to the innermost dimension of the input.")
    if range is not None and len(range) != 2 * d:
        raise RuntimeError(
            f"torch.histogramdd: for a {d}-dimensional histogram range should have {2 * d} elements, but got {len(range)}"
        )
    if range is not None:
        return points, list(range[::2]), list(range[1::2])
    if not len(points):
        return points, [0.0] * d, [1.0] * d
    return points, points.min(0).tolist(), points.max(0).tolist()


@extern(
    "_histogramdd_bin_edges(Tensor self, int[] bins, *, float[]? range=None, Tensor? weight=None, bool density=False) -> Tensor[]",
    meta=lambda self, bins, range, weight, density: [_dense((n + 1,), self.dtype, self) for n in bins],
    variants="function",
)
def _histogramdd_bin_edges(a, bins, range, weight, density):
    _, lows, highs = _ranges(a, bins, range)
    return _edges(lows, highs, bins, a.dtype)


declare_out_list(_histogramdd_bin_edges, "out")


@extern(
    "_histogramdd_from_bin_cts(Tensor self, int[] bins, *, float[]? range=None, Tensor? weight=None, bool density=False) -> Tensor",
    meta=_cells_meta,
    variants="function",
)
def _histogramdd_from_bin_cts(a, bins, range, weight, density):
    points, lows, highs = _ranges(a, bins, range)
    _check_kind(weight, a)
    _check_weight(weight, a.shape[:-1] or (1,))
    return _counted(points, _edges(lows, highs, bins, a.dtype), weight, density, a.dtype)


@extern(
    "_histogramdd_from_bin_tensors(Tensor self, Tensor[] bins, *, Tensor? weight=None, bool density=False) -> Tensor",
    meta=lambda self, bins, weight, density: _dense([b.shape[0] - 1 for b in bins], self.dtype, self),
    variants="function",
)
def _histogramdd_from_bin_tensors(a, bins, weight, density):
    if len(bins) != a.shape[-1]:
        raise RuntimeError(
            f"torch.histogramdd: expected {a.shape[-1]} sequences of bin edges for a {a.shape[-1]}-dimensional histogram but got {len(bins)}"
        )
    other = next((edges for edges in bins if edges.dtype != a.dtype), None)
    if other is not None:
        raise RuntimeError(
            f"torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input with dtype {a.dtype} and bins "
            f"{other.dtype}"
        )
    _check_kind(weight, a)
    empty = next((d for d, edges in enumerate(bins) if not edges.size), None)
    if empty is not None:
        raise RuntimeError(
            "torch.histogramdd: bins tensor should have at least 1 element, but got 0 elements in the bins tensor for dimension "
            f"{empty}"
        )
    _check_weight(weight, a.shape[:-1] or (1,))
    return _counted(a.reshape(-1, a.shape[-1]), list(bins), weight, density, a.dtype)


# ---- mantissa and exponent -------------------------------------------------------------------------------------------------


def _frexp_meta(self):
    if not self.dtype.is_floating_point:
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    strides = dense_like(tuple(self.shape), strides_of(self))
    return tuple(TensorMeta(tuple(self.shape), strides, kind, self.device) for kind in (self.dtype, int32))


@extern("frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)", meta=_frexp_meta, has_out=True)
def frexp(a):
    if a.dtype.kind not in "fV" and a.dtype.name != "bfloat16":
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    mantissa, exponent = np.frexp(sortable(a))
    strides = dense_like(a.shape, strides_of(a))
    return in_order(np.asarray(mantissa.astype(a.dtype)), strides), in_order(np.asarray(exponent, np.int32), strides)


frexp.override("lower", lambda low, vals, self: low.ufunc("frexp", (self,), self.dtype, vals[0].device, 2))
frexp.derivative(
    (0,),
    self=lambda ct0, result1: aten.div.Tensor(ct0, aten._to_copy.default(aten.exp2.default(result1), dtype=ct0.dtype)),
)

# ---- reductions of segments ------------------------------------------------------------------------------------------------

_REDUCE = {
    "sum": (np.add, 0.0),
    "mean": (np.add, 0.0),
    "min": (np.minimum, math.inf),
    "max": (np.maximum, -math.inf),
    "prod": (np.multiply, 1.0),
}


_NOT_ALL_ROWS = (
    "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when !unsafe."
)


def _segments(data, lengths, offsets, axis):
    if lengths is None:
        offsets = np.asarray(offsets)
        return offsets[..., :-1], np.diff(offsets, axis=-1)
    lengths = np.asarray(lengths)
    return np.cumsum(lengths, -1) - lengths, lengths


def _where(data, lengths, offsets, axis):
    """The lengths, or else the offsets. RuntimeError where they aren't of the rows along the axis."""
    if lengths is None and offsets is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    name, given = ("lengths", lengths) if lengths is not None else ("offsets", offsets)
    if given.ndim != axis + 1:
        raise RuntimeError(f"segment_reduce(): Expected axis to be the last dimension of {name} but got {axis}.")
    if any(m != n for m, n in zip(given.shape[:axis], data.shape[:axis])):
        raise RuntimeError(f"segment_reduce(): Expected {name} for each of the {tuple(data.shape[:axis])} rows of data")
    return given


def _segment_meta(data, reduce, lengths, indices, offsets, axis, unsafe, initial):
    if axis < 0:
        raise RuntimeError("segment_reduce(): Currently only dim=0 is supported")
    given = _where(data, lengths, offsets, axis)
    rows = given.shape[-1] - (lengths is None)
    return _dense((*data.shape[:axis], rows, *data.shape[axis + 1 :]), data.dtype, data)


@extern(
    "segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, Tensor? offsets=None, int axis=0, bool unsafe=False, "
    "Scalar? initial=None) -> Tensor",
    meta=_segment_meta,
    refuse=COMPLEX,
    variants="function",
    has_out=True,
    places=("lengths", "offsets"),
)
def segment_reduce(data, reduce, lengths, indices, offsets, axis, unsafe, initial):
    if reduce not in _REDUCE:
        raise RuntimeError(f"unsupported reduction given! {reduce}")
    given = _where(data, lengths, offsets, axis)
    begins, counts = _segments(data, lengths, offsets, axis)
    if not unsafe and (
        counts.min(initial=0) < 0 or (lengths is not None and (counts.sum(-1) != data.shape[axis]).any())
    ):
        raise RuntimeError(_NOT_ALL_ROWS)
    rows = counts.shape[-1]
    out = np.empty((*data.shape[:axis], rows, *data.shape[axis + 1 :]), data.dtype)
    if data.dtype in (np.float32, np.float64):
        lines, inner = math.prod(data.shape[:axis]), math.prod(data.shape[axis + 1 :])
        where = np.ascontiguousarray(given, np.int64)
        operands = (
            np.ascontiguousarray(data).reshape(lines, data.shape[axis], inner),
            where.reshape(lines, where.shape[-1]),
        )
        numbers = {"reduce": Segment[reduce.upper()], "offsets": lengths is None, "unsafe": unsafe}
        numbers |= {"started": initial is not None, "initial": initial or 0.0, "f64": data.itemsize == 8}
        kernels.segment_reduce(operands, [out.reshape(lines, rows, inner)], **numbers)
        return out
    ufunc, start = _REDUCE[reduce]
    start = start if initial is None else initial
    for lead in np.ndindex(begins.shape[:-1]):
        for k in range(rows):
            b, n = begins[(*lead, k)], counts[(*lead, k)]
            part = sortable(data[lead][b : b + n])
            value = ufunc.reduce(part, axis=0, initial=start)
            if reduce == "mean":
                value = value / n if n else (np.full_like(value, np.nan) if initial is None else value)
            out[(*lead, k)] = value
    return out


def _segment_vjp(ct, data, reduce, lengths, offsets, axis, result, initial):
    """Each element gets its segment's cotangent: whole, divided by the count, shared by the extremes, or times the other elements."""
    at, counts = aten._segment_ids.default(data, lengths, offsets, axis)
    spread = lambda t: aten.gather.default(t, axis, at)  # noqa: E731
    g = spread(ct)
    if reduce == "sum":
        return g
    if reduce == "mean":
        return aten.div.Tensor(g, spread(counts))
    if reduce == "prod":
        whole = aten.mul.Tensor(g, aten.div.Tensor(spread(result), data))
        return aten.where.self(
            aten.eq.Scalar(data, 0),
            aten.mul.Tensor(g, aten._segment_others.default(data, lengths, offsets, axis)),
            whole,
        )
    hit = aten.logical_or.default(aten.eq.Tensor(data, spread(result)), aten.isnan.default(data))
    many = aten.scatter_add.default(aten.zeros_like.default(ct), axis, at, aten._to_copy.default(hit, dtype=ct.dtype))
    return aten.where.ScalarOther(hit, aten.div.Tensor(g, aten.clamp_min.default(spread(many), 1)), 0)


segment_reduce.derivative(data=_segment_vjp)
segment_reduce.override(
    "lower",
    lambda h, val, data, reduce, lengths, indices, offsets, axis, unsafe, initial: h.segments(
        val, data, reduce, lengths, offsets, axis, unsafe, initial, _NOT_ALL_ROWS
    ),
)


@extern(
    "_segment_ids(Tensor data, Tensor? lengths, Tensor? offsets, int axis) -> (Tensor, Tensor)",
    meta=lambda data, lengths, offsets, axis: (
        _dense(data.shape, int64, data),
        _segment_meta(data, "sum", lengths, None, offsets, axis, True, None),
    ),
    variants="",
    places=("lengths", "offsets"),
)
def _segment_ids(data, lengths, offsets, axis):
    """The segment of each element, and the number of elements in each."""
    begins, counts = _segments(data, lengths, offsets, axis)
    tail = (1,) * (data.ndim - axis - 1)
    ids = np.zeros(data.shape[: axis + 1], np.int64)
    for lead in np.ndindex(begins.shape[:-1]):
        ids[lead] = np.repeat(np.arange(counts.shape[-1]), counts[lead])[: data.shape[axis]]
    many = np.broadcast_to(counts.reshape(*counts.shape, *tail), (*counts.shape, *data.shape[axis + 1 :]))
    return np.broadcast_to(ids.reshape(*ids.shape, *tail), data.shape).copy(), many.astype(data.dtype)


@extern(
    "_segment_others(Tensor data, Tensor? lengths, Tensor? offsets, int axis) -> Tensor",
    meta=lambda data, lengths, offsets, axis: _dense(data.shape, data.dtype, data),
    variants="",
    places=("lengths", "offsets"),
)
def _segment_others(data, lengths, offsets, axis):
    """The product of the other elements of its segment, for each element."""
    begins, counts = _segments(data, lengths, offsets, axis)
    out = np.ones_like(data)
    for lead in np.ndindex(begins.shape[:-1]):
        for k in range(counts.shape[-1]):
            b, n = begins[(*lead, k)], counts[(*lead, k)]
            part = data[lead][b : b + n]
            for j in range(n):
                out[lead][b + j] = np.delete(part, j, 0).prod(0)
    return out


_segment_ids.derivative()
_segment_others.derivative()


@composite(
    "_segment_reduce_backward(Tensor grad, Tensor output, Tensor data, str reduce, *, Tensor? lengths=None, Tensor? offsets=None, int axis=0, Scalar? initial=None) -> Tensor",
    variants="",
)
def _segment_reduce_backward(grad, output, data, reduce, lengths, offsets, axis, initial):
    return _segment_vjp(grad, data, reduce, lengths, offsets, axis, output, initial)
