"""Rearranging sparse tensors: transposes, selection, joining, resizing."""

from __future__ import annotations

import numpy as np

from ... import _C
from ...base.records import replace
from ...base.shapes import normalize_dim
from ...core.operator import namespace
from ...core.sparse import COMPRESSED, Compressed, Coo, dense_dim, is_sparse, make, parts, sparse_rule
from ...core.tensor import sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr
from .construction import as_coordinates, convert, dense_array, sparse_operator

aten = namespace("aten")
from_array = _C.from_array
_TRANSPOSED = {sparse_csr: sparse_csc, sparse_csc: sparse_csr, sparse_bsr: sparse_bsc, sparse_bsc: sparse_bsr}


@sparse_rule(aten.permute.default)
def permute(self, dims):
    dims = [normalize_dim(d, self._ndim) for d in dims]
    if len(dims) != self._ndim:
        raise RuntimeError(
            f"permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ordering of "
            f"dimensions i.e. input.dim() = {self._ndim} is not equal to len(dims) = {len(dims)}"
        )
    size = [self._shape[d] for d in dims]
    p = parts(self)
    if isinstance(p, Compressed):
        if dims == list(range(self._ndim)):
            return make(p, size)
        b = p.batch
        if (
            dims[:b] != list(range(b))
            or dims[b : b + 2] != [b + 1, b]
            or dims[b + 2 :] != list(range(b + 2, self._ndim))
        ):
            raise RuntimeError("permute(sparse_compressed): only the two sparse dimensions can be exchanged")
        values = aten.transpose.int(p.values, b + 1, b + 2) if p.block else p.values
        return make(Compressed(_TRANSPOSED[p.layout], p.compressed, p.plain, values), size)
    n = p.sparse_dim
    if any((d < n) != (k < n) for k, d in enumerate(dims)):
        raise RuntimeError("permute(sparse_coo): transpositions between sparse and dense dimensions are not supported")
    indices = from_array(np.ascontiguousarray(p.indices._array[dims[:n]]))
    values = aten.permute.default(p.values, [0, *(d - n + 1 for d in dims[n:])]) if n < self._ndim else p.values
    return make(Coo(indices, values, p.coalesced and dims[:n] == list(range(n))), size)


@sparse_rule(aten.transpose.int)
def transpose(self, dim0, dim1):
    dims = list(range(self._ndim))
    a, b = normalize_dim(dim0, self._ndim), normalize_dim(dim1, self._ndim)
    dims[a], dims[b] = dims[b], dims[a]
    return permute(self, dims)


@sparse_rule(aten.t.default)
def t(self):
    if self._ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 sparse and 0 dense dimensions, but self is {self._ndim}D")
    return self if self._ndim < 2 else permute(self, [1, 0])


@sparse_rule(aten.unsqueeze.default)
def unsqueeze(self, dim):
    if self.layout is not sparse_coo:
        raise RuntimeError("unsqueeze: not implemented for sparse compressed tensors")
    dim = normalize_dim(dim, self._ndim + 1)
    p = parts(self)
    size = [*self._shape[:dim], 1, *self._shape[dim:]]
    if dim <= p.sparse_dim:
        return make(replace(p, indices=from_array(np.insert(p.indices._array, dim, 0, 0))), size)
    return make(replace(p, values=aten.unsqueeze.default(p.values, dim - p.sparse_dim + 1)), size)


@sparse_rule(aten.squeeze.default, aten.squeeze.dim, aten.squeeze.dims)
def squeeze(self, dim=None):
    p = parts(self)
    dims = range(self._ndim) if dim is None else [dim] if not isinstance(dim, (list, tuple)) else dim
    drop = [d for d in (normalize_dim(d, self._ndim) for d in dims) if self._shape[d] == 1]
    size = [n for d, n in enumerate(self._shape) if d not in drop]
    indices = np.delete(p.indices._array, [d for d in drop if d < p.sparse_dim], 0)
    inner = [d - p.sparse_dim + 1 for d in drop if d >= p.sparse_dim]
    values = aten.squeeze.dims(p.values, inner) if inner else p.values
    return make(replace(p, indices=from_array(indices), values=values), size)


