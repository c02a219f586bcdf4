"""Makers of sparse tensors: data to tensors, sizes inferred, every invariant checked (an index out of range is never stored)."""

from __future__ import annotations

import functools
import math

import numpy as np

from flambeau import _C
from flambeau.base.device import CPU, as_device
from flambeau.base.dtypes import int32, int64
from flambeau.base.public import public_in
from flambeau.core.conversion import tensor, to
from flambeau.core.operator import namespace
from flambeau.core.sparse import BLOCKED, BY_ROW, COMPRESSED
from flambeau.core.tensor import Tensor, sparse_bsc, sparse_bsr, sparse_csc, sparse_csr

aten = namespace("aten")


@public_in("sparse")
class check_sparse_tensor_invariants:  # noqa: N801
    """Context manager and decorator. The invariants that keep a tensor from being garbage are always checked here, so it only remembers its state."""

    _enabled = False

    def __init__(self, enable: bool = True):
        self.state = enable
        self.saved: bool | None = None

    @staticmethod
    def is_enabled() -> bool:
        return check_sparse_tensor_invariants._enabled

    @staticmethod
    def enable() -> None:
        check_sparse_tensor_invariants._enabled = True

    @staticmethod
    def disable() -> None:
        check_sparse_tensor_invariants._enabled = False

    def __enter__(self):
        if self.saved is not None:
            raise RuntimeError(
                "This context manager instance is already activated. Use a different context manager instance for context nesting."
            )
        self.saved = check_sparse_tensor_invariants._enabled
        check_sparse_tensor_invariants._enabled = self.state

    def __exit__(self, *exc):
        check_sparse_tensor_invariants._enabled, self.saved = self.saved, None

    def __call__(self, fn):
        @functools.wraps(fn)
        def run(*args, **kwargs):
            with type(self)(self.state):
                return fn(*args, **kwargs)

        return run


def _tensors(indices, values, dtype, device):
    given = (t.device for t in (values, *indices) if isinstance(t, _C.TensorBase))
    where = as_device(device) if device is not None else next((d for d in given if d.type == "cuda"), CPU)
    if where.type not in ("cpu",):
        raise NotImplementedError(f"sparse tensors live on the CPU in flambeau; device '{where}' was asked for")
    values = values if isinstance(values, _C.TensorBase) else tensor(values, dtype=dtype)
    values = values if dtype is None else to(values, dtype)
    out = []
    for i in indices:
        i = i if isinstance(i, _C.TensorBase) else tensor(i, dtype=int64 if not np.size(i) else None)
        out.append(i)
    return out, values


def _counted(size):
    """``size``, if a tensor can have it: elements are counted in 64 bits, whether they are stored or not."""
    if any(n < 0 for n in size):
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(size)}: {list(size)}")
    if math.prod(size) >= 1 << 63:
        raise RuntimeError(f"numel: integer multiplication overflow: a tensor of size {list(size)}")
    return size


