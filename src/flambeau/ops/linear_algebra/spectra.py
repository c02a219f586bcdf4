"""Eigenvalues and singular values, and what is made of them: pseudoinverse, rank, condition, matrix norms, least squares."""

from __future__ import annotations

import math

import numpy as np

from ...base import dtypes, lapack
from ...base.dtypes import finfo, int64
from ...base.errors import LinAlgError
from ...base.shapes import broadcast_shapes, normalize_dim
from ...core.declare import composite, explicit
from ...core.device_memory import elements
from ...core.dispatch import differentiated
from ...core.operator import namespace
from ...core.promotion import _scalar_name
from . import jacobi
from .checks import adjoint, batched, check_info, dense, each, extern, floating, matrix, mm, square

aten = namespace("aten")
_OWN = ("own_complex_derivative",)


def _column(x):
    return aten.unsqueeze.default(x, -1)


def _row(x):
    return aten.unsqueeze.default(x, -2)


def _conj(x):
    return aten.conj_physical.default(x) if x.dtype.is_complex else x


def _eye(n, like):
    return aten.eye.default(n, dtype=like.dtype, device=like.device)


def _diagonal(x):
    return aten.diagonal.default(x, 0, -2, -1)


def _gaps(values, fill):
    """values_j - values_i, ``fill`` on the diagonal."""
    e = aten.sub.Tensor(_row(values), _column(values))
    eye = aten.eye.default(values.shape[-1], dtype=dtypes.bool_, device=values.device)
    return aten.masked_fill.Scalar(e, eye, fill)


def _converged(name, info):
    """LinAlgError for the first matrix that the routine gave up."""
    bad = np.flatnonzero(info)
    if bad.size:
        code = int(info.reshape(-1)[bad[0]])
        where = f"(Batch element {int(bad[0])}): " if info.ndim else ""
        why = (
            "contained non-finite values."
            if code == lapack.NOT_FINITE
            else f"is ill-conditioned or has too many repeated {'singular' if 'svd' in name else 'eigen'}values (error code: {code})."
        )
        raise LinAlgError(f"{name}: {where}The algorithm failed to converge because the input matrix {why}")


def _refuse_unconverged(lowering, name, info) -> None:
    """``_converged`` in a compiled graph."""
    where = "(Batch element {size}): " if info.ndim else ""
    kind = "singular" if "svd" in name else "eigen"
    words = f"{name}: {where}The algorithm failed to converge because the input matrix "
    lowering.refuse(
        info,
        f"{words}is ill-conditioned or has too many repeated {kind}values (error code: {{value}}).",
        f"{words}contained non-finite values.",
    )


def _over(x, gap):
    """x / gap, and 0 where both are 0: nobody asked for these vectors, and values that are repeated, or zero, have derivatives of their own."""
    nobody = aten.logical_and.default(aten.eq.Scalar(gap, 0), aten.eq.Scalar(x, 0))
    return aten.div.Tensor(x, aten.where.ScalarSelf(nobody, 1, gap))


def _refuse_phases(diagonal, name, vectors="eigenvectors", what="quantity, so it is ill-defined") -> None:
    """RuntimeError when a loss depends on the phase of complex vectors, which nothing determines. ``diagonal``: of V^H gV; a trace has no elements to ask."""
    transposed = aten.imag.default(diagonal) if diagonal.dtype.is_complex else None
    values = None if transposed is None else elements(transposed)
    if values is not None and (np.abs(values) > 1e-2).any():
        raise RuntimeError(
            f"{name}: The {vectors} in the complex case are specified up to multiplication by e^{{i phi}}. The specified loss function "
            f"depends on this {what}."
        )


# ---- Hermitian matrices --------------------------------------------------------------------------------------------------


def _eigh_meta(A, UPLO, compute_v):
    square("linalg.eigh", A)
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    return dense(A.shape[:-1], A, A.dtype.to_real()), dense(A.shape if compute_v else (0,), A)


