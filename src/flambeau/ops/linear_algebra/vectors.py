"""Products of vectors, matrices of their powers, and names of ``torch.linalg`` for other operators."""

from __future__ import annotations

from ...base import dtypes
from ...base.shapes import normalize_dim
from ...core.declare import composite, explicit
from ...core.operator import namespace
from ...core.promotion import _scalar_name

aten = namespace("aten")


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
