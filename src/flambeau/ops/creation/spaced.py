"""Points spaced evenly on a logarithmic scale."""

from __future__ import annotations

from ...base import dtypes
from ...core.declare import composite
from ...core.operator import namespace
from .factories import OPTIONS, as_ends, ends_dtype

aten = namespace("aten")


def _logspace(start, end, steps, base, dtype, layout, device, pin_memory):
    kind = ends_dtype("logspace", start, end, dtype)
    wide = kind if kind.category >= 2 else dtypes.float64
    if steps > 1:
        start, end = as_ends(start, end, kind)
    points = aten.linspace.default(start, end, steps, dtype=wide, device=device)
    out = aten.pow.Scalar(base, points)
    return out if out.dtype is kind else aten._to_copy.default(out, dtype=kind)


composite(
    f"logspace(Scalar start, Scalar end, int steps, float base=10.0, {OPTIONS}) -> Tensor",
    variants="function",
    out_rules="dtype exact",
)(_logspace)


for _overload, _first, _second in (
    ("Tensor_Tensor", "Tensor", "Tensor"),
    ("Tensor_Scalar", "Tensor", "Scalar"),
    ("Scalar_Tensor", "Scalar", "Tensor"),
):
    composite(
        f"logspace.{_overload}({_first} start, {_second} end, int steps, float base=10.0, {OPTIONS}) -> Tensor",
        variants="function",
        out_rules="dtype exact",
    )(lambda start, end, *rest: _logspace(_number(start), _number(end), *rest))


def _number(x):
    if not hasattr(x, "dtype"):
        return x
    if x.ndim:
        raise RuntimeError("logspace only supports 0-dimensional start and end tensors")
    return x.item()