@extern(
    '_linalg_eigh(Tensor A, str UPLO="L", bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors)',
    columns=(1,),
    meta=_eigh_meta,
    variants="",
    has_out=True,
    tags=_OWN,
)
def _linalg_eigh(a, UPLO, compute_v):
    if not a.size:
        return np.zeros(a.shape[:-1], a.real.dtype), a.copy() if compute_v else np.zeros((0,), a.dtype)
    values, vectors, info = lapack.eigh(a, UPLO.upper() == "L", compute_v)
    _converged("linalg.eigh", info)
    return values, vectors if compute_v else np.zeros((0,), a.dtype)


_linalg_eigh.override("by_parts", jacobi.eigh)
batched(_linalg_eigh)


@_linalg_eigh.override("lower")
def _lower_eigh(lowering, vals, A, UPLO, compute_v):
    values, vectors, info = lowering.eigh(vals, A, UPLO.upper() == "L", compute_v)
    _refuse_unconverged(lowering, "linalg.eigh", info)
    return [values, vectors]


def _eigh_vjp(ct0, ct1, result0, result1, compute_v):
    v = result1
    if not compute_v:
        raise RuntimeError("linalg_eigh: the eigenvectors are needed for the derivative")
    inner = mm(adjoint(v), ct1)
    _refuse_phases(_diagonal(inner), "linalg_eigh_backward")
    inner = _over(inner, _gaps(result0, math.inf))
    inner = aten.add.Tensor(inner, aten.diag_embed.default(ct0))
    whole = mm(v, mm(inner, adjoint(v)))
    return aten.mul.Tensor(aten.add.Tensor(whole, adjoint(whole)), 0.5)  # Hermitian: half of the argument is read


_linalg_eigh.derivative(A=_eigh_vjp)


@composite(
    'linalg_eigh(Tensor self, str UPLO="L") -> (Tensor eigenvalues, Tensor eigenvectors)',
    variants="",
    out_rules="exact",
)
def linalg_eigh(self, UPLO):
    return aten._linalg_eigh.default(self, UPLO, True)


@composite('linalg_eigvalsh(Tensor self, str UPLO="L") -> Tensor', variants="", out_rules="exact")
def linalg_eigvalsh(self, UPLO):
    return aten._linalg_eigh.default(self, UPLO, differentiated(self))[0]  # the derivative of values needs vectors


# ---- general matrices ----------------------------------------------------------------------------------------------------


def _eig_meta(self):
    square("linalg.eig", self)
    c = self.dtype.to_complex()
    return dense(self.shape[:-1], self, c), dense(self.shape, self, c)


@extern(
    "linalg_eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)",
    columns=(1,),
    meta=_eig_meta,
    variants="",
    has_out=True,
    tags=_OWN,
    out_rules="casts",
)
def linalg_eig(a):
    return _eig(a, True)


def _eig(a, vectors):
    if not np.isfinite(a).all():
        raise RuntimeError("torch.linalg.eig: input tensor should not contain infs or NaNs.")
    if not a.size:
        kind = np.result_type(a.dtype, np.complex64)
        return np.zeros(a.shape[:-1], kind), np.zeros(a.shape, kind)
    values, made, info = lapack.eig(a, vectors)
    _converged("linalg.eig", info)
    return values, made


batched(linalg_eig)


def _eig_vjp(ct0, ct1, result0, result1):
    values, v = result0, result1
    vh = adjoint(v)
    inner = mm(vh, ct1)
    _refuse_phases(_diagonal(inner), "linalg_eig_backward")
    real = aten.real.default(_diagonal(inner))
    inner = aten.sub.Tensor(inner, mm(vh, aten.mul.Tensor(v, _row(real))))
    inner = _over(inner, _conj(_gaps(values, 1)))
    eye = aten.eye.default(values.shape[-1], dtype=dtypes.bool_, device=values.device)
    inner = aten.where.self(eye, _row(ct0), inner)
    return aten.linalg_solve.default(vh, mm(inner, vh))


linalg_eig.derivative(self=_eig_vjp)


@extern(
    "_linalg_eigvals(Tensor self) -> Tensor",
    columns=(),
    meta=lambda self: _eig_meta(self)[0],
    variants="",
    tags=_OWN,
)
def _linalg_eigvals(a):
    return _eig(a, False)[0]


batched(_linalg_eigvals)


@composite("linalg_eigvals(Tensor self) -> Tensor", variants="")
def linalg_eigvals(self):
    if differentiated(self):  # by the vectors
        return aten.linalg_eig.default(self)[0]
    return aten._linalg_eigvals.default(self)


