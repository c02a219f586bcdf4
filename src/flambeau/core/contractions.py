"""Shapes of contractions from their letters."""

from __future__ import annotations

import numpy as np

from ..base.dtypes import c_name
from .operator import OpOverload
from .promotion import refuse


def check(op: OpOverload, tensors) -> dict[str, int]:
    """Size of each letter. RuntimeError in PyTorch's words for a wrong rank, size or dtype."""
    inputs, _, _ = op.definition.letters.partition("->")
    names = [a.name for a in op._schema.arguments]
    if op.refuses is not None and tensors[0].dtype.name in op.refuses:
        refuse(op, tensors[0].dtype)
    sizes: dict[str, int] = {}
    for t, term, name in zip(tensors, inputs.split(","), names):
        if len(t.shape) != len(term):
            if op.definition.ranks is not None:
                raise RuntimeError(op.definition.ranks.format(*(f"{len(x.shape)}D" for x in tensors)))
            kind = {1: "vector", 2: "matrix", 3: "batch of matrices"}.get(len(term), "tensor")
            raise RuntimeError(
                f"{op._opname}(): '{name}' must be a {kind} ({len(term)}D tensor), "
                f"got {len(t.shape)}D tensor with shape {list(t.shape)}"
            )
    if any(t.dtype is not tensors[0].dtype for t in tensors):
        a, b = (c_name(t.dtype) for t in tensors[:2])
        raise RuntimeError(f"{op._opname}(): expected m1 and m2 to have the same dtype, but got: {a} != {b}")
    for t, term in zip(tensors, inputs.split(",")):
        for letter, n in zip(term, t.shape):
            if sizes.setdefault(letter, n) != n:
                shown = " and ".join("x".join(map(str, x.shape)) for x in tensors)
                if op.definition.mismatch is not None:
                    raise RuntimeError(op.definition.mismatch.format(shown, sizes[letter], n))
                raise RuntimeError(
                    f"{op._opname}(): size mismatch, letter '{letter}' of {op.definition.letters} is {sizes[letter]} and {n} "
                    f"(shapes {shown})"
                )
    return sizes


def keeps_zeros(dtype: np.dtype, shape) -> bool:
    """Whether a product whose sums have one term each gives negative zeros, as PyTorch's does: of float32, float64 or complex matrices of several
    rows and columns. In batches, beside vectors and in 16 bits sums begin with 0."""
    return len(shape) == 2 and all(n != 1 for n in shape) and dtype.char in "fdFD"
