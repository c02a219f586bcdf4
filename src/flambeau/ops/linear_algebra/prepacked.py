"""Products whose right operand, a constant weight, was packed before: what freezing makes of ``mm`` (inductor/passes/packing.py).

They have no derivative."""

from __future__ import annotations

from ...base import prepacked
from ...core.declare import extern
from ...core.definition import TensorMeta


@extern(
    "_prepack(Tensor self, int size, bool transposed, int way) -> Tensor",
    meta=lambda self, size, transposed, way: TensorMeta((size,), (1,), self.dtype, self.device),
    variants="",
)
def pack(self, size, transposed, way):
    """(K, N) in ``size`` elements; ``transposed``: its columns are contiguous."""
    return prepacked.pack(self, size, transposed, way)


@extern(
    "_mm_prepacked(Tensor self, Tensor packed, Tensor? addend, int columns, bool transposed, int way) -> Tensor",
    meta=lambda self, packed, addend, columns, transposed, way: TensorMeta(
        (self.shape[0], columns), (columns, 1), self.dtype, self.device
    ),
    variants="",
)
def multiply(self, packed, addend, columns, transposed, way):
    """(M, K) times (K, ``columns``) packed; plus ``addend``, rounded once, in bfloat16 only."""
    return prepacked.multiply(self, packed, columns, transposed, way, addend)


@multiply.override("lower")
def _(lowering, val, self, packed, addend, columns, transposed, way):
    return lowering.packed_product(val, self, packed, addend, transposed, way)


multiply.override(
    "flops", lambda self, packed, addend, columns, transposed, way: 2 * self.shape[0] * self.shape[1] * columns
)
