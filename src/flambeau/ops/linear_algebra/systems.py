"""Linear systems and functions of matrices: solve, inverse, determinant, exponential, powers, cross products.

Derivatives are written as for real matrices (transposes); autograd conjugates around them for complex ones.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from ...base import dtypes, lapack
from ...base.dtypes import finfo, float32, int32
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
    info_meta,
    matrix,
    mm,
    refuse_info,
    singular,
    square,
    transposed,
    unsolvable,
)
from .factorizations import checked

aten = namespace("aten")
_OWN = ("own_complex_derivative",)

# ---- solve ---------------------------------------------------------------------------------------------------------------


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


# ---- inverse and determinant ---------------------------------------------------------------------------------------------


def _inv_meta(A, check_errors):
    square("linalg.inv", A)
    return dense(A.shape, A), info_meta(A)


@extern(
    "linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)",
    columns=(0,),
    meta=_inv_meta,
    variants="",
    has_out=True,
)
def linalg_inv_ex(a, check_errors):
    if not a.size:
        return a.copy(), np.zeros(a.shape[:-2], np.int32)
    eye = np.broadcast_to(np.eye(a.shape[-1], dtype=a.dtype), a.shape)
    # The matrix itself is factorised, not its transpose, which needs no copy: of which a zero is on the diagonal differs.
    out, _, _, info = lapack.solve(a, eye)
    if check_errors:
        check_info("linalg.inv_ex", info, singular)
    return out, info


batched(linalg_inv_ex)


@linalg_inv_ex.override("lower")
def _lower_inverse(lowering, vals, A, check_errors):
    made = lowering.inverse(A)
    if check_errors:
        refuse_info(lowering, "linalg.inv_ex", made[1], singular)
    return made


linalg_inv_ex.derivative(
    (0,), A=lambda ct0, result0: aten.neg.default(mm(transposed(result0), mm(ct0, transposed(result0))))
)


@composite("linalg_inv(Tensor A) -> Tensor", variants="", has_out=True, out_rules="exact")
def linalg_inv(A):
    out, info = aten.linalg_inv_ex.default(A)
    checked(info, "linalg.inv", A)
    return out


@composite("inverse(Tensor self) -> Tensor", has_out=True, out_rules="exact")
def inverse(self):
    return aten.linalg_inv.default(self)


def _det_meta(A):
    square("linalg.det", A)
    return dense(A.shape[:-2], A), dense(A.shape, A), dense(A.shape[:-1], A, int32)


@extern(
    "_linalg_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)",
    columns=(1,),
    meta=_det_meta,
    variants="",
    has_out=True,
)
def _linalg_det(a):
    lu, piv, sign, diagonal = _factorised(a)
    return np.asarray(sign * diagonal.prod(-1), a.dtype), lu, piv


def _factorised(a):
    """LU factors, their pivots, the sign of the permutation and U's diagonal."""
    if a.size:
        lu, piv, _ = lapack.lu(a)
    else:
        lu, piv = a.copy(), np.zeros(a.shape[:-1], np.int32)
    swaps = (piv != np.arange(1, a.shape[-1] + 1)).sum(-1)
    return lu, piv, 1 - 2 * (swaps % 2), np.diagonal(lu, 0, -2, -1)


batched(_linalg_det)
_linalg_det.override("lower", lambda low, vals, A: low.det(A))


