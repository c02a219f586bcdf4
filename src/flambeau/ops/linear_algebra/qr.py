"""QR factors and products of reflections.

Derivatives: M. Giles, "An extended collection of matrix derivative results" (2008), and S. Walter, L. Lehmann, "Algorithmic differentiation of linear
algebra functions" (2010); for complex matrices in PyTorch's convention.
"""

from __future__ import annotations

import numpy as np

from ... import _C
from ...base import lapack
from ...core.declare import composite, explicit
from ...core.operator import namespace
from ...core.promotion import refused
from .checks import (
    FULL,
    adjoint,
    batched,
    by_columns,
    dense,
    extern,
    floating,
    matrix,
    mm,
)

aten = namespace("aten")
_OWN = ("own_complex_derivative",)


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
