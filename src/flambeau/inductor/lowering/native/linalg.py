"""Linear algebra in a graph: launches of LAPACK (csrc/kernels/lapack.c) as the eager kernels make them, and what they message when a matrix can't be
factorised."""

from __future__ import annotations

import math

from ....base import dtypes, kernels, lapack
from ....base.expr import at_least
from ....base.kernels import Lapack
from ....base.result_spec import ResultSpec
from ....core.messages import About
from ...ir.nodes import Region, dense_strides
from ...ir.sizes import sizes
from ...ir.values import short
from .launch import launch, part

__all__ = [
    "cholesky",
    "cholesky_inverse",
    "det",
    "eigh",
    "inverse",
    "least_squares",
    "lu",
    "qr",
    "reflected",
    "reflectors",
    "refuse",
    "row_permutation",
    "slogdet",
    "solve",
    "solve_ex",
    "solve_triangular",
    "svd",
]


def _columns(shape):
    """Strides of column-major matrices."""
    *batch, m, n = shape
    strides = dense_strides((*batch, n, m))
    return (*strides[:-2], strides[-1], strides[-2])


def _transposed(lowering, region: Region) -> Region:
    """The transposed matrices."""
    swap = lambda t: (*t[:-2], t[-1], t[-2])  # noqa: E731
    return part(lowering, region, swap(region.shape), swap(region.strides))


def _expanded(lowering, region: Region, batch) -> Region:
    """With the batch dimensions ``batch``, which the region's broadcast to."""
    own, own_strides = region.shape[:-2], region.strides[:-2]
    skip = len(batch) - len(own)
    strides = [0] * skip + [0 if n == 1 and m != 1 else s for n, m, s in zip(own, batch[skip:], own_strides)]
    return part(lowering, region, (*batch, *region.shape[-2:]), (*strides, *region.strides[-2:]))


def _run(lowering, routine: Lapack, dtype, operands, outs, flops, **letters):
    return launch(lowering, kernels.lapack, operands, outs, flops, **lapack.numbers(routine, dtype, **letters))


def _matrices(shape, like):
    return ResultSpec(tuple(shape), _columns(shape), like.dtype, like.device)


def _plain(shape, dtype, like):
    shape = tuple(shape)
    return ResultSpec(shape, dense_strides(shape), dtype, like.device)


def _read(lowering, x) -> tuple[Region, list, int, int]:
    """(where matrices lie, batch, rows, columns)"""
    region = lowering.realize(x, x.strides)
    *batch, m, n = region.shape
    return region, batch, m, n


def refuse(lowering, info, text: str, not_finite: str | None = None, about: About = About.MATRIX) -> None:
    """The graph raises where an info, an int32, isn't 0: a LinAlgError, or what ``about`` says. ``{value}`` in the text is the info, ``{size}`` its
    place; ``not_finite``: of matrices that weren't handed to the routine."""
    region = lowering.contiguous(info)
    other = -1 if not_finite is None else lowering.message(not_finite, About.MATRIX)
    refused = lowering.message(text, about)
    launch(lowering, kernels.infos, [region], [], 1, effect=True, not_finite=other, refused=refused)


