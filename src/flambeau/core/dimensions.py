"""Moving a dimension, joining it with another one, and taking it out again: helpers of batching rules."""

from __future__ import annotations

from .operator import namespace

__all__ = ["movedim", "reshape_dim_into", "reshape_dim_outof"]

aten = namespace("aten")


def movedim(x, source: int, destination: int):
    """``x`` with one dimension moved (both non-negative)."""
    if source == destination:
        return x
    if x.is_nested:
        raise RuntimeError("Nested tensors can only be vmapped over dim=0, but got another dimension.")
    perm = [d for d in range(x._ndim) if d != source]
    perm.insert(destination, source)
    return aten.permute.default(x, perm)


def reshape_dim_into(src: int, dst: int, x):
    """``x`` with dimension ``src`` moved in front of dimension ``dst`` (counted without it) and joined with it."""
    src, dst = src % x._ndim, dst % (x._ndim - 1)
    moved = movedim(x, src, dst)
    shape = list(moved._shape)
    shape[dst : dst + 2] = [shape[dst] * shape[dst + 1]]
    return aten.reshape.default(moved, shape)


def reshape_dim_outof(src: int, size1: int, x):
    """``x`` with dimension ``src`` split into two, the first of ``size1``. RuntimeError when its size is no multiple."""
    src %= x._ndim
    shape = list(x._shape)
    if size1 and shape[src] % size1:
        raise RuntimeError(f"reshape_dim_outof: a dimension of size {shape[src]} has no parts of {size1}")
    shape[src : src + 1] = [size1, shape[src] // size1 if size1 else 0]
    return aten.reshape.default(x, shape)
