"""Embeddings whose rows are codes of 8, 4 or 2 bits, each row with a scale and a bias: a code ``c`` stands for ``c * scale + bias``.

Here a tensor that is quantised by rows holds them (``embedding_bag_prepack``); byte_rows.py has the form in which the rows are bytes.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import _C
from ...base import dtypes
from ...base.records import slotted
from ...core.operator import namespace
from ...core.quantized import PACKED, PackedWeight, is_quantized, parts
from .arithmetic import operator

aten = namespace("aten")


@slotted(eq=False)
class EmbeddingPackedParams(PackedWeight):
    """``weight``: (rows, columns) of quint8 or quint4x2, quantised by rows with floats as zero points."""

    weight: Any

    def __repr__(self):
        # Messages name it: not the whole table.
        return f"EmbeddingPackedParams({self.weight._dtype}, {tuple(self.weight._shape)})"


@slotted(eq=False)
class Rows:
    """``codes`` (rows, columns) of bytes; ``scale`` and ``bias`` (rows, 1) of float32."""

    codes: np.ndarray
    scale: np.ndarray
    bias: np.ndarray

    def read(self, indices) -> np.ndarray:
        """The rows ``indices``, of float32, each rounded once."""
        wide = self.codes[indices].astype(np.float64) * self.scale[indices] + self.bias[indices]
        return wide.astype(np.float32)


# ---- rows of a quantised tensor ----------------------------------------------------------------------------------------------


@operator("embedding_bag_prepack(Tensor weight) -> Any")
def embedding_bag_prepack(weight):
    """``weight``: (rows, columns) of quint8 or quint4x2. RuntimeError for others."""
    name = "quantized::embedding_bag_prepack"
    p = parts(weight) if is_quantized(weight) else None
    if p is None or weight._dtype not in (dtypes.quint8, PACKED):
        raise RuntimeError(f"{name}: Currently quantized embedding supports quint8 and quint4x2, got {weight._dtype}")
    if p.axis != 0 or p.zero_point._dtype is not dtypes.float32:
        raise RuntimeError(
            f"{name}: Expect embedding_bag weights to be quantized using kPerChannelAffineFloatQParams, got {p.scheme}"
        )
    if weight._ndim != 2:
        raise RuntimeError(f"{name}: Expected weight of two dimensions, got {weight._ndim}")
    return EmbeddingPackedParams(weight)


@operator("embedding_bag_unpack(Any W_prepack) -> Tensor W_origin")
def embedding_bag_unpack(W_prepack):
    return _params("embedding_bag_unpack", W_prepack).weight


def _params(name: str, x) -> EmbeddingPackedParams:
    if not isinstance(x, EmbeddingPackedParams):
        raise RuntimeError(
            f"quantized::{name}() Expected a value of type 'EmbeddingPackedParams', which embedding_bag_prepack gives, for argument 'weight' "
            f"but instead found type '{type(x).__name__}'."
        )
    return x


def _rows(name: str, x, dtype) -> Rows:
    weight = _params(name, x).weight
    if weight._dtype is not dtype:
        raise RuntimeError(f"quantized::{name}: expected a weight of {dtype}, got {weight._dtype}")
    p = parts(weight)
    scale = p.scale._array[:, None]
    return rows_of(p.array, scale, -p.zero_point._array[:, None] * scale, dtype is PACKED)


def rows_of(codes, scale, bias, four_bits: bool) -> Rows:
    """Rows of a quantised tensor."""
    if four_bits:
        # PyTorch keeps them in 16 bits beside such rows.
        scale, bias = (v.astype(np.float16).astype(np.float32) for v in (scale, bias))
    return Rows(codes, scale, bias)


# ---- lookups -----------------------------------------------------------------------------------------------------------------


def _checked_indices(indices, rows: int) -> np.ndarray:
    if indices._dtype not in (dtypes.int32, dtypes.int64):
        raise RuntimeError(f"Expect 32 or 64 bit indices, but found {indices._dtype.scalar_type} instead.")
    found = indices._array
    outside = (found < 0) | (found >= rows)
    if outside.any():
        at = int(np.flatnonzero(outside)[0])
        raise RuntimeError(f"Index {at} is out of bounds: {found.reshape(-1)[at]}, range 0 to {rows}")
    return found


def _lookup(rows: Rows, indices):
    return _C.from_array(rows.read(_checked_indices(indices, len(rows.codes))))


def _bags(name: str, rows: Rows, indices, offsets, per_sample_weights, mapping, include_last_offset: bool):
    """Sums of rows, a bag each. ``mapping``: the row of each index where rows were left out, below 0 for those."""
    words = "embedding_bag_byte expects" if "byte" in name else "embedding_bag_4bit/embedding_bag_2bit operator expects"
    if indices._ndim == 2:
        if offsets is not None:
            raise RuntimeError(f"{words} offsets to be None for 2D indices.")
        starts = np.arange(indices._shape[0], dtype=np.int64) * indices._shape[1]
        include_last_offset = False
    elif indices._ndim == 1:
        if offsets is None:
            raise RuntimeError(f"{words} offsets to be set for 1D indices.")
        starts = np.asarray(offsets._array, np.int64)
    else:
        raise RuntimeError(f"{name}: Expected indices of one or two dimensions, got {indices._ndim}")
    if include_last_offset and not starts.size:
        raise RuntimeError(f"{name}: include_last_offset: numBags should be at least 1")
    total = math.prod(indices._shape)
    if (np.diff(starts) < 0).any() or ((starts < 0) | (starts > total)).any():
        raise RuntimeError(f"{name}: Expected offsets that don't fall, from 0 to {total}, got {starts.tolist()}")
    weights = None if per_sample_weights is None else per_sample_weights._array.reshape(-1)
    if weights is not None and weights.size != total:
        raise RuntimeError(f"{name}: Expected {total} per_sample_weights, one for each index, got {weights.size}")
    if mapping is None:
        read = rows.read(_checked_indices(indices, len(rows.codes)).reshape(-1))
    else:
        at = mapping._array[_checked_indices(indices, mapping._shape[0]).reshape(-1)]
        read = rows.read(np.maximum(at, 0)) * (at >= 0).astype(np.float32)[:, None]
    if weights is not None:
        read = read * weights.astype(np.float32)[:, None]
    # NOTE: rows before the first offset belong to no bag; PyTorch, which reads bags one behind the other, begins at the first row as well.
    ends = starts[1:] if include_last_offset else np.append(starts[1:], total)
    made = np.zeros((len(ends), read.shape[1]), np.float32)
    for bag, (a, b) in enumerate(zip(starts, ends)):
        if b > a:
            made[bag] = read[a:b].sum(0, dtype=np.float64)
    return _C.from_array(made)


def bag_count(indices, offsets, include_last_offset):
    """The number of bags. Where indices and offsets don't go together the kernel says so."""
    if len(indices.shape) == 2:
        return indices.shape[0]
    return 0 if offsets is None else offsets.shape[0] - bool(include_last_offset)


