"""Reads and writes by index under a mask; indices where it does not hold may be out of bounds."""

from __future__ import annotations

from ...core.declare import explicit
from ...core.operator import namespace

aten = namespace("aten")


def _inside(self, indices):
    """Indices clamped into the tensor."""
    return [
        None if i is None else aten.clamp.default(i, -self.shape[d], self.shape[d] - 1) for d, i in enumerate(indices)
    ]


@explicit(
    "_unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, Scalar fill) -> Tensor",
    variants="function",
    has_out=False,
)
def _unsafe_masked_index(self, mask, indices, fill):
    """``self[indices]`` where the mask holds, ``fill`` elsewhere; indices there may be out of bounds."""
    picked = aten.index.Tensor(self, _inside(self, indices))
    return aten.masked_fill.Scalar(picked, aten.logical_not.default(_led(mask, picked)), fill)


def _led(mask, picked):
    return (
        mask
        if mask.ndim == picked.ndim
        else aten.reshape.default(mask, [*mask.shape, *[1] * (picked.ndim - mask.ndim)])
    )


@explicit(
    "_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, Tensor?[] indices, Tensor values) -> Tensor",
    variants="function",
    has_out=False,
)
def _unsafe_masked_index_put_accumulate(self, mask, indices, values):
    kept = aten.masked_fill.Scalar(values, aten.logical_not.default(_led(mask, values)), 0)
    return aten.index_put.default(self, _inside(self, indices), kept, True)
