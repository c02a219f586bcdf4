"""Linear systems: solve, triangular ones, and those of a Cholesky factor or of tensors.

Derivatives are written as for real matrices (transposes); autograd conjugates around them for complex ones.
"""

from __future__ import annotations

import math

import numpy as np

from ...base import lapack
from ...base.dtypes import int32
from ...base.shapes import broadcast_shapes, normalize_dim
from ...core.declare import composite, explicit
from ...core.operator import namespace
from ...core.promotion import _scalar_name
from .checks import adjoint as _adjoint
from .checks import (
    batched,
    by_columns,
    check_info,
    dense,
    extern,
    matrix,
    mm,
    refuse_info,
    singular,
    square,
    transposed,
    unsolvable,
)
from .cholesky import checked

aten = namespace("aten")
_OWN = ("own_complex_derivative",)


def _is_vector(a, b):
    return len(b.shape) == 1 or (len(a.shape) - 1 == len(b.shape) and tuple(a.shape[:-1]) == tuple(b.shape))


def _solve_meta(A, B, left, check_errors):
    name = "linalg.solve"
    square(name, A)
    if A.dtype is not B.dtype:
        raise RuntimeError(
            f"linalg.solve: Expected A and B to have the same dtype, but found A of type {_scalar_name(A.dtype)} and B of type {_scalar_name(B.dtype)} instead"
        )
    n = A.shape[-1]
    if _is_vector(A, B):
        if not left:
            raise RuntimeError(
                "linalg.solve: Vector broadcasting of the left hand side is not supported for left=False. In this case linalg.solve is equivalent to B / A.squeeze(-1)"
            )
        if B.shape[-1] != n:
            raise RuntimeError(
                f"linalg.solve: Incompatible shapes of A and B for the equation AX = B ({n}x{n} and {B.shape[-1]}x1)"
            )
        batch = broadcast_shapes(tuple(A.shape[:-2]), tuple(B.shape[:-1]))
        shape = (*batch, n)
    else:
        if len(B.shape) < 2 or B.shape[-2 if left else -1] != n:
            raise RuntimeError(
                f"linalg.solve: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'} "
                f"({n}x{n} and {'x'.join(map(str, B.shape[-2:]))})"
            )
        batch = broadcast_shapes(tuple(A.shape[:-2]), tuple(B.shape[:-2]))
        shape = (*batch, *B.shape[-2:])
    return (
        dense(shape, A),
        dense((*batch, n, n), A),
        dense((*batch, n), A, int32),
        dense(A.shape[:-2], A, int32),
    )


@extern(
    "_linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor LU, Tensor pivots, Tensor info)",
    columns=lambda A, B, left, *_: (0, 1) if left else (1,),
    meta=_solve_meta,
    variants="",
    has_out=True,
)
def _linalg_solve_ex(a, b, left, check_errors):
    vector = _is_vector(a, b)
    x = b[..., None] if vector else b
    n = a.shape[-1]
    batch = broadcast_shapes(a.shape[:-2], x.shape[:-2])
    if not a.size or not x.size:
        out, info = np.zeros((*batch, *x.shape[-2:]), a.dtype), np.zeros(a.shape[:-2], np.int32)
        lu, piv = np.zeros((*batch, n, n), a.dtype), np.zeros((*batch, n), np.int32)
    else:
        out, lu, piv, info = lapack.solve(a, x if left else np.swapaxes(x, -1, -2), not left)
        out = out if left else np.swapaxes(out, -1, -2)
    if check_errors:
        check_info("linalg.solve_ex", info, unsolvable)
    return np.ascontiguousarray(out[..., 0]) if vector else out, lu, piv, info


@_linalg_solve_ex.override("lower")
def _lower_solve(lowering, vals, A, B, left, check_errors):
    made = lowering.solve_ex(vals, A, B, left, _is_vector(A, B))
    if check_errors:
        refuse_info(lowering, "linalg.solve_ex", made[3], unsolvable)
    return made


def _solve_vjp(ct0, A, result0, left, mask):
    vector = _is_vector(A, result0)
    g, x = (aten.unsqueeze.default(ct0, -1), aten.unsqueeze.default(result0, -1)) if vector else (ct0, result0)
    gb = aten._linalg_solve_ex.default(transposed(A), g, left=left)[0]
    ga = None
    if mask[0]:
        ga = mm(gb, transposed(x)) if left else mm(transposed(x), gb)
        ga = aten.sum_to_size.default(aten.neg.default(ga), list(A.shape))
    return ga, aten.squeeze.dim(gb, -1) if vector else gb