def cholesky(lowering, x, upper):
    if upper and x.dtype.is_complex:
        raise NotImplementedError("upper factors of complex matrices")
    region, batch, n, _ = _read(lowering, x)
    region = _transposed(lowering, region) if upper else region
    outs = [_matrices((*batch, n, n), x), _plain(batch, dtypes.int32, x)]
    factor, info = _run(lowering, Lapack.CHOLESKY, x.dtype, [region], outs, math.prod(batch) * n * n * n // 3)
    if upper:
        transposed = _transposed(lowering, factor.region)
        factor = lowering.in_memory(transposed, x.dtype, transposed.strides, x.device)
    return [factor, info]


def cholesky_inverse(lowering, x, upper):
    """(inverses, infos)"""
    region, batch, n, _ = _read(lowering, x)
    outs = [_matrices((*batch, n, n), x), _plain(batch, dtypes.int32, x)]
    flops = math.prod(batch) * n * n * n
    return _run(lowering, Lapack.CHOLESKY_INVERSE, x.dtype, [region], outs, flops, uplo="U" if upper else "L")


def lu(lowering, x):
    """[factors, pivots, infos]"""
    region, batch, m, n = _read(lowering, x)
    least = m if at_least(n - m, 0) else n
    if not at_least(m - least, 0):
        raise NotImplementedError("which is less, rows or columns, is known at the call only")
    outs = [_matrices((*batch, m, n), x), _plain((*batch, least), dtypes.int32, x), _plain(batch, dtypes.int32, x)]
    return _run(lowering, Lapack.LU, x.dtype, [region], outs, math.prod(batch) * m * n * least)


def solve(lowering, x, b, transposed):
    """[x, factors, pivots, infos] with a x = b for regions of matrices, or aᵀ x = b; batches are equal."""
    a = lowering.realize(x, x.strides)
    *batch, n, columns = b.shape
    outs = [_matrices((*batch, n, columns), x), _matrices((*batch, n, n), x)]
    outs += [_plain((*batch, n), dtypes.int32, x), _plain(batch, dtypes.int32, x)]
    flops = math.prod(batch) * n * n * (n + 2 * columns)
    return _run(lowering, Lapack.SOLVE, x.dtype, [a, b], outs, flops, trans="T" if transposed else "N")


def solve_ex(lowering, vals, x, right, left, vector):
    """[result, factors, pivots, infos] of _linalg_solve_ex; ``vector``: the right-hand sides have no dimension for columns."""
    b = lowering.realize(right, right.strides)
    if vector:
        b = part(lowering, b, (*b.shape, 1), (*b.strides, 1))
    if list(b.shape[:-2]) != list(x.sizes[:-2]):
        raise NotImplementedError("one factorisation for many right-hand sides")
    made, *rest = solve(lowering, x, b if left else _transposed(lowering, b), not left)
    region = made.region if left else _transposed(lowering, made.region)
    if vector:
        region = part(lowering, region, region.shape[:-1], region.strides[:-1])
    return [lowering.in_memory(region, x.dtype, region.strides, x.device), *rest]


def inverse(lowering, x):
    """[inverses, infos]"""
    region, batch, n, _ = _read(lowering, x)
    t, values = short(x.dtype), lowering.values

    def at(c):
        same = values.make("eq", (values.index(c[0]), values.index(c[1])), "bool")
        return values.cast(same, t)

    eye = lowering.realize(lowering.lazy((n, n), x.dtype, at, device=x.device))
    eye = part(lowering, eye, (*batch, n, n), (*[0] * len(batch), *eye.strides))
    source = lowering.in_memory(region, x.dtype, region.strides, x.device)
    made, _, _, info = solve(lowering, source, eye, False)
    return [made, info]


def solve_triangular(lowering, x, right, upper, left, unit):
    a, b = lowering.realize(x, x.strides), lowering.realize(right, right.strides)
    batch = [m if n == 1 else n for n, m in zip(*_padded(a.shape[:-2], b.shape[:-2]))]
    a, b = _expanded(lowering, a, batch), _expanded(lowering, b, batch)
    letters = {"side": "L" if left else "R", "uplo": "U" if upper else "L", "diag": "U" if unit else "N"}
    flops = math.prod(b.shape) * a.shape[-1]
    return _run(lowering, Lapack.TRIANGULAR, x.dtype, [a, b], [_matrices(b.shape, x)], flops, **letters)[0]


def _padded(a, b):
    wide = max(len(a), len(b))
    return [(1,) * (wide - len(s)) + tuple(s) for s in (a, b)]


def qr(lowering, vals, x, mode):
    region, batch, m, n = _read(lowering, x)
    shape = sizes(vals[1].shape)
    outs = [_matrices(shape, x)]
    if mode != "r":
        outs.append(_matrices(sizes(vals[0].shape), x))
    flops = 4 * math.prod(batch) * m * n * shape[-2]
    r, *q = _run(lowering, Lapack.QR, x.dtype, [region], outs, flops, job="N" if mode == "r" else "V")
    return [q[0] if q else lowering.full((0,), x.dtype, 0, x.device), r]


def reflectors(lowering, x):
    """[factors, tau] of geqrf."""
    region, batch, m, n = _read(lowering, x)
    if not all(at_least(k, 1) for k in (*batch, m, n)):
        raise NotImplementedError("matrices without elements")
    least = m if at_least(n - m, 0) else n
    if not at_least(m - least, 0):
        raise NotImplementedError("which is less, rows or columns, is known at the call only")
    outs = [_matrices((*batch, m, n), x), _plain((*batch, least), x.dtype, x)]
    return _run(lowering, Lapack.REFLECTORS, x.dtype, [region], outs, 2 * math.prod(batch) * m * n * least)


def reflected(lowering, x, tau):
    """The first columns of the products of reflections."""
    region, batch, m, n = _read(lowering, x)
    if not all(at_least(k, 1) for k in (*batch, m, n)):
        raise NotImplementedError("matrices without elements")
    factors = lowering.realize(tau, tau.strides)
    flops = 2 * math.prod(batch) * m * n * n
    return _run(lowering, Lapack.REFLECTED, x.dtype, [region, factors], [_matrices((*batch, m, n), x)], flops)[0]


def eigh(lowering, vals, x, lower, vectors):
    """[values, vectors, infos]"""
    region, batch, n, _ = _read(lowering, x)
    outs = [_plain((*batch, n), vals[0].dtype, x), _plain(batch, dtypes.int32, x)]
    outs += [_matrices((*batch, n, n), x)] if vectors else []
    letters = {"job": "V" if vectors else "N", "uplo": "L" if lower else "U"}
    flops = 9 * math.prod(batch) * n * n * n
    found, info, *v = _run(lowering, Lapack.EIGH, x.dtype, [region], outs, flops, **letters)
    return [found, v[0] if v else lowering.full((0,), x.dtype, 0, x.device), info]


def svd(lowering, vals, x, full, vectors):
    """[u, s, vh, infos]"""
    region, batch, m, n = _read(lowering, x)
    outs = [_plain(sizes(vals[1].shape), vals[1].dtype, x), _plain(batch, dtypes.int32, x)]
    outs += [_matrices(sizes(vals[k].shape), x) for k in (0, 2)] if vectors else []
    job = "N" if not vectors else "A" if full else "S"
    s, info, *uv = _run(lowering, Lapack.SVD, x.dtype, [region], outs, 10 * math.prod(batch) * m * n * n, job=job)
    u, vh = uv or [lowering.full((0,), x.dtype, 0, x.device)] * 2
    return [u, s, vh, info]


def least_squares(lowering, vals, x, right, rcond):
    """[solutions, ranks, infos] by QR with pivots (gelsy)."""
    (a, batch, m, n), (b, other, _, columns) = _read(lowering, x), _read(lowering, right)
    if batch != other or not all(at_least(k, 1) for k in (*batch, m, n, columns)):
        raise NotImplementedError("matrices without elements, or of other batches")
    if rcond is None and not (type(m) is type(n) is int):
        raise NotImplementedError("a condition that depends on sizes")
    cut = dtypes.finfo(x.dtype).eps * max(m, n) if rcond is None else rcond
    outs = [_matrices((*batch, n, columns), x), _plain(batch, dtypes.int64, x), _plain(batch, dtypes.int32, x)]
    return _run(lowering, Lapack.LSTSQ, x.dtype, [a, b], outs, 4 * math.prod(batch) * m * n * (n + columns), cut=cut)


def row_permutation(lowering, val, pivots, tag_text):
    """The matrices P of row swaps (from 1)."""
    if pivots.dtype is not dtypes.int32:
        raise NotImplementedError(f"pivots of {pivots.dtype}")
    shape = sizes(val.shape)
    out = ResultSpec((*shape[:-2], shape[-1]), dense_strides((*shape[:-2], shape[-1])), dtypes.int64, val.device)
    tag = lowering.message(tag_text, About.CONDITION)
    given = [lowering.contiguous(pivots)]
    order = launch(lowering, kernels.row_order, given, [out], math.prod(shape), effect=True, no_row=tag)[0]
    values, t = lowering.values, short(val.dtype)

    def at(c):
        here = values.make("eq", (order.at((*c[:-2], c[-1])), values.index(c[-2])), "bool")
        return values.cast(here, t)

    return lowering.lazy(shape, val.dtype, at, device=val.device)


def _swapped(lowering, pivots):
    """The function from batch coordinates to the sign (int64) of the permutation."""
    values = lowering.values
    k = len(pivots.sizes) - 1

    def moved(c):
        stays = values.make("eq", (values.cast(pivots.at(c), "i64"), values.index(c[-1] + 1)), "bool")
        return values.cast(values.make("logical_not", (stays,), "bool"), "i64")

    swaps = lowering.reduce("add", 0, pivots.sizes, list(range(k)), [k], moved)
    two, one = values.const(2, "i64"), values.const(1, "i64")

    def sign(c):
        odd = values.make(
            "sub", (swaps(c), values.make("mul", (two, values.make("floordiv", (swaps(c), two), "i64")), "i64")), "i64"
        )
        return values.make("sub", (one, values.make("mul", (two, odd), "i64")), "i64")

    return sign


def _diagonal(factors, c):
    return factors.at((*c, c[-1]))


def det(lowering, x):
    if x.dtype.is_complex:
        raise NotImplementedError("products of complex numbers")
    factors, pivots, _ = lu(lowering, x)
    values, t, shape = lowering.values, short(x.dtype), pivots.sizes
    sign, kept = _swapped(lowering, pivots), list(range(len(shape) - 1))
    product = lowering.reduce("mul", 1.0, shape, kept, [len(kept)], lambda c: _diagonal(factors, c))
    at = lambda c: values.make("mul", (values.cast(sign(c), t), product(c)), t)  # noqa: E731
    return [lowering.lazy(shape[:-1], x.dtype, at, device=x.device), factors, pivots]


def slogdet(lowering, x):
    if x.dtype.is_complex:
        raise NotImplementedError("products of complex numbers")
    factors, pivots, _ = lu(lowering, x)
    values, t, shape = lowering.values, short(x.dtype), pivots.sizes
    swaps, kept, h = _swapped(lowering, pivots), list(range(len(shape) - 1)), lowering.handler(t)

    def direction(c):
        d = _diagonal(factors, c)
        zero = values.const(0, t)
        up, down = (values.cast(values.make(op, (d, zero), "bool"), t) for op in ("gt", "lt"))
        return values.make("sub", (up, down), t)

    signs = lowering.reduce("mul", 1.0, shape, kept, [len(kept)], direction)
    logs = lowering.reduce("add", 0.0, shape, kept, [len(kept)], lambda c: h.log(h.abs(_diagonal(factors, c))))
    sign = lowering.lazy(
        shape[:-1], x.dtype, lambda c: values.make("mul", (values.cast(swaps(c), t), signs(c)), t), device=x.device
    )
    return [sign, lowering.lazy(shape[:-1], x.dtype, logs, device=x.device), factors, pivots]
