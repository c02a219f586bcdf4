"""Singular values and Hermitian eigenvalues by rotations of columns (one-sided Jacobi), from operators that run anywhere.

M. R. Hestenes, "Inversion of matrices by biorthogonalization and related results" (1958). All pairs of a round are rotated at once. It works in
double precision: it is for a device without routines of LAPACK's kind, where the number of launches counts and not that of operations.
"""

from __future__ import annotations

import math

from ...base import dtypes
from ...base.errors import LinAlgError
from ...base.memory_format import contiguous_format
from ...core.operator import namespace
from .checks import adjoint, mm

__all__ = ["eigh", "svd"]

aten = namespace("aten")

_SWEEPS = 40
_TINY = 1e-300


def _wide(a):
    return aten._to_copy.default(a, dtype=dtypes.complex128 if a.dtype.is_complex else dtypes.float64)


def _squares(x):
    size = aten.abs.default(x)
    return aten.sum.dim_IntList(aten.mul.Tensor(size, size), [-2], True)


def _eye(n, like):
    return aten.eye.default(n, dtype=like.dtype, device=like.device)


def _tournament(n: int) -> list[int]:
    """Where the columns of the next round come from. Column k meets k + n / 2; after n - 1 rounds each has met each."""
    h = n // 2
    if h == 1:
        return [0, 1]
    return [0, h, *range(1, h - 1), *range(h + 1, n), h - 1]


def _rotated(columns, rows: int, h: int):
    """The two halves of the columns, rotated so that their first ``rows`` elements are orthogonal; and how far they were from it, 0 to 1."""
    x, y = aten.slice.Tensor(columns, -1, 0, h), aten.slice.Tensor(columns, -1, h, 2 * h)
    top, other = aten.slice.Tensor(x, -2, 0, rows), aten.slice.Tensor(y, -2, 0, rows)
    a, b = _squares(top), _squares(other)
    conjugate = aten.conj_physical.default(top) if top.dtype.is_complex else top
    c = aten.sum.dim_IntList(aten.mul.Tensor(conjugate, other), [-2], True)
    size = aten.abs.default(c)
    scale = aten.sqrt.default(aten.mul.Tensor(a, b))
    apart = aten.le.Tensor(size, aten.add.Scalar(aten.mul.Scalar(scale, 2.0**-52), _TINY))
    safe = aten.masked_fill.Scalar(size, apart, 1.0)
    zeta = aten.div.Tensor(aten.sub.Tensor(b, a), aten.mul.Scalar(safe, 2.0))
    ones = aten.ones_like.default(zeta)
    root = aten.sqrt.default(aten.addcmul.default(ones, zeta, zeta))
    t = aten.div.Tensor(aten.copysign.Tensor(ones, zeta), aten.add.Tensor(aten.abs.default(zeta), root))
    t = aten.masked_fill.Scalar(t, apart, 0.0)
    cosine = aten.rsqrt.default(aten.addcmul.default(ones, t, t))
    sine = aten.mul.Tensor(cosine, t)
    phase = aten.where.ScalarOther(aten.logical_not.default(apart), aten.div.Tensor(c, safe), 1.0)
    y = aten.mul.Tensor(y, aten.conj_physical.default(phase) if top.dtype.is_complex else phase)
    first = aten.sub.Tensor(aten.mul.Tensor(x, cosine), aten.mul.Tensor(y, sine))
    second = aten.add.Tensor(aten.mul.Tensor(x, sine), aten.mul.Tensor(y, cosine))
    off = aten.masked_fill.Scalar(aten.div.Tensor(size, aten.add.Scalar(scale, _TINY)), apart, 0.0)
    return aten.cat.default([first, second], -1), aten.amax.default(off, [])


