"""Matrix products with sparse operands, on the native kernels by rows (base/sparse.py)."""

from __future__ import annotations

import numpy as np

from ... import _C
from ...base import sparse as kernels
from ...base.records import replace
from ...core.declare import composite
from ...core.operator import namespace
from ...core.sparse import Compressed, Coo, is_sparse, make, parts, sparse_rule
from ...core.tensor import kind_of, sparse_coo, sparse_csr
from .construction import convert, coordinates, dense_array, sparse_operator

aten = namespace("aten")
from_array = _C.from_array


def matrix(t):
    """(ranges, columns, values) of a two-dimensional sparse tensor by rows, values in a dtype that is multiplied."""
    p = parts(t)
    rows = t._shape[0]
    if isinstance(p, Coo):
        if p.sparse_dim != 2:
            raise RuntimeError(f"a matrix with 2 sparse dimensions is needed, got {p.sparse_dim} sparse dimensions")
        (major, columns), values = p.indices._array, p.values._array
        return _by_row(major, columns, values, rows, p.coalesced)
    if p.block:
        (above, left), values = coordinates(t)
        x, y = p.block
        major = above[:, None, None] * x + np.arange(x)[:, None] + np.zeros((1, 1, y), np.int64)
        columns = left[:, None, None] * y + np.arange(y) + np.zeros((1, x, 1), np.int64)
        return _by_row(major.ravel(), columns.ravel(), values.ravel(), rows)
    if not p.by_row:
        return _by_row(p.plain._array, kernels.expand(p.compressed._array), p.values._array, rows)
    return p.compressed._array, p.plain._array, kernels.widened(p.values._array)


def _by_row(rows, columns, values, count, in_order=False):
    ranges, order = kernels.group(rows, count, in_order)
    values = kernels.widened(values)
    return (ranges, columns, values) if in_order else (ranges, columns[order], values[order])


def from_matrix(m, size, layout, dtype):
    """A matrix by rows as a tensor."""
    ranges, columns, values = m
    record = Compressed(
        sparse_csr, from_array(ranges), from_array(columns), from_array(values.astype(dtype.np, copy=False))
    )
    made = make(record, size)
    return made if layout is sparse_csr else convert(made, layout)


def _sizes(name, a, b):
    if a._ndim != 2 or b._ndim != 2:
        which, t = ("mat1", a) if a._ndim != 2 else ("mat2", b)
        raise RuntimeError(f"{name}: {which} must be a matrix, got {t._ndim}-D tensor")
    if a._shape[1] != b._shape[0]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({a._shape[0]}x{a._shape[1]} and {b._shape[0]}x{b._shape[1]})"
        )
    if a._dtype is not b._dtype:
        raise RuntimeError(f"{name}: expected mat1 and mat2 to have the same dtype, but got: {a._dtype} != {b._dtype}")


def product(a, b, name="mm"):
    """a @ b: a sparse tensor of two sparse ones, else dense."""
    _sizes(name, a, b)
    left, right = is_sparse(a), is_sparse(b)
    if left and right:
        layout = a.layout if a.layout is b.layout else sparse_csr
        size = (a._shape[0], b._shape[1])
        return from_matrix(kernels.times_sparse(matrix(a), matrix(b), size[1]), size, layout, a._dtype)
    if left:
        made = kernels.times_dense(matrix(a), kernels.widened(b._array))
    else:
        made = np.ascontiguousarray(kernels.times_dense(matrix(_transposed(b)), kernels.widened(a._array).T).T)
    return from_array(made.astype(a._dtype.np, copy=False))


sparse_rule(aten.mm.default)(lambda self, mat2: product(self, mat2))


@sparse_rule(aten.mv.default)
def mv(self, vec):
    if vec._ndim != 1 or self._ndim != 2 or self._shape[1] != vec._shape[0]:
        raise RuntimeError(
            f"mv: Tensor self.size(-1) and vec.size(-1) don't match or aren't 2-D and 1-D: {list(self._shape)}, {list(vec._shape)}"
        )
    made = kernels.times_dense(matrix(self), kernels.widened(vec._array)[:, None])
    return from_array(made[:, 0].astype(vec._dtype.np, copy=False))


@sparse_rule(aten.bmm.default)
def bmm(self, mat2):
    if not is_sparse(self):
        return aten.transpose.int(bmm(aten.transpose.int(mat2, 1, 2), aten.transpose.int(self, 1, 2)), 1, 2)
    each = [product(aten.select.int(self, 0, i), aten.select.int(mat2, 0, i), "bmm") for i in range(self._shape[0])]
    return aten.stack.default(each, 0)


