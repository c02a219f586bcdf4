"""Factorisations of matrices: Cholesky, QR, LU, LDL, singular values, eigenvalues.

Kernels are LAPACK (base/lapack.py), the rare ones through SciPy. Derivatives: M. Giles, "An extended collection of matrix derivative results" (2008), and
S. Walter, L. Lehmann, "Algorithmic differentiation of linear algebra functions" (2010); for complex matrices in PyTorch's convention.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from ... import _C
from ...base import lapack
from ...base.dtypes import int32
from ...base.errors import LinAlgError
from ...base.shapes import broadcast_shapes
from ...core.declare import composite, explicit
from ...core.operator import namespace
from ...core.promotion import refused
from .checks import (
    FULL,
    adjoint,
    batched,
    by_columns,
    check_info,
    dense,
    each,
    extern,
    eye_like,
    floating,
    info_meta,
    matrix,
    mm,
    not_definite,
    refuse_info,
    routine_for,
    singular,
    square,
    transposed,
    unsolvable,
)

aten = namespace("aten")
_OWN = ("own_complex_derivative",)


# ---- Cholesky ------------------------------------------------------------------------------------------------------------


def _cholesky_meta(self, upper, check_errors):
    square("linalg.cholesky", self)
    return dense(self.shape, self), info_meta(self)


@extern(
    "linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)",
    columns=(0,),
    meta=_cholesky_meta,
    variants="",
    has_out=True,
    tags=_OWN,
)
def linalg_cholesky_ex(a, upper, check_errors):
    if not a.size:
        return a.copy(), np.zeros(a.shape[:-2], np.int32)
    turn = lambda m: np.conj(np.swapaxes(m, -1, -2)) if upper else m  # noqa: E731
    factor, info = lapack.cholesky(turn(a))
    if check_errors:
        check_info("linalg.cholesky_ex", info, not_definite)
    return turn(factor), info


batched(linalg_cholesky_ex)


@linalg_cholesky_ex.override("lower")
def _lower_cholesky(lowering, vals, self, upper, check_errors):
    factor, info = lowering.cholesky(self, upper)
    if check_errors:
        refuse_info(lowering, "linalg.cholesky_ex", info, not_definite)
    return [factor, info]


def _cholesky_vjp(ct0, result0, upper):
    lower, g = (adjoint(result0), adjoint(ct0)) if upper else (result0, ct0)
    phi = aten.tril.default(mm(adjoint(lower), g))
    phi = aten.sub.Tensor(phi, aten.mul.Tensor(phi, aten.mul.Tensor(eye_like(phi), 0.5)))
    x = aten.linalg_solve_triangular.default(adjoint(lower), phi, upper=True)
    x = aten.linalg_solve_triangular.default(lower, x, upper=False, left=False)
    return aten.mul.Tensor(aten.add.Tensor(x, adjoint(x)), 0.5)


linalg_cholesky_ex.derivative((0,), self=_cholesky_vjp)


@extern(
    "_linalg_check_errors(Tensor info, str api_name, *, bool is_matrix) -> ()",
    meta=lambda *a: (),
    variants="",
    tags=("has_side_effects",),
)
def _linalg_check_errors(info, api_name, is_matrix):
    if not info.any():
        return ()
    if api_name == "torch.linalg.solve":
        where = "" if is_matrix else f"(Batch element {int(np.flatnonzero(info)[0])}): "
        raise LinAlgError(f"{api_name}: {where}{unsolvable(0)}")
    check_info(api_name, info.reshape(()) if is_matrix else info, _MEANS.get(api_name, singular))
    return ()


@_linalg_check_errors.override("lower")
def _lower_check_errors(lowering, val, info, api_name, is_matrix):
    where = "" if is_matrix else "(Batch element {size}): "
    means = (unsolvable if api_name == "torch.linalg.solve" else _MEANS.get(api_name, singular))("{value}")
    lowering.refuse(info, f"{api_name}: {where}{means}")
    return ()


_MEANS = {
    "linalg.cholesky": not_definite,
    "cholesky": not_definite,
    "linalg.ldl_factor": lambda c: (
        f"The factorization has an exact zero at D[{c},{c}], can't be used to solve systems."
    ),
    "linalg.lu_factor": lambda c: (
        f"U[{c},{c}] is zero and using it on lu_solve would result in a division by zero. If you still want to perform the factorization, "
        "consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)"
    ),
}
_linalg_check_errors.override(
    "batch", lambda call, info, api_name, is_matrix: aten._linalg_check_errors.default(info, api_name, is_matrix=False)
)


def checked(info, name, t):
    aten._linalg_check_errors.default(info, name, is_matrix=t.ndim == 2)


@composite("linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor", variants="", has_out=True, out_rules="exact")
def linalg_cholesky(self, upper):
    out, info = aten.linalg_cholesky_ex.default(self, upper=upper)
    checked(info, "linalg.cholesky", self)
    return out


@composite("cholesky(Tensor self, bool upper=False) -> Tensor", has_out=True, out_rules="rows")
def cholesky(self, upper):
    if self.dtype.category < 2:
        refused("cholesky", self.dtype)
    out, info = aten.linalg_cholesky_ex.default(self, upper=upper)
    checked(info, "cholesky", self)
    return out


# ---- QR ------------------------------------------------------------------------------------------------------------------


def _qr_meta(self, mode):
    matrix("linalg.qr", self)
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
        )
    *batch, m, n = self.shape
    k = m if mode == "complete" else min(m, n)
    q = dense((0,) if mode == "r" else (*batch, m, k), self)
    return q, dense((*batch, k, n), self)


@extern(
    'linalg_qr(Tensor A, str mode="reduced") -> (Tensor Q, Tensor R)',
    columns=(0, 1),
    meta=_qr_meta,
    variants="",
    has_out=True,
    tags=_OWN,
)
def linalg_qr(a, mode):
    *batch, m, n = a.shape
    k = m if mode == "complete" else min(m, n)
    if a.size:
        q, r = lapack.qr(a, mode)
    else:
        q, r = np.broadcast_to(np.eye(m, k, dtype=a.dtype), (*batch, m, k)).copy(), np.zeros((*batch, k, n), a.dtype)
    return np.zeros((0,), a.dtype) if mode == "r" else q, r


batched(linalg_qr)
linalg_qr.override("lower", lambda lowering, vals, A, mode: lowering.qr(vals, A, mode))


def _syminvadj(x):
    s = aten.add.Tensor(x, adjoint(x))
    diagonal = aten.diagonal.default(s, 0, -2, -1)
    half = aten.real.default(diagonal) if s.dtype.is_complex else diagonal
    return aten.sub.Tensor(s, aten.diag_embed.default(aten.mul.Tensor(half, 0.5)))


def _qr_vjp(ct0, ct1, result0, result1, mode):
    if mode == "r":
        raise RuntimeError(
            "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use linalg.qr(A, mode='reduced')"
        )
    q, r = result0, result1
    m, n = q.shape[-2], r.shape[-1]
    if mode == "complete" and m > n:
        raise RuntimeError("The QR decomposition is not differentiable when mode='complete' and nrows > ncols")
    if m >= n:
        gq, gr = ct0, ct1
        inner = aten.sub.Tensor(mm(gr, adjoint(r)), mm(adjoint(q), gq))
        g = aten.add.Tensor(gq, mm(q, _syminvadj(aten.triu.default(inner))))
        return aten.linalg_solve_triangular.default(adjoint(r), g, upper=False, left=False)
    x = _skew_part(aten.sub.Tensor(mm(adjoint(q), ct0), mm(ct1, adjoint(r))))
    first = aten.slice.Tensor(r, -1, 0, m)
    x = aten.linalg_solve_triangular.default(adjoint(first), x, upper=False, left=False)
    x = aten.constant_pad_nd.default(x, [0, n - m], 0)
    return mm(q, aten.add.Tensor(ct1, x))


def _skew_part(x):
    """tril(X - X^H, -1) and, of complex ones, the imaginary diagonal: the part of a skew-Hermitian matrix that counts."""
    skew = aten.sub.Tensor(x, adjoint(x))
    out = aten.tril.default(skew, -1)
    if x.dtype.is_complex:
        out = aten.add.Tensor(
            out, aten.diag_embed.default(aten.mul.Tensor(aten.diagonal.default(skew, 0, -2, -1), 0.5))
        )
    return out


linalg_qr.derivative(A=_qr_vjp)


@composite("qr(Tensor self, bool some=True) -> (Tensor Q, Tensor R)", has_out=True, out_rules="exact")
def qr(self, some):
    return aten.linalg_qr.default(self, "reduced" if some else "complete")


def _reflectors_meta(self):
    if self.dtype.category < 2:
        refused("geqrf", self.dtype)
    matrix("geqrf", self, "input")
    *batch, m, n = self.shape
    return dense(self.shape, self), dense((*batch, min(m, n)), self)


@extern(
    "geqrf(Tensor self) -> (Tensor a, Tensor tau)", columns=(0,), meta=_reflectors_meta, has_out=True, out_rules="casts"
)
def geqrf(a):
    *batch, m, n = a.shape
    if not a.size:
        return a.copy(), np.zeros((*batch, min(m, n)), a.dtype)
    return lapack.reflectors(a)


geqrf.override("lower", lambda lowering, vals, self: lowering.reflectors(self))


def _check_reflections(input, tau):
    """Of tensors or arrays."""
    name = "torch.linalg.householder_product"
    if input.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    m, n = input.shape[-2:]
    if m < n:
        raise RuntimeError(f"{name}: input.shape[-2] must be greater than or equal to input.shape[-1]")
    if n < tau.shape[-1]:
        raise RuntimeError(f"{name}: input.shape[-1] must be greater than or equal to tau.shape[-1]")
    if input.ndim - tau.ndim != 1:
        raise RuntimeError(
            f"{name}: Expected tau to have one dimension less than input, but got tau.ndim equal to {tau.ndim} and input.ndim is equal to {input.ndim}"
        )
    if tuple(tau.shape[:-1]) != tuple(input.shape[:-2]):
        raise RuntimeError(
            f"{name}: Expected batch dimensions of tau to be equal to input.shape[:-2], but got {list(tau.shape[:-1])}"
        )
    if tau.dtype is not input.dtype:
        raise RuntimeError(f"{name}: tau dtype {tau.dtype} does not match input dtype {input.dtype}")
    floating(name, input)


def _product_of_arrays(input, tau):
    *batch, m, n = input.shape if input.ndim > 1 else (0, 0)
    k = tau.shape[-1] if tau.ndim else -1
    if not (
        input.ndim > 1
        and m >= n >= k
        and tau.shape == (*batch, k)
        and input.dtype == tau.dtype
        and input.dtype.char in "fdFD"
    ):
        _check_reflections(_C.from_array(input), _C.from_array(tau))
    return lapack.reflected(input, tau) if input.size else np.empty_like(input)


@explicit(
    "linalg_householder_product(Tensor input, Tensor tau) -> Tensor",
    eager=_product_of_arrays,
    has_out=True,
    out_rules="casts",
)
def linalg_householder_product(input, tau):
    """The first columns of the product of reflections I - tau_i v_i v_i^H, v_i below the diagonal of column i, 1 on it."""
    _check_reflections(input, tau)
    m, n = input.shape[-2:]
    return _reflected(input, tau, aten.eye.m(m, n, dtype=input.dtype, device=input.device))


# Gradients and devices have the body.
linalg_householder_product.override(
    "keep_fused", lambda input, tau: input.dtype.name in FULL and input.device.type == "cpu"
)
linalg_householder_product.override("lower", lambda lowering, val, input, tau: lowering.reflected(input, tau))


def _reflected(v, tau, q):
    lower = aten.tril.default(v, -1)
    ones = aten.eye.m(v.shape[-2], v.shape[-1], dtype=v.dtype, device=v.device)
    vectors = aten.add.Tensor(lower, ones)
    q = aten.expand.default(q, [*v.shape[:-2], *q.shape[-2:]])
    for k in reversed(range(tau.shape[-1])):
        column = aten.slice.Tensor(vectors, -1, k, k + 1)
        t = aten.unsqueeze.default(aten.slice.Tensor(tau, -1, k, k + 1), -1)
        q = aten.sub.Tensor(q, mm(aten.mul.Tensor(t, column), mm(adjoint(column), q)))
    return by_columns(q)


@composite("orgqr(Tensor self, Tensor input2) -> Tensor", has_out=True)
def orgqr(self, input2):
    return aten.linalg_householder_product.default(self, input2)


@explicit(
    "ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) -> Tensor",
    variants="function method",
    has_out=True,
)
def ormqr(self, input2, input3, left, transpose):
    """Q @ other, other @ Q, with Q (or its adjoint) the whole product of the reflections."""
    if self.ndim < 2 or input3.ndim < 2:
        raise RuntimeError(f"torch.ormqr: {'input' if self.ndim < 2 else 'other'} must have at least 2 dimensions.")
    if self.ndim != input3.ndim:
        raise RuntimeError(
            f"torch.ormqr: Expected other to have the same number of dimensions as input, but got other.ndim equal to {input3.ndim} "
            f"and input.ndim is equal to {self.ndim}"
        )
    if self.ndim - input2.ndim != 1:
        raise RuntimeError(
            f"torch.ormqr: Expected tau to have one dimension less than input, but got tau.ndim equal to {input2.ndim} and input.ndim is equal to {self.ndim}"
        )
    order = input3.shape[-2 if left else -1]
    if input2.shape[-1] != min(order, self.shape[-1]) and input2.shape[-1] <= order:
        raise RuntimeError(
            f"torch.ormqr: tau.shape[-1] must be equal to min(other.shape[{-2 if left else -1}], input.shape[-1])"
        )
    if input2.shape[-1] > order:
        raise RuntimeError(
            f"torch.ormqr: other.shape[{-2 if left else -1}] must be greater than or equal to tau.shape[-1]"
        )
    if self.shape[-2] != order:
        raise RuntimeError(f"torch.ormqr: other.shape[{-2 if left else -1}] must be equal to input.shape[-2]")
    q = _reflected(self, input2, aten.eye.default(order, dtype=self.dtype, device=self.device))
    q = adjoint(q) if transpose else q
    return by_columns(mm(q, input3) if left else mm(input3, q))


# ---- LU ------------------------------------------------------------------------------------------------------------------


def _lu_meta(self, pivot, check_errors):
    matrix("torch.lu_factor", self)
    *batch, m, n = self.shape
    return dense(self.shape, self), dense((*batch, min(m, n)), self, int32), info_meta(self)


def _without_pivots(a):
    a = a.copy()
    info = 0
    for k in range(min(a.shape)):
        if a[k, k] == 0:
            info = info or k + 1
            continue
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return a, np.arange(1, min(a.shape) + 1, dtype=np.int32), info


@extern(
    "linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU, Tensor pivots, Tensor info)",
    columns=(0,),
    meta=_lu_meta,
    variants="",
    has_out=True,
)
def linalg_lu_factor_ex(a, pivot, check_errors):
    *batch, m, n = a.shape
    if not a.size:
        return a.copy(), np.zeros((*batch, min(m, n)), np.int32), np.zeros(batch, np.int32)
    if pivot:
        lu, piv, info = lapack.lu(a)
    else:
        lu, piv, info = each(_without_pivots, a, tails=(2,))
        info = info.astype(np.int32)
    if check_errors:
        check_info(
            "linalg.lu_factor_ex",
            info,
            _no_solutions,
        )
    return lu, piv, info


def _no_solutions(c):
    return f"U[{c},{c}] is zero and using it on lu_solve would result in a division by zero."


batched(linalg_lu_factor_ex)


@linalg_lu_factor_ex.override("lower")
def _lower_lu(lowering, vals, A, pivot, check_errors):
    if not pivot:
        raise NotImplementedError("factors without pivots")
    made = lowering.lu(A)
    if check_errors:
        refuse_info(lowering, "linalg.lu_factor_ex", made[2], _no_solutions)
    return made


def _square_lu_vjp(lower, upper, gl, gu):
    """L^-T [tril(L^T gL, -1) + triu(gU U^T)] U^-T."""
    phi = aten.add.Tensor(
        aten.tril.default(mm(transposed(lower), gl), -1), aten.triu.default(mm(gu, transposed(upper)))
    )
    x = aten.linalg_solve_triangular.default(transposed(lower), phi, upper=True, unitriangular=True)
    return aten.linalg_solve_triangular.default(transposed(upper), x, upper=False, left=False)


def _lu_vjp(ct0, result0, result1):
    m, n = result0.shape[-2:]
    p, lower, upper = aten.lu_unpack.default(result0, result1)
    k = min(m, n)
    gl, gu = (
        aten.tril.default(aten.slice.Tensor(ct0, -1, 0, k), -1),
        aten.triu.default(aten.slice.Tensor(ct0, -2, 0, k)),
    )
    if m == n:
        return mm(p, _square_lu_vjp(lower, upper, gl, gu))
    if m < n:
        u1, u2 = aten.slice.Tensor(upper, -1, 0, m), aten.slice.Tensor(upper, -1, m, n)
        g2 = aten.linalg_solve_triangular.default(
            transposed(lower), aten.slice.Tensor(gu, -1, m, n), upper=True, unitriangular=True
        )
        gl = aten.sub.Tensor(gl, mm(g2, transposed(u2)))
        g1 = _square_lu_vjp(lower, u1, gl, aten.slice.Tensor(gu, -1, 0, m))
        return mm(p, aten.cat.default([g1, g2], -1))
    l1, l2 = aten.slice.Tensor(lower, -2, 0, n), aten.slice.Tensor(lower, -2, n, m)
    g2 = aten.linalg_solve_triangular.default(
        transposed(upper), aten.slice.Tensor(gl, -2, n, m), upper=False, left=False
    )
    gu = aten.sub.Tensor(gu, mm(transposed(l2), g2))
    g1 = _square_lu_vjp(l1, upper, aten.slice.Tensor(gl, -2, 0, n), gu)
    return mm(p, aten.cat.default([g1, g2], -2))


linalg_lu_factor_ex.derivative((0,), A=_lu_vjp)


@composite(
    "linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)",
    variants="",
    has_out=True,
    out_rules="exact",
)
def linalg_lu_factor(A, pivot):
    lu, piv, info = aten.linalg_lu_factor_ex.default(A, pivot=pivot)
    checked(info, "linalg.lu_factor", A)
    return lu, piv


@composite(
    "_lu_with_info(Tensor self, bool pivot=True, bool check_errors=True) -> (Tensor LU, Tensor pivots, Tensor info)",
    variants="function",
)
def _lu_with_info(self, pivot, check_errors):
    return aten.linalg_lu_factor_ex.default(
        self, pivot=pivot, check_errors=False
    )  # what PyTorch's does, whatever is asked


_NO_ROWS = "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive. Did you properly pass the result of lu_factor?"


def _permutation(pivots, m):
    if ((pivots < 1) | (pivots > m)).any():
        raise RuntimeError(_NO_ROWS)
    order = np.broadcast_to(np.arange(m), (*pivots.shape[:-1], m)).copy().reshape(math.prod(pivots.shape[:-1]), m)
    for row, swaps in zip(order, pivots.reshape(len(order), pivots.shape[-1])):
        for k, p in enumerate(swaps):
            row[k], row[p - 1] = row[p - 1], row[k]
    return order.reshape(*pivots.shape[:-1], m)


def _permuted_meta(pivots, rows, like):
    return dense((*pivots.shape[:-1], rows, rows), like)


@extern(
    "_lu_permutation(Tensor pivots, SymInt rows, Tensor like) -> Tensor",
    meta=_permuted_meta,
    variants="",
    places=("pivots",),
)
def _lu_permutation(pivots, rows, like):
    """The matrix P with P L U the factorised matrix, from LAPACK's row swaps (counted from 1)."""
    order = _permutation(pivots, rows)
    out = np.zeros((*pivots.shape[:-1], rows, rows), like.dtype)
    np.put_along_axis(out, order[..., None, :], 1, -2)
    return out


