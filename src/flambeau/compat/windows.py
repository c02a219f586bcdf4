"""``torch.signal.windows``: window functions of ``M`` points, symmetric or (``sym=False``) periodic."""

from __future__ import annotations

import functools
import math

from ..base.device import as_device
from ..base.dtypes import float64, get_default_dtype
from ..core.bindings import function
from ..core.operator import namespace

aten = namespace("aten")
_i0 = function("special_i0")
__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "kaiser",
    "nuttall",
]


def _check(name, M, dtype, layout):  # noqa: N803
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if isinstance(M, float) and M not in (0, 1):
        raise TypeError(f"{name}(): argument 'M' must be int, not float")
    if layout not in (None, "strided") and str(layout) != "torch.strided":
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    if getattr(dtype, "name", None) not in ("float32", "float64"):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")


def _window(formula, check=None):
    """A public window from ``formula(M, points, **parameters)``, where ``points(start, step)`` gives M numbers. ``check(**parameters)`` raises
    ValueError for parameters that no window has, be it empty."""
    name = formula.__name__

    def window(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False, **parameters):  # noqa: N803
        dtype = dtype or get_default_dtype()
        device = None if device is None else as_device(device)
        _check(name, M, dtype, layout)
        if "sym" in (formula.__kwdefaults__ or {}):
            parameters["sym"] = sym
        if check is not None:
            check(**parameters)
        if M == 0:
            out = aten.empty.memory_format([0], dtype=dtype, device=device)
        elif M == 1:
            out = aten.ones.default([1], dtype=dtype, device=device)
        else:
            n = M if sym else M + 1  # a period is one point longer

            def line(start, end):
                step = (end - start) / (n - 1)
                at = aten.arange.default(M, dtype=float64, device=device)
                return aten._to_copy.default(aten.add.Tensor(aten.mul.Tensor(at, step), start), dtype=dtype)

            out = formula(n, line, **parameters)
        return out.requires_grad_(requires_grad)

    window.__name__ = window.__qualname__ = name
    window.__doc__ = f"{formula.__doc__} A vector of ``M`` elements. ValueError for a negative length or another dtype than float32 and float64."
    return window


def _cosines(line, amounts):
    out = None
    turn = line(0.0, 2 * math.pi)
    for k, a in enumerate(amounts):
        term = aten.mul.Tensor(aten.cos.default(aten.mul.Tensor(turn, k)), a if k % 2 == 0 else -a)
        out = term if out is None else aten.add.Tensor(out, term)
    return out


def _check_decay(center=None, tau=1.0, sym=True):
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")


@functools.partial(_window, check=_check_decay)
def exponential(n, line, *, center=None, tau=1.0, sym=True):
    """exp(-abs(k - center) / tau)."""
    middle = (n - 1) / 2.0 if center is None else center
    return aten.exp.default(aten.neg.default(aten.abs.default(line(-middle / tau, (-middle + n - 1) / tau))))


@_window
def cosine(n, line):
    """sin(pi (k + 1/2) / n)."""
    return aten.sin.default(line(math.pi / (2 * n), math.pi / (2 * n) + math.pi * (n - 1) / n))


def _check_deviation(std=1.0):
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")


@functools.partial(_window, check=_check_deviation)
def gaussian(n, line, *, std=1.0):
    """exp(-((k - middle) / std)^2 / 2)."""
    start = -(n - 1) / 2.0
    x = line(start / (std * math.sqrt(2)), (start + n - 1) / (std * math.sqrt(2)))
    return aten.exp.default(aten.neg.default(aten.mul.Tensor(x, x)))


def _check_shape(beta=12.0):
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")


@functools.partial(_window, check=_check_shape)
def kaiser(n, line, *, beta=12.0):
    """I0(beta sqrt(1 - x^2)) / I0(beta), x from -1 to 1."""
    x = line(-beta, beta)
    root = aten.sqrt.default(aten.clamp_min.default(aten.rsub.Scalar(aten.mul.Tensor(x, x), beta * beta), 0))
    return aten.div.Tensor(_i0(root), _i0(aten.full_like.default(root, beta)))


@_window
def bartlett(n, line):
    """1 - abs(x), x from -1 to 1."""
    return aten.rsub.Scalar(aten.abs.default(line(-1.0, 1.0)), 1.0)


@_window
def general_cosine(n, line, *, a):
    """The sum of a[k] (-1)^k cos(2 pi k i / (n - 1))."""
    amounts = list(a)
    if not amounts:
        raise ValueError("Coefficients cannot be empty")
    return _cosines(line, amounts)


@_window
def general_hamming(n, line, *, alpha=0.54):
    """alpha - (1 - alpha) cos(2 pi i / (n - 1))."""
    return _cosines(line, [alpha, 1.0 - alpha])


@_window
def hamming(n, line):
    """General Hamming with alpha 0.54."""
    return _cosines(line, [0.54, 0.46])


@_window
def hann(n, line):
    """General Hamming with alpha 0.5."""
    return _cosines(line, [0.5, 0.5])


@_window
def blackman(n, line):
    """0.42, 0.5, 0.08."""
    return _cosines(line, [0.42, 0.5, 0.08])


@_window
def nuttall(n, line):
    """Nuttall's four terms with a continuous first derivative."""
    return _cosines(line, [0.3635819, 0.4891775, 0.1365995, 0.0106411])