# ---- singular values -----------------------------------------------------------------------------------------------------


def _svd_meta(A, full_matrices, compute_uv, driver):
    matrix("linalg.svd", A)
    *batch, m, n = A.shape
    k = min(m, n)
    s = dense((*batch, k), A, A.dtype.to_real())
    if not compute_uv:
        return dense((0,), A), s, dense((0,), A)
    return dense((*batch, m, m if full_matrices else k), A), s, dense((*batch, n if full_matrices else k, n), A)


@extern(
    "_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)",
    columns=(0, 2),
    meta=_svd_meta,
    variants="",
    has_out=True,
    tags=_OWN,
)
def _linalg_svd(a, full_matrices, compute_uv, driver):
    if driver is not None:
        raise RuntimeError(
            "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend."
        )
    *batch, m, n = a.shape
    k = min(m, n)
    nothing = np.zeros((0,), a.dtype)
    if a.size:
        u, s, vh, info = lapack.svd(a, full_matrices, compute_uv)
        _converged("linalg.svd", info)
    else:
        eye = lambda r, c: np.broadcast_to(np.eye(r, c, dtype=a.dtype), (*batch, r, c)).copy()  # noqa: E731
        u, vh = eye(m, m if full_matrices else k), eye(n if full_matrices else k, n)
        s = np.zeros((*batch, k), a.real.dtype)
    return (u, s, vh) if compute_uv else (nothing, s, nothing)


_linalg_svd.override("by_parts", jacobi.svd)
batched(_linalg_svd)


@_linalg_svd.override("lower")
def _lower_svd(lowering, vals, A, full_matrices, compute_uv, driver):
    if driver is not None:
        raise NotImplementedError("a driver")
    u, s, vh, info = lowering.svd(vals, A, full_matrices, compute_uv)
    _refuse_unconverged(lowering, "linalg.svd", info)
    return [u, s, vh]


def _svd_vjp(ct0, ct1, ct2, result0, result1, result2, full_matrices, compute_uv):
    if not compute_uv:
        raise RuntimeError("linalg_svd: the singular vectors are needed for the derivative")
    m, n, k = result0.shape[-2], result2.shape[-1], result1.shape[-1]
    u, s, vh = aten.slice.Tensor(result0, -1, 0, k), result1, aten.slice.Tensor(result2, -2, 0, k)
    gu, gvh = aten.slice.Tensor(ct0, -1, 0, k), aten.slice.Tensor(ct2, -2, 0, k)
    square_ = aten.mul.Tensor(s, s)
    e = _gaps(square_, 1)
    skew = lambda x: aten.sub.Tensor(x, adjoint(x))  # noqa: E731
    left, right = skew(mm(adjoint(u), gu)), skew(mm(vh, adjoint(gvh)))
    both = aten.mul.Tensor(aten.add.Tensor(_diagonal(left), _diagonal(right)), 0.5)
    _refuse_phases(both, "svd_backward", "singular vectors", "phase term, making it ill-defined")
    inner = aten.mul.Tensor(_over(left, e), _row(s))
    inner = aten.add.Tensor(inner, aten.mul.Tensor(_column(s), _over(right, e)))
    # The diagonals of both are 0 for real matrices; for complex ones they are the phases that U and V share.
    eye = aten.eye.default(k, dtype=dtypes.bool_, device=s.device)
    inner = aten.masked_fill.Scalar(inner, eye, 0)
    diagonal = ct1
    if u.dtype.is_complex:
        phases = _over(_diagonal(left), aten.mul.Tensor(s, 2))
        diagonal = aten.add.Tensor(phases, ct1)
    inner = aten.add.Tensor(inner, aten.diag_embed.default(diagonal))
    g = mm(u, inner)
    if m > k:
        over = _over(gu, _row(s))
        g = aten.add.Tensor(g, aten.sub.Tensor(over, mm(u, mm(adjoint(u), over))))
    g = mm(g, vh)
    if n > k:
        over = _over(gvh, _column(s))
        g = aten.add.Tensor(g, mm(u, aten.sub.Tensor(over, mm(mm(over, adjoint(vh)), vh))))
    return g


