"""Tensors joined along a dimension: ``cat`` and ``stack``."""

from __future__ import annotations

import math

import numpy as np

from ...base.dtypes import from_numpy, promote_types
from ...base.memory_format import contiguous_format, format_strides
from ...base.shapes import normalize_dim, same_shape
from ...base.symbolic_queries import guard_or_false
from ...base.symint import is_symbolic
from ...core.declare import composite, extern
from ...core.definition import TensorMeta
from ...core.layouts import image_format, in_order, strides_of
from ...core.operator import namespace
from ...core.promotion import check_same_device
from ...core.sharding import Apart

aten = namespace("aten")


def _is_nothing(t) -> bool:
    """Whether a tensor has the shape (0,), which is passed over. One whose size depends on data isn't taken to have it."""
    return len(t.shape) == 1 and guard_or_false(t.shape[0] == 0)


def _cat_meta(tensors, dim):
    if not tensors:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")

    real = [t for t in tensors if not _is_nothing(t)] or list(tensors)
    first = real[0]
    ndim = len(first.shape)
    if ndim == 0:
        raise RuntimeError("zero-dimensional tensor (at position 0) cannot be concatenated")
    d = normalize_dim(dim, ndim)
    for k, t in enumerate(real):
        if len(t.shape) != ndim:
            raise RuntimeError(f"Tensors must have same number of dimensions: got {ndim} and {len(t.shape)}")
        for e in range(ndim):
            if e != d and t.shape[e] != first.shape[e]:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {d}. Expected size {first.shape[e]} but got size {t.shape[e]} for tensor "
                    f"number {k} in the list."
                )
    check_same_device(real)
    shape = tuple(sum(t.shape[d] for t in real) if e == d else n for e, n in enumerate(first.shape))
    dtype = first.dtype
    for t in tensors:
        dtype = promote_types(dtype, t.dtype)
    formats = {image_format(tuple(t.shape), strides_of(t)) for t in real}
    strides = format_strides(shape, formats.pop() if len(formats) == 1 else contiguous_format)
    return TensorMeta(shape, strides, dtype, first.device)


def _are_rows(arrays, dim: int) -> bool:
    """Whether the arrays are of one kind, so many that looking at each for itself would take longer than to move them."""
    a = arrays[0] if len(arrays) > 4 else None
    if a is None or not 0 < a.ndim < 4 or not -a.ndim <= dim < a.ndim or not a.size or not a.flags.c_contiguous:
        return False
    facts = [(b.shape, b.strides, b.dtype) for b in arrays]
    return facts.count((a.shape, a.strides, a.dtype)) == len(facts)


class _Like:
    """Shape, strides and dtype of an ndarray as the shape rule wants them."""

    __slots__ = ("device", "dtype", "shape", "strides")

    def __init__(self, array):
        self.shape, self.strides, self.dtype, self.device = (
            array.shape,
            strides_of(array),
            from_numpy(array.dtype),
            None,
        )


@extern(
    "cat(Tensor[] tensors, int dim=0) -> Tensor",
    meta=_cat_meta,
    variants="function",
    has_out=True,
    out_rules="casts outside joins",
)
def cat(arrays, dim):
    if _are_rows(arrays, dim):
        return np.concatenate(arrays, axis=dim)
    meta = _cat_meta([_Like(a) for a in arrays], dim)
    # NOTE: NumPy has no common dtype of bfloat16 and int64, and would keep the order of transposed parts.
    parts = [a.astype(meta.dtype.np, copy=False) for a in arrays if a.shape != (0,)] or arrays
    return in_order(np.concatenate(parts, axis=dim).astype(meta.dtype.np, copy=False), meta.strides)


def _cat_pieces(tensors, dim):
    """Each tensor, and where along which dimension of the result it lies."""
    real = [t for t in tensors if not _is_nothing(t)]
    d, at = normalize_dim(dim, len(real[0].shape)), 0
    for t in real:
        yield t, d, at
        at += t.shape[d]


cat.override("pieces", _cat_pieces)

cat.override("streamed", lambda tensors, dim: sum([math.prod(t.shape) * t.dtype.itemsize for t in tensors]))


def _cat_vjp(ct, tensors_like, dim):
    out, at = [], 0
    d = normalize_dim(dim, ct.ndim)
    for t in tensors_like:
        n = t.shape[d] if t.ndim == ct.ndim else 0
        out.append(
            aten.slice.Tensor(ct, d, at, at + n)
            if n or t.ndim == ct.ndim
            else aten.new_zeros.default(ct, list(t.shape))
        )
        at += n
    return out


cat.derivative(tensors=_cat_vjp)

cat.override(
    "lower",
    lambda lowering, val, tensors, dim: lowering.concatenate([t for t in tensors if not _is_nothing(t)], dim, val),
)

cat.override("sharding", Apart("dim", linear=True))


@cat.override("batch")
def _cat_batch(b, tensors, dim):
    pairs = list(zip(tensors, b.mask[0]))
    empty = [tuple(t.shape[m:]) == (0,) for t, m in pairs]
    if all(empty):
        empty = [False] * len(pairs)
    # Empty vectors are skipped, as in the operator itself, and remain operands for their history.
    parts = [aten.reshape.default(t, [0]) if e else b.all(t, m) for (t, m), e in zip(pairs, empty)]
    return aten.cat.default(parts, dim + 1 if dim >= 0 else dim)


@composite("stack(Tensor[] tensors, int dim=0) -> Tensor", variants="function", out_rules="casts outside joins")
def stack(tensors, dim):
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    shape = tensors[0].shape
    shapes = [t.shape for t in tensors]
    alike = not is_symbolic(shape) and shapes.count(shape) == len(shapes)
    for k, t in enumerate(() if alike else tensors):
        if not same_shape(t.shape, shape):
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(shape)} at entry 0 and {list(t.shape)} at entry {k}"
            )
    d = normalize_dim(dim, len(shape) + 1)
    if d < len(shape) and all(image_format(tuple(t.shape), strides_of(t)) is not contiguous_format for t in tensors):
        joined = aten.cat.default(list(tensors), d)  # images stay in their memory format
        return aten.view.default(joined, [*shape[:d], len(tensors), *shape[d:]])
    return aten.cat.default([aten.unsqueeze.default(t, d) for t in tensors], d)
