"""Embeddings whose rows are bytes: codes of 8, 4 or 2 bits, and behind those of each row its scale and bias (``embedding_bag_byte_prepack`` and its
kin), float32 behind 8 bits, float16 behind fewer."""

from __future__ import annotations

import numpy as np

from ... import _C
from ...base import dtypes
from . import embeddings
from .plain import fresh, plain_operator


def _rows_of_bytes(name: str, weight, bits: int) -> embeddings.Rows:
    """The rows of a tensor of bytes: codes, several a byte from the low bits on, then scale and bias."""
    if weight._dtype is not dtypes.uint8 or weight._ndim != 2:
        raise RuntimeError(
            f"{name}: Expected weight of uint8 and two dimensions, got {weight._dtype} of {weight._ndim}"
        )
    kind = np.dtype(np.float32 if bits == 8 else np.float16)
    if weight._shape[1] < 2 * kind.itemsize:
        raise RuntimeError(f"{name}: Expected rows of at least {2 * kind.itemsize} bytes, got {weight._shape[1]}")
    data = np.ascontiguousarray(weight._array)
    cut = data.shape[1] - 2 * kind.itemsize
    behind = np.ascontiguousarray(data[:, cut:]).view(kind).astype(np.float32)
    codes = data[:, :cut]
    if bits < 8:
        shifts = np.arange(0, 8, bits, dtype=np.uint8)
        codes = (codes[:, :, None] >> shifts & np.uint8((1 << bits) - 1)).reshape(len(data), -1)
    return embeddings.Rows(codes, behind[:, :1], behind[:, 1:])


def _prepacked(name: str, weight, bits: int, extremes=None):
    """The bytes of rows of floats."""
    if weight._dtype not in (dtypes.float32, dtypes.float16) or (weight._ndim != 2 and bits < 8) or weight._ndim < 1:
        raise RuntimeError(
            f"{name}: Expected weight of float32 or float16 with two dimensions, got {weight._dtype} of {weight._ndim}"
        )
    each = 8 // bits
    if weight._shape[-1] % each:
        raise RuntimeError(f"qembeddingbag_{bits}bit_prepack only works for the number of columns a multiple of {each}")
    x = weight._array.astype(np.float32).reshape(-1, weight._shape[-1])
    low = x.min(1, keepdims=True) if extremes is None else extremes._array[:, :1].astype(np.float32)
    high = x.max(1, keepdims=True) if extremes is None else extremes._array[:, 1:2].astype(np.float32)
    top = np.float32((1 << bits) - 1)
    if bits == 8:
        reach = high - low
        scale, inverse = reach / top, top / (reach + np.float32(1e-8))
        codes = np.rint((x - low) * inverse).astype(np.uint8)
        behind = np.concatenate([scale, low], 1)
        made = np.concatenate([codes, np.ascontiguousarray(behind).view(np.uint8)], 1)
        return _C.from_array(made.reshape(*weight._shape[:-1], -1))
    low = low.astype(np.float16).astype(np.float32)
    reach = high - low
    scale = np.where(reach == 0, np.float32(1), reach / top).astype(np.float16).astype(np.float32)
    scale = np.where(
        (scale == 0) | np.isinf(np.float32(1) / np.where(scale == 0, np.float32(1), scale)), np.float32(1), scale
    )
    codes = np.clip(np.rint((x - low) * (np.float32(1) / scale)), 0, top).astype(np.uint8)
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    codes = np.bitwise_or.reduce(codes.reshape(len(x), -1, each) << shifts, -1).astype(np.uint8)
    behind = np.ascontiguousarray(np.concatenate([scale, low], 1).astype(np.float16)).view(np.uint8)
    return _C.from_array(np.concatenate([codes, behind], 1))


def _bytes(label: str, bits: int) -> None:
    """Declare packing, unpacking and the bags of rows of bytes."""
    optimized = "" if bits == 8 else ", bool optimized_qparams=False, int nbins=200, float ratio=0.16"
    bag = f"embedding_bag_{label}_rowwise_offsets"

    def refuse_search(given) -> None:
        if given and given[0]:
            raise NotImplementedError(
                f"embedding_bag_{label}_prepack(optimized_qparams=True): a search for ranges is not built; the rows' extremes are taken"
            )

    def bytes_of(weight, *given):
        """Scale and bias behind the codes of each row."""
        columns = weight.shape[-1] // (8 // bits) + (8 if bits == 8 else 4)
        return fresh((*weight.shape[:-1], columns), dtypes.uint8)

    def values_of(weight):
        return fresh((weight.shape[0], (weight.shape[1] - (8 if bits == 8 else 4)) * (8 // bits)), dtypes.float32)

    @plain_operator(f"embedding_bag_{label}_prepack(Tensor weight{optimized}) -> Tensor", bytes_of)
    def prepack(weight, *search):
        refuse_search(search)
        return _prepacked(f"embedding_bag_{label}_prepack", weight, bits)

    @plain_operator(
        f"embedding_bag_{label}_prepack_with_rowwise_min_max(Tensor weight, Tensor rowwise_min_max{optimized}) -> Tensor",
        bytes_of,
    )
    def prepack_between(weight, rowwise_min_max, *search):
        refuse_search(search)
        return _prepacked(f"embedding_bag_{label}_prepack", weight, bits, rowwise_min_max)

    @plain_operator(f"embedding_bag_{label}_unpack(Tensor weight) -> Tensor", values_of)
    def unpack(weight):
        rows = _rows_of_bytes(f"embedding_bag_{label}_unpack", weight, bits)
        return _C.from_array(rows.codes.astype(np.float32) * rows.scale + rows.bias)

    def sums_of(weight, indices, offsets, scale_grad_by_freq, mode, pruned, weights, mapping, include_last_offset):
        return fresh(
            (embeddings.bag_count(indices, offsets, include_last_offset), values_of(weight).shape[1]), dtypes.float32
        )

    @plain_operator(f"{bag}(Tensor weight, {embeddings._BAG}) -> Tensor", sums_of)
    def bags(
        weight, indices, offsets, scale_grad_by_freq, mode, pruned, per_sample_weights, mapping, include_last_offset
    ):
        rows = _rows_of_bytes(bag, weight, bits)
        return embeddings._bags(
            bag, rows, indices, offsets, per_sample_weights, embeddings._mapping(pruned, mapping), include_last_offset
        )


for _label, _bits in (("byte", 8), ("4bit", 4), ("2bit", 2)):
    _bytes(_label, _bits)