_linalg_svd.derivative(A=_svd_vjp)


@composite(
    "linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)",
    variants="",
    has_out=True,
    out_rules="exact",
)
def linalg_svd(A, full_matrices, driver):
    return aten._linalg_svd.default(A, full_matrices, True, driver=driver)


@composite("linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor", variants="", out_rules="exact")
def linalg_svdvals(A, driver):
    return aten._linalg_svd.default(A, False, differentiated(A), driver=driver)[1]


@composite(
    "svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)",
    has_out=True,
    out_rules="exact",
)
def svd(self, some, compute_uv):
    matrix("linalg.svd", self)
    m, n = self.shape[-2:]
    if not compute_uv:
        s = aten.linalg_svdvals.default(self)
        zeros = lambda k: aten.new_zeros.default(self, [*self.shape[:-2], k, k])  # noqa: E731
        return zeros(m), s, zeros(n)
    u, s, vh = aten._linalg_svd.default(self, not some, True)
    return u, s, adjoint(vh)


# ---- pseudoinverse, rank, least squares ----------------------------------------------------------------------------------


def _tolerance(t, like):
    return (
        t
        if t is None or hasattr(t, "dtype")
        else aten.full.default([], t, dtype=like.dtype.to_real(), device=like.device)
    )


def _real_tolerance(name, t, what):
    if t is not None and t.dtype.is_complex:
        raise RuntimeError(
            f"torch.linalg.{name}: {what} tensor of complex type is not supported. Got {_scalar_name(t.dtype)}"
        )


def _cut(largest, atol, rtol, shape, dtype):
    """The size from which singular values count, with a dimension for them."""
    atol, rtol = (None if t is None else _column(t) for t in (atol, rtol))
    eps = finfo(dtype).eps * max(shape)
    if rtol is None:
        default = aten.full_like.default(largest, eps)
        if atol is not None:
            atol = aten._to_copy.default(atol, dtype=largest.dtype)
            default = aten.where.self(
                aten.gt.Scalar(atol, 0), aten.zeros_like.default(atol), aten.full_like.default(atol, eps)
            )
        rtol = default
    relative = aten.mul.Tensor(rtol, largest)
    return (
        relative
        if atol is None
        else aten.maximum.default(
            aten.expand.default(atol, list(broadcast_shapes(tuple(atol.shape), tuple(relative.shape)))), relative
        )
    )


@explicit(
    "linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) -> Tensor",
    has_out=True,
    tags=_OWN,
    out_rules="casts",
)
def linalg_pinv(self, atol, rtol, hermitian):
    matrix("linalg.pinv", self)
    _real_tolerance("pinv", atol, "atol")
    _real_tolerance("pinv", rtol, "rtol")
    if hermitian and self.shape[-1] != self.shape[-2]:
        square("linalg.pinv", self)
    if self.numel() == 0:
        return aten.new_empty.default(self, [*self.shape[:-2], self.shape[-1], self.shape[-2]])
    if hermitian:
        s, u = aten.linalg_eigh.default(self)
        size = aten.abs.default(s)
        largest = aten.amax.default(size, [-1], True)
        keep = aten.gt.Tensor(size, _cut(largest, atol, rtol, self.shape[-2:], self.dtype))
        inverse = aten.where.ScalarOther(keep, aten.reciprocal.default(s), 0)
        return mm(aten.mul.Tensor(u, _row(inverse)), adjoint(u))
    u, s, vh = aten._linalg_svd.default(self, False, True)
    largest = aten.slice.Tensor(s, -1, 0, 1)
    keep = aten.gt.Tensor(s, _cut(largest, atol, rtol, self.shape[-2:], self.dtype))
    inverse = aten.where.ScalarOther(keep, aten.reciprocal.default(s), 0)
    return mm(aten.mul.Tensor(adjoint(vh), _row(inverse)), adjoint(u))