_linalg_solve_ex.derivative((0,), A__B=_solve_vjp)


@_linalg_solve_ex.override("batch")
def _solve_batch(call, A, B, left, check_errors):
    vector = _is_vector(call.logical[0], call.logical[1])
    A, B = call.all(A, call.mask[0]), call.all(B, call.mask[1])
    B = aten.unsqueeze.default(B, -1) if vector else B
    gap = A.ndim - B.ndim
    if gap > 0:
        B = aten.reshape.default(B, [B.shape[0], *[1] * gap, *B.shape[1:]])
    elif gap < 0:
        A = aten.reshape.default(A, [A.shape[0], *[1] * -gap, *A.shape[1:]])
    out, lu, piv, info = aten._linalg_solve_ex.default(A, B, left=left, check_errors=check_errors)
    return aten.squeeze.dim(out, -1) if vector else out, lu, piv, info


@composite(
    "linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor info)",
    variants="",
    has_out=True,
    out_rules="exact",
)
def linalg_solve_ex(A, B, left, check_errors):
    out, _, _, info = aten._linalg_solve_ex.default(A, B, left=left, check_errors=check_errors)
    return out, info


@composite(
    "linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor", variants="", has_out=True, out_rules="exact"
)
def linalg_solve(A, B, left):
    out, _, _, info = aten._linalg_solve_ex.default(A, B, left=left)
    checked(info, "torch.linalg.solve", A)
    return out


def _triangular_meta(self, B, upper, left, unitriangular):
    name = "linalg.solve_triangular"
    square(name, self)
    if self.dtype is not B.dtype:
        raise RuntimeError(
            f"{name}: Expected A and B to have the same dtype, but found A of type {_scalar_name(self.dtype)} and B of type {_scalar_name(B.dtype)} instead"
        )
    if len(B.shape) < 2:
        raise RuntimeError(f"{name}: The input tensor B must have at least 2 dimensions.")
    n = self.shape[-1]
    if B.shape[-2 if left else -1] != n:
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'} ({n}x{n} and {B.shape[-2]}x{B.shape[-1]})"
        )
    batch = broadcast_shapes(tuple(self.shape[:-2]), tuple(B.shape[:-2]))
    return dense((*batch, *B.shape[-2:]), self)


@extern(
    "linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> Tensor",
    columns=(0,),
    meta=_triangular_meta,
    variants="",
    has_out=True,
)
def linalg_solve_triangular(a, b, upper, left, unitriangular):
    batch = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    if not a.size or not b.size:
        return np.zeros((*batch, *b.shape[-2:]), a.dtype)
    return lapack.solve_triangular(a, b, upper, left, unitriangular)


linalg_solve_triangular.override("lower", lambda low, val, *args: low.solve_triangular(*args))


def _triangular_vjp(ct, self, result, upper, left, unitriangular, mask):
    gb = aten.linalg_solve_triangular.default(
        transposed(self), ct, upper=not upper, left=left, unitriangular=unitriangular
    )
    ga = None
    if mask[0]:
        ga = aten.neg.default(mm(gb, transposed(result)) if left else mm(transposed(result), gb))
        offset = int(unitriangular)
        ga = aten.triu.default(ga, offset) if upper else aten.tril.default(ga, -offset)
    return ga, gb


linalg_solve_triangular.derivative(self__B=_triangular_vjp)

batched(linalg_solve_triangular)


@linalg_solve_triangular.override("batch")
def _triangular_batch(call, self, B, upper, left, unitriangular):
    self, B = call.all(self, call.mask[0]), call.all(B, call.mask[1])
    gap = self.ndim - B.ndim
    if gap > 0:
        B = aten.reshape.default(B, [B.shape[0], *[1] * gap, *B.shape[1:]])
    elif gap < 0:
        self = aten.reshape.default(self, [self.shape[0], *[1] * -gap, *self.shape[1:]])
    return aten.linalg_solve_triangular.default(self, B, upper=upper, left=left, unitriangular=unitriangular)


