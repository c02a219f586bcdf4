"""Sparse tensors: construction, their parts, conversion between layouts. Declared when used; the kernels work on the parts (core/sparse.py).

Every operator here takes sparse and dense tensors alike; none can be captured, so their shape rules say so.
"""

from __future__ import annotations

import numpy as np

from ... import _C
from ...base.errors import Uncaptured
from ...base.records import replace
from ...base.sparse import combine
from ...core.declare import composite, explicit
from ...core.operator import namespace
from ...core.sparse import BLOCKED, BY_ROW, COMPRESSED, Compressed, Coo, dense_dim, is_sparse, make, numel, parts
from ...core.tensor import kind_of, sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr, strided

aten = namespace("aten")
from_array = _C.from_array
PLAIN_NAMES = {sparse_csr: "col", sparse_bsr: "col", sparse_csc: "row", sparse_bsc: "row"}


def sparse_operator(schema: str, **kw):
    """Declare an operator on sparse tensors (or making them) by its kernel on tensors."""

    def no_shape_rule(*args):
        raise Uncaptured(f"aten::{schema.partition('(')[0]}: sparse tensors are not captured")

    def wrap(fn):
        op = explicit(schema, meta=no_shape_rule, has_out=False, **kw)(fn)
        op.override("sparse", fn)
        return op

    return wrap


def _expect(t, name: str, *layouts, kind="sparse coordinate"):
    if t.layout not in layouts:
        raise RuntimeError(f"{name} expected {kind} tensor layout but got {kind_of(t.layout)}")


def flat_indices(p: Coo, size) -> np.ndarray:
    """One number for each stored place, in row-major order of the sparse dimensions."""
    if p.sparse_dim == 0:
        return np.zeros(p.nnz, np.int64)
    return np.ravel_multi_index(tuple(p.indices._array), tuple(max(n, 1) for n in size[: p.sparse_dim]))


# ---- coordinates -----------------------------------------------------------------------------------------------------------


@sparse_operator(
    "_sparse_coo_tensor_with_dims_and_tensors(int sparse_dim, int dense_dim, int[] size, Tensor indices, Tensor values, *, "
    "bool? is_coalesced=None) -> Tensor"
)
def _coo(sparse_dim, dense_dim, size, indices, values, is_coalesced):
    return make(Coo(indices.detach(), values.detach(), bool(is_coalesced)), size)


_coo.derivative(values=lambda ct, indices: aten._sparse_constructor_values_backward.default(ct, indices))


@sparse_operator("_sparse_constructor_values_backward(Tensor grad, Tensor indices) -> Tensor")
def _constructor_backward(grad, indices):
    if not is_sparse(grad):
        return from_array(np.ascontiguousarray(grad._array[tuple(indices._array)]))
    return from_array(values_at(aten._coalesce.default(grad), indices))


_constructor_backward.derivative(
    grad=lambda ct, grad_like, indices: aten._sparse_coo_tensor_with_dims_and_tensors.default(
        indices.shape[0], len(grad_like.shape) - indices.shape[0], list(grad_like.shape), indices, ct
    )
)


def values_at(t, indices) -> np.ndarray:
    """Values of a coalesced tensor at ``indices`` (sparse dims, n); zero where nothing is stored."""
    p = parts(t)
    have, want = flat_indices(p, t._shape), flat_indices(replace(p, indices=indices), t._shape)
    out = np.zeros((len(want), *p.values._shape[1:]), p.values._array.dtype)
    if len(have):
        at = np.minimum(np.searchsorted(have, want), len(have) - 1)
        hit = have[at] == want
        out[hit] = p.values._array[at[hit]]
    return out


@sparse_operator("_indices(Tensor self) -> Tensor", variants="method")
def _indices(self):
    _expect(self, "_indices", sparse_coo)
    return parts(self).indices.detach()


@sparse_operator("_values(Tensor self) -> Tensor", variants="method")
def _values(self):
    if not is_sparse(self):
        raise NotImplementedError("Could not run 'aten::_values' with arguments from the 'CPU' backend.")
    return parts(self).values.detach()


_indices.derivative()
_values.derivative()