def _pinv_vjp(ct, self, result):
    """G. Golub, V. Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares problems" (1973)."""
    m, n = self.shape[-2:]
    p, ph, gh = result, adjoint(result), adjoint(ct)
    if m <= n:
        k = mm(gh, p)
        kph = mm(k, ph)
        out = aten.sub.Tensor(kph, adjoint(mm(p, k)))
        out = aten.sub.Tensor(out, mm(mm(self, p), kph))
        return aten.add.Tensor(out, mm(mm(ph, p), aten.sub.Tensor(gh, mm(k, self))))
    k = mm(p, gh)
    phk = mm(ph, k)
    out = aten.sub.Tensor(phk, adjoint(mm(k, p)))
    out = aten.add.Tensor(out, mm(aten.sub.Tensor(gh, mm(self, k)), mm(p, ph)))
    return aten.sub.Tensor(out, mm(mm(phk, p), self))


linalg_pinv.derivative(self=_pinv_vjp)


@composite(
    "linalg_pinv.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool hermitian=False) -> Tensor",
    variants="",
    has_out=True,
)
def linalg_pinv_floats(self, atol, rtol, hermitian):
    return aten.linalg_pinv.atol_rtol_tensor(
        self, atol=_tolerance(atol, self), rtol=_tolerance(rtol, self), hermitian=hermitian
    )


@composite("linalg_pinv(Tensor self, float rcond, bool hermitian=False) -> Tensor", variants="")
def linalg_pinv_rcond(self, rcond, hermitian):
    return aten.linalg_pinv.atol_rtol_float(self, atol=0.0, rtol=rcond, hermitian=hermitian)


@composite("linalg_pinv.rcond_tensor(Tensor self, Tensor rcond, bool hermitian=False) -> Tensor", variants="")
def linalg_pinv_rcond_tensor(self, rcond, hermitian):
    return aten.linalg_pinv.atol_rtol_tensor(self, atol=aten.zeros_like.default(rcond), rtol=rcond, hermitian=hermitian)


@composite("pinverse(Tensor self, float rcond=1e-15) -> Tensor")
def pinverse(self, rcond):
    return aten.linalg_pinv.atol_rtol_float(self, atol=0.0, rtol=rcond)


def _rank(self, atol, rtol, hermitian):
    matrix("torch.linalg.matrix_rank", self)
    if self.numel() == 0:
        return aten.zeros.default(list(self.shape[:-2]), dtype=int64, device=self.device)
    s = aten.abs.default(aten.linalg_eigvalsh.default(self)) if hermitian else aten.linalg_svdvals.default(self)
    largest = aten.amax.default(s, [-1], True)
    bound = _cut(largest, atol, rtol, self.shape[-2:], self.dtype)
    return aten.sum.dim_IntList(aten.gt.Tensor(s, bound), [-1])


@composite(
    "linalg_matrix_rank.atol_rtol_tensor(Tensor input, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) -> Tensor",
    variants="",
)
def linalg_matrix_rank(input, atol, rtol, hermitian):
    _real_tolerance("matrix_rank", atol, "atol")
    _real_tolerance("matrix_rank", rtol, "rtol")
    return _rank(input, atol, rtol, hermitian)


@composite(
    "linalg_matrix_rank.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool hermitian=False) -> Tensor",
    variants="",
)
def linalg_matrix_rank_floats(self, atol, rtol, hermitian):
    return _rank(self, _tolerance(atol, self), _tolerance(rtol, self), hermitian)


@composite("linalg_matrix_rank(Tensor self, float tol, bool hermitian=False) -> Tensor", variants="")
def linalg_matrix_rank_tol(self, tol, hermitian):
    return _rank(self, _tolerance(tol, self), _tolerance(0.0, self), hermitian)


@composite("linalg_matrix_rank.tol_tensor(Tensor input, Tensor tol, bool hermitian=False) -> Tensor", variants="")
def linalg_matrix_rank_tol_tensor(input, tol, hermitian):
    _real_tolerance("matrix_rank", tol, "tol")
    return _rank(input, tol, aten.zeros_like.default(tol), hermitian)


_WITH_NAN = "torch.linalg.lstsq: The least squares solution could not be computed because the input contains nan."
_NOT_TAKEN = "torch.linalg.lstsq: the routine gelsy refused its input"
_DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


def _lstsq_shapes(self, b):
    vector = len(b.shape) == 1 or (len(self.shape) - 1 == len(b.shape) and tuple(self.shape[:-1]) == tuple(b.shape))
    return vector


