"""Tensors as the bytes of a safetensors file: a header of JSON with dtype, shape and place of each, then their elements."""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np

from .. import _C
from ..base import dtypes

__all__ = ["read_weights", "write_weights"]

_NAMES = {
    "float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "int64": "I64", "int32": "I32", "int16": "I16",
    "int8": "I8", "uint64": "U64", "uint32": "U32", "uint16": "U16", "uint8": "U8", "bool": "BOOL", "complex64": "C64",
    "complex128": "C128", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2",
}  # fmt: skip
_ALIGN = 64


def write_weights(tensors: dict[str, Any]) -> bytes:
    """TypeError for a tensor without data, or of a dtype that files don't have."""
    header: dict[str, Any] = {}
    parts: list[bytes] = []
    at = 0
    for name, t in tensors.items():
        array = t._array if isinstance(t, _C.TensorBase) else np.asarray(t)
        kind = _NAMES.get(dtypes.from_numpy(array.dtype).name) if array is not None else None
        if array is None or kind is None:
            raise TypeError(f"{name}: a {type(t).__name__} of dtype {getattr(t, 'dtype', None)} can't be saved")
        strides = [s // array.itemsize for s in array.strides]
        dense = array.size == _extent(array.shape, strides)
        if not dense:
            array = np.ascontiguousarray(array)
            strides = [s // array.itemsize for s in array.strides]
        order = sorted(range(array.ndim), key=lambda d: -strides[d])
        data = array.transpose(order).tobytes()
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [at, at + len(data)]}
        if order != list(range(array.ndim)):
            header.setdefault("__metadata__", {})[f"order of {name}"] = json.dumps(order)
        pad = -len(data) % _ALIGN
        parts.append(data + b"\0" * pad)
        at += len(data) + pad
    text = json.dumps(header).encode()
    text += b" " * (-(len(text) + 8) % _ALIGN)
    return struct.pack("<Q", len(text)) + text + b"".join(parts)


def _extent(shape, strides) -> int:
    return 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, strides))


def read_weights(data: bytes) -> dict[str, Any]:
    """Tensors by name, each with memory of its own. ValueError where the header doesn't fit the data."""
    if len(data) < 8:
        raise ValueError("the weights are cut short")
    (size,) = struct.unpack_from("<Q", data)
    if size > len(data) - 8:
        raise ValueError("the weights are cut short")
    header = json.loads(data[8 : 8 + size])
    orders = header.pop("__metadata__", {})
    by_kind = {kind: name for name, kind in _NAMES.items()}
    out = {}
    for name, row in header.items():
        begin, end = row["data_offsets"]
        shape = row["shape"]
        kind = next((d.np for d in dtypes.ALL if d.name == by_kind.get(row["dtype"])), None)
        if kind is None or any(type(n) is not int or n < 0 for n in shape):
            raise ValueError(f"the weights hold {name} of dtype {row['dtype']} and shape {shape}")
        count = 1
        for n in shape:
            count *= n
        if not 0 <= begin <= end <= len(data) - 8 - size or end - begin != count * kind.itemsize:
            raise ValueError(f"the weights of {name} don't fit their shape {shape}")
        order = json.loads(orders[f"order of {name}"]) if f"order of {name}" in orders else list(range(len(shape)))
        if sorted(order) != list(range(len(shape))):
            raise ValueError(f"the weights of {name} have no order {order}")
        flat = np.frombuffer(data, kind, count, 8 + size + begin).copy()
        out[name] = _C.from_array(flat.reshape([shape[d] for d in order]).transpose(np.argsort(order)))
    return out