def _orthogonal(a, name: str):
    """(W, V) with W = a V, V unitary and the columns of W orthogonal, those of the greatest length first."""
    *batch, m, n = a.shape
    even = n + n % 2
    v = aten.expand.default(_eye(even, a), [*batch, even, even])
    if even > n:
        a = aten.constant_pad_nd.default(a, [0, 1])
    columns = aten.cat.default([a, v], -2)
    order = aten._to_copy.default(aten.arange.default(even, device=a.device), dtype=dtypes.int64)
    h, moved = even // 2, _tournament(even)
    perm = aten.stack.default([aten.select.int(order, 0, k) for k in moved])
    for _ in range(_SWEEPS):
        worst = None
        for _ in range(max(even - 1, 1)):
            columns, off = _rotated(columns, m, h)
            columns = aten.index_select.default(columns, -1, perm)
            worst = off if worst is None else aten.maximum.default(worst, off)
        # NOTE: this waits for the device, once a sweep.
        if worst is None or not worst.item() > 1e-14:
            break
    else:
        raise LinAlgError(f"{name}: The algorithm failed to converge because the input matrix is ill-conditioned.")
    w, v = aten.slice.Tensor(columns, -2, 0, m), aten.slice.Tensor(columns, -2, m, m + n)
    length = aten.sqrt.default(_squares(w))
    # A column of zeros that was added stays one, and its vector is the unit vector that was added.
    if even > n:
        added = aten.gt.Scalar(aten.abs.default(aten.slice.Tensor(columns, -2, m + n, m + n + 1)), 0.5)
        length = aten.masked_fill.Scalar(length, added, -1.0)
    places = aten.slice.Tensor(aten.sort.stable(length, stable=True, dim=-1, descending=True)[1], -1, 0, n)
    pick = lambda x: aten.gather.default(x, -1, aten.expand.default(places, [*batch, x.shape[-2], n]))  # noqa: E731
    return pick(w), pick(v)


def _refuse_infinite(a, name: str) -> None:
    if not aten.all.default(aten.isfinite.default(a)).item():
        words = "The algorithm failed to converge because the input matrix contained non-finite values."
        where = "(Batch element 0): " if len(a.shape) > 2 else ""
        raise LinAlgError(f"{name}: {where}{words}")


def _completed(u, rank, columns: int):
    """``rank`` orthonormal columns of u (a number for each matrix), and others that make ``columns`` of them."""
    *batch, m, k = u.shape
    place = aten.arange.default(columns, device=u.device)
    good = aten.lt.Tensor(aten.slice.Tensor(place, 0, 0, k), rank)
    u = aten.where.ScalarOther(aten.unsqueeze.default(good, -2), u, 0)
    # The eigenvectors of 1 of the projector on what is missing come first.
    missing = _orthogonal(aten.sub.Tensor(_eye(m, u), mm(u, adjoint(u))), "linalg.svd")[1]
    wanted = aten.clamp.default(aten.sub.Tensor(place, rank), 0)
    others = aten.gather.default(
        missing, -1, aten.expand.default(aten.unsqueeze.default(wanted, -2), [*batch, m, columns])
    )
    own = aten.constant_pad_nd.default(u, [0, columns - k])
    return aten.where.self(aten.unsqueeze.default(aten.lt.Tensor(place, rank), -2), own, others)


def _in_columns(x):
    """The same, laid out by columns."""
    turned = aten.transpose.int(x, -2, -1)
    return aten.transpose.int(aten.clone.default(turned, memory_format=contiguous_format), -2, -1)


def _units(a, rows: int, columns: int):
    eye = aten.eye.m(rows, columns, dtype=a.dtype, device=a.device)
    return _in_columns(aten.expand.default(eye, [*a.shape[:-2], rows, columns]))


def _svd_of_nothing(a, full_matrices: bool, compute_uv: bool):
    m, n = a.shape[-2:]
    k = min(m, n)
    s = aten.new_zeros.default(a, [*a.shape[:-2], k], dtype=a.dtype.to_real())
    if not compute_uv:
        return aten.new_empty.default(a, [0]), s, aten.new_empty.default(a, [0])
    return _units(a, m, m if full_matrices else k), s, _units(a, n if full_matrices else k, n)