def _det_vjp(ct0, A):
    """det(A) A^-T by the factors of A. A zero on U's diagonal is made tiny, so that a matrix of rank n - 1 has its cofactors."""
    if A.numel() == 0:
        return aten.zeros_like.default(A)
    lu, pivots, _ = aten.linalg_lu_factor_ex.default(A)
    p, lower, upper = aten.lu_unpack.default(lu, pivots)
    zero = aten._to_copy.default(aten.eq.Scalar(aten.diagonal.default(upper, 0, -2, -1), 0), dtype=A.dtype)
    upper = aten.add.Tensor(upper, aten.diag_embed.default(aten.mul.Tensor(zero, finfo(A.dtype).eps)))
    inverse_ = aten.linalg_solve_triangular.default(lower, transposed(p), upper=False, unitriangular=True)
    inverse_ = aten.linalg_solve_triangular.default(upper, inverse_, upper=True)
    sign = aten._linalg_det.default(p)[0]
    scale = aten.mul.Tensor(aten.mul.Tensor(ct0, sign), aten.prod.dim_int(aten.diagonal.default(upper, 0, -2, -1), -1))
    return aten.mul.Tensor(aten.unsqueeze.default(aten.unsqueeze.default(scale, -1), -1), transposed(inverse_))


_linalg_det.derivative((0,), A=_det_vjp)


@composite("linalg_det(Tensor A) -> Tensor", variants="", has_out=True, out_rules="exact")
def linalg_det(A):
    return aten._linalg_det.default(A)[0]


@composite("det(Tensor self) -> Tensor", out_rules="exact")
def det(self):
    return aten._linalg_det.default(self)[0]


def _slogdet_meta(A):
    square("linalg.slogdet", A)
    return (
        dense(A.shape[:-2], A),
        dense(A.shape[:-2], A, A.dtype.to_real()),
        dense(A.shape, A),
        dense(A.shape[:-1], A, int32),
    )


@extern(
    "_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)",
    columns=(2,),
    meta=_slogdet_meta,
    variants="",
    has_out=True,
    tags=("own_complex_derivative",),
)
def _linalg_slogdet(a):
    lu, piv, sign, diagonal = _factorised(a)
    size = np.abs(diagonal)
    direction = np.sign(diagonal)
    sign = sign * (direction if a.dtype.kind == "c" else np.where(np.isnan(direction), 0, direction)).prod(-1)
    return np.asarray(sign, a.dtype), np.asarray(np.log(size).sum(-1), size.dtype), lu, piv


batched(_linalg_slogdet)
_linalg_slogdet.override("lower", lambda low, vals, A: low.slogdet(A))


def _slogdet_vjp(ct0, ct1, A, result0):
    inverse_, _ = aten.linalg_inv_ex.default(A)
    if A.dtype.is_complex:
        turn = aten.imag.default(aten.mul.Tensor(aten.conj_physical.default(ct0), result0))
        scale = aten.complex.default(ct1, aten.neg.default(turn))
    else:
        scale = ct1
    return aten.mul.Tensor(aten.unsqueeze.default(aten.unsqueeze.default(scale, -1), -1), _adjoint(inverse_))


_linalg_slogdet.derivative((0, 1), A=_slogdet_vjp)


@composite("linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)", variants="", has_out=True, out_rules="exact")
def linalg_slogdet(A):
    sign, log, _, _ = aten._linalg_slogdet.default(A)
    return sign, log


@composite("slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)", out_rules="exact")
def slogdet(self):
    return aten.linalg_slogdet.default(self)


@composite("logdet(Tensor self) -> Tensor")
def logdet(self):
    sign, log, _, _ = aten._linalg_slogdet.default(self)
    if self.dtype.is_complex:
        return aten.add.Tensor(aten.log.default(sign), log)
    return aten.where.ScalarOther(aten.ne.Scalar(sign, -1), log, math.nan)


# ---- functions of a matrix -----------------------------------------------------------------------------------------------


def _exp_meta(self):
    square("linalg.matrix_exp", self)
    return dense(self.shape, self)