def _lstsq_meta(self, b, rcond, driver):
    name = "torch.linalg.lstsq"
    if len(self.shape) < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if len(b.shape) < 1:
        raise RuntimeError(f"{name}: other must have at least 1 dimension.")
    if not 0 <= len(self.shape) - len(b.shape) <= 1:
        raise RuntimeError(
            f"{name}: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1"
        )
    if self.dtype is not b.dtype:
        raise RuntimeError(
            f"{name}: Expected input and other to have the same dtype, but got input's dtype {_scalar_name(self.dtype)} and other's dtype {_scalar_name(b.dtype)}"
        )
    if driver is not None and driver not in _DRIVERS:
        raise RuntimeError(f"{name}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)")
    floating(name, self)
    vector = _lstsq_shapes(self, b)
    m, n = self.shape[-2:]
    rows = b.shape[-1] if vector else b.shape[-2]
    if rows != m:
        raise RuntimeError(f"{name}: input.size(-2) should match other.size({-1 if vector else -2})")
    right = tuple(b.shape[:-1]) if vector else tuple(b.shape[:-2])
    batch = broadcast_shapes(tuple(self.shape[:-2]), right)
    tail = (n,) if vector else (n, b.shape[-1])
    driver = driver or "gelsy"
    full = m > n and driver != "gelsy"
    real = self.dtype.to_real()
    return (
        dense((*batch, *tail), self),
        dense((*batch, *tail[1:]) if full else (0,), self, real),
        dense(self.shape[:-2] if driver != "gels" else (0,), self, int64),
        dense((*self.shape[:-2], min(m, n)) if driver in ("gelsd", "gelss") else (0,), self, real),
    )


def _least_by_qr(a, x, cut, driver):
    m, n = a.shape[-2:]
    rank, s = np.full(a.shape[:-2], min(m, n)), np.zeros((*a.shape[:-2], min(m, n)), a.real.dtype)
    if driver == "gelsy":
        out, found, info = lapack.least_squares(a, x, cut)
        if info.any():
            raise LinAlgError(_NOT_TAKEN)
        return out, found if found.shape == rank.shape else rank, s
    adjoint = lambda t: np.conj(np.swapaxes(t, -1, -2))  # noqa: E731
    if m >= n:
        q, r = lapack.qr(a, "reduced")
        _full_rank(r)
        return lapack.solve_triangular(r, adjoint(q) @ x, True), rank, s
    q, r = lapack.qr(adjoint(a), "reduced")
    _full_rank(r)
    return q @ lapack.solve_triangular(adjoint(r), x, False), rank, s


def _full_rank(r):
    """LinAlgError where a triangular factor has a zero on its diagonal: gels takes matrices of full rank."""
    diagonal = np.diagonal(r, 0, -2, -1)
    info = np.where((diagonal == 0).any(-1), (diagonal == 0).argmax(-1) + 1, 0)
    check_info(
        "torch.linalg.lstsq",
        info,
        lambda code: (
            "The least squares solution could not be computed because the input matrix does not have full rank "
            f"(error code: {code})."
        ),
    )


def _least_by_svd(a, x, cut, driver):
    import scipy.linalg

    def one(p, q):
        found, _, rank, s = scipy.linalg.lstsq(p, q, cond=cut, lapack_driver=driver, check_finite=False)
        return found, np.int64(rank), s

    return each(one, a, x, tails=(2, 2))


