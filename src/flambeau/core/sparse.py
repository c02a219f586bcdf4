"""What a sparse tensor holds: a tensor without an array whose payload is one of the records here.

``Coo``: coordinates and values. ``Compressed``: rows (csr, bsr) or columns (csc, bsc) as ranges, the other coordinates, and values; in the
blocked layouts a value is a block. The parts are ordinary dense tensors without history. Operators reach them by the facet ``"sparse"``
(eager/sparse.py); everything above the backend sees a tensor with shape and dtype.
"""

from __future__ import annotations

import math
from typing import Any

from .. import _C
from ..base.records import slotted
from .operator import OpOverload
from .tensor import CPU, Layout, Tensor, sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr

__all__ = [
    "BLOCKED",
    "COMPRESSED",
    "Coo",
    "Compressed",
    "Sparse",
    "is_sparse",
    "make",
    "parts",
    "sparse_rule",
]


class Sparse:
    """Base of the records."""

    __slots__ = ()


@slotted(eq=False)
class Coo(Sparse):
    """``indices``: int64 (sparse dims, nnz). ``values``: (nnz, *dense sizes). ``coalesced``: indices sorted, each once."""

    indices: Any
    values: Any
    coalesced: bool
    layout = sparse_coo

    @property
    def nnz(self) -> int:
        return self.indices._shape[1]

    @property
    def sparse_dim(self) -> int:
        return self.indices._shape[0]

    def named_parts(self):
        return ("indices", self.indices), ("values", self.values)


@slotted(eq=False)
class Compressed(Sparse):
    """``compressed``: (*batch, rows + 1), ``plain``: (*batch, nnz), both int64 or int32; ``values``: (*batch, nnz, *block, *dense)."""

    layout: Layout
    compressed: Any
    plain: Any
    values: Any

    @property
    def nnz(self) -> int:
        return self.plain._shape[-1]

    @property
    def batch(self) -> int:
        return self.plain._ndim - 1

    @property
    def by_row(self) -> bool:
        return self.layout in BY_ROW

    def named_parts(self):
        compressed, plain = ("crow", "col") if self.by_row else ("ccol", "row")
        return (f"{compressed}_indices", self.compressed), (f"{plain}_indices", self.plain), ("values", self.values)

    @property
    def block(self) -> tuple[int, ...]:
        """Sizes of a block; () in csr and csc."""
        return tuple(self.values._shape[self.batch + 1 : self.batch + 3]) if self.layout in BLOCKED else ()


BY_ROW = (sparse_csr, sparse_bsr)
BLOCKED = (sparse_bsr, sparse_bsc)
COMPRESSED = (sparse_csr, sparse_csc, sparse_bsr, sparse_bsc)


def parts(t) -> Coo | Compressed | None:
    """The record of a sparse tensor, None for a dense one."""
    if t._array is not None:
        return None
    p = t._payload
    return p if isinstance(p, Sparse) else None


def is_sparse(t) -> bool:
    return isinstance(t, _C.TensorBase) and parts(t) is not None


def make(record: Sparse, size, cls=Tensor) -> Tensor:
    """The tensor with these parts."""
    size = tuple(size)
    out = _C.without_data(cls, size, (0,) * len(size), record.values._dtype, CPU, 0, None)
    out._payload = record
    return out


def dense_dim(t) -> int:
    """How many of the last dimensions are stored densely."""
    p = parts(t)
    if isinstance(p, Coo):
        return t._ndim - p.sparse_dim
    return t._ndim - p.batch - 2


def numel(shape) -> int:
    return math.prod(shape)


def sparse_rule(*ops: OpOverload):
    """What operators do with sparse arguments: ``fn(*all arguments in schema order)`` on tensors, below autograd."""

    def wrap(fn):
        for op in ops:
            op.override("sparse", fn)
        return fn

    return wrap
