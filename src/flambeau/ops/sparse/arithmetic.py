"""What elementwise operators, reductions and softmax do with sparse tensors. Rules beside the operators' definitions; see eager/sparse.py."""

from __future__ import annotations

import numpy as np

from ... import _C
from ...base.dtypes import int64, result_type
from ...base.records import replace
from ...base.shapes import normalize_dim
from ...core.declare import composite
from ...core.operator import namespace
from ...core.promotion import check_can_hold
from ...core.sparse import BLOCKED, Compressed, Coo, is_sparse, make, numel, parts, sparse_rule
from ...core.tensor import kind_of, sparse_coo, sparse_csr, strided
from .construction import as_coordinates, convert, dense_array, flat_indices, from_dense, sparse_operator, values_at

aten = namespace("aten")
from_array = _C.from_array


def with_values(t, values):
    return make(replace(parts(t), values=values), t._shape)


def _cast(t, dtype):
    return t if t._dtype is dtype else aten._to_copy.default(t, dtype=dtype)


# ---- copies ----------------------------------------------------------------------------------------------------------------


@sparse_rule(aten.clone.default)
def clone(self, memory_format):
    p = parts(self)
    if isinstance(p, Coo):
        return make(Coo(aten.clone.default(p.indices), aten.clone.default(p.values), p.coalesced), self._shape)
    return make(Compressed(p.layout, *map(aten.clone.default, (p.compressed, p.plain, p.values))), self._shape)


@sparse_rule(aten._to_copy.default)
def _to_copy(self, dtype, layout, device, *rest):
    if not is_sparse(self):
        return convert(aten._to_copy.default(self, dtype=dtype), layout)
    made = with_values(self, aten._to_copy.default(parts(self).values, dtype=dtype or self._dtype))
    return made if layout in (None, self.layout) else convert(made, layout)


@sparse_rule(aten.detach.default, aten.alias.default)
def detach(self):
    return make(parts(self), self._shape)


def adopt(self, result):
    """``self`` holds from now on what ``result`` does. Values are written in place where the pattern stays."""
    if not is_sparse(result):
        raise RuntimeError("the result is dense, but the tensor that it is written into is sparse")
    old, new = parts(self), parts(result)
    if result._dtype is not self._dtype:
        check_can_hold(self._dtype, result._dtype)
        new = replace(new, values=aten._to_copy.default(new.values, dtype=self._dtype))
    at, to = (p.indices if isinstance(p, Coo) else p.plain for p in (old, new))
    if type(old) is type(new) and at is to and old.values._shape == new.values._shape:
        aten.copy_.default(old.values, new.values)
        new = replace(new, values=old.values)
    _C.become(self, make(new, result._shape))
    return self


@sparse_rule(aten.copy_.default)
def copy_(self, src, non_blocking):
    if not is_sparse(src) or not is_sparse(self):
        raise RuntimeError(
            "copy_() between dense and sparse Tensors is not implemented! Found self type = "
            f"torch.{self.layout._name if is_sparse(self) else 'FloatTensor'} and src type = torch.FloatTensor"
        )
    return adopt(self, clone(src, None))


def nothing_stored(size, dtype, sparse_dim=None):
    n = len(size) if sparse_dim is None else sparse_dim
    values = aten.zeros.default([0, *size[n:]], dtype=dtype)
    return make(Coo(aten.zeros.default([n, 0], dtype=int64), values, n == len(size)), size)


def nothing_in(size, dtype, layout):
    """A tensor in ``layout`` that stores nothing."""
    if layout is sparse_coo:
        return nothing_stored(size, dtype)
    if len(size) < 2 or layout in BLOCKED:
        raise RuntimeError(
            f"an empty tensor of size {list(size)} in layout {layout}: at least two dimensions, and csr or csc, are needed"
        )
    n = size[-2] if layout is sparse_csr else size[-1]
    if len(size) > 2:
        raise NotImplementedError("empty batches of sparse matrices are not built")
    ranges, columns = aten.zeros.default([n + 1], dtype=int64), aten.zeros.default([0], dtype=int64)
    return make(Compressed(layout, ranges, columns, aten.zeros.default([0], dtype=dtype)), size)


@sparse_rule(aten.zeros.default, aten.empty.memory_format)
def zeros(size, dtype, layout, *rest):
    return nothing_in(size, dtype, layout)