@extern(
    "linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) -> (Tensor solution, Tensor residuals, Tensor rank, Tensor singular_values)",
    columns=(0,),
    meta=_lstsq_meta,
    variants="",
    has_out=True,
    tags=_OWN,
    out_rules="casts",
)
def linalg_lstsq(a, b, rcond, driver):
    driver = driver or "gelsy"
    vector = _lstsq_shapes(a, b)
    x = b[..., None] if vector else b
    m, n = a.shape[-2:]
    cut = np.finfo(a.dtype).eps * max(m, n) if rcond is None else rcond
    if not a.size or not x.size:
        batch = broadcast_shapes(a.shape[:-2], x.shape[:-2])
        out = np.zeros((*batch, n, x.shape[-1]), a.dtype)
        rank, s = np.zeros(a.shape[:-2], np.int64), np.zeros((*a.shape[:-2], min(m, n)), a.real.dtype)
    elif np.isnan(a).any() or np.isnan(x).any():
        raise LinAlgError(_WITH_NAN)
    else:
        out, rank, s = (_least_by_qr if driver in ("gels", "gelsy") else _least_by_svd)(a, x, cut, driver)
    residuals = np.zeros((0,), a.real.dtype)
    if m > n and driver != "gelsy":
        gap = a @ out - x
        residuals = (gap * np.conj(gap)).real.sum(-2)
        residuals = residuals[..., 0] if vector else residuals
        if driver != "gels" and (rank < n).any():
            residuals = np.zeros((0,), a.real.dtype)
    out = out[..., 0] if vector else out
    return (
        np.ascontiguousarray(out),
        np.ascontiguousarray(residuals),
        np.asarray(rank) if driver != "gels" else np.zeros((0,), np.int64),
        np.ascontiguousarray(s) if driver in ("gelsd", "gelss") else np.zeros((0,), a.real.dtype),
    )


@linalg_lstsq.override("lower")
def _lower_lstsq(lowering, vals, self, b, rcond, driver):
    if driver not in (None, "gelsy") or not len(self.sizes) == len(b.sizes) == 2:
        raise NotImplementedError("other routines, vectors and batches")
    solution, rank, info = lowering.least_squares(vals, self, b, rcond)
    lowering.refuse(info, _NOT_TAKEN, _WITH_NAN)
    residuals, values = (lowering.full((0,), v.dtype, 0, v.device) for v in (vals[1], vals[3]))
    return [solution, residuals, rank, values]


def _lstsq_vjp(ct0, ct1, self, b, result0, result1, mask):
    vector = _lstsq_shapes(self, b)
    g, x, rhs = (_column(ct0), _column(result0), _column(b)) if vector else (ct0, result0, b)
    p = aten.linalg_pinv.atol_rtol_tensor(self)
    out = [None, None]
    if mask[0]:
        out[0] = _pinv_vjp(mm(g, adjoint(rhs)), self, p)
    if mask[1]:
        out[1] = mm(adjoint(p), g)
    if result1.numel():  # the squared residuals, orthogonal to what the solution can reach
        ct1 = aten.unsqueeze.default(ct1, -1) if vector else ct1
        rest = aten.mul.Tensor(aten.sub.Tensor(rhs, mm(self, x)), aten.mul.Tensor(_row(ct1), 2))
        if mask[0]:
            out[0] = aten.sub.Tensor(out[0], mm(rest, adjoint(x)))
        if mask[1]:
            out[1] = aten.add.Tensor(out[1], rest)
    if mask[1] and vector:
        out[1] = aten.squeeze.dim(out[1], -1)
    return tuple(out)


linalg_lstsq.derivative((0, 1), self__b=_lstsq_vjp)

# ---- norms ---------------------------------------------------------------------------------------------------------------


def _two_dims(self, dim):
    if len(dim) != 2:
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {' '.join(map(str, dim))}")
    a, b = (normalize_dim(d, self.ndim) for d in dim)
    if a == b:
        raise RuntimeError("linalg.matrix_norm: dims must be different. Got (" + ", ".join(map(str, dim)) + ")")
    return a, b


def _cast(self, dtype, name):
    if len(self.shape) < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions.")
    if self.dtype.category < 2:
        raise RuntimeError(
            f"{name}: Expected a floating point or complex tensor as input. Got {_scalar_name(self.dtype)}"
        )
    return self if dtype is None or dtype is self.dtype else aten._to_copy.default(self, dtype=dtype)


def _spectral(self, dim, keepdim, reduce):
    """A function of the singular values of the matrices in two dimensions."""
    a, b = _two_dims(self, dim)
    order = [d for d in range(self.ndim) if d not in (a, b)] + [a, b]
    out = reduce(aten.linalg_svdvals.default(aten.permute.default(self, order)))
    if keepdim:
        for d in sorted((a, b)):
            out = aten.unsqueeze.default(out, d)
    return out