# N. Higham, "The scaling and squaring method for the matrix exponential revisited" (2005): degrees of Padé approximants, the norms (in float64 and
# float32) up to which each is as exact as the dtype, and the coefficients of the numerators.
_PADE = {
    3: (1.495585217958292e-2, 4.258730016922831e-1, (120, 60, 12, 1)),
    5: (2.539398330063230e-1, 1.880152677804762, (30240, 15120, 3360, 420, 30, 1)),
    7: (9.504178996162932e-1, 3.925724783138660, (17297280, 8648640, 1995840, 277200, 25200, 1512, 56, 1)),
    13: (
        5.371920351148152,
        5.371920351148152,
        (64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000, 10559470521600, 670442572800)
        + (33522128640, 1323241920, 40840800, 960960, 16380, 182, 1),
    ),
}  # fmt: skip


def _exponential(a):
    """Of one matrix."""
    if len(a) == 1:
        return np.exp(a)
    n, norm = len(a), float(np.abs(a).sum(0).max())
    if not math.isfinite(norm):
        return np.full_like(a, math.nan)
    narrow = a.real.dtype == np.float32
    degree = next((d for d, row in _PADE.items() if norm <= row[narrow]), 13)
    b, squarings = _PADE[degree][2], max(0, math.ceil(math.log2(norm / _PADE[13][narrow]))) if degree == 13 else 0
    if squarings:
        a = a * a.real.dtype.type(2.0**-squarings)
    b = [float(x) / b[-1] for x in b] if narrow else [float(x) for x in b]
    one = np.eye(n, dtype=a.dtype)
    two = a @ a
    if degree == 13:
        four = two @ two
        six = four @ two
        odd = six @ (b[13] * six + b[11] * four + b[9] * two) + b[7] * six + b[5] * four + b[3] * two + b[1] * one
        even = six @ (b[12] * six + b[10] * four + b[8] * two) + b[6] * six + b[4] * four + b[2] * two + b[0] * one
    else:
        odd, even, power = b[1] * one, b[0] * one, two
        for k in range(2, degree, 2):
            odd += b[k + 1] * power
            even += b[k] * power
            power = power @ two if k + 2 < degree else power
    odd = a @ odd
    made = np.linalg.solve(even - odd, even + odd)
    for _ in range(squarings):
        made = made @ made
    return made


@extern("linalg_matrix_exp(Tensor self) -> Tensor", meta=_exp_meta, variants="")
def linalg_matrix_exp(a):
    made = np.empty(a.shape, a.dtype)
    for k in np.ndindex(a.shape[:-2]):
        if a.size:
            made[k] = _exponential(a[k])
    return made


batched(linalg_matrix_exp)


def _exp_vjp(ct, self):
    """The exponential of [[A^T, ct], [0, A^T]] has the derivative above the diagonal (N. Higham, "Functions of Matrices", ch. 10)."""
    a = transposed(self)
    n = a.shape[-1]
    top = aten.cat.default([a, ct], -1)
    low = aten.cat.default([aten.zeros_like.default(a), a], -1)
    both = aten.linalg_matrix_exp.default(aten.cat.default([top, low], -2))
    return aten.slice.Tensor(aten.slice.Tensor(both, -2, 0, n), -1, n, 2 * n)


linalg_matrix_exp.derivative(self=_exp_vjp)


@composite("matrix_exp(Tensor self) -> Tensor")
def matrix_exp(self):
    if self.dtype.itemsize == 2 and self.dtype.is_floating_point:
        return aten._to_copy.default(
            aten.linalg_matrix_exp.default(aten._to_copy.default(self, dtype=float32)), dtype=self.dtype
        )
    return aten.linalg_matrix_exp.default(self)


@composite("linalg_matrix_power(Tensor self, int n) -> Tensor", variants="", has_out=True, out_rules="exact")
def linalg_matrix_power(self, n):
    if len(self.shape) < 2 or self.shape[-1] != self.shape[-2]:
        square("linalg.matrix_power", self)
    if n == 0:
        eye = aten.eye.default(self.shape[-1], dtype=self.dtype, device=self.device)
        return aten.add.Tensor(aten.fill.Scalar(aten.contiguous.default(self), 0), eye)  # its gradient is 0
    base = aten.linalg_inv.default(self) if n < 0 else self
    n, out = abs(n), None
    while n:
        if n & 1:
            out = base if out is None else mm(out, base)
        n >>= 1
        base = mm(base, base) if n else base
    return aten.clone.default(out) if out is self else out