@sparse_rule(aten.new_zeros.default, aten.new_empty.default)
def new_zeros(self, size, dtype, layout, *rest):
    layout = layout or self.layout
    dtype = dtype or self._dtype
    return aten.zeros.default(size, dtype=dtype) if layout is strided else nothing_in(size, dtype, layout)


@sparse_rule(aten.ones_like.default)
def ones_like(self, dtype, layout, device, pin_memory, memory_format):
    """Ones at the places there are: of the compressed layouts only, as in PyTorch."""
    if not isinstance(parts(self), Compressed):
        raise NotImplementedError("Could not run 'aten::fill_.Scalar' with arguments from the 'SparseCPU' backend.")
    return with_values(self, aten.ones_like.default(parts(self).values, dtype=dtype))


@sparse_rule(aten.zeros_like.default, aten.empty_like.default)
def zeros_like(self, dtype, layout, device, pin_memory, memory_format):
    if layout not in (None, self.layout):
        return aten.zeros.default(list(self._shape), dtype=dtype or self._dtype, layout=layout)
    if isinstance(parts(self), Coo):
        return nothing_stored(self._shape, dtype or self._dtype, parts(self).sparse_dim)
    p = parts(self)
    if p.batch:
        return with_values(self, aten.zeros_like.default(p.values, dtype=dtype))
    empty = aten.zeros.default([0, *p.values._shape[1:]], dtype=dtype or self._dtype)
    return make(
        replace(
            p, compressed=aten.zeros_like.default(p.compressed), plain=aten.slice.Tensor(p.plain, 0, 0, 0), values=empty
        ),
        self._shape,
    )


@sparse_rule(aten.zero_.default)
def zero_(self):
    _C.become(self, zeros_like(self, None, None, None, None, None))
    return self


# ---- arithmetic ------------------------------------------------------------------------------------------------------------


def _same_size(a, b, name):
    if tuple(a._shape) != tuple(b._shape):
        raise RuntimeError(
            f"{name}: expected 'self' and 'other' to have same sizes, but {list(a._shape)} != {list(b._shape)}"
        )


def _scaled(values, alpha):
    return values if alpha == 1 else aten.mul.Tensor(values, alpha)


def add(self, other, alpha):
    if not isinstance(other, _C.TensorBase) or not is_sparse(self) or not is_sparse(other):
        if is_sparse(self):
            raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
        dtype = result_type(self, other)
        if tuple(self._shape) != tuple(other._shape) and numel(self._shape) == 1:
            raise RuntimeError(
                f"add: Expected 'self' and 'other' to have same size, but got {list(self._shape)} and {list(other._shape)}"
            )
        return aten.add.Tensor(self, _cast(from_array(dense_array(other)), dtype), alpha=alpha)
    _same_size(self, other, "add")
    dtype = result_type(self, other)
    p, q = parts(self), parts(other)
    if not isinstance(p, Coo) or not isinstance(q, Coo):
        made = add(as_coordinates(self), as_coordinates(other), alpha)
        return (
            convert(aten._coalesce.default(made), self.layout, None, p.block or None)
            if isinstance(p, Compressed)
            else made
        )
    if p.sparse_dim != q.sparse_dim:
        raise RuntimeError(
            f"add: expected 'self' and 'other' to have same number of sparse dimensions, but {p.sparse_dim} != {q.sparse_dim}"
        )
    left, right = _cast(p.values, dtype), _scaled(_cast(q.values, dtype), alpha)
    if (
        p.coalesced
        and q.coalesced
        and p.indices._shape == q.indices._shape
        and np.array_equal(p.indices._array, q.indices._array)
    ):
        return make(replace(p, values=aten.add.Tensor(left, right)), self._shape)
    both = make(
        Coo(aten.cat.default([p.indices, q.indices], 1), aten.cat.default([left, right], 0), False), self._shape
    )
    if not (_increasing(p, self._shape) and _increasing(q, self._shape)):
        return both
    merged = parts(aten._coalesce.default(both))
    return make(replace(merged, coalesced=p.coalesced and q.coalesced), self._shape)


def _increasing(p: Coo, size) -> bool:
    """Whether the places are sorted and distinct, whatever the flag says."""
    flat = flat_indices(p, size)
    return bool((flat[1:] > flat[:-1]).all())


sparse_rule(aten.add.Tensor)(add)


