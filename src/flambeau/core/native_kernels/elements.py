"""Elements, one by one."""

from __future__ import annotations

import math

from ...base import dtypes, kernels
from ...base.result_spec import ResultSpec
from ...base.sizes import dense_strides

__all__ = ["exponential_units", "without_nan"]

_FLOAT = {dtypes.float32: "f32", dtypes.float64: "f64"}  # as base/blas.py names them


def _elementwise(h, kernel, x, **numbers):
    shape, strides = tuple(x.shape), tuple(x.strides)
    if x.dtype not in _FLOAT or not math.prod(shape) or strides != tuple(dense_strides(shape)):
        raise NotImplementedError(f"there is no one pass over {x.dtype} and sizes {list(shape)}")
    out = ResultSpec(shape, strides, x.dtype, x.device)
    return h.launch(kernel, [x], [out], 4 * math.prod(shape), f64=x.dtype is dtypes.float64, **numbers)[0]


def exponential_units(h, x, scale, below, inner):
    """``scale * x`` above 0, else ``below * expm1(inner * x)``, with the bits of these operations: see csrc/kernels/elementwise.c."""
    numbers = {"scale": scale, "below": below, "inner": inner}
    if any(type(n) not in (int, float) for n in numbers.values()) or not inner:
        raise NotImplementedError(f"the body has its own words for {numbers}")
    return _elementwise(h, kernels.exponential_units, x, **{name: float(n) for name, n in numbers.items()})


def without_nan(h, x):
    """The elements, and 0 in place of nan."""
    return _elementwise(h, kernels.without_nan, x)