@composite("matrix_power(Tensor self, int n) -> Tensor", has_out=True, out_rules="exact")
def matrix_power(self, n):
    return aten.linalg_matrix_power.default(self, n)


@composite("linalg_multi_dot(Tensor[] tensors) -> Tensor", variants="", has_out=True, out_rules="exact")
def linalg_multi_dot(tensors):
    """The product in the order that needs the fewest operations (T. Cormen et al., "Introduction to Algorithms", 15.2)."""
    if len(tensors) < 2:
        raise RuntimeError("multi_dot(): expected at least 2 tensors but got " + str(len(tensors)))
    first, *middle, last = tensors
    if not 1 <= first.ndim <= 2:
        raise RuntimeError(f"multi_dot(): the first tensor must be 1D or 2D but got {first.ndim}D")
    if not 1 <= last.ndim <= 2:
        raise RuntimeError(f"multi_dot(): the last tensor must be 1D or 2D but got {last.ndim}D")
    for k, t in enumerate(middle, 1):
        if t.ndim != 2:
            raise RuntimeError(f"multi_dot(): tensor {k} must be 2D but got {t.ndim}D")
    for k, t in enumerate(tensors):
        if t.dtype is not first.dtype:
            raise RuntimeError(
                f"multi_dot(): all tensors must have be the same dtype but tensor 0 is {first.dtype} and tensor {k} {t.dtype}"
            )
    ms = [aten.unsqueeze.default(first, 0) if first.ndim == 1 else first, *middle]
    ms.append(aten.unsqueeze.default(last, 1) if last.ndim == 1 else last)
    for k, (a, b) in enumerate(itertools.pairwise(ms)):
        if a.shape[1] != b.shape[0]:
            raise RuntimeError(
                f"multi_dot(): tensors {k} and {k + 1} with shapes {list(a.shape)} and {list(b.shape)} cannot be multiplied"
            )
    out = _chain(ms)
    if first.ndim == 1:
        out = aten.squeeze.dim(out, 0)
    return aten.squeeze.dim(out, -1) if last.ndim == 1 else out


def _chain(ms):
    sizes = [m.shape[0] for m in ms] + [ms[-1].shape[1]]
    known = all(type(s) is int for s in sizes) and max(sizes, default=0) ** 3 * len(ms) < 1 << 62
    return _product(ms, (_cuts if known else _cuts_of_symbols)(sizes, len(ms)))


def _cuts_of_symbols(sizes: list, n: int) -> dict[tuple[int, int], int]:
    """Where the product of the matrices i to j is cut. Sizes that vary are compared, two at a time."""
    cost, cut = {(i, i): 0 for i in range(n)}, {}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            cost[i, j], cut[i, j] = min(
                (cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)
            )
    return cut


def _cuts(sizes: list[int], n: int) -> np.ndarray:
    """The same for known sizes: all products of a length at once."""
    size = np.array(sizes, np.int64)
    cost, cut = np.zeros((n, n), np.int64), np.zeros((n, n), np.int64)
    for length in range(1, n):
        i = np.arange(n - length)
        j, k = i + length, i[:, None] + np.arange(length)
        costs = cost[i[:, None], k] + cost[k + 1, j[:, None]]
        costs += size[i, None] * size[k + 1] * size[j + 1, None]
        best = costs.argmin(1)
        cost[i, j], cut[i, j] = costs[i, best], i + best
    return cut