batched(_lu_permutation)
_lu_permutation.override(
    "lower", lambda lowering, val, pivots, rows, like: lowering.row_permutation(val, pivots, _NO_ROWS)
)
_lu_permutation.derivative()


@composite(
    "lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) -> (Tensor P, Tensor L, Tensor U)",
    variants="function",
    has_out=True,
    out_rules="exact",
)
def lu_unpack(LU_data, LU_pivots, unpack_data, unpack_pivots):
    if LU_data.ndim < 2:
        raise RuntimeError(
            f"torch.lu_unpack: Expected tensor with 2 or more dimensions. Got size: {list(LU_data.shape)} instead"
        )
    m, n = LU_data.shape[-2:]
    k = min(m, n)
    if unpack_pivots and LU_pivots.dtype is not int32:
        raise RuntimeError(
            "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\nNote: this function is intended to be used with the output produced by torch.linalg.lu_factor"
        )
    if unpack_pivots and tuple(LU_pivots.shape) != (*LU_data.shape[:-2], k):
        raise RuntimeError(
            f"torch.lu_unpack: LU_pivots of shape {list(LU_pivots.shape)} are not the pivots of factors of shape {list(LU_data.shape)}"
        )
    empty = aten.new_empty.default(LU_data, [0])
    p = aten._lu_permutation.default(LU_pivots, m, aten.detach.default(LU_data)) if unpack_pivots else empty
    if not unpack_data:
        return p, empty, aten.new_empty.default(LU_data, [0])
    ones = aten.eye.m(m, k, dtype=LU_data.dtype, device=LU_data.device)
    lower = aten.add.Tensor(aten.tril.default(aten.slice.Tensor(LU_data, -1, 0, k), -1), ones)
    upper = aten.triu.default(aten.slice.Tensor(LU_data, -2, 0, k))
    return p, lower, upper