@sparse_operator("indices(Tensor self) -> Tensor", variants="method")
def indices(self):
    _expect(self, "indices", sparse_coo)
    if not parts(self).coalesced:
        raise RuntimeError("Cannot get indices on an uncoalesced tensor, please call .coalesce() first")
    return parts(self).indices.detach()


@sparse_operator("values(Tensor self) -> Tensor", variants="method")
def values(self):
    _expect(self, "values", sparse_coo, *COMPRESSED, kind="sparse")
    p = parts(self)
    if isinstance(p, Coo) and not p.coalesced:
        raise RuntimeError("Cannot get values on an uncoalesced tensor, please call .coalesce() first")
    return p.values.detach()


@sparse_operator("_values_backward(Tensor grad, Tensor self) -> Tensor")
def _values_backward(grad, self):
    return make(replace(parts(self), values=grad), self._shape)


indices.derivative()
values.derivative(self=lambda ct, self: aten._values_backward.default(ct, self))
_values_backward.derivative(grad=lambda ct: aten.values.default(aten._coalesce.default(ct)))


@sparse_operator("_nnz(Tensor self) -> int", variants="method")
def _nnz(self):
    if not is_sparse(self):
        raise NotImplementedError("Could not run 'aten::_nnz' with arguments from the 'CPU' backend.")
    return parts(self).nnz


@sparse_operator("sparse_dim(Tensor self) -> int", variants="method")
def sparse_dim(self):
    return 0 if not is_sparse(self) else self._ndim - dense_dim(self) - (getattr(parts(self), "batch", 0))


@sparse_operator("dense_dim(Tensor self) -> int", variants="method")
def dense_dims(self):
    return dense_dim(self) if is_sparse(self) else self._ndim


@sparse_operator("is_coalesced(Tensor self) -> bool", variants="method")
def is_coalesced(self):
    _expect(self, "is_coalesced", sparse_coo)
    return parts(self).coalesced


@sparse_operator("_coalesced_(Tensor self, bool coalesced) -> Tensor", variants="method")
def _coalesced_(self, coalesced):
    self._payload = replace(parts(self), coalesced=coalesced)
    return self


@sparse_operator("_coalesce(Tensor self) -> Tensor")
def _coalesce(self):
    p = parts(self)
    if not isinstance(p, Coo) or p.coalesced:
        return self
    indices, values = combine(p.indices._array, p.values._array)
    return make(Coo(from_array(indices), from_array(values), True), self._shape)


_coalesce.derivative(self=lambda ct: ct)