def sparse_coo_tensor(
    indices=None,
    values=None,
    size=None,
    *,
    dtype=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
    check_invariants=None,
    is_coalesced=None,
):
    """A tensor in coordinate layout. ``indices``: (sparse dims, nnz), ``values``: (nnz, *dense sizes); repeated places add up.

    ``size``: inferred from the largest index unless given. RuntimeError for indices outside of it, or numbers that don't agree.
    """
    if values is None and (indices is None) != (size is None):
        size = _counted(tuple(indices if size is None else size))
        return aten._sparse_coo_tensor_with_dims_and_tensors.default(
            len(size),
            0,
            list(size),
            aten.zeros.default([len(size), 0], dtype=int64),
            aten.zeros.default([0], dtype=dtype),
            is_coalesced=len(size) > 0,
        )
    if indices is None or values is None:
        raise TypeError("sparse_coo_tensor(): indices and values are given together, or a size alone")
    (i,), v = _tensors([indices], values, dtype, device)
    if i.dtype.category > 1:
        i = to(i, int64)
    if i.dtype.name == "bool":
        raise TypeError(f"indices must be an integer tensor, but got {i.dtype}")
    i = to(i, int64)
    if i.ndim != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(i.shape)}")
    sparse_dim, nnz = i.shape
    v = v if v.ndim else aten.expand.default(v, [nnz])
    if v.shape[0] != nnz:
        raise RuntimeError(
            f"indices and values must have same nnz, but got nnz from indices: {nnz}, nnz from values: {v.shape[0]}"
        )
    array = i.detach()._array
    low, top = (array.min(1).tolist(), array.max(1).tolist()) if nnz else ([0] * sparse_dim, [-1] * sparse_dim)
    for d, least in enumerate(low):
        if least < 0:
            raise RuntimeError(f"found negative index {least} for dim {d}")
    if size is None:
        size = (*(n + 1 for n in top), *v.shape[1:])
    size = tuple(size)
    if len(size) != sparse_dim + v.ndim - 1:
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, sparse_dim = {sparse_dim}, dense_dim = {v.ndim - 1}"
        )
    _counted(size)
    for d in range(sparse_dim):
        if top[d] >= size[d]:
            raise RuntimeError(
                f"size is inconsistent with indices: for dim {d}, size is {size[d]} but found index {top[d]}"
            )
    if tuple(v.shape[1:]) != size[sparse_dim:]:
        raise RuntimeError(f"values has incorrect size, expected {[nnz, *size[sparse_dim:]]}, got {list(v.shape)}")
    if is_coalesced and nnz > 1:
        flat = np.ravel_multi_index(tuple(array), size[:sparse_dim]) if sparse_dim else np.zeros(nnz)
        if not (flat[1:] > flat[:-1]).all():
            raise RuntimeError("cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor")
    made = aten._sparse_coo_tensor_with_dims_and_tensors.default(
        sparse_dim, v.ndim - 1, list(size), i, v, is_coalesced=bool(is_coalesced)
    )
    return made.detach().requires_grad_() if requires_grad else made


def _need(condition, text):
    if not condition:
        raise RuntimeError(text)


