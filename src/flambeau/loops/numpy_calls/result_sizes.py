"""The sizes of what a function of NumPy's gives, as they follow from its arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import arrays
from ..emitter import Emitter
from ..values import ArrayView, Declined, Scalar, Size
from .description import path_of

__all__ = ["FIXED", "RULES", "Rule", "Sizes", "rule_of"]

Sizes = tuple[Size, ...]
Rule = Callable[[Emitter, list, dict], list[Sizes]]
"""(emitter, positional arguments, keyword arguments) -> the sizes of each result. Arrays are there as views, numbers as Scalars, all else
as the object that it is."""


def _sizes(x) -> Sizes:
    if isinstance(x, ArrayView):
        return x.sizes
    if isinstance(x, Scalar):
        return ()
    raise Declined("an argument that isn't an array or a number")


def _like(k: int = 0, least: int = 0) -> Rule:
    """As argument ``k``, which has ``least`` dimensions or more."""

    def rule(e, args, options):
        sizes = _sizes(args[k])
        if len(sizes) < least:
            raise Declined("an argument of fewer dimensions")
        return [sizes]

    return rule


def _matrix(*results: Callable[[Emitter, Size, Size], Sizes], fixed: dict | None = None) -> Rule:
    """Of one matrix with ``m`` rows and ``n`` columns; ``fixed``: the keyword arguments that these results take."""

    def rule(e, args, options):
        sizes = _sizes(args[0])
        if len(sizes) != 2 or len(args) != 1 or options != (fixed or {}):
            raise Declined("other arguments than one matrix")
        return [result(e, *sizes) for result in results]

    return rule


def _of_numbers(e, args, options):
    return [()]


def _solved(e, args, options):
    a, b = map(_sizes, args)
    if len(a) != 2 or len(b) not in (1, 2):
        raise Declined("several systems at once")
    return [b]


def _reduced(e, args, options):
    """``f(x, ..., axis=None)`` of numbers beside the array."""
    sizes, axis = _sizes(args[0]), options.get("axis")
    if (
        any(isinstance(a, ArrayView) for a in args[1:])
        or options.get("keepdims")
        or type(axis) not in (int, type(None))
    ):
        raise Declined("these arguments")
    if axis is None:
        return [()]
    if not -len(sizes) <= axis < len(sizes):
        raise Declined(f"axis {axis} is out of bounds")
    axis %= len(sizes)
    return [(*sizes[:axis], *sizes[axis + 1 :])]


def _along(e, args, options):
    """As the array, where it has one dimension or an axis is given."""
    sizes = _sizes(args[0])
    if len(sizes) != 1 and type(options.get("axis")) is not int:
        raise Declined("several dimensions without an axis")
    return [sizes]


def _transformed(e, args, options):
    if len(args) != 1 or options.keys() - {"norm", "axis"}:
        raise Declined("a number of points")
    return _like(0, 1)(e, args, options)


def _half(e, args, options):
    if len(args) != 1 or options:
        raise Declined("a number of points")
    *outer, n = _sizes(args[0])
    return [(*outer, e.add(e.op("sdiv", n, 2), 1))]


def _doubled(e, args, options):
    if len(args) != 1 or options:
        raise Declined("a number of points")
    *outer, n = _sizes(args[0])
    return [(*outer, e.larger(e.mul(e.sub(n, 1), 2), 0))]


def _convolved(default: str) -> Rule:
    def rule(e, args, options):
        a, b, *mode = args
        mode = mode[0] if mode else options.get("mode", default)
        (n,), (m,) = _sizes(a), _sizes(b)
        most, least = e.larger(n, m), e.smaller(n, m)
        if mode == "full":
            return [(e.sub(e.add(n, m), 1),)]
        if mode == "same":
            return [(most,)]
        if mode == "valid":
            return [(e.add(e.sub(most, least), 1),)]
        raise Declined(f"the mode {mode!r}")

    return rule


def _histogram(e, args, options):
    bins = args[1] if len(args) > 1 else options.get("bins", 10)
    if type(bins) is not int or bins < 1:
        raise Declined("bins that aren't a known number")
    return [(bins,), (bins + 1,)]


def _linspace(e, args, options):
    n = args[2] if len(args) > 2 else options.get("num", 50)
    if type(n) is not int or n < 0 or _sizes(args[0]) or _sizes(args[1]):
        raise Declined("a number of points that isn't known")
    return [(n,)]


def _diagonal(e, args, options):
    sizes = _sizes(args[0])
    if len(args) != 1 or options:
        raise Declined("another diagonal")
    return [(sizes[0], sizes[0])] if len(sizes) == 1 else [(e.smaller(*sizes),)]


def _kronecker(e, args, options):
    a, b = map(_sizes, args)
    if len(a) != len(b):
        raise Declined("arrays of different numbers of dimensions")
    return [tuple(e.mul(n, m) for n, m in zip(a, b))]


def _einsum(e, args, options):
    text, *operands = args
    if type(text) is not str or options or "." in text:
        raise Declined("these subscripts")
    given, arrow, out = text.replace(" ", "").partition("->")
    parts = given.split(",")
    if not arrow:
        letters = given.replace(",", "")
        out = "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    sizes: dict[str, Size] = {}
    for part, x in zip(parts, operands, strict=True):
        for letter, n in zip(part, _sizes(x), strict=True):
            if letter not in sizes or sizes[letter] == 1:
                sizes[letter] = n
    return [tuple(sizes[letter] for letter in out)]


def _elementwise(e, args, options):
    if options:
        raise Declined("keyword arguments of a ufunc")
    wholes = [arrays.as_expression(e, a) for a in args if isinstance(a, ArrayView)]
    return [arrays.broadcast(e, wholes) if wholes else ()]


def _least(e, m, n):
    return e.smaller(m, n)


def _rules() -> dict[Any, Rule]:
    la, fft = np.linalg, np.fft
    # fmt: off
    rules: dict[Any, Rule] = {
        la.solve: _solved, la.inv: _like(0, 2), la.cholesky: _like(0, 2), la.matrix_power: _like(0, 2),
        la.det: _matrix(lambda e, m, n: ()), la.slogdet: _matrix(lambda e, m, n: (), lambda e, m, n: ()),
        la.matrix_rank: _matrix(lambda e, m, n: ()), la.cond: _matrix(lambda e, m, n: ()), np.trace: _matrix(lambda e, m, n: ()),
        la.pinv: _matrix(lambda e, m, n: (n, m)), la.eigvalsh: _matrix(lambda e, m, n: (m,)),
        la.eigh: _matrix(lambda e, m, n: (m,), lambda e, m, n: (m, n)),
        la.qr: _matrix(lambda e, m, n: (m, _least(e, m, n)), lambda e, m, n: (_least(e, m, n), n)),
        la.svd: _matrix(lambda e, m, n: (m, m), lambda e, m, n: (_least(e, m, n),), lambda e, m, n: (n, n)),
        la.norm: _reduced, np.interp: _like(0), np.searchsorted: _like(1), np.polyval: _like(1), np.kron: _kronecker, np.diag: _diagonal,
        np.convolve: _convolved("full"), np.correlate: _convolved("valid"), np.histogram: _histogram, np.linspace: _linspace,
        np.einsum: _einsum, np.allclose: _of_numbers, np.array_equal: _of_numbers, np.trapezoid: _of_numbers,
        fft.rfft: _half, fft.irfft: _doubled,
    }
    # fmt: on
    for f in (np.sort, np.argsort, np.triu, np.tril, np.round, np.roll, np.unwrap, np.sinc):
        rules[f] = _like(0)
    for f in (fft.fft, fft.ifft, fft.fft2, fft.ifft2, fft.fftn, fft.ifftn, fft.fftshift, fft.ifftshift):
        rules[f] = _transformed
    for f in (np.cumsum, np.cumprod, np.gradient, np.partition, np.argpartition):
        rules[f] = _along
    for name in "median percentile quantile std var ptp nanmean nansum nanmax nanmin nanstd nanvar nanmedian".split():
        rules[getattr(np, name)] = _reduced
    return rules


RULES = _rules()
FIXED = {
    np.linalg.svd: [
        ({"compute_uv": False}, _matrix(lambda e, m, n: (_least(e, m, n),), fixed={"compute_uv": False})),
        (
            {"full_matrices": False},
            _matrix(
                lambda e, m, n: (m, _least(e, m, n)),
                lambda e, m, n: (_least(e, m, n),),
                lambda e, m, n: (_least(e, m, n), n),
                fixed={"full_matrices": False},
            ),
        ),
    ]
}
"""Rules for certain keyword arguments."""


def rule_of(f) -> Rule | None:
    """The rule of a function that loops leave to NumPy; None where there is none."""
    try:
        found = RULES.get(f)
    except TypeError:
        return None
    if found is None and isinstance(f, np.ufunc) and f.nout == 1 and f.signature is None and path_of(f) is not None:
        return _elementwise
    return found
