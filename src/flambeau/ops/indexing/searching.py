"""Places in sorted sequences, membership, histograms."""

from __future__ import annotations

import math

import numpy as np

from ...base import select
from ...base.device import CPU
from ...base.dtypes import bool_, check_number, float64, from_numpy, int32, int64, result_type, sortable
from ...base.shapes import contiguous_strides
from ...core.declare import COMPLEX, composite, extern
from ...core.definition import TensorMeta
from ...core.operator import namespace
from ...core.promotion import NARROW, rounded

aten = namespace("aten")


def _check_search(sequence, values, right, side, sorter) -> None:
    """RuntimeError for a search whose shapes or sides don't fit."""
    bounds, shape = tuple(sequence.shape), tuple(values.shape)
    if len(bounds) != 1 and not shape:
        raise RuntimeError(
            "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but we got boundaries tensor "
            f"dim({len(bounds)}) and input value's dim(0) numel(1)"
        )
    if not bounds:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension"
        )
    if len(bounds) != 1 and bounds[:-1] != shape[:-1]:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor and input value "
            f"tensor must match, but we got boundaries tensor {list(bounds)} and input value tensor {list(shape)}"
        )
    if side is not None and side not in ("left", "right"):
        raise RuntimeError(f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise RuntimeError(
            "torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True"
        )
    if sorter is not None and sorter.dtype not in (int64, np.dtype(np.int64)):
        raise RuntimeError(f"torch.searchsorted(): sorter must be a tensor of long dtype but got dtype {sorter.dtype}")
    if sorter is not None and tuple(sorter.shape) != bounds:
        raise RuntimeError(
            f"torch.searchsorted(): boundary and sorter must have the same size, but got boundary tensor {list(bounds)} and got "
            f"sorter tensor {list(sorter.shape)}"
        )


def _places_meta(sequence, self, out_int32, right, side, sorter):
    _check_search(sequence, self, right, side, sorter)
    shape = tuple(self.shape)
    return TensorMeta(shape, contiguous_strides(shape), int32 if out_int32 else int64, self.device)


def _places(sequence, values, out_int32, right, side, sorter):
    _check_search(sequence, values, right, side, sorter)
    side = "right" if right or side == "right" else "left"
    kind = np.int32 if out_int32 else np.int64
    if sorter is not None:
        if sorter.size and (sorter.min() < 0 or sorter.max() >= sequence.shape[-1]):
            raise RuntimeError("torch.searchsorted(): sorter index out of range")
        sequence = np.take_along_axis(sequence, sorter, -1)
    common = np.result_type(sequence, values)
    sequence, values = sortable(sequence.astype(common, copy=False)), sortable(values.astype(common, copy=False))
    if sequence.dtype.name in select.SEARCHED:
        return select.search(sequence, values, side == "right", kind)
    if sequence.ndim == 1:
        return np.asarray(np.searchsorted(sequence, values, side)).astype(kind)
    count = math.prod(sequence.shape[:-1])
    rows, wanted = sequence.reshape(count, sequence.shape[-1]), values.reshape(count, values.shape[-1])
    out = [np.searchsorted(r, v, side) for r, v in zip(rows, wanted)]
    return np.array(out, kind).reshape(values.shape)


searchsorted = extern(
    "searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, str? side=None, "
    "Tensor? sorter=None) -> Tensor",
    refuse=COMPLEX,
    meta=_places_meta,
    variants="function",
    has_out=True,
    places=("sorter",),
)(_places)
searchsorted.derivative()


def _examples_searched(size, sequences, values, how, sorters=None):
    """One row of boundaries for all values of an example: these are a row as well."""
    rows = values if sequences.ndim > 2 else aten.reshape.default(values, [size, -1 if values.numel() else 0])
    found = aten.searchsorted.Tensor(sequences, rows, sorter=sorters, **how)
    return aten.reshape.default(found, list(values.shape))


@searchsorted.override("batch")
def _batched_search(call, sorted_sequence, self, out_int32, right, side, sorter):
    bounds, values, _, _, _, order = call.logical
    _check_search(bounds, values, right, side, order)
    how = {"out_int32": out_int32, "right": right, "side": side}
    if bounds.ndim == 1 and not call.mask[0] and not call.mask[5]:
        return aten.searchsorted.Tensor(sorted_sequence, self, sorter=sorter, **how)
    sequences, values, sorters = (
        call.all(x, call.mask[at]) for x, at in ((sorted_sequence, 0), (self, 1), (sorter, 5))
    )
    return _examples_searched(call.size, sequences, values, how, sorters)


@searchsorted.override("lower")
def _lower_search(lowering, val, sequence, self, out_int32, right, side, sorter):
    if sorter is not None:
        raise NotImplementedError("a sequence in another order")
    return lowering.search(val, sequence, self, right or side == "right")


@composite(
    "searchsorted.Scalar(Tensor sorted_sequence, Scalar self, *, bool out_int32=False, bool right=False, str? side=None, "
    "Tensor? sorter=None) -> Tensor",
    variants="function",
    out_rules="exact",
)
def searchsorted_number(sorted_sequence, self, out_int32, right, side, sorter):
    value = aten.scalar_tensor.default(self, dtype=result_type(sorted_sequence, self))
    return aten.searchsorted.Tensor(sorted_sequence, value, out_int32=out_int32, right=right, side=side, sorter=sorter)


def _bucket_meta(self, boundaries, out_int32, right):
    if len(boundaries.shape) != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({len(boundaries.shape)})")
    return _places_meta(boundaries, self, out_int32, right, None, None)


def _buckets(values, boundaries, out_int32, right):
    if boundaries.ndim != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})")
    return _places(boundaries, values, out_int32, right, None, None)


