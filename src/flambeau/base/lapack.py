"""Linear algebra of batches of matrices (float32, float64, complex64, complex128) by csrc/kernels/lapack.c.

It is LAPACK of the library that NumPy holds, over the thread pool.

All functions take ndarrays (*batch, m, n) of any strides, none empty, with batches that broadcast; matrices among the results
are column-major (the last two strides), infos int32, as LAPACK's: 0 is success.
"""

from __future__ import annotations

import functools
import math

import numpy

from .. import _runtime
from . import blas, kernels
from .kernels import Element, Lapack, element

__all__ = [
    "NOT_FINITE",
    "cholesky",
    "cholesky_inverse",
    "eig",
    "eigh",
    "least_squares",
    "lu",
    "lu_solve",
    "numbers",
    "qr",
    "ready",
    "reflected",
    "reflectors",
    "solve",
    "solve_triangular",
    "svd",
]

NOT_FINITE = -100  # info of a matrix with an infinity or a nan, which isn't handed to the routine
_ROUTINES = ("getrf", "getrs", "potrf", "potri", "geqrf", "orgqr", "syevd", "gesdd", "geev", "gelsy", "laswp")
_COMPLEX = {"orgqr": "ungqr", "syevd": "heevd"}


@functools.cache
def ready(kind: Element) -> Element:
    """A type of elements, its routines handed to the runtime."""
    blas.share_threads()
    letter = {Element.F32: "s", Element.F64: "d", Element.C64: "c", Element.C128: "z"}[kind]
    names = [_COMPLEX.get(r, r) if letter in "cz" else r for r in _ROUTINES]
    addresses = [blas.function(letter + name, lapack=True) for name in names]
    addresses += [blas.function(letter + name) for name in ("trsm", "gemm")]
    _runtime.use_lapack(kind, blas.wide(), tuple(addresses))
    return kind


@functools.cache
def numbers(routine: Lapack, dtype, *, trans="N", side="L", uplo="L", diag="N", job="N", cut=0.0) -> dict:
    """The numbers of the kernel `lapack`, not to be changed: LAPACK's letters and ``cut``.

    For least squares ``cut`` is the reciprocal of the condition up to which columns count. KeyError for a dtype that LAPACK doesn't have.
    """
    letters = {"trans": ord(trans), "side": ord(side), "uplo": ord(uplo), "diag": ord(diag), "job": ord(job)}
    return {"routine": routine, "element": ready(element(dtype)), "cut": cut, **letters}


def _run(routine: Lapack, operands, results, **letters) -> None:
    kernels.lapack(operands, results, **numbers(routine, operands[-1].dtype, **letters))


def _matrices(batch, m: int, n: int, dtype):
    """Uninitialised column-major matrices."""
    return numpy.empty((*batch, n, m), dtype).swapaxes(-1, -2)


def _batched(a, batch, tail: int):
    """``a`` with the batch dimensions ``batch``, which it broadcasts to."""
    return a if a.shape[: a.ndim - tail] == batch else numpy.broadcast_to(a, batch + a.shape[a.ndim - tail :])


def _common(*shapes):
    return shapes[0] if all(s == shapes[0] for s in shapes) else numpy.broadcast_shapes(*shapes)


def lu(a):
    """(factors, pivots from 1 (int32), infos) of P L U = ``a``, by partial pivoting."""
    *batch, m, n = a.shape
    out = _matrices(batch, m, n, a.dtype), numpy.empty((*batch, min(m, n)), "i4"), numpy.empty(batch, "i4")
    _run(Lapack.LU, [a], out)
    return out


def solve(a, b, transposed: bool = False):
    """(x, factors, pivots, infos) with a x = b, or aᵀ x = b where ``transposed``: then the factors are those of ``a`` all the same."""
    batch = _common(a.shape[:-2], b.shape[:-2])
    n, columns = b.shape[-2:]
    if math.prod(batch) != math.prod(a.shape[:-2]):  # one factorisation serves many right-hand sides
        factors, pivots, info = lu(a)
        x = lu_solve(factors, pivots, b, "T" if transposed else "N")
        return x, _batched(factors, batch, 2), numpy.ascontiguousarray(_batched(pivots, batch, 1)), info
    matrices, a = a.shape[:-2], a.reshape((*batch, n, n))
    x, factors = _matrices(batch, n, columns, a.dtype), _matrices(batch, n, n, a.dtype)
    pivots, info = numpy.empty((*batch, n), "i4"), numpy.empty(batch, "i4")
    _run(Lapack.SOLVE, [a, _batched(b, batch, 2)], [x, factors, pivots, info], trans="T" if transposed else "N")
    return x, factors, pivots, info.reshape(matrices)


