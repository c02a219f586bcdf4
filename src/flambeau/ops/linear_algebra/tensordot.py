"""``tensordot``: a product summed over any dimensions."""

from __future__ import annotations

import math

from ...base.shapes import normalize_dim
from ...core.declare import composite
from ...core.operator import namespace

aten = namespace("aten")


def _tensordot_error(a, b, i, j):
    return RuntimeError(
        f"contracted dimensions need to match, but first has size {a.shape[i]} in dim {i} and second has size {b.shape[j]} in dim {j}"
    )


@composite(
    "tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor", variants="", out_rules="exact"
)
def tensordot(self, other, dims_self, dims_other):
    if len(dims_self) != len(dims_other):
        raise RuntimeError("both dimension lists should have same length")
    if self.dtype is not other.dtype:
        raise RuntimeError("tensordot: both inputs should have same dtype")
    left, right = [normalize_dim(d, self.ndim) for d in dims_self], [normalize_dim(d, other.ndim) for d in dims_other]
    for i, j in zip(left, right):
        n, m = self.shape[i], other.shape[j]
        if m == 1 and n != 1:
            self = aten.sum.dim_IntList(self, [i], True, dtype=self.dtype)
        elif n == 1 and m != 1:
            other = aten.sum.dim_IntList(other, [j], True, dtype=other.dtype)
        elif n != m:
            raise _tensordot_error(self, other, i, j)
    keep_a = [d for d in range(self.ndim) if d not in left]
    keep_b = [d for d in range(other.ndim) if d not in right]
    inner = math.prod(self.shape[d] for d in left)
    x = aten.reshape.default(
        aten.permute.default(self, keep_a + left), [math.prod(self.shape[d] for d in keep_a), inner]
    )
    y = aten.reshape.default(
        aten.permute.default(other, right + keep_b), [inner, math.prod(other.shape[d] for d in keep_b)]
    )
    return aten.reshape.default(
        aten.mm.default(x, y), [self.shape[d] for d in keep_a] + [other.shape[d] for d in keep_b]
    )
