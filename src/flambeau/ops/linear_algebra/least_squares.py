"""Pseudoinverses, ranks and least squares."""

from __future__ import annotations

import numpy as np

from ...base import lapack
from ...base.dtypes import finfo, int64
from ...base.errors import LinAlgError
from ...base.shapes import broadcast_shapes
from ...core.declare import composite, explicit
from ...core.operator import namespace
from ...core.promotion import _scalar_name
from .checks import adjoint, check_info, dense, each, extern, floating, matrix, mm, square
from .spectral import column, row

aten = namespace("aten")
_OWN = ("own_complex_derivative",)


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
    atol, rtol = (None if t is None else column(t) for t in (atol, rtol))
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
        return mm(aten.mul.Tensor(u, row(inverse)), adjoint(u))
    u, s, vh = aten._linalg_svd.default(self, False, True)
    largest = aten.slice.Tensor(s, -1, 0, 1)
    keep = aten.gt.Tensor(s, _cut(largest, atol, rtol, self.shape[-2:], self.dtype))
    inverse = aten.where.ScalarOther(keep, aten.reciprocal.default(s), 0)
    return mm(aten.mul.Tensor(adjoint(vh), row(inverse)), adjoint(u))


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
    g, x, rhs = (column(ct0), column(result0), column(b)) if vector else (ct0, result0, b)
    p = aten.linalg_pinv.atol_rtol_tensor(self)
    out = [None, None]
    if mask[0]:
        out[0] = _pinv_vjp(mm(g, adjoint(rhs)), self, p)
    if mask[1]:
        out[1] = mm(adjoint(p), g)
    if result1.numel():  # the squared residuals, orthogonal to what the solution can reach
        ct1 = aten.unsqueeze.default(ct1, -1) if vector else ct1
        rest = aten.mul.Tensor(aten.sub.Tensor(rhs, mm(self, x)), aten.mul.Tensor(row(ct1), 2))
        if mask[0]:
            out[0] = aten.sub.Tensor(out[0], mm(rest, adjoint(x)))
        if mask[1]:
            out[1] = aten.add.Tensor(out[1], rest)
    if mask[1] and vector:
        out[1] = aten.squeeze.dim(out[1], -1)
    return tuple(out)


linalg_lstsq.derivative((0, 1), self__b=_lstsq_vjp)