def _check_compressed(layout, c, p, v, size):
    """The invariants of PyTorch's compressed layouts, in its words."""
    compressed, plain = ("crow_indices", "col_indices") if layout in BY_ROW else ("ccol_indices", "row_indices")
    for name, t in ((compressed, c), (plain, p)):
        _need(t.ndim >= 1, f"{name} must have dimensionality >= 1 but got {t.ndim}")
    _need(
        c.ndim == p.ndim,
        f"{compressed} and {plain} dimensionalities must be equal but got {c.ndim} and {p.ndim}, respectively",
    )
    batch, block = c.ndim - 1, 2 if layout in BLOCKED else 0
    dense = v.ndim - batch - 1 - block
    _need(
        dense >= 0,
        f"values must have dimensionality > sum of batch and block dimensionalities (={batch} + {block}) but got {v.ndim}",
    )
    _need(
        len(size) == batch + 2 + dense,
        f"tensor dimensionality must be sum of batch, base, and dense dimensionalities (={batch} + 2 + {dense}) but got {len(size)}",
    )
    _need(
        c.dtype is p.dtype,
        f"{compressed} and {plain} must have the same dtype, but got {c.dtype} and {p.dtype}, respectively",
    )
    _need(c.dtype in (int32, int64), f"{compressed} and {plain} dtype must be Int or Long, but got {c.dtype}")
    for t in (c, p, v):
        _need(
            tuple(t.shape[:batch]) == tuple(size[:batch]),
            f"all batch dimensions of {compressed} (={list(c.shape[:batch])}), {plain} (={list(p.shape[:batch])}), and values "
            f"(={list(v.shape[:batch])}) must be equal to tensor batch dimensions (={list(size[:batch])})",
        )
    blocksize = tuple(v.shape[batch + 1 : batch + 3]) if block else (1, 1)
    for k in range(2):
        _need(
            blocksize[k] > 0 and size[batch + k] % blocksize[k] == 0,
            f"tensor shape[{batch + k}] (={size[batch + k]}) must be divisible with blocksize[{k}] (={blocksize[k]}) as defined by values shape",
        )
    counts = [size[batch] // blocksize[0], size[batch + 1] // blocksize[1]]
    n, width = counts if layout in BY_ROW else counts[::-1]
    nnz = p.shape[-1]
    _need(
        c.shape[-1] == n + 1,
        f"{compressed}.shape[-1] must be equal to the number of compressed dimensions + 1 (={n + 1}), but got {c.shape[-1]}",
    )
    _need(
        v.shape[batch] == nnz,
        f"{plain}.shape[-1] must be equal to nnz (={v.shape[batch]}) as defined by values.shape[{batch}], but got {nnz}",
    )
    ranges = c.detach()._array.reshape(math.prod(c.shape[:-1]), n + 1)
    places = p.detach()._array.reshape(len(ranges), nnz)
    _need((ranges[:, 0] == 0).all(), f"`{compressed}[..., 0] == 0` is not satisfied.")
    _need((ranges[:, -1] == nnz).all(), f"`{compressed}[..., -1] == nnz` is not satisfied.")
    steps = np.diff(ranges, axis=1)
    _need(
        ((steps >= 0) & (steps <= width)).all(),
        f"`0 <= {compressed}[..., 1:] - {compressed}[..., :-1] <= {'ncols' if layout in BY_ROW else 'nrows'}` is not satisfied.",
    )
    _need(
        not places.size or (places.min() >= 0 and places.max() < width),
        f"`0 <= {plain} < {'ncols' if layout in BY_ROW else 'nrows'}` is not satisfied.",
    )
    for r, i in zip(ranges, places):
        inside = np.ones(max(nnz - 1, 0), bool)
        ends = r[1:-1]
        inside[ends[(ends > 0) & (ends < nnz)] - 1] = False
        _need(
            not nnz or (np.diff(i)[inside] > 0).all(),
            f"`{plain}[..., {compressed}[..., i - 1]:{compressed}[..., i]] for all i = 1, ..., {'nrows' if layout in BY_ROW else 'ncols'} "
            "are sorted and distinct along the last dimension values` is not satisfied.",
        )


def sparse_compressed_tensor(
    compressed_indices,
    plain_indices,
    values,
    size=None,
    *,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
    check_invariants=None,
):
    """A tensor in one of the compressed layouts ``layout``. RuntimeError, in PyTorch's words, when its invariants don't hold."""
    if layout not in COMPRESSED:
        raise RuntimeError(f"sparse_compressed_tensor_unsafe expected sparse compressed tensor layout but got {layout}")
    (c, p), v = _tensors([compressed_indices, plain_indices], values, dtype, device)
    if size is None:
        batch = c.ndim - 1
        array = p.detach()._array
        n, width = c.shape[-1] - 1, int(array.max()) + 1 if array.size else 0
        x, y = tuple(v.shape[batch + 1 : batch + 3]) if layout in BLOCKED else (1, 1)
        rows, columns = (n, width) if layout in BY_ROW else (width, n)
        size = (*c.shape[:batch], rows * x, columns * y, *v.shape[batch + (3 if layout in BLOCKED else 1) :])
    size = _counted(tuple(size))
    _check_compressed(layout, c, p, v, size)
    made = aten._sparse_compressed_tensor_unsafe.default(c, p, v, list(size), layout=layout)
    return made.detach().requires_grad_() if requires_grad else made


def sparse_csr_tensor(crow_indices, col_indices, values, size=None, **options) -> Tensor:
    """:func:`sparse_compressed_tensor` in the layout sparse_csr; ``options`` are dtype, device, requires_grad, check_invariants and pin_memory."""
    return sparse_compressed_tensor(crow_indices, col_indices, values, size, layout=sparse_csr, **options)


def sparse_csc_tensor(ccol_indices, row_indices, values, size=None, **options) -> Tensor:
    """:func:`sparse_compressed_tensor` in the layout sparse_csc; ``options`` are dtype, device, requires_grad, check_invariants and pin_memory."""
    return sparse_compressed_tensor(ccol_indices, row_indices, values, size, layout=sparse_csc, **options)


def sparse_bsr_tensor(crow_indices, col_indices, values, size=None, **options) -> Tensor:
    """:func:`sparse_compressed_tensor` in the layout sparse_bsr; ``options`` are dtype, device, requires_grad, check_invariants and pin_memory."""
    return sparse_compressed_tensor(crow_indices, col_indices, values, size, layout=sparse_bsr, **options)


def sparse_bsc_tensor(ccol_indices, row_indices, values, size=None, **options) -> Tensor:
    """:func:`sparse_compressed_tensor` in the layout sparse_bsc; ``options`` are dtype, device, requires_grad, check_invariants and pin_memory."""
    return sparse_compressed_tensor(ccol_indices, row_indices, values, size, layout=sparse_bsc, **options)