bucketize = extern(
    "bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
    refuse=COMPLEX,
    meta=_bucket_meta,
    variants="function",
    has_out=True,
)(_buckets)
bucketize.derivative()


@bucketize.override("batch")
def _batched_buckets(call, self, boundaries, out_int32, right):
    how = {"out_int32": out_int32, "right": right}
    if not call.mask[1]:
        return aten.bucketize.Tensor(self, boundaries, **how)
    if boundaries.ndim != 2:
        # The operator's error, about one example.
        return aten.bucketize.Tensor(call.all(self, call.mask[0])[0], boundaries[0], **how)
    return _examples_searched(call.size, boundaries, call.all(self, call.mask[0]), how)


bucketize.override(
    "lower", lambda lowering, val, self, boundaries, out_int32, right: lowering.search(val, boundaries, self, right)
)


@composite(
    "bucketize.Scalar(Scalar self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
    variants="function",
    out_rules="exact",
)
def bucketize_number(self, boundaries, out_int32, right):
    value = aten.scalar_tensor.default(self, dtype=result_type(boundaries, self))
    return aten.bucketize.Tensor(value, boundaries, out_int32=out_int32, right=right)


def _membership(elements, test_elements, assume_unique, invert):
    """Compared are elements of the dtype both promote to: beside one of 16 bits a number without dimensions is rounded."""
    given = (elements, test_elements)
    kind = result_type(*[TensorMeta(a.shape, a.strides, from_numpy(a.dtype), CPU) for a in given])
    elements, test_elements = [rounded(a, kind) if kind in NARROW else a.astype(kind.np, copy=False) for a in given]
    return np.asarray(np.isin(sortable(elements), sortable(test_elements), assume_unique=False, invert=invert))


isin = extern(
    "isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> Tensor",
    meta=lambda elements, test_elements, assume_unique, invert: TensorMeta(
        tuple(elements.shape), contiguous_strides(tuple(elements.shape)), bool_, elements.device
    ),
    variants="function",
    has_out=True,
    refuse=("bool", *COMPLEX),
)(_membership)
isin.derivative()


isin.override(
    "lower",
    lambda lowering, val, elements, among, assume_unique, invert: lowering.contained(val, elements, among, invert),
)


@composite(
    "isin.Tensor_Scalar(Tensor elements, Scalar test_element, *, bool assume_unique=False, bool invert=False) -> Tensor",
    variants="function",
    out_rules="exact",
)
def isin_number(elements, test_element, assume_unique, invert):
    return (aten.ne if invert else aten.eq).Scalar(aten.contiguous.default(elements), test_element)


@composite(
    "isin.Scalar_Tensor(Scalar element, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> Tensor",
    variants="function",
    out_rules="exact",
)
def number_isin(element, test_elements, assume_unique, invert):
    if isinstance(element, bool):
        raise RuntimeError("Unsupported input type encountered for isin(): Bool")
    hit = aten.any.default(aten.eq.Scalar(test_elements, element))
    return aten.logical_not.default(hit) if invert else hit


def _histc_meta(self, bins, min, max):
    if bins <= 0:
        raise RuntimeError("torch.histc(): bins must be > 0")
    check_number(min, float64)
    check_number(max, float64)
    return TensorMeta((bins,), (1,), self.dtype, self.device)


@extern(
    "histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor",
    refuse=COMPLEX,
    meta=_histc_meta,
    has_out=True,
)
def histc(a, bins, min, max):
    if bins <= 0:
        raise RuntimeError("torch.histc(): bins must be > 0")
    if a.dtype.kind in "biu":
        raise NotImplementedError(f"\"histogram_cpu\" not implemented for '{a.dtype.name}'")
    check_number(min, float64)
    check_number(max, float64)
    low, high = float(min), float(max)
    if low == high and a.size:
        low, high = float(a.min()), float(a.max())
    if low == high:
        low, high = low - 1, high + 1
    if not (np.isfinite(low) and np.isfinite(high)):
        raise RuntimeError(f"torch.histc: range of [{low}, {high}] is not finite")
    if low > high:
        raise RuntimeError("torch.histc: max must be larger than min")
    if a.dtype.name in ("float32", "float64"):
        return select.histogram(a, bins, low, high)
    flat = a.reshape(-1).astype(np.float64)
    flat = flat[(flat >= low) & (flat <= high)]
    share = (flat - low) / (high - low) if low < high else np.full_like(flat, 0.5)
    at = np.minimum((share * bins).astype(np.int64), bins - 1)
    return np.bincount(at, minlength=bins).astype(a.dtype)


histc.derivative()
histc.override("lower", lambda lowering, val, self, bins, min, max: lowering.histogram(val, self, bins, min, max))