@composite(
    "linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)",
    variants="",
    has_out=True,
    out_rules="exact",
)
def linalg_lu(A, pivot):
    matrix("linalg.lu", A)
    lu, piv, _ = aten.linalg_lu_factor_ex.default(A, pivot=pivot)
    p, lower, upper = aten.lu_unpack.default(lu, piv)
    return (p if pivot else aten.new_empty.default(A, [0])), lower, upper


@composite(
    "linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> Tensor",
    variants="",
    has_out=True,
    out_rules="exact",
)
def linalg_lu_solve(LU, pivots, B, left, adjoint):
    name = "torch.linalg.lu_solve"
    floating(name, LU)
    if LU.dtype is not B.dtype:
        raise RuntimeError(
            f"linalg.lu_solve: Expected LU and B to have the same dtype, but found LU of type {LU.dtype} and B of type {B.dtype} instead"
        )
    if pivots.dtype is not int32:
        raise RuntimeError("linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32")
    square("torch.linalg.lu_solve", LU, "LU")
    if not pivots.ndim or pivots.shape[-1] != LU.shape[-1]:
        raise RuntimeError("linalg.lu_solve: Number of pivots per batch should be same as the dimension of the matrix")
    if tuple(pivots.shape) != tuple(LU.shape[:-1]):
        raise RuntimeError(
            f"linalg.lu_solve: Expected LU.shape[:-1] and pivots.shape to be the same, but got pivots with shape {list(pivots.shape)} instead"
        )
    if not left:
        out = aten.linalg_lu_solve.default(LU, pivots, _adjoint(B), left=True, adjoint=not adjoint)
        return aten.contiguous.default(_adjoint(out))
    p, _, _ = aten.lu_unpack.default(LU, pivots, False, True)
    tri = aten.linalg_solve_triangular.default
    if adjoint:
        x = tri(_adjoint(LU), B, upper=False)
        x = tri(_adjoint(LU), x, upper=True, unitriangular=True)
        return mm(p, x)
    x = tri(LU, mm(transposed(p), B), upper=False, unitriangular=True)
    return tri(LU, x, upper=True)


