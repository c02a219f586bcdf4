"""``torch.utils._dtype_abbrs``: short names of dtypes, as printed graphs have them (f32, i64, b8)."""

from __future__ import annotations

from ..base import dtypes

__all__ = ["dtype_abbrs"]

dtype_abbrs: dict[dtypes.DType, str] = {d: d.short for d in dtypes.ALL}