def addmm(self, mat1, mat2, beta, alpha):
    made = product(mat1, mat2, "addmm")
    if is_sparse(made) and not is_sparse(self):
        made = from_array(dense_array(made))
    if alpha != 1:
        made = aten.mul.Tensor(made, alpha)
    if beta == 0:
        return made
    scaled = self if beta == 1 else aten.mul.Tensor(self, beta)
    if is_sparse(scaled) and not is_sparse(made):
        return aten.add.Tensor(made, scaled)
    return aten.add.Tensor(scaled, made)


sparse_rule(aten.addmm.default)(addmm)


@sparse_rule(aten.addmv.default)
def addmv(self, mat, vec, beta, alpha):
    return aten.add.Tensor(aten.mul.Tensor(self, beta), aten.mul.Tensor(mv(mat, vec), alpha))


@sparse_operator("_sparse_addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor")
def _sparse_addmm(self, mat1, mat2, beta, alpha):
    return addmm(self, mat1, mat2, beta, alpha)


@sparse_operator("_masked_product(Tensor a, Tensor b, Tensor mask) -> Tensor")
def _masked_product(a, b, mask):
    """(a @ b) where ``mask`` stores something: one dot product for each place."""
    p = parts(mask)
    if isinstance(p, Compressed) and (p.block or p.batch):
        return aten._sparse_mask.default(from_array(dense_or_array(a) @ dense_or_array(b)), mask)
    rows, columns = p.indices._array if isinstance(p, Coo) else coordinates(mask)[0]
    left, right = dense_or_array(a), dense_or_array(b)
    values = np.einsum("nk,kn->n", kernels.widened(left)[rows], kernels.widened(right)[:, columns]).astype(
        left.dtype, copy=False
    )
    return make(replace(p, values=from_array(values)), mask._shape)


def dense_or_array(t) -> np.ndarray:
    return dense_array(t) if is_sparse(t) else t._array


def _transposed(t):
    return aten.transpose.int(t, 0, 1)


def _adjoint(t):
    """What a cotangent is multiplied with; the engine conjugates around formulas, so it is the plain transpose."""
    return _transposed(t)


_sparse_addmm.derivative(
    self=lambda ct, beta: aten.mul.Tensor(ct, beta),
    mat1=lambda ct, mat1, mat2, alpha: aten.mul.Tensor(aten._left_gradient.default(ct, mat2, mat1), alpha),
    mat2=lambda ct, mat1, alpha: aten.mul.Tensor(aten.mm.default(_adjoint(mat1), ct), alpha),
)


@sparse_operator("_left_gradient(Tensor grad, Tensor mat2, Tensor mat1) -> Tensor")
def _left_gradient(grad, mat2, mat1):
    """grad @ mat2ᵀ in the layout of mat1: at its stored places when it is sparse."""
    if not is_sparse(mat1):
        return (
            product(grad, _transposed(mat2))
            if is_sparse(mat2) or is_sparse(grad)
            else aten.mm.default(grad, _transposed(mat2))
        )
    return _masked_product.facet("sparse")(grad, _transposed(mat2), mat1)


@sparse_operator("_sparse_sparse_matmul(Tensor self, Tensor other) -> Tensor")
def _sparse_sparse_matmul(self, other):
    return product(self, other, "sparse.mm")


_sparse_sparse_matmul.derivative(
    self=lambda ct, self, other: aten._left_gradient.default(ct, other, self),
    other=lambda ct, self, other: _transposed(
        aten._left_gradient.default(_transposed(ct), _transposed(self), _transposed(other))
    ),
)


@composite("_sparse_mm(Tensor sparse, Tensor dense) -> Tensor", variants="", has_out=False)
def _sparse_mm(sparse, dense):
    left, right = is_sparse(sparse), is_sparse(dense)
    if left and right:
        return aten._sparse_sparse_matmul.default(sparse, dense)
    if not left and not right:
        raise RuntimeError("torch.sparse.mm: one of the two matrices must be sparse")
    return aten._sparse_addmm.default(aten.zeros.default([], dtype=dense._dtype), sparse, dense, beta=0)


_REDUCE = {"sum": "add", "mean": "add", "amax": "maximum", "amin": "minimum"}


def _terms(self, other):
    """Rows and columns of what a csr matrix stores, and its values times the rows of ``other``."""
    (rows, columns), values = coordinates(self)
    return rows, columns, values, values[:, None] * other._array[columns]


@sparse_operator("_sparse_mm_reduce_impl(Tensor self, Tensor other, str reduce) -> Tensor")
def _sparse_mm_reduce_impl(self, other, reduce):
    if self.layout is not sparse_csr:
        raise RuntimeError(f"sparse.mm with reduce: expected a sparse_csr tensor, got {kind_of(self.layout)}")
    if reduce not in _REDUCE:
        raise RuntimeError(f"reduce argument must be either sum, mean, amax or amin, got {reduce}.")
    p = parts(self)
    terms = _terms(self, other)[3]
    out = np.zeros((self._shape[0], other._shape[1]), terms.dtype)
    counts = np.diff(p.compressed._array)
    if len(terms):
        starts = p.compressed._array[:-1][counts > 0]
        out[counts > 0] = getattr(np, _REDUCE[reduce]).reduceat(terms, starts, axis=0)
    if reduce == "mean":
        out /= np.maximum(counts, 1)[:, None].astype(out.dtype)
    return from_array(out)


