"""Scales and zero points for ranges of values, and ranges for histograms.

A range is widened until it has 0, which then is a code exactly. Affine codes cover the range; symmetric ones cover as much on both sides of 0.
"""

from __future__ import annotations

import numpy as np

import flambeau as torch

__all__ = ["best_range", "code_range", "float_qparams", "fused_qparams", "qparams"]


def code_range(dtype, reduce_range: bool = False) -> tuple[int, int]:
    """The least and the greatest code of a quantised dtype; half as many with ``reduce_range``. ValueError for other dtypes."""
    ranges = {
        torch.qint8: (-128, 127),
        torch.int8: (-128, 127),
        torch.quint8: (0, 255),
        torch.uint8: (0, 255),
        torch.qint32: (-(2**31), 2**31 - 1),
        torch.int32: (-(2**31), 2**31 - 1),
        torch.quint4x2: (0, 15),
    }
    if dtype not in ranges:
        raise ValueError(f"dtype of codes must be qint8, quint8, qint32 or quint4x2, got {dtype}")
    low, high = ranges[dtype]
    return (low // 2, high // 2) if reduce_range else (low, high)


def qparams(least, most, low: int, high: int, symmetric: bool, eps: float):
    """(scale, zero point) for values from ``least`` to ``most`` (tensors of one shape), as a float32 and an integer tensor of that shape."""
    least, most = least.clamp(max=0), most.clamp(min=0)
    if symmetric:
        scale = torch.maximum(-least, most) / ((high - low) / 2)
        # Codes that start at 0 have their 0 in the middle.
        zero = torch.full_like(scale, 0 if low < 0 else (low + high + 1) // 2, dtype=torch.int64)
        return scale.clamp(min=eps), zero
    scale = ((most - least) / (high - low)).clamp(min=eps)
    zero = low - torch.round(least / scale).to(torch.int64)
    return scale, zero.clamp(low, high).to(torch.int32)


def float_qparams(least, most, low: int, high: int, eps: float):
    """(scale, zero point), both float32: the codes cover just what is between ``least`` and ``most``, and 0 need not be a code."""
    scale = (most - least) / (high - low)
    scale = torch.where(scale > eps, scale, torch.ones_like(scale))
    return scale, -least / scale


def fused_qparams(least, most, low: int, high: int, symmetric: bool):
    """As :func:`qparams`, as fused fake quantisation chooses them: symmetric scales reach just as far as the codes do on either side, and the
    zero point is taken from the end whose rounding moves it less."""
    least, most = least.clamp(max=0).double(), most.clamp(min=0).double()
    if symmetric:
        half = (high - low) // 2
        scale = torch.maximum(-least / (half + 1), most / half)
        scale = torch.where(scale == 0, 0.1, scale)
        return scale.float(), torch.full_like(scale, 0 if low < 0 else (low + high) // 2 + 1, dtype=torch.int32)
    scale = (most - least) / (high - low)
    scale = torch.where(scale == 0, 0.1, scale).float().double()
    from_low, from_high = low - least / scale, high - most / scale
    nearer = abs(low) - least / scale < abs(high) + most / scale
    zero = torch.where(nearer, from_low, from_high)
    return scale.float(), torch.round(zero.clamp(low, high)).to(torch.int32)


def best_range(counts: np.ndarray, least: float, most: float, codes: int) -> tuple[float, float]:
    """The part of a histogram from ``least`` to ``most`` that ``codes`` codes cover with the least squared error.

    From both ends, the bin with fewer values is left out as long as the error falls. Values are taken to be uniform within a bin; what lies
    outside is clipped to the nearest code."""
    bins, width = len(counts), (most - least) / len(counts)
    total = counts.sum()
    if total == 0 or width == 0:
        return least, most
    running = np.cumsum(counts)
    step = 1e-5
    start, stop, low, high = 0, bins - 1, 0.0, 1.0
    best = (_error(counts, width, start, stop, codes), start, stop)
    while low < high:
        next_start = int(np.searchsorted(running, (low + step) * total))
        next_stop = int(np.searchsorted(running, (high - step) * total))
        next_start, next_stop = max(next_start, start), min(next_stop, stop)
        if next_start - start > stop - next_stop:
            start, low = next_start, low + step
        else:
            stop, high = next_stop, high - step
        if start >= stop:
            break
        if (start, stop) == best[1:]:
            continue
        error = _error(counts, width, start, stop, codes)
        if error > best[0]:
            break
        best = (error, start, stop)
    _, start, stop = best
    return least + width * start, least + width * (stop + 1)


def _error(counts: np.ndarray, width: float, start: int, stop: int, codes: int) -> float:
    """The sum of squared errors when the bins from ``start`` to ``stop`` are covered by ``codes`` steps."""
    step = width * (stop - start + 1) / codes
    if step == 0:
        return 0.0
    left = (np.arange(len(counts)) - start) * width
    right = left + width
    at = [np.clip(np.floor(edge / step), 0, codes - 1) for edge in (left, right)]
    density = counts / width
    # Within a bin that reaches over several steps: the two ends, and whole steps between, each with the error of a uniform distribution.
    same = at[0] == at[1]
    middle = [(i + 0.5) * step for i in at]
    alone = _cubes(left - middle[0], right - middle[0])
    ends = _cubes(left - middle[0], np.full_like(left, step / 2)) + _cubes(
        np.full_like(left, -step / 2), right - middle[1]
    )
    between = np.maximum(at[1] - at[0] - 1, 0) * _cubes(-step / 2, step / 2)
    return float((density * np.where(same, alone, ends + between)).sum())


def _cubes(a, b):
    """The integral of x squared from a to b."""
    return (b**3 - a**3) / 3