@composite(
    "triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False) -> (Tensor solution, Tensor cloned_coefficient)",
    has_out=True,
    out_rules="exact",
)
def triangular_solve(self, A, upper, transpose, unitriangular):
    matrix("triangular_solve", self, "b")
    square("triangular_solve", A)
    batch = list(broadcast_shapes(tuple(self.shape[:-2]), tuple(A.shape[:-2])))
    wide = aten.expand.default(A, [*batch, *A.shape[-2:]])
    used = transposed(A) if transpose else A
    out = aten.linalg_solve_triangular.default(used, self, upper=upper != transpose, unitriangular=unitriangular)
    return out, by_columns(wide)


@explicit(
    "cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor",
    variants="function method",
    tags=_OWN,
    out_rules="casts",
)
def cholesky_solve(self, input2, upper):
    if self.ndim < 2:
        raise RuntimeError(f"b should have at least 2 dimensions, but has {self.ndim} dimensions instead")
    if input2.ndim < 2:
        raise RuntimeError(f"u should have at least 2 dimensions, but has {input2.ndim} dimensions instead")
    square("cholesky_solve", input2)
    tri = aten.linalg_solve_triangular.default
    if upper:
        return tri(input2, tri(_adjoint(input2), self, upper=False), upper=True)
    return tri(_adjoint(input2), tri(input2, self, upper=False), upper=True)


def _cholesky_solve_vjp(ct, self, input2, result, upper, mask):
    gb = aten.cholesky_solve.default(ct, input2, upper)
    gl = None
    if mask[1]:
        both = mm(gb, _adjoint(result))
        both = aten.add.Tensor(both, _adjoint(both))
        gl = aten.neg.default(mm(input2, both) if upper else mm(both, input2))
        gl = aten.sum_to_size.default(gl, list(input2.shape))
    return gb, gl


cholesky_solve.derivative(self__input2=_cholesky_solve_vjp)


def _cholesky_inverse_meta(self, upper):
    square("cholesky_inverse", self)
    return dense(self.shape, self)


@extern(
    "cholesky_inverse(Tensor self, bool upper=False) -> Tensor",
    columns=(0,),
    meta=_cholesky_inverse_meta,
    has_out=True,
    tags=_OWN,
    out_rules="casts",
)
def cholesky_inverse(factor, upper):
    if not factor.size:
        return factor.copy()
    out, info = lapack.cholesky_inverse(factor, upper)
    check_info("cholesky_inverse", info, singular)
    return out


batched(cholesky_inverse)


@cholesky_inverse.override("lower")
def _lower_cholesky_inverse(lowering, val, self, upper):
    made, info = lowering.cholesky_inverse(self, upper)
    refuse_info(lowering, "cholesky_inverse", info, singular)
    return made


def _cholesky_inverse_vjp(ct, self, result, upper):
    both = mm(result, mm(aten.add.Tensor(ct, _adjoint(ct)), result))
    return aten.neg.default(mm(self, both) if upper else mm(both, self))


cholesky_inverse.derivative(self=_cholesky_inverse_vjp)


@composite("linalg_tensorinv(Tensor self, int ind=2) -> Tensor", variants="", has_out=True, out_rules="rows")
def linalg_tensorinv(self, ind):
    if ind <= 0:
        raise RuntimeError("Expected a strictly positive integer for 'ind'")
    if ind > self.ndim:
        raise RuntimeError(f"linalg.tensorinv: ind = {ind} is more than the {self.ndim} dimensions of self")
    front, back = list(self.shape[:ind]), list(self.shape[ind:])
    if math.prod(front) != math.prod(back):
        raise RuntimeError(
            f"Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got {math.prod(back)} != {math.prod(front)}"
        )
    flat = aten.reshape.default(self, [math.prod(front), math.prod(back)])
    out, info = aten.linalg_inv_ex.default(flat)
    checked(info, "inv", flat)
    return aten.reshape.default(out, [*back, *front])


@composite("linalg_tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor", variants="", has_out=True)
def linalg_tensorsolve(self, other, dims):
    if dims is not None:
        moved = [normalize_dim(d, self.ndim) for d in dims]
        rest = [d for d in range(self.ndim) if d not in moved]
        self = aten.permute.default(self, [*rest, *moved])
    result = list(self.shape[other.ndim :])
    n = math.prod(result)
    if n != other.numel() or math.prod(self.shape[: other.ndim]) != n:
        raise RuntimeError(
            f"Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]) == other.numel(), but got "
            f"{n} != {math.prod(self.shape[: other.ndim])}"
        )
    flat = aten.reshape.default(self, [n, n])
    return aten.reshape.default(aten.linalg_solve.default(flat, aten.reshape.default(other, [n])), result)