@sparse_operator(
    "_sparse_mm_reduce_impl_backward(Tensor self, Tensor grad_out, Tensor other, str reduce, Tensor out) -> (Tensor, Tensor)"
)
def _sparse_mm_reduce_impl_backward(self, grad_out, other, reduce, out):
    """Cotangents of the values (with the pattern of ``self``) and of ``other``. An extreme goes to the first term that reaches it."""
    rows, columns, values, terms = _terms(self, other)
    g = grad_out._array[rows]
    if reduce == "mean":
        g = g / np.maximum(np.diff(parts(self).compressed._array), 1)[rows, None].astype(g.dtype)
    elif reduce != "sum":
        reached = terms == out._array[rows]
        before = np.cumsum(reached, 0) - reached
        starts = parts(self).compressed._array[:-1][rows]
        g = np.where(reached & (before == before[starts]), g, 0)
    to_other = np.zeros_like(other._array)
    np.add.at(to_other, columns, g * values[:, None])
    made = (g * other._array[columns]).sum(1).astype(values.dtype)
    return make(replace(parts(self), values=from_array(made)), self._shape), from_array(to_other)


_sparse_mm_reduce_impl.derivative(
    self__other=lambda ct, self, other, reduce, result: aten._sparse_mm_reduce_impl_backward.default(
        self, ct, other, reduce, result
    )
)


@composite("_sparse_mm.reduce(Tensor sparse, Tensor dense, str reduce) -> Tensor", variants="", has_out=False)
def _sparse_mm_reduce(sparse, dense, reduce):
    if reduce == "sum":
        return aten._sparse_mm.default(sparse, dense)
    return aten._sparse_mm_reduce_impl.default(sparse, dense, reduce)


@sparse_operator(
    "sparse_sampled_addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    variants="",
)
def sparse_sampled_addmm(self, mat1, mat2, beta, alpha):
    if self.layout is not sparse_csr:
        raise RuntimeError(f"sampled_addmm: Expected self to have sparse csr layout, but got {kind_of(self.layout)}")
    for name, t in (("mat1", mat1), ("mat2", mat2)):
        if is_sparse(t):
            raise RuntimeError(f"sampled_addmm: Expected {name} to have strided layout, but got {kind_of(t.layout)}")
    if mat1._shape[-1] != mat2._shape[-2]:
        raise RuntimeError(
            f"sampled_addmm: mat1 and mat2 shapes cannot be multiplied ({mat1._shape[-2]}x{mat1._shape[-1]} and {mat2._shape[-2]}x{mat2._shape[-1]})"
        )
    if self._shape[-2] != mat1._shape[-2] or self._shape[-1] != mat2._shape[-1]:
        raise RuntimeError("sampled_addmm: self dimensions must match the product of mat1 and mat2")
    made = _masked_product.facet("sparse")(mat1, mat2, self)
    values = aten.add.Tensor(aten.mul.Tensor(parts(made).values, alpha), aten.mul.Tensor(parts(self).values, beta))
    return make(replace(parts(self), values=values), self._shape)


sparse_sampled_addmm.derivative(
    self=lambda ct, self, beta: aten.mul.Tensor(aten._sparse_mask.default(ct, self), beta),
    mat1=lambda ct, self, mat2, alpha: aten.mul.Tensor(
        aten.mm.default(aten._sparse_mask.default(ct, self), _transposed(mat2)), alpha
    ),
    mat2=lambda ct, self, mat1, alpha: aten.mul.Tensor(
        aten.mm.default(_transposed(aten._sparse_mask.default(ct, self)), mat1).t(), alpha
    ),
)


# ---- old names -------------------------------------------------------------------------------------------------------------

composite("smm(Tensor self, Tensor mat2) -> Tensor", has_out=False)(
    lambda self, mat2: convert(aten._sparse_mm.default(self, mat2), sparse_coo)
)
composite("sspaddmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", has_out=False)(
    lambda self, mat1, mat2, beta, alpha: aten.add.Tensor(
        aten.mul.Tensor(self, beta), convert(aten.mul.Tensor(aten._sparse_mm.default(mat1, mat2), alpha), sparse_coo)
    )
)
composite("hspmm(Tensor mat1, Tensor mat2) -> Tensor", variants="function", has_out=False)(
    lambda mat1, mat2: aten._to_sparse.default(aten._sparse_mm.default(mat1, mat2), sparse_dim=1)
)