@composite(
    "linalg_matrix_norm(Tensor self, Scalar ord, int[] dim=[-2,-1], bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    variants="",
    out_rules="exact",
)
def linalg_matrix_norm(self, ord, dim, keepdim, dtype):
    self = _cast(self, dtype, "linalg.matrix_norm")
    a, b = _two_dims(self, dim)
    if isinstance(ord, complex):
        raise RuntimeError("linalg.matrix_norm: Expected a non-complex scalar as the order of norm.")
    size = abs(ord)
    if size not in (1, 2, math.inf):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    reduce = aten.amax.default if ord > 0 else aten.amin.default
    if size == 2:
        return _spectral(self, dim, keepdim, lambda s: reduce(s, [-1]))
    first, second = (a, b) if size == 1 else (b, a)
    sums = aten.sum.dim_IntList(aten.abs.default(self), [first], keepdim)
    if not keepdim and second > first:
        second -= 1
    return reduce(sums, [second], keepdim)


@composite(
    'linalg_matrix_norm.str_ord(Tensor self, str ord="fro", int[] dim=[-2,-1], bool keepdim=False, *, ScalarType? dtype=None) -> Tensor',
    variants="",
    out_rules="exact",
)
def linalg_matrix_norm_named(self, ord, dim, keepdim, dtype):
    self = _cast(self, dtype, "linalg.matrix_norm")
    _two_dims(self, dim)
    if ord == "fro":
        return aten.linalg_vector_norm.default(self, 2, list(dim), keepdim)
    if ord != "nuc":
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    return _spectral(self, dim, keepdim, lambda s: aten.sum.dim_IntList(s, [-1]))


@composite("nuclear_norm(Tensor self, bool keepdim=False) -> Tensor", variants="function", has_out=True)
def nuclear_norm(self, keepdim):
    return aten.linalg_matrix_norm.str_ord(self, "nuc", [-2, -1], keepdim)


@composite("nuclear_norm.dim(Tensor self, int[2] dim, bool keepdim=False) -> Tensor", variants="function", has_out=True)
def nuclear_norm_dim(self, dim, keepdim):
    return aten.linalg_matrix_norm.str_ord(self, "nuc", list(dim), keepdim)


@composite(
    "frobenius_norm.dim(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", variants="function", has_out=True
)
def frobenius_norm(self, dim, keepdim):
    return aten.linalg_vector_norm.default(self, 2, list(dim), keepdim)


@composite("linalg_cond(Tensor self, Scalar? p=None) -> Tensor", variants="")
def linalg_cond(self, p):
    name = "linalg.cond"
    matrix(name, self)
    if p is not None and abs(p) not in (1, 2, math.inf):
        raise RuntimeError(f"{name} got an invalid norm type: {p}")
    if p is None or abs(p) == 2:
        s = aten.linalg_svdvals.default(self)
        last = s.shape[-1] - 1
        if self.numel() == 0:
            return aten.zeros.default(list(self.shape[:-2]), dtype=s.dtype, device=s.device)
        top, low = aten.select.int(s, -1, 0), aten.select.int(s, -1, last)
        return aten.div.Tensor(low, top) if p == -2 else aten.div.Tensor(top, low)
    square(name, self)
    if self.numel() == 0:
        return aten.zeros.default(list(self.shape[:-2]), dtype=self.dtype.to_real(), device=self.device)
    return _cond_by(self, lambda x: aten.linalg_matrix_norm.default(x, p))


def _cond_by(self, norm):
    inverse, info = aten.linalg_inv_ex.default(self)
    out = aten.mul.Tensor(norm(self), norm(inverse))
    return aten.where.ScalarOther(aten.eq.Scalar(info, 0), out, math.inf)


@composite("linalg_cond.p_str(Tensor self, str p) -> Tensor", variants="")
def linalg_cond_named(self, p):
    if p not in ("fro", "nuc"):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    square("linalg.cond", self)
    if self.numel() == 0:
        return aten.zeros.default(list(self.shape[:-2]), dtype=self.dtype.to_real(), device=self.device)
    if p == "nuc":  # of a singular matrix as well: what the least singular values say
        s = aten.linalg_svdvals.default(self)
        return aten.mul.Tensor(aten.sum.dim_IntList(s, [-1]), aten.sum.dim_IntList(aten.reciprocal.default(s), [-1]))
    return _cond_by(self, lambda x: aten.linalg_matrix_norm.str_ord(x, p))