def _dense_results(self, dim, op):
    """Compressed tensors are selected from as coordinates, results in two dimensions stay compressed."""
    made = op(as_coordinates(self))
    return convert(made, self.layout) if made._ndim == 2 else made


@sparse_rule(aten.select.int)
def select(self, dim, index):
    dim = normalize_dim(dim, self._ndim)
    n = self._shape[dim]
    if not -n <= index < n:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(self._shape)} at dimension {dim}"
        )
    index = index + n if index < 0 else index
    p = parts(self)
    if isinstance(p, Compressed):
        if p.batch and dim < p.batch:
            pick = lambda x: aten.select.int(x, dim, index)  # noqa: E731
            size = [m for d, m in enumerate(self._shape) if d != dim]
            return make(Compressed(p.layout, pick(p.compressed), pick(p.plain), pick(p.values)), size)
        return (
            aten.select.int(from_array(dense_array(self)), dim, index)
            if self._ndim != 2
            else select(as_coordinates(self), dim, index)
        )
    size = [m for d, m in enumerate(self._shape) if d != dim]
    if dim >= p.sparse_dim:
        return make(replace(p, values=aten.select.int(p.values, dim - p.sparse_dim + 1, index)), size)
    here = p.indices._array[dim] == index
    values = p.values._array[here]
    if p.sparse_dim == 1:
        return from_array(values.sum(0, dtype=values.dtype))
    indices = np.delete(p.indices._array[:, here], dim, 0)
    return make(Coo(from_array(np.ascontiguousarray(indices)), from_array(values), p.coalesced), size)


@sparse_rule(aten.unbind.int)
def unbind(self, dim):
    return [select(self, dim, i) for i in range(self._shape[normalize_dim(dim, self._ndim)])]


@sparse_rule(aten.index_select.default)
def index_select(self, dim, index):
    dim = normalize_dim(dim, self._ndim)
    p = parts(self)
    if isinstance(p, Compressed):
        return _dense_results(self, dim, lambda t: index_select(t, dim, index))
    size = [len(index._array) if d == dim else n for d, n in enumerate(self._shape)]
    wanted = np.where(index._array < 0, index._array + self._shape[dim], index._array)
    if len(wanted) and (wanted.min() < 0 or wanted.max() >= self._shape[dim]):
        bad = int(index._array[(wanted < 0) | (wanted >= self._shape[dim])][0])
        raise IndexError(
            f"index_select(): index contains {bad} that is out of range for tensor of size {list(self._shape)} at dimension {dim}"
        )
    if dim >= p.sparse_dim:
        return make(replace(p, values=aten.index_select.default(p.values, dim - p.sparse_dim + 1, index)), size)
    have = p.indices._array[dim]
    order = np.argsort(have, kind="stable")
    left, right = np.searchsorted(have[order], wanted), np.searchsorted(have[order], wanted, "right")
    counts = right - left
    at = order[
        np.repeat(left - np.r_[0, np.cumsum(counts)[:-1]] if len(counts) else left, counts) + np.arange(counts.sum())
    ]
    indices = p.indices._array[:, at]
    indices[dim] = np.repeat(np.arange(len(wanted)), counts)
    made = make(Coo(from_array(np.ascontiguousarray(indices)), from_array(p.values._array[at]), False), size)
    return aten._coalesce.default(made) if p.coalesced else made


@sparse_rule(aten.slice.Tensor)
def slice_(self, dim, start, end, step):
    n = self._shape[normalize_dim(dim, self._ndim)]
    wanted = np.arange(n)[slice(start, end, step)]
    return index_select(self, dim, from_array(wanted))


@sparse_rule(aten.narrow_copy.default, aten.narrow.default)
def narrow_copy(self, dim, start, length):
    return slice_(self, dim, start, start + length, 1)