def _product(ms, cut):
    """Of all matrices, cut where it is cheapest: parts are made when both of their parts are, without recursion."""
    made, todo = [], [(0, len(ms) - 1, False)]
    while todo:
        i, j, ready = todo.pop()
        if i == j:
            made.append(ms[i])
        elif ready:
            right = made.pop()
            made.append(aten.mm.default(made.pop(), right))
        else:
            k = int(cut[i, j])
            todo += [(i, j, True), (k + 1, j, False), (i, k, False)]
    return made[0]


@composite("chain_matmul(Tensor[] matrices) -> Tensor", variants="", has_out=True)
def chain_matmul(matrices):
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    for m in matrices:
        if m.ndim != 2:
            raise RuntimeError(f"Tensor dimension is {m.ndim}, expected 2 instead")
    return _chain(list(matrices))


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


@composite("linalg_vander(Tensor x, *, SymInt? N=None) -> Tensor", variants="")
def linalg_vander(x, N):
    if x.dtype in (dtypes.bool_, dtypes.float16, dtypes.bfloat16):
        raise RuntimeError(
            f"linalg.vander supports floating point, complex, and integer tensors, but got {x.dtype.scalar_type}"
        )
    x = aten.unsqueeze.default(x, 0) if x.ndim == 0 else x
    n = x.shape[-1] if N is None else N
    if n <= 1:
        raise RuntimeError("N must be greater than 1.")
    wide = aten.expand.default(aten.unsqueeze.default(x, -1), [*x.shape, n - 1])
    powers = aten.cumprod.default(wide, -1)
    return aten.cat.default([aten.ones_like.default(aten.slice.Tensor(powers, -1, 0, 1)), powers], -1)


@composite("linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor", variants="", out_rules="exact")
def linalg_vecdot(x, y, dim):
    for t in (x, y):
        if t.dtype.category < 2:
            raise RuntimeError(
                f"linalg.vecdot: Expected a floating point or complex tensor as input. Got {_scalar_name(t.dtype)}"
            )
    if x.dtype is not y.dtype:
        raise RuntimeError(
            "linalg.vecdot: Expected x and y to have the same dtype, but found x of type "
            f"{_scalar_name(x.dtype)} and y of type {_scalar_name(y.dtype)} instead"
        )
    return aten.sum.dim_IntList(aten.mul.Tensor(aten.conj_physical.default(x), y), [dim])


@composite("linalg_matmul(Tensor self, Tensor other) -> Tensor", variants="", has_out=True)
def linalg_matmul(self, other):
    return aten.matmul.default(self, other)


@composite("linalg_diagonal(Tensor(a) A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor(a)", variants="")
def linalg_diagonal(A, offset, dim1, dim2):
    return aten.diagonal.default(A, offset, dim1, dim2)


# ---- cross product, distances --------------------------------------------------------------------------------------------


@explicit("linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor", has_out=True, out_rules="outside")
def linalg_cross(self, other, dim):
    if self.ndim != other.ndim:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    if self.dtype is not other.dtype:
        raise RuntimeError(f"expected scalar type {_scalar_name(self.dtype)} but found {_scalar_name(other.dtype)}")
    d = normalize_dim(dim, self.ndim)
    if self.shape[d] != 3 or other.shape[d] != 3:
        raise RuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {self.shape[d]} and {other.shape[d]}"
        )
    part = lambda t, k: aten.slice.Tensor(t, d, k, k + 1)  # noqa: E731
    ps = []
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        ps.append(
            aten.sub.Tensor(
                aten.mul.Tensor(part(self, i), part(other, j)), aten.mul.Tensor(part(self, j), part(other, i))
            )
        )
    return aten.cat.default(ps, d)


@composite("cross(Tensor self, Tensor other, int? dim=None) -> Tensor", has_out=True, out_rules="exact outside")
def cross(self, other, dim):
    if dim is None:
        dim = next((d for d, n in enumerate(self.shape) if n == 3), None)
        if dim is None:
            raise RuntimeError("no dimension of size 3 in input")
    return aten.linalg_cross.default(self, other, dim=dim)
