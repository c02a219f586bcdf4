"""The stored elements of a sparse tensor, for differences: where they stand in the dense array, and steps along them.

With a mask (``gradcheck(masked=True)``) only what is stored varies. Without one every element does, so the tensor is first made again with all
of its elements stored.
"""

from __future__ import annotations

import numpy as np

from .. import _C
from ..core.sparse import Compressed, Coo, make, parts

__all__ = ["all_stored", "kind", "pattern", "read", "stored", "write"]


def _places(t) -> np.ndarray:
    """For each stored number, in the order of the values, its index in the flat dense array."""
    p = parts(t)
    shape = p.values._shape
    count = int(np.prod(shape))
    if isinstance(p, Coo):
        inner = int(np.prod(shape[1:]))
        rows = np.ravel_multi_index(tuple(p.indices.numpy()), t._shape[: p.sparse_dim]) if p.sparse_dim else 0
        return (np.reshape(rows, (-1, 1)) * inner + np.arange(inner)).reshape(-1)
    numbers = _C.from_array(np.arange(1.0, count + 1).reshape(shape))
    dense = make(Compressed(p.layout, p.compressed, p.plain, numbers), t._shape).to_dense().numpy().reshape(-1)
    places = np.empty(count, np.int64)
    held = np.flatnonzero(dense)
    places[dense[held].astype(np.int64) - 1] = held
    return places


def stored(t, dense: np.ndarray) -> np.ndarray:
    """Of a dense array, the elements that ``t`` stores, shaped like its values. A place that is stored twice is given once."""
    places = _places(t)
    picked = np.zeros(places.size, dense.dtype)
    first = np.unique(places, return_index=True)[1]
    picked[first] = dense.reshape(-1)[places[first]]
    return picked.reshape(parts(t).values._shape)


def pattern(t) -> np.ndarray:
    """A dense array: which elements are stored."""
    found = np.zeros(t._shape, bool)
    found.reshape(-1)[_places(t)] = True
    return found


def read(t) -> np.ndarray:
    """A copy of the stored values."""
    return parts(t).values._array.copy()


def write(t, values: np.ndarray) -> None:
    """Give ``t`` other stored values, unseen by its history."""
    parts(t).values._array[...] = values


def all_stored(t):
    """A leaf with the elements and the layout of ``t`` that stores its zeros, too."""
    p, dense = parts(t), t.detach().to_dense()
    ones = _C.from_array(np.ones(t._shape, t._dtype.np))
    if isinstance(p, Coo):
        whole = ones.to_sparse(p.sparse_dim)
    else:
        whole = ones.to_sparse(layout=p.layout, blocksize=p.block or None, dense_dim=t._ndim - p.batch - 2)
    write(whole, stored(whole, dense.numpy()))
    return whole.requires_grad_(t._requires_grad)


def kind(layout) -> str:
    """What messages call a sparse layout: ``sparse``, ``sparse_csr``."""
    return str(layout).removeprefix("torch.").removesuffix("_coo")
