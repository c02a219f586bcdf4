"""Which dtypes and parameters the draws take: what PyTorch refuses is refused here, with its errors."""

from __future__ import annotations

import math
import warnings

import numpy as np

from ...base.dtypes import DType, bfloat16, bool_, c_name, check_number, finfo
from ...core.declare import INTEGERS

__all__ = [
    "COMPLEX",
    "FLOATING",
    "REAL",
    "check_bounds",
    "check_deviation",
    "check_permutation",
    "continuous",
    "exact_integers",
    "interval",
    "only",
    "until_the_end",
]

FLOATING = ("float16", "bfloat16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
REAL = (*INTEGERS, *FLOATING)


def only(dtype: DType, names, kernel: str) -> DType:
    """``dtype``. NotImplementedError, as of PyTorch's ``kernel``, unless it is one of the dtypes ``names``."""
    if dtype.name not in names:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{dtype.scalar_type}'")
    return dtype


def continuous(dtype: DType, distribution: str) -> DType:
    """``dtype``. RuntimeError unless it is a floating one."""
    if not dtype.is_floating_point:
        raise RuntimeError(
            f"{distribution} distribution is a continuous probability distribution. "
            f"dtype must be a floating point but you specified {c_name(dtype)}"
        )
    return dtype


def check_deviation(std) -> None:
    if not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")


def check_bounds(dtype: DType, low: float, high: float) -> None:
    """RuntimeError unless uniform numbers of the dtype can lie between the bounds."""
    real = dtype.to_real()
    limit = finfo(real).max
    for name, bound in (("from", low), ("to", high)):
        if not -limit <= bound <= limit:
            raise RuntimeError(f"{name} is out of bounds for {c_name(real)}")
    if low > high:
        raise RuntimeError(
            f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}",
        )
    if high - low > limit:
        raise RuntimeError(
            f"uniform_ expects to-from <= std::numeric_limits<{real.scalar_type}>::max(), but found to={high:g} and "
            f"from={low:g} which result in to-from to exceed the limit"
        )


# ---- integers -----------------------------------------------------------------------------------------------------------------


def _digits(dtype: DType) -> int:
    """Of the significand of a floating dtype."""
    return round(-math.log2(finfo(dtype).eps)) + 1


def exact_integers(dtype: DType) -> int:
    """How many integers from 0 on the dtype counts exactly. NotImplementedError for one that nothing is drawn in without an upper end."""
    only(dtype, REAL, "random_kernel_cpu")
    if dtype.is_floating_point:
        return 2 ** _digits(dtype) + 1
    return 2 if dtype is bool_ else int(np.iinfo(dtype.np).max) + 1


def _extremes(dtype: DType):
    if dtype.is_complex:
        raise RuntimeError("check_random_bounds handles only integral, floating-point and boolean types")
    if dtype.is_floating_point:
        return -finfo(dtype).max, finfo(dtype).max
    return (0, 1) if dtype is bool_ else (int(np.iinfo(dtype.np).min), int(np.iinfo(dtype.np).max))


def _check_end(name: str, value: int, dtype: DType) -> None:
    low, high = _extremes(dtype)
    if not low <= value <= high:
        raise RuntimeError(f"{name} is out of bounds for {c_name(dtype)}")
    if dtype.is_floating_point and abs(value) > 2 ** _digits(dtype):
        warnings.warn(
            f"{name} is out of bounds [-(2^{_digits(dtype)}), 2^{_digits(dtype)}]. Due to precision limitations "
            f"{c_name(dtype)} can support discrete uniform distribution only within this range.",
            stacklevel=3,
        )


def interval(dtype: DType, low: int, high: int) -> tuple[int, int]:
    """[low, high) in a dtype. RuntimeError where it is empty or an end is beyond the dtype.

    Ends that a floating dtype doesn't have are moved inwards to such as it has, by the spacing of its numbers there."""
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    _check_end("from", low, dtype)
    _check_end("to - 1", high - 1, dtype)
    if not dtype.is_floating_point:
        return low, high
    above, below = int(dtype.np.type(low + 1)), int(dtype.np.type(high - 1))
    first = above + _spacing(low + 1, dtype) if above < low else low
    end = below - _spacing(high - 1, dtype) if below >= high else high
    if first >= end:
        raise RuntimeError(
            f"random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, but got from={first} >= to={end}"
        )
    return first, end


def _spacing(n: int, dtype: DType) -> int:
    return 1 << max(abs(n).bit_length() - _digits(dtype), 0)


def until_the_end(dtype: DType, low: int) -> tuple[int, int]:
    """[low, the greatest integer that the dtype counts to exactly]."""
    if dtype.is_complex:
        raise RuntimeError("random_from_to_impl handles only integral, floating-point and boolean types")
    end = exact_integers(dtype)
    if dtype.is_floating_point and low >= end - 1:
        raise RuntimeError(
            "random_ expects 'from' casted to dtype to be less than or equal to 'to_inc' casted to dtype, "
            f"but got from={low} > to_inc={end - 1}"
        )
    _check_end("from", low, dtype)
    return low, end


def check_permutation(n: int, dtype: DType) -> None:
    """RuntimeError where the dtype doesn't hold ``n`` numbers, NotImplementedError for one without permutations."""
    if n < 0:
        return  # the shape says so
    only(dtype, (*INTEGERS[1:], *FLOATING), "randperm")
    if dtype.is_floating_point and dtype is not bfloat16 and n > exact_integers(dtype):
        raise RuntimeError(f"n cannot be greater than {exact_integers(dtype)} for {dtype.scalar_type} type.")
    check_number(n - 1, dtype)