def svd(a, full_matrices: bool, compute_uv: bool, driver=None):
    """``torch.linalg.svd`` of a batch of matrices; there is one algorithm, whatever ``driver`` says. LinAlgError for elements that aren't finite."""
    if driver not in (None, "gesvd", "gesvdj", "gesvda"):
        raise RuntimeError(f"torch.linalg.svd: unknown svd driver {driver} in svd_cusolver computation.")
    if 0 in a.shape:
        return _svd_of_nothing(a, full_matrices, compute_uv)
    _refuse_infinite(a, "linalg.svd")
    *_, m, n = a.shape
    if m < n:
        u, s, vh = svd(adjoint(a), full_matrices, compute_uv)
        return (_in_columns(adjoint(vh)), s, _in_columns(adjoint(u))) if compute_uv else (u, s, vh)
    w, v = _orthogonal(_wide(a), "linalg.svd")
    s = aten.squeeze.dim(aten.sqrt.default(_squares(w)), -2)
    made = aten._to_copy.default(s, dtype=a.dtype.to_real())
    if not compute_uv:
        nothing = aten.new_empty.default(a, [0])
        return nothing, made, nothing
    least = aten.mul.Scalar(aten.slice.Tensor(s, -1, 0, 1), 2.0**-52 * m)
    good = aten.gt.Tensor(s, aten.add.Scalar(least, _TINY))
    rank = aten.sum.dim_IntList(good, [-1], True)
    lengths = aten.where.ScalarOther(good, s, 1.0)
    u = aten.div.Tensor(w, aten.unsqueeze.default(lengths, -2))
    columns = m if full_matrices else n
    if columns > n or not aten.all.default(good).item():
        u = _completed(u, rank, columns)
    back = lambda x: _in_columns(aten._to_copy.default(x, dtype=a.dtype))  # noqa: E731
    return back(u), made, back(adjoint(v))


def eigh(a, UPLO: str, compute_v: bool):
    """``torch.linalg.eigh`` of a batch of matrices, of which one triangle is read. LinAlgError as of ``svd``."""
    lower = UPLO.upper() == "L"
    if 0 in a.shape:
        values = aten.new_zeros.default(a, list(a.shape[:-1]), dtype=a.dtype.to_real())
        return values, aten.new_empty.default(a, list(a.shape) if compute_v else [0])
    _refuse_infinite(a, "linalg.eigh")
    n = a.shape[-1]
    half = aten.tril.default(_wide(a), -1) if lower else adjoint(aten.triu.default(_wide(a), 1))
    own = aten.diagonal.default(_wide(a), 0, -2, -1)
    own = aten.real.default(own) if a.dtype.is_complex else own
    whole = aten.add.Tensor(aten.add.Tensor(half, adjoint(half)), aten.diag_embed.default(own))
    # Moved by its norm it has no negative eigenvalues, and its singular vectors are its eigenvectors.
    size = aten.abs.default(whole)
    norm = aten.sqrt.default(aten.sum.dim_IntList(aten.mul.Tensor(size, size), [-2, -1], True))
    moved = aten.add.Tensor(whole, aten.mul.Tensor(_eye(n, whole), aten.mul.Scalar(norm, 1 + math.sqrt(2.0**-52))))
    v = _orthogonal(moved, "linalg.eigh")[1]
    conjugate = aten.conj_physical.default(v) if v.dtype.is_complex else v
    values = aten.sum.dim_IntList(aten.mul.Tensor(conjugate, mm(whole, v)), [-2])
    values = aten.real.default(values) if a.dtype.is_complex else values
    values, places = aten.sort.stable(values, stable=True, dim=-1)
    made = aten._to_copy.default(values, dtype=a.dtype.to_real())
    if not compute_v:
        return made, aten.new_empty.default(a, [0])
    at = aten.expand.default(aten.unsqueeze.default(places, -2), list(a.shape))
    return made, _in_columns(aten._to_copy.default(aten.gather.default(v, -1, at), dtype=a.dtype))