_adjoint = adjoint


@composite("lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor", has_out=True, out_rules="exact")
def lu_solve(self, LU_data, LU_pivots):
    return aten.linalg_lu_solve.default(LU_data, LU_pivots, self)


# ---- LDL -----------------------------------------------------------------------------------------------------------------


def _ldl_meta(self, hermitian, check_errors):
    square("torch.linalg.ldl_factor_ex", self)
    return dense(self.shape, self), dense(self.shape[:-1], self, int32), info_meta(self)


def _symmetric(name, a, hermitian):
    return routine_for(("he" if hermitian and a.dtype.kind == "c" else "sy") + name, a)


@extern(
    "linalg_ldl_factor_ex(Tensor self, *, bool hermitian=False, bool check_errors=False) -> (Tensor LD, Tensor pivots, Tensor info)",
    columns=(0,),
    meta=_ldl_meta,
    variants="",
    has_out=True,
)
def linalg_ldl_factor_ex(a, hermitian, check_errors):
    if not a.size:
        return a.copy(), np.zeros(a.shape[:-1], np.int32), np.zeros(a.shape[:-2], np.int32)
    routine = _symmetric("trf", a, hermitian)

    def one(x):
        ld, piv, info = routine(x, lower=1)
        return np.tril(ld), piv.astype(np.int32), np.int32(info)

    ld, piv, info = each(one, a, tails=(2,))
    if check_errors:
        check_info("torch.linalg.ldl_factor_ex", info, lambda c: f"The factorization has an exact zero at D[{c},{c}].")
    return ld, piv, info