def lu_solve(factors, pivots, b, how: str = "N"):
    """x with op(P L U) x = b, op by ``how``: "N" nothing, "T" transposed, "C" adjoint. ``pivots``: int32, each a row (checked by the caller)."""
    batch = _common(factors.shape[:-2], pivots.shape[:-1], b.shape[:-2])
    x = _matrices(batch, *b.shape[-2:], b.dtype)
    operands = _batched(factors, batch, 2), _batched(pivots, batch, 1), _batched(b, batch, 2)
    _run(Lapack.LU_SOLVE, operands, [x], trans=how)
    return x


def cholesky(a):
    """(lower factors, infos) of Hermitian matrices, of which the lower triangles are read."""
    *batch, n, _ = a.shape
    out = _matrices(batch, n, n, a.dtype), numpy.empty(batch, "i4")
    _run(Lapack.CHOLESKY, [a], out)
    return out


def cholesky_inverse(factor, upper: bool):
    """(inverses, infos) of the matrices with these Cholesky factors."""
    *batch, n, _ = factor.shape
    out = _matrices(batch, n, n, factor.dtype), numpy.empty(batch, "i4")
    _run(Lapack.CHOLESKY_INVERSE, [factor], out, uplo="U" if upper else "L")
    return out


def solve_triangular(a, b, upper: bool, left: bool = True, unit: bool = False):
    """x with a x = b, or x a = b. A zero on the diagonal gives infinities and nans."""
    batch = _common(a.shape[:-2], b.shape[:-2])
    x = _matrices(batch, *b.shape[-2:], a.dtype)
    letters = {"side": "L" if left else "R", "uplo": "U" if upper else "L", "diag": "U" if unit else "N"}
    _run(Lapack.TRIANGULAR, [_batched(a, batch, 2), _batched(b, batch, 2)], [x], **letters)
    return x


def qr(a, mode: str):
    """(q, r); ``mode`` "reduced", "complete", or "r": without q (None)."""
    *batch, m, n = a.shape
    k = m if mode == "complete" else min(m, n)
    r = _matrices(batch, k, n, a.dtype)
    q = None if mode == "r" else _matrices(batch, m, k, a.dtype)
    _run(Lapack.QR, [a], [r, q], job="N" if q is None else "V")
    return q, r


def reflectors(a):
    """(factors, tau) of the QR factorisation as LAPACK keeps it: R, below it the vectors of the reflections."""
    *batch, m, n = a.shape
    out = _matrices(batch, m, n, a.dtype), numpy.empty((*batch, min(m, n)), a.dtype)
    _run(Lapack.REFLECTORS, [a], out)
    return out


def reflected(vectors, tau):
    """The first n columns of the product of the reflections of (m, n) ``vectors``, of which there are at most n."""
    out = _matrices(vectors.shape[:-2], *vectors.shape[-2:], vectors.dtype)
    _run(Lapack.REFLECTED, [vectors, tau], [out])
    return out


def eigh(a, lower: bool, vectors: bool):
    """(values in ascending order, vectors or None, infos) of Hermitian matrices, of which one triangle is read."""
    *batch, n, _ = a.shape
    values, info = numpy.empty((*batch, n), a.real.dtype), numpy.empty(batch, "i4")
    made = _matrices(batch, n, n, a.dtype) if vectors else None
    _run(Lapack.EIGH, [a], [values, info, made], job="V" if vectors else "N", uplo="L" if lower else "U")
    return values, made, info


def svd(a, full: bool, vectors: bool):
    """(u, s, vh, infos), u and vh None unless ``vectors``; ``full``: square ones."""
    *batch, m, n = a.shape
    k = min(m, n)
    s, info = numpy.empty((*batch, k), a.real.dtype), numpy.empty(batch, "i4")
    if not vectors:
        _run(Lapack.SVD, [a], [s, info])
        return None, s, None, info
    u, vh = _matrices(batch, m, m if full else k, a.dtype), _matrices(batch, n if full else k, n, a.dtype)
    _run(Lapack.SVD, [a], [s, info, u, vh], job="A" if full else "S")
    return u, s, vh, info


def eig(a, vectors: bool = True):
    """(values, vectors or None, infos), values and vectors complex. The matrices are finite (checked by the caller)."""
    *batch, n, _ = a.shape
    kind = numpy.result_type(a.dtype, numpy.complex64)
    values, info = numpy.empty((*batch, n), kind), numpy.empty(batch, "i4")
    made = _matrices(batch, n, n, kind) if vectors else None
    _run(Lapack.EIG, [a], [values, info, made], job="V" if vectors else "N")
    return values, made, info


def least_squares(a, b, cut: float):
    """(x, ranks, infos): the least of the x with the least ||a x - b||, by QR with pivots (gelsy). ``cut``: the reciprocal of the condition up to
    which columns count."""
    batch = _common(a.shape[:-2], b.shape[:-2])
    x = _matrices(batch, a.shape[-1], b.shape[-1], a.dtype)
    rank, info = numpy.empty(batch, "i8"), numpy.empty(batch, "i4")
    _run(Lapack.LSTSQ, [_batched(a, batch, 2), _batched(b, batch, 2)], [x, rank, info], cut=cut)
    return x, rank, info
