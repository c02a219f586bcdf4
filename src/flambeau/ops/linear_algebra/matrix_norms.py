"""Norms of matrices, and condition numbers."""

from __future__ import annotations

import math

from ...base.shapes import normalize_dim
from ...core.declare import composite
from ...core.operator import namespace
from ...core.promotion import _scalar_name
from .checks import matrix, square

aten = namespace("aten")


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


def _largest(norms, dim, keepdim=False):
    """The largest of numbers that aren't negative: of none 0."""
    reduce = aten.sum.dim_IntList if norms.shape[dim[0]] == 0 else aten.amax.default
    return reduce(norms, dim, keepdim)


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
    reduce = _largest if ord > 0 else aten.amin.default
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
