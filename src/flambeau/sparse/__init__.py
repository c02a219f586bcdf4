"""``torch.sparse`` and the makers of sparse tensors.

A sparse tensor is a Tensor that holds a record of its parts (core/sparse.py); operators meet it below autograd (eager/sparse.py), with rules that
stand in ops/sparse*.py. Here is what users call: constructors that check their arguments (construct.py), products, reductions, softmax.
"""

from __future__ import annotations

import functools
import importlib

import numpy as np

from flambeau import _C
from flambeau.core.operator import namespace
from flambeau.core.overrides import wrap_function as _wrap
from flambeau.core.sparse import is_sparse as _is_sparse
from flambeau.sparse.construct import (
    check_sparse_tensor_invariants,
    sparse_bsc_tensor,
    sparse_bsr_tensor,
    sparse_compressed_tensor,
    sparse_coo_tensor,
    sparse_csc_tensor,
    sparse_csr_tensor,
)

__all__ = [
    "addmm",
    "as_sparse_gradcheck",
    "check_sparse_tensor_invariants",
    "log_softmax",
    "mm",
    "sampled_addmm",
    "softmax",
    "spdiags",
    "sum",
]

_aten = namespace("aten")
_MAKERS = (
    sparse_bsc_tensor,
    sparse_bsr_tensor,
    sparse_compressed_tensor,
    sparse_coo_tensor,
    sparse_csc_tensor,
    sparse_csr_tensor,
)


def mm(sparse, dense, reduce=None):
    """``sparse @ dense``; of two sparse matrices the result is sparse. The gradient of a sparse operand has its pattern.

    ``reduce``: "sum", "mean", "amax" or "amin" over the stored terms (csr only).
    """
    if reduce is not None:
        return _aten._sparse_mm.reduce(sparse, dense, reduce)
    return _aten._sparse_mm.default(sparse, dense)


def addmm(mat, mat1, mat2, *, beta=1.0, alpha=1.0):
    """``beta * mat + alpha * (mat1 @ mat2)`` with a sparse ``mat1``; gradients of sparse operands have their pattern."""
    return _aten._sparse_addmm.default(mat, mat1, mat2, beta=beta, alpha=alpha)


def sampled_addmm(input, mat1, mat2, *, beta=1.0, alpha=1.0, out=None):
    """``alpha * (mat1 @ mat2)`` at the places that ``input`` (csr) stores, plus ``beta * input``."""
    made = _aten.sparse_sampled_addmm.default(input, mat1, mat2, beta=beta, alpha=alpha)
    return made if out is None else out.copy_(made)


def sum(input, dim=None, dtype=None):
    """The sum of all elements, or over ``dim`` (a sparse tensor, unless no sparse dimension is left)."""
    if dim is None:
        return _aten._sparse_sum.default(input) if dtype is None else _aten._sparse_sum.dtype(input, dtype=dtype)
    dims = list(dim) if isinstance(dim, (list, tuple)) else [dim]
    return (
        _aten._sparse_sum.dim(input, dims) if dtype is None else _aten._sparse_sum.dim_dtype(input, dims, dtype=dtype)
    )


def softmax(input, dim, *, dtype=None):
    """Softmax along ``dim`` of the stored elements; what isn't stored counts as minus infinity."""
    return _aten._sparse_softmax.int(input, dim, dtype=dtype)


def log_softmax(input, dim, *, dtype=None):
    """The logarithm of :func:`softmax`."""
    return _aten._sparse_log_softmax.int(input, dim, dtype=dtype)


def spdiags(diagonals, offsets, shape, layout=None):
    """The matrix of size ``shape`` whose diagonals ``offsets`` are the rows of ``diagonals``, as in scipy.sparse.spdiags."""
    rows = diagonals if diagonals.ndim == 2 else diagonals.unsqueeze(0)
    if offsets.dtype.name != "int64":
        raise RuntimeError(f"Offset Tensor must have dtype Long but got {offsets.dtype}")
    at = offsets.reshape(-1).tolist()
    if rows.shape[0] != len(at):
        raise RuntimeError(f"Number of diagonals ({rows.shape[0]}) does not match the number of offsets ({len(at)})")
    if len(set(at)) != len(at):
        raise RuntimeError("Offset tensor contains duplicate values")
    if len(shape) != 2:
        raise RuntimeError(f"Output shape must be 2d, got {len(shape)}")
    i, j, k = [], [], []
    for d, offset in enumerate(at):
        columns = np.arange(max(offset, 0), min(shape[1], shape[0] + offset, rows.shape[1]))
        i.append(columns - offset), j.append(columns), k.append(np.full(len(columns), d))
    i, j, k = ((_C.from_array(np.concatenate(x).astype(np.int64))) for x in (i, j, k))
    made = sparse_coo_tensor(_aten.stack.default([i, j]), rows[k, j], tuple(shape))
    return made if layout is None else made.to_sparse(layout=layout)


def _with_values(like, values):
    """A tensor with the pattern of ``like``; its gradient reaches ``values``."""
    if like.is_sparse:
        return sparse_coo_tensor(like.indices(), values, tuple(like.shape), is_coalesced=True)
    compressed, plain = (
        (like.crow_indices(), like.col_indices())
        if "r" == str(like.layout)[-1]
        else (like.ccol_indices(), like.row_indices())
    )
    return sparse_compressed_tensor(compressed, plain, values, tuple(like.shape), layout=like.layout)


def as_sparse_gradcheck(gradcheck):
    """``gradcheck`` for functions of sparse tensors: inputs and outputs are handed over as their values."""

    def checked(func, inputs, **kwargs):
        inputs = inputs if isinstance(inputs, (list, tuple)) else (inputs,)
        leaves, rebuild = [], []
        for x in inputs:
            if _is_sparse(x) and x.requires_grad:
                coalesced = x.detach().coalesce() if x.is_sparse else x.detach()
                leaves.append(coalesced.values().clone().requires_grad_())
                rebuild.append(functools.partial(_with_values, coalesced))
            else:
                leaves.append(x)
                rebuild.append(lambda v: v)

        def on_values(*values):
            made = func(*(f(v) for f, v in zip(rebuild, values)))
            return made.to_dense() if _is_sparse(made) else made

        kwargs.pop("masked", None)
        return gradcheck(on_values, leaves, **kwargs)

    return checked


for _fn in (mm, addmm, sampled_addmm, sum, softmax, log_softmax, *_MAKERS):
    globals()[_fn.__name__] = _wrap(_fn)

_SEMI_STRUCTURED = (
    "SparseSemiStructuredTensor",
    "SparseSemiStructuredTensorCUSPARSELT",
    "SparseSemiStructuredTensorCUTLASS",
)


def __getattr__(name):
    if name in (*_SEMI_STRUCTURED, "to_sparse_semi_structured", "solve"):
        return getattr(importlib.import_module("flambeau.sparse.semi_structured"), name)
    raise AttributeError(f"module 'torch.sparse' has no attribute {name!r}")