def add_up(values: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Sums of the runs of ``values`` that begin at ``starts``, in the values' own dtype."""
    kind = values.dtype
    if kind.kind == "b":
        return np.logical_or.reduceat(values, starts, axis=0)
    wide = values.astype(np.float32) if kind.itemsize == 2 and kind.kind in "fV" else values
    return np.add.reduceat(wide, starts, axis=0, dtype=wide.dtype).astype(kind, copy=False)


@composite("coalesce(Tensor self) -> Tensor", variants="method", has_out=False)
def coalesce(self):
    _expect(self, "coalesce", sparse_coo)
    return self if parts(self).coalesced else aten._coalesce.default(self)


@sparse_operator(
    "embedding_sparse_backward(Tensor grad, Tensor indices, SymInt num_weights, SymInt padding_idx, bool scale_grad_by_freq) -> Tensor",
    variants="",
)
def embedding_sparse_backward(grad, indices, num_weights, padding_idx, scale_grad_by_freq):
    if scale_grad_by_freq:
        raise RuntimeError("embedding_backward: scale_grad_by_freq not supported with sparse gradients")
    at = indices._array.reshape(-1).astype(np.int64)
    rows = grad._array.reshape(at.size, grad._shape[-1])
    if padding_idx != -1:
        counts = at != padding_idx
        at, rows = at[counts], rows[counts]
    return make(
        Coo(from_array(at[None]), from_array(np.ascontiguousarray(rows)), False), (num_weights, grad._shape[-1])
    )


# ---- compressed layouts ----------------------------------------------------------------------------------------------------


@sparse_operator(
    "_sparse_compressed_tensor_unsafe(Tensor compressed_indices, Tensor plain_indices, Tensor values, int[] size, *, Layout layout) -> Tensor"
)
def _compressed(compressed_indices, plain_indices, values, size, layout):
    return make(Compressed(layout, compressed_indices.detach(), plain_indices.detach(), values.detach()), size)


_compressed.derivative(
    values=lambda ct, compressed_indices, plain_indices, values, size, layout: aten._values.default(
        aten._sparse_mask.default(
            aten._to_dense.default(ct),
            aten._sparse_compressed_tensor_unsafe.default(
                compressed_indices, plain_indices, values, size, layout=layout
            ),
        )
    )
)


def _index_reader(name: str, attribute: str, *layouts):
    what = "row" if layouts[0] in BY_ROW else "column"

    @sparse_operator(f"{name}(Tensor self) -> Tensor", variants="method")
    def read(self):
        if self.layout not in layouts:
            raise RuntimeError(f"{name} expected sparse {what} compressed tensor layout but got {kind_of(self.layout)}")
        return getattr(parts(self), attribute).detach()

    read.derivative()


_index_reader("crow_indices", "compressed", sparse_csr, sparse_bsr)
_index_reader("col_indices", "plain", sparse_csr, sparse_bsr)
_index_reader("ccol_indices", "compressed", sparse_csc, sparse_bsc)
_index_reader("row_indices", "plain", sparse_csc, sparse_bsc)


# ---- conversion ------------------------------------------------------------------------------------------------------------


def coordinates(t) -> tuple[np.ndarray, np.ndarray]:
    """(indices, values) of an unbatched csr or csc tensor, or of the blocks of a bsr or bsc tensor."""
    p = parts(t)
    major = np.repeat(np.arange(p.compressed._shape[-1] - 1), np.diff(p.compressed._array))
    pair = (major, p.plain._array) if p.by_row else (p.plain._array, major)
    return np.stack([np.asarray(x, np.int64) for x in pair]), p.values._array


def unbatched(t):
    """The matrices of a batched compressed tensor, in row-major order."""
    p = parts(t)
    size = t._shape[p.batch :]
    count = numel(t._shape[: p.batch])
    flat = lambda x, keep: x._array.reshape(count, *x._array.shape[keep:])  # noqa: E731
    c, i, v = flat(p.compressed, p.batch), flat(p.plain, p.batch), flat(p.values, p.batch)
    return [make(Compressed(p.layout, *map(from_array, x)), size) for x in zip(c, i, v)]


def dense_array(t) -> np.ndarray:
    """The elements of a sparse tensor."""
    p = parts(t)
    out = np.zeros(t._shape, p.values._array.dtype)
    if isinstance(p, Coo):
        if p.sparse_dim == 0:
            out[...] = add_up(p.values._array, np.array([0]))[0] if p.nnz else 0
        elif p.nnz:
            q = parts(aten._coalesce.default(t))
            out[tuple(q.indices._array)] = q.values._array
        return out
    if p.batch:
        for to, one in zip(out.reshape(numel(t._shape[: p.batch]), *t._shape[p.batch :]), unbatched(t)):
            to[...] = dense_array(one)
        return out
    (rows, columns), values = coordinates(t)
    if p.block:
        a, b = p.block
        blocks = out.reshape(t._shape[0] // a, a, t._shape[1] // b, b, *t._shape[2:])
        blocks.swapaxes(1, 2)[rows, columns] = values
    else:
        out[rows, columns] = values
    return out


@sparse_operator("_to_dense(Tensor self, ScalarType? dtype=None, bool? masked_grad=None) -> Tensor")
def _to_dense(self, dtype, masked_grad):
    out = from_array(dense_array(self)) if is_sparse(self) else self
    return out if dtype is None else aten._to_copy.default(out, dtype=dtype)


_to_dense.derivative(self=lambda ct, self, masked_grad: aten._to_dense_backward.default(ct, self, masked_grad))


@sparse_operator("_to_dense_backward(Tensor grad, Tensor self, bool? masked_grad=None) -> Tensor")
def _to_dense_backward(grad, self, masked_grad):
    if not is_sparse(self):
        return grad
    if masked_grad is False and isinstance(parts(self), Coo):
        return grad
    return aten._sparse_mask.default(grad, aten._coalesce.default(self))


# Where the elements lie is no variable.
_to_dense_backward.derivative(grad=lambda ct: aten._to_dense.default(ct), self=lambda ct: None)


@composite(
    "to_dense(Tensor self, ScalarType? dtype=None, *, bool? masked_grad=None) -> Tensor",
    variants="method",
    has_out=False,
)
def to_dense(self, dtype, masked_grad):
    if self.layout is strided:
        return self if dtype is None or dtype is self._dtype else aten._to_copy.default(self, dtype=dtype)
    return aten._to_dense.default(self, dtype, masked_grad)


def from_dense(t, layout, sparse_dim=None, blocksize=None, dense_dim=None):
    """A dense tensor in a sparse layout."""
    a = t._array
    if layout is sparse_coo:
        n = t._ndim if sparse_dim is None else sparse_dim
        stored = a != 0 if n == t._ndim else (a != 0).any(tuple(range(n, t._ndim)))
        at = np.nonzero(stored) if n else (np.zeros(int(stored), np.int64),)[:0]
        indices = np.stack(at).astype(np.int64) if n else np.zeros((0, int(stored)), np.int64)
        values = a[at] if n else a[None][: int(stored)]
        return make(Coo(from_array(indices), from_array(np.ascontiguousarray(values)), True), t._shape)
    dense = dense_dim or 0
    batch = t._ndim - 2 - dense
    if batch < 0:
        raise RuntimeError(
            f"dense_dim argument must be in range [0,{t._ndim - 2}], but {dense} is given"
            if t._ndim >= 2
            else f"tensor dimensionality must be sum of batch, base, and dense dimensionalities (=0 + 2 + {dense}) but got {t._ndim}"
        )
    rows, columns = a.shape[batch : batch + 2]
    if layout in BLOCKED:
        blocksize = (blocksize, blocksize) if isinstance(blocksize, int) else blocksize
        blocksize = tuple(blocksize) * 2 if blocksize is not None and len(blocksize) == 1 else blocksize
        if blocksize is None or len(blocksize) != 2:
            raise RuntimeError(f"to_sparse for {kind_of(layout)} layout requires blocksize of length 2")
        x, y = blocksize
        if x <= 0 or y <= 0 or rows % x or columns % y:
            raise RuntimeError(f"tensor sparse size ({rows},{columns}) must be divisible by given blocksize ({x},{y})")
        a = a.reshape(*a.shape[:batch], rows // x, x, columns // y, y, *a.shape[batch + 2 :]).swapaxes(
            batch + 1, batch + 2
        )
    inner = tuple(range(2, a.ndim - batch))
    counts, made = None, []
    if not numel(a.shape[:batch]):
        raise RuntimeError(f"to_{layout._name}: Expected product of batch dimensions to be non-zero.")
    for one in a.reshape(numel(a.shape[:batch]), *a.shape[batch:]):
        stored = (one != 0).any(inner) if inner else one != 0
        if layout in BY_ROW:
            major, minor = np.nonzero(stored)
            values = one[major, minor]
        else:
            major, minor = np.nonzero(stored.T)
            values = one[minor, major]
        n = stored.shape[0] if layout in BY_ROW else stored.shape[1]
        if counts is not None and len(minor) != counts:
            raise RuntimeError("Expect the same number of specified elements per batch.")
        counts = len(minor)
        made.append((np.r_[0, np.cumsum(np.bincount(major, minlength=n))], minor.astype(np.int64), values))
    stack = lambda k: np.stack([m[k] for m in made]).reshape(*a.shape[:batch], *made[0][k].shape)  # noqa: E731
    p = Compressed(layout, *(from_array(np.ascontiguousarray(stack(k))) for k in range(3)))
    return make(p, t._shape)


def compress(t, layout):
    """A two-dimensional coo tensor as csr or csc."""
    p = parts(aten._coalesce.default(t))
    (rows, columns), values = p.indices._array, p.values._array
    major, minor = (rows, columns) if layout is sparse_csr else (columns, rows)
    if layout is sparse_csc:
        order = np.lexsort((minor, major))
        major, minor, values = major[order], minor[order], values[order]
    n = t._shape[0 if layout is sparse_csr else 1]
    ranges = np.r_[0, np.cumsum(np.bincount(major, minlength=n))].astype(np.int64)
    return make(Compressed(layout, *map(from_array, (ranges, np.ascontiguousarray(minor), values))), t._shape)


def as_coordinates(t):
    """A compressed tensor as coo."""
    p = parts(t)
    if isinstance(p, Coo):
        return t
    if p.block and not p.batch:
        (rows, columns), values = coordinates(t)
        x, y = p.block
        at = np.stack(
            np.broadcast_arrays(
                rows[:, None, None] * x + np.arange(x)[:, None], columns[:, None, None] * y + np.arange(y)
            )
        )
        made = Coo(from_array(at.reshape(2, -1)), from_array(values.reshape(-1, *values.shape[3:])), False)
        return make(made, t._shape)
    if p.batch:
        return from_dense(from_array(dense_array(t)), sparse_coo, t._ndim - dense_dim(t))
    indices, values = coordinates(t)
    if not p.by_row:
        order = np.lexsort((indices[1], indices[0]))
        indices, values = indices[:, order], values[order]
    return make(Coo(from_array(np.ascontiguousarray(indices)), from_array(values), True), t._shape)


def convert(t, layout, sparse_dim=None, blocksize=None, dense_dim_=None):
    """``t`` in another layout."""
    if not is_sparse(t):
        return from_dense(t, layout, sparse_dim, blocksize, dense_dim_)
    if t.layout is layout and (blocksize is None or tuple(blocksize) == parts(t).block):
        return t
    if layout is sparse_coo:
        return as_coordinates(t)
    if layout not in BLOCKED and t._ndim - dense_dim(t) == 2:
        return compress(as_coordinates(t), layout)
    if isinstance(parts(t), Coo) and t._ndim - dense_dim(t) != 2:
        raise RuntimeError(
            f"conversion from Sparse to {kind_of(layout)} for input tensors with sparse_dim()!=2 is not supported"
        )
    return from_dense(from_array(dense_array(t)), layout, None, blocksize, dense_dim(t))


def _check_blocksize(layout, blocksize, name):
    if blocksize is not None and layout not in BLOCKED:
        raise RuntimeError(f"{name} for {kind_of(layout)} conversion does not use the specified blocksize")


@sparse_operator(
    "_to_sparse(Tensor self, *, Layout? layout=None, int[]? blocksize=None, int? dense_dim=None, int? sparse_dim=None) -> Tensor"
)
def _to_sparse(self, layout, blocksize, dense_dim, sparse_dim):
    return convert(self, layout or sparse_coo, sparse_dim, blocksize, dense_dim)


@sparse_operator("_to_sparse.sparse_dim(Tensor self, int sparse_dim) -> Tensor")
def _to_sparse_of_rows(self, sparse_dim):
    return convert(self, sparse_coo, sparse_dim, None, None)


_to_sparse_of_rows.derivative(self=lambda ct, self: aten._to_sparse_backward.default(ct, self))
_to_sparse.derivative(self=lambda ct, self: aten._to_sparse_backward.default(ct, self))


@sparse_operator("_to_sparse_backward(Tensor grad, Tensor self) -> Tensor")
def _to_sparse_backward(grad, self):
    if self.layout is grad.layout:
        return grad
    if not is_sparse(self):
        return aten._to_dense.default(grad)
    return convert(grad, self.layout, None, getattr(parts(self), "block", None) or None)


_to_sparse_backward.derivative(grad=lambda ct, grad: aten._to_sparse_backward.default(ct, grad))


@composite("to_sparse.sparse_dim(Tensor self, int sparse_dim) -> Tensor", variants="method", has_out=False)
def to_sparse_dim(self, sparse_dim):
    if is_sparse(self):
        if self.layout is not sparse_coo:
            raise RuntimeError(f"to_sparse: conversion of a {kind_of(self.layout)} tensor takes no sparse_dim")
        if parts(self).sparse_dim != sparse_dim:
            raise RuntimeError(
                "to_sparse: conversion from Sparse to Sparse with sparse_dim argument !=self.sparse_dim() is not supported"
            )
        return self
    if not 0 <= sparse_dim <= self._ndim:
        raise RuntimeError(
            f"dense_to_sparse: sparse_dim argument must be in [0,{self._ndim}] range, but {sparse_dim} is given"
        )
    return aten._to_sparse.default(self, sparse_dim=sparse_dim)


@composite(
    "to_sparse(Tensor self, *, Layout? layout=None, int[2]? blocksize=None, int? dense_dim=None) -> Tensor",
    variants="method",
    has_out=False,
)
def to_sparse(self, layout, blocksize, dense_dim):
    layout = layout or sparse_coo
    if layout is strided:
        raise RuntimeError(f"to_sparse: unsupported conversion from {kind_of(self.layout)} to Strided")
    _check_blocksize(layout, blocksize, "to_sparse")
    if self.layout is layout and blocksize is None:
        return self
    return aten._to_sparse.default(self, layout=layout, blocksize=blocksize, dense_dim=dense_dim)


def _to(layout, name, arguments="int? dense_dim=None"):
    def convert(self, *args):
        blocksize, dense = args if len(args) == 2 else (None, *args)
        if self.layout is layout and blocksize is None:
            return self
        return aten._to_sparse.default(self, layout=layout, blocksize=blocksize, dense_dim=dense)

    composite(f"{name}(Tensor self, {arguments}) -> Tensor", variants="method", has_out=False)(convert)


_to(sparse_csr, "to_sparse_csr")
_to(sparse_csc, "to_sparse_csc")
_to(sparse_bsr, "to_sparse_bsr", "int[2] blocksize, int? dense_dim=None")
_to(sparse_bsc, "to_sparse_bsc", "int[2] blocksize, int? dense_dim=None")


# ---- the pattern of another tensor -----------------------------------------------------------------------------------------


@sparse_operator("_sparse_mask(Tensor self, Tensor mask) -> Tensor")
def _sparse_mask(self, mask):
    p = parts(mask)
    if isinstance(p, Coo):
        if not is_sparse(self):
            return make(
                replace(p, values=from_array(np.ascontiguousarray(self._array[tuple(p.indices._array)]))), mask._shape
            )
        values = values_at(aten._coalesce.default(as_coordinates(self)), p.indices)
        return make(replace(p, values=from_array(values)), mask._shape)
    a = self._array if not is_sparse(self) else dense_array(self)
    size = mask._shape[p.batch :]
    values = []
    if not numel(mask._shape[: p.batch]):
        return make(replace(p, values=from_array(np.zeros(p.values._shape, a.dtype))), mask._shape)
    for one, pattern in zip(a.reshape(numel(mask._shape[: p.batch]), *size), unbatched(mask)):
        rows, columns = coordinates(pattern)[0]
        if p.block:
            x, y = p.block
            one = one.reshape(size[0] // x, x, size[1] // y, y, *size[2:]).swapaxes(1, 2)
        values.append(one[rows, columns])
    values = np.stack(values).reshape(p.values._shape).astype(a.dtype, copy=False)
    return make(replace(p, values=from_array(np.ascontiguousarray(values))), mask._shape)


_sparse_mask.derivative(self=lambda ct, self: aten._to_sparse_backward.default(ct, self), mask=lambda ct: None)


@composite("sparse_mask(Tensor self, Tensor mask) -> Tensor", variants="method", has_out=False)
def sparse_mask(self, mask):
    if not is_sparse(mask):
        raise RuntimeError("sparse_mask(): the mask must be sparse")
    if tuple(self._shape) != tuple(mask._shape):
        raise RuntimeError(
            f"sparse_mask(): operands have incompatible sizes; self has size {list(self._shape)} but mask has size {list(mask._shape)}"
        )
    return aten._sparse_mask.default(self, mask)