@sparse_rule(aten.add_.Tensor)
def add_(self, other, alpha):
    if is_sparse(self):
        return adopt(self, add(self, other, alpha))
    _same_size(self, other, "add")
    q = parts(other)
    if isinstance(q, Coo) and q.sparse_dim == 1 and self._array.dtype.kind in "fc" and self._array.dtype.itemsize > 2:
        np.add.at(self._array, q.indices._array[0], _scaled(_cast(q.values, self._dtype), alpha)._array)
        self._bump_version()
        return self
    return aten.add_.Tensor(self, from_array(dense_array(other)), alpha=alpha)


@sparse_rule(aten.sub.Tensor)
def sub(self, other, alpha):
    if is_sparse(self) and not is_sparse(other):
        raise RuntimeError("sub(sparse, dense) is not supported. Use sub(dense, sparse) instead.")
    return add(self, other, -alpha)


def _common(a, b):
    """Values of two coalesced tensors at the places that both store, and these places."""
    p, q = parts(a), parts(b)
    left, right = flat_indices(p, a._shape), flat_indices(q, b._shape)
    _, i, j = np.intersect1d(left, right, assume_unique=True, return_indices=True)
    return (
        from_array(np.ascontiguousarray(p.indices._array[:, i])),
        from_array(p.values._array[i]),
        from_array(q.values._array[j]),
    )


@sparse_rule(aten.mul.Tensor)
def mul(self, other):
    if not is_sparse(self) or not is_sparse(other):
        if not is_sparse(self):
            self, other = other, self
        if not isinstance(other, _C.TensorBase) or other._ndim == 0:
            return with_values(self, aten.mul.Tensor(parts(self).values, other))
        return _times_dense(self, other)
    if self.layout is not sparse_coo or other.layout is not sparse_coo:
        layout, block = self.layout, getattr(parts(self), "block", None) or None
        return convert(mul(as_coordinates(self), as_coordinates(other)), layout, None, block)
    if tuple(self._shape) != tuple(other._shape):
        raise RuntimeError(f"mul(sparse, sparse): sizes {list(self._shape)} and {list(other._shape)} differ")
    p, q = parts(self), parts(other)
    if p.indices is q.indices:
        return (
            make(replace(p, values=aten.mul.Tensor(p.values, q.values)), self._shape)
            if p.coalesced
            else mul(*(aten._coalesce.default(t) for t in (self, other)))
        )
    indices, left, right = _common(aten._coalesce.default(self), aten._coalesce.default(other))
    return make(Coo(indices, aten.mul.Tensor(left, right), True), self._shape)


def _times_dense(self, dense):
    p = parts(self)
    if isinstance(p, Compressed):
        coo = _times_dense(as_coordinates(self), dense)
        return convert(coo, self.layout, None, p.block or None)
    wide = np.broadcast_shapes(tuple(self._shape), tuple(dense._shape))
    if wide != tuple(self._shape):
        raise RuntimeError(
            f"mul(sparse, dense): the dense operand of size {list(dense._shape)} would expand the sparse one, {list(self._shape)}"
        )
    at = np.broadcast_to(dense._array, wide)[tuple(p.indices._array)]
    return with_values(self, aten.mul.Tensor(p.values, from_array(np.ascontiguousarray(at))))


@sparse_rule(aten.div.Tensor)
def div(self, other):
    return _divided(self, other, aten.div.Tensor)


@sparse_rule(aten.div.Tensor_mode)
def div_mode(self, other, rounding_mode):
    return _divided(self, other, lambda a, b: aten.div.Tensor_mode(a, b, rounding_mode=rounding_mode))


@sparse_rule(aten.floor_divide.default)
def floor_divide(self, other):
    return _divided(self, other, aten.floor_divide.default)


def _divided(self, other, op):
    if isinstance(other, _C.TensorBase) and (not is_sparse(self) or other._ndim):
        raise RuntimeError(
            f"Sparse division requires a scalar or zero-dim dense tensor divisor (got shape {list(other._shape)} for divisor)"
        )
    if op is not aten.div.Tensor and isinstance(parts(self), Coo):
        self = aten._coalesce.default(self)  # rounding isn't linear
    return with_values(self, op(parts(self).values, other))