@sparse_rule(aten.cat.default)
def cat(tensors, dim):
    if not all(is_sparse(x) for x in tensors):
        raise RuntimeError("Concatenating sparse tensors, but a dense tensor was found: all tensors must be sparse")
    first = tensors[0]
    dim = normalize_dim(dim, first._ndim)
    rest = lambda x: [n for d, n in enumerate(x._shape) if d != dim]  # noqa: E731
    for k, x in enumerate(tensors):
        if x._ndim != first._ndim or rest(x) != rest(first):
            raise RuntimeError(
                f"All tensors must have the same shape: {list(first._shape)} (except in the concatenating dimension), but found shape: "
                f"{list(x._shape)} at position {k}"
            )
    if first.layout in COMPRESSED:
        return convert(cat([as_coordinates(x) for x in tensors], dim), first.layout)
    size = [sum(x._shape[dim] for x in tensors) if d == dim else n for d, n in enumerate(first._shape)]
    records, offset, indices = [parts(x) for x in tensors], 0, []
    n = records[0].sparse_dim
    if any(p.sparse_dim != n for p in records):
        raise RuntimeError("All tensors must have the same sparse_dim and dense_dim to be concatenated")
    values = [p.values for p in records]
    if dim < n:
        for x, p in zip(tensors, records):
            moved = p.indices._array.copy()
            moved[dim] += offset
            offset += x._shape[dim]
            indices.append(moved)
        values = aten.cat.default(values, 0)
    else:
        padded = []
        for x, p in zip(tensors, records):
            room = list(p.values._shape)
            room[dim - n + 1] = size[dim]
            wide = np.zeros(room, p.values._array.dtype)
            wide[(slice(None),) * (dim - n + 1) + (slice(offset, offset + x._shape[dim]),)] = p.values._array
            offset += x._shape[dim]
            indices.append(p.indices._array)
            padded.append(from_array(wide))
        values = aten.cat.default(padded, 0)
    return make(Coo(from_array(np.concatenate(indices, 1)), values, False), size)


@sparse_rule(aten.stack.default)
def stack(tensors, dim):
    return cat([unsqueeze(x, dim) for x in tensors], dim)


@sparse_rule(aten.reshape.default)
def reshape(self, shape):
    raise RuntimeError("reshape is not implemented for sparse tensors")


def _resized(self, size, sparse_dim, dense, clear):
    p = parts(self)
    if p is None:
        raise RuntimeError("sparse_resize_ expected sparse tensor layout")
    if sparse_dim + dense != len(size):
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, sparse_dim = {sparse_dim}, dense_dim = {dense}"
        )
    if not clear and p.nnz:
        if sparse_dim != p.sparse_dim:
            raise RuntimeError(
                f"changing the number of sparse dimensions (from {p.sparse_dim} to {sparse_dim}) on a non-empty sparse tensor is not supported."
            )
        if dense != dense_dim(self):
            raise RuntimeError(
                f"changing the number of dense dimensions (from {dense_dim(self)} to {dense}) on a non-empty sparse tensor is not supported."
            )
        if any(a < b for a, b in zip(size, self._shape)):
            raise RuntimeError("shrinking the size of sparse dimensions on a non-empty sparse tensor is not supported.")
        room = np.zeros((p.nnz, *size[sparse_dim:]), p.values._array.dtype)
        room[tuple(map(slice, p.values._shape))] = p.values._array
        made = replace(p, values=from_array(room))
    else:
        made = Coo(
            from_array(np.zeros((sparse_dim, 0), np.int64)),
            from_array(np.zeros((0, *size[sparse_dim:]), p.values._array.dtype)),
            False,
        )
    _C.become(self, make(made, size))
    return self


@sparse_operator(
    "sparse_resize_(Tensor(a!) self, int[] size, int sparse_dim, int dense_dim) -> Tensor(a!)", variants="method"
)
def sparse_resize_(self, size, sparse_dim, dense_dim):
    return _resized(self, size, sparse_dim, dense_dim, False)


@sparse_operator(
    "sparse_resize_and_clear_(Tensor(a!) self, int[] size, int sparse_dim, int dense_dim) -> Tensor(a!)",
    variants="method",
)
def sparse_resize_and_clear_(self, size, sparse_dim, dense_dim):
    return _resized(self, size, sparse_dim, dense_dim, True)


@sparse_operator("resize_as_sparse_(Tensor(a!) self, Tensor the_template) -> Tensor(a!)")
def resize_as_sparse_(self, the_template):
    p = parts(the_template)
    return _resized(self, list(the_template._shape), p.sparse_dim, dense_dim(the_template), False)