_BAG = (
    "Tensor indices, Tensor? offsets=None, bool scale_grad_by_freq=False, int mode=0, bool pruned_weights=False, "
    "Tensor? per_sample_weights=None, Tensor? compressed_indices_mapping=None, bool include_last_offset=False"
)


def _mapping(pruned: bool, mapping):
    """The mapping that counts: the one of a single 0 says that nothing was left out."""
    if not pruned or mapping is None or (mapping._shape == (1,) and int(mapping._array[0]) == 0):
        return None
    return mapping


def _embedding(name: str, bag: str, dtype) -> None:
    """Declare a lookup and its bags, of packed weights of one dtype."""

    @operator(f"{name}(Any weight, Tensor indices, bool pruned_weights=False) -> Tensor")
    def lookup(weight, indices, pruned_weights):
        if pruned_weights:
            raise RuntimeError(f"quantized::{name}: pruned_weights takes a mapping of indices, which only {bag} has")
        return _lookup(_rows(name, weight, dtype), indices)

    @operator(f"{bag}(Any weight, {_BAG}) -> Tensor")
    def bags(
        weight, indices, offsets, scale_grad_by_freq, mode, pruned, per_sample_weights, mapping, include_last_offset
    ):
        rows = _rows(bag, weight, dtype)
        return _bags(bag, rows, indices, offsets, per_sample_weights, _mapping(pruned, mapping), include_last_offset)


_embedding("embedding_byte", "embedding_bag_byte", dtypes.quint8)
_embedding("embedding_4bit", "embedding_bag_4bit", PACKED)