@sparse_rule(aten._conj.default)
def conj(self):
    """Of the values, at once: sparse tensors aren't conjugated lazily."""
    return with_values(self, aten._conj_physical.default(parts(self).values))


@sparse_rule(aten.neg.default)
def neg(self):
    return with_values(self, aten.neg.default(parts(self).values))


@sparse_rule(aten.pow.Tensor_Scalar)
def pow_scalar(self, exponent):
    if exponent == 0:
        raise RuntimeError("pow: a sparse tensor to the power 0 has no zeros; use .to_dense()")
    if isinstance(parts(self), Coo):
        self = aten._coalesce.default(self)
    return with_values(self, aten.pow.Tensor_Scalar(parts(self).values, exponent))


@sparse_rule(aten.addcmul.default, aten.addcdiv.default)
def addc(self, *rest):
    raise RuntimeError("addcmul and addcdiv take no sparse tensors; use .to_dense()")


# ---- reductions ------------------------------------------------------------------------------------------------------------


@sparse_rule(aten.sum.default)
def sum_all(self, dtype):
    return aten.sum.default(parts(self).values, dtype=dtype)


def _sum_dims(self, dims, keepdim, dtype):
    p = parts(self)
    if isinstance(p, Compressed):
        out = aten.sum.dim_IntList(from_array(dense_array(self)), dims, keepdim, dtype=dtype)
        return from_dense(out, self.layout) if keepdim else out
    dims = sorted({normalize_dim(d, self._ndim) for d in dims}) or list(range(self._ndim))
    inner = [d - p.sparse_dim + 1 for d in dims if d >= p.sparse_dim]
    values = (
        aten.sum.dim_IntList(p.values, inner, keepdim, dtype=dtype)
        if inner
        else _cast(p.values, _sum_dtype(p.values, dtype))
    )
    kept = [d for d in range(p.sparse_dim) if d not in dims]
    size = [1 if d in dims else n for d, n in enumerate(self._shape) if keepdim or d not in dims]
    if not kept and not keepdim:
        return aten.sum.dim_IntList(values, [0], dtype=dtype)
    indices = p.indices._array
    rows = [
        np.zeros(p.nnz, np.int64) if d in dims else indices[d] for d in range(p.sparse_dim) if keepdim or d not in dims
    ]
    made = make(Coo(from_array(np.stack(rows)), values, False), size)
    return aten._coalesce.default(made)


def _sum_dtype(values, dtype):
    return dtype or (int64 if values._dtype.category <= 1 else values._dtype)


@sparse_rule(aten.sum.dim_IntList)
def sum_dim(self, dim, keepdim, dtype):
    return _sum_dims(self, dim or [], keepdim, dtype)


@sparse_operator("_sparse_sum.dim(Tensor self, int[1] dim) -> Tensor")
def _sparse_sum_dim(self, dim):
    return _sum_dims(self, dim, False, None)


@sparse_operator("_sparse_sum_backward(Tensor grad, Tensor self, int[] dim) -> Tensor")
def _sparse_sum_backward(grad, self, dim):
    dims = {normalize_dim(d, self._ndim) for d in dim}
    p = parts(self)
    kept = [d for d in range(self._ndim) if d not in dims]
    g = dense_array(grad) if is_sparse(grad) else grad._array
    g = g.reshape([1 if d in dims else n for d, n in enumerate(self._shape)])
    g = np.broadcast_to(g, tuple(self._shape))[tuple(p.indices._array)] if kept or p.nnz else g
    return make(replace(p, values=from_array(np.ascontiguousarray(g))), self._shape)


_sparse_sum_dim.derivative(self=lambda ct, self, dim: aten._sparse_sum_backward.default(ct, self, dim))
_sparse_sum_backward.derivative(grad=lambda ct, dim: aten._sparse_sum.dim(ct, dim))


@composite("_sparse_sum(Tensor self) -> Tensor", variants="", has_out=False)
def _sparse_sum(self):
    return aten.sum.default(aten.values.default(aten.coalesce.default(self)))


@composite("_sparse_sum.dtype(Tensor self, *, ScalarType dtype) -> Tensor", variants="", has_out=False)
def _sparse_sum_dtype(self, dtype):
    return aten.sum.default(aten.values.default(aten.coalesce.default(self)), dtype=dtype)


