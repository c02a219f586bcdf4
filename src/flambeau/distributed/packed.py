"""Several tensors in one collective: their elements one behind the other; and sparse ones, by their indices and values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .. import _C
from ..autograd.grad_mode import no_grad
from ..core.bindings import function
from ..sparse.construct import sparse_coo_tensor

__all__ = ["flat", "give_back", "is_sparse", "sparse_sum"]

cat, empty = function("cat"), function("empty")


def flat(tensors: Sequence):
    """Tensors of one dtype as one of one dimension. ValueError for several dtypes."""
    if len({t.dtype for t in tensors}) > 1:
        raise ValueError("tensors of one coalesced collective must have one dtype")
    return cat([t.detach().reshape(-1) for t in tensors])


def give_back(elements, tensors: Sequence) -> None:
    """Write what ``flat`` made back."""
    with no_grad():
        for t, part in zip(tensors, elements.split([t.numel() for t in tensors])):
            t.detach().copy_(part.view(t.shape))


def is_sparse(t) -> bool:
    """Whether a tensor is in the COO layout."""
    return str(getattr(t, "layout", "")) == "torch.sparse_coo"


def sparse_sum(t, all_gather, ranks: int):
    """The sum of all ranks' sparse tensors, coalesced. ``all_gather(list, tensor)``. RuntimeError when their numbers of sparse dimensions differ."""
    t = t.detach().coalesce()
    mine = _C.from_array(np.array([t._nnz(), t.sparse_dim()], np.int64))
    counts = [empty(2, dtype=mine.dtype) for _ in range(ranks)]
    all_gather(counts, mine)
    if len({int(c[1]) for c in counts}) > 1:
        raise RuntimeError(f"all_reduce: ranks have {[int(c[1]) for c in counts]} sparse dimensions")
    most = max(int(c[0]) for c in counts)
    parts = []
    for given, dim in ((t.indices(), 1), (t.values(), 0)):
        shape = list(given.shape)
        shape[dim] = most - shape[dim]
        padded = cat([given, given.new_zeros(shape)], dim)
        every = [empty(padded.shape, dtype=padded.dtype) for _ in range(ranks)]
        all_gather(every, padded)
        parts.append([x.narrow(dim, 0, int(c[0])) for x, c in zip(every, counts)])
    return sparse_coo_tensor(cat(parts[0], 1), cat(parts[1], 0), t.shape).coalesce()
