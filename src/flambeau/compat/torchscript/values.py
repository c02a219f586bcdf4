"""Values as TorchScript has them: dtypes, layouts and memory formats are numbers, sizes lists; and how values are written into text."""

from __future__ import annotations

import math

from ... import _C
from ...base import dtypes
from ...base.device import Device
from ...base.memory_format import MemoryFormat, channels_last, channels_last_3d, contiguous_format, preserve_format
from ...core.quantized import CODES
from ...core.tensor import Layout, sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr, strided

__all__ = ["code_of", "dtype_of", "format_of", "layout_of", "shown"]

# c10::ScalarType, c10::Layout and c10::MemoryFormat by their numbers.
_ORDER = (
    "uint8 int8 int16 int32 int64 float16 float32 float64 complex32 complex64 complex128 bool qint8 quint8 qint32 bfloat16 quint4x2 quint2x4 "
    "bits1x8 bits2x4 bits4x2 bits8 bits16 float8_e5m2 float8_e4m3fn float8_e5m2fnuz float8_e4m3fnuz uint16 uint32 uint64"
).split()
_KNOWN = {d.name: d for d in (*dtypes.ALL, *CODES)}
DTYPES = {code: _KNOWN[name] for code, name in enumerate(_ORDER) if name in _KNOWN}
DTYPE_CODES = {d: code for code, d in DTYPES.items()}
LAYOUTS = dict(enumerate((strided, sparse_coo, sparse_csr))) | {4: sparse_csc, 5: sparse_bsr, 6: sparse_bsc}
LAYOUT_CODES = {layout: code for code, layout in LAYOUTS.items()}
FORMATS = dict(enumerate((contiguous_format, preserve_format, channels_last, channels_last_3d)))
FORMAT_CODES = {f.name: code for code, f in FORMATS.items()}


def _of(table: dict, what: str, code):
    if code is None or not isinstance(code, int):
        return code
    if code not in table:
        kind = f" ({_ORDER[code]})" if what == "dtype" and 0 <= code < len(_ORDER) else ""
        raise NotImplementedError(f"TorchScript names {what} number {code}{kind}, which flambeau doesn't have")
    return table[code]


def dtype_of(code):
    """The dtype with TorchScript's number; None stays None."""
    return _of(DTYPES, "dtype", code)


def layout_of(code):
    """The layout with TorchScript's number; None stays None."""
    return _of(LAYOUTS, "layout", code)


def format_of(code):
    """The memory format with TorchScript's number; None stays None."""
    return _of(FORMATS, "memory format", code)


def code_of(value):
    """TorchScript's number of a dtype, layout or memory format; anything else as it is."""
    if isinstance(value, dtypes.DType):
        return DTYPE_CODES[value]
    if isinstance(value, Layout):
        return LAYOUT_CODES[value]
    return FORMAT_CODES[value.name] if isinstance(value, MemoryFormat) else value


def shown(value) -> str:
    """A value as ``torch.format`` writes it: floats with 17 digits, which ``1.`` ends by a point."""
    if isinstance(value, str | bool | _C.TensorBase | Device) or value is None:
        return str(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            return str(value)
        text = f"{value:.17g}"
        return text if any(c in text for c in ".e") else text + "."
    if isinstance(value, list):
        return f"[{', '.join(map(shown, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(shown, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{shown(k)}: {shown(v)}" for k, v in value.items()) + "}"
    return str(value)
