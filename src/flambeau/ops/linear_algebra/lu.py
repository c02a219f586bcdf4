"""LU factors, and systems that are solved with them.

Derivatives: M. Giles, "An extended collection of matrix derivative results" (2008), and S. Walter, L. Lehmann, "Algorithmic differentiation of linear
algebra functions" (2010); for complex matrices in PyTorch's convention.
"""

from __future__ import annotations

import math

import numpy as np

from ...base import lapack
from ...base.dtypes import int32
from ...core.declare import composite
from ...core.operator import namespace
from .checks import (
    adjoint,
    batched,
    check_info,
    dense,
    each,
    extern,
    floating,
    info_meta,
    matrix,
    mm,
    refuse_info,
    square,
    transposed,
)
from .failures import checked

aten = namespace("aten")


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