@composite(
    "linalg_ldl_factor(Tensor self, *, bool hermitian=False) -> (Tensor LD, Tensor pivots)",
    variants="",
    has_out=True,
    out_rules="exact",
)
def linalg_ldl_factor(self, hermitian):
    ld, piv, info = aten.linalg_ldl_factor_ex.default(self, hermitian=hermitian)
    checked(info, "linalg.ldl_factor", self)
    return ld, piv


def _ldl_solve_meta(LD, pivots, B, hermitian):
    square("torch.linalg.ldl_solve", LD)
    if len(B.shape) < 2:
        raise RuntimeError(
            f"torch.linalg.ldl_solve: Expected B to have at least 2 dimensions, but it has {len(B.shape)} dimensions instead"
        )
    if pivots.dtype.category != 1:
        raise RuntimeError(f"torch.linalg.ldl_solve: Expected pivots to be integers. Got {pivots.dtype}")
    if LD.dtype is not B.dtype:
        raise RuntimeError(f"torch.linalg.ldl_solve: LD dtype {LD.dtype} does not match b dtype {B.dtype}")
    if tuple(LD.shape[:-1]) != tuple(pivots.shape):
        raise RuntimeError(
            f"torch.linalg.ldl_solve: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape {list(pivots.shape)} instead"
        )
    if B.shape[-2] != LD.shape[-1]:
        raise RuntimeError(
            f"Incompatible matrix sizes for torch.linalg.ldl_solve: each A matrix is {LD.shape[-1]} by {LD.shape[-1]} "
            f"but each b matrix is {B.shape[-2]} by {B.shape[-1]}"
        )
    batch = broadcast_shapes(tuple(LD.shape[:-2]), tuple(B.shape[:-2]))
    return dense((*batch, *B.shape[-2:]), B)


@extern(
    "linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor",
    columns=(0,),
    meta=_ldl_solve_meta,
    variants="",
    has_out=True,
)
def linalg_ldl_solve(ld, pivots, b, hermitian):
    if not b.size or not ld.size:
        return np.zeros((*broadcast_shapes(ld.shape[:-2], b.shape[:-2]), *b.shape[-2:]), b.dtype)
    size = np.abs(pivots)
    for wrong, rule in ((size < 1, ">= 1"), (size > ld.shape[-1], "<= LD.size(-2)")):
        if wrong.any():
            raise RuntimeError(
                f"Pivots given to ldl_solve must all satisfy |pivot| {rule}. Did you properly pass the result of ldl_factor?"
            )
    for row in pivots.reshape(-1, pivots.shape[-1]):
        if any(len(list(run)) % 2 for below, run in itertools.groupby(row < 0) if below):
            raise RuntimeError(
                "Pivots given to ldl_solve must be below 0 in pairs. Did you properly pass the result of ldl_factor?"
            )
    routine = _symmetric("trs", ld, hermitian)
    out = each(lambda m, p, x: (routine(m, p, x, lower=1)[0],), ld, pivots, b, tails=(2, 1, 2))
    return out[0]