@composite("_sparse_sum.dim_dtype(Tensor self, int[1] dim, *, ScalarType dtype) -> Tensor", variants="", has_out=False)
def _sparse_sum_dim_dtype(self, dim, dtype):
    return aten._sparse_sum.dim(aten._to_copy.default(self, dtype=dtype), dim)


@sparse_rule(aten.linalg_vector_norm.default)
def vector_norm(self, ord, dim, keepdim, dtype):
    if dim is not None and dim != [] and len(dim) != self._ndim:
        raise RuntimeError("norm_sparse currently only supports full reductions")
    values = parts(aten._coalesce.default(self)).values
    return aten.linalg_vector_norm.default(values, ord, dtype=dtype)


def _norm(self, p, *rest):
    return vector_norm(self, 2 if p is None else p, None, False, None)


for _op in aten.norm._overloads.values():
    if _op._overloadname in ("Scalar", "ScalarOpt_dim", "ScalarOpt_dim_dtype", "ScalarOpt_dtype"):
        sparse_rule(_op)(_norm)


@sparse_rule(aten.any.default)
def any_(self):
    return aten.any.default(parts(self).values)


# ---- softmax: of the stored elements only ----------------------------------------------------------------------------------


def _groups(t, dim):
    """For each stored element of a coalesced tensor, which slice along ``dim`` it is in."""
    p = parts(t)
    others = [d for d in range(p.sparse_dim) if d != dim]
    if not others:
        return np.zeros(p.nnz, np.int64)
    sizes = tuple(max(t._shape[d], 1) for d in others)
    return np.ravel_multi_index(tuple(p.indices._array[others]), sizes)


def _by_group(reduce, values, group):
    if not len(values):
        return values
    order = np.argsort(group, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(group[order]) != 0])
    lengths = np.diff(np.r_[starts, len(group)])
    out = np.empty_like(values)
    out[order] = np.repeat(reduce(values[order], starts, axis=0), lengths, axis=0)
    return out


def _softmax_values(self, dim, log):
    if self.layout is not sparse_coo:
        raise RuntimeError(f"softmax: takes sparse_coo tensors, got {kind_of(self.layout)}")
    dim = normalize_dim(dim, self._ndim)
    self = aten._coalesce.default(self)
    p = parts(self)
    if dim >= p.sparse_dim or not p.nnz:
        inner = dim - p.sparse_dim + 1
        op = aten._log_softmax.default if log else aten._softmax.default
        return with_values(self, op(p.values, inner, False) if p.nnz else p.values)
    x, group = p.values._array, _groups(self, dim)
    x = x - _by_group(np.maximum.reduceat, x, group)
    e = np.exp(x)
    total = _by_group(np.add.reduceat, e, group)
    return with_values(self, from_array(x - np.log(total) if log else e / total))


def _softmax_gradient(grad, output, dim, log):
    dim = normalize_dim(dim, output._ndim)
    p = parts(output)
    g = values_at(aten._coalesce.default(grad), p.indices) if is_sparse(grad) else grad._array[tuple(p.indices._array)]
    y = p.values._array
    if dim >= p.sparse_dim:
        axis = dim - p.sparse_dim + 1
        total = lambda v: v.sum(axis, keepdims=True)  # noqa: E731
    else:
        group = _groups(output, dim)
        total = lambda v: _by_group(np.add.reduceat, v, group)  # noqa: E731
    made = g - np.exp(y) * total(g) if log else y * (g - total(g * y))
    return make(replace(p, values=from_array(np.asarray(made, y.dtype))), output._shape)


for _log, _name in ((False, "_sparse_softmax"), (True, "_sparse_log_softmax")):

    def _declare(log=_log, name=_name):
        op = sparse_operator(f"{name}(Tensor self, int dim, bool half_to_float=False) -> Tensor")(
            lambda self, dim, half_to_float: _softmax_values(self, dim, log)
        )
        back = sparse_operator(
            f"{name}_backward_data(Tensor grad_output, Tensor output, int dim, Tensor self) -> Tensor"
        )(lambda grad, output, dim, self: _softmax_gradient(grad, output, dim, log))
        op.derivative(self=lambda ct, result, dim, self: back(ct, result, dim, self))

        def with_dtype(self, dim, dtype):
            return op(self if dtype is None else aten._to_copy.default(self, dtype=dtype), dim, False)

        composite(f"{name}.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", variants="", has_out=False)(
            with_dtype
        )

    _declare()
