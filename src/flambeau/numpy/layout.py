"""The order in memory of new arrays. NumPy's default, "K", is the order of what a result is made from."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.operator import namespace
from ..core.tensor import Tensor
from .promotion import is_tensor

__all__ = ["axes_by_memory", "in_order", "kept", "laid_out"]

aten = namespace("aten")


def _strides(x, ndim: int) -> list:
    """Strides of ``x`` broadcast to ``ndim`` dimensions."""
    return [0] * (ndim - x.ndim) + [0 if n == 1 else s for n, s in zip(x.shape, x.stride())]


def axes_by_memory(ndim: int, operands: Sequence) -> list[int]:
    """The axes of what an element-wise function of ``operands`` gives, the outermost in memory first.

    As ``numpy.nditer`` sorts them: by insertion from the last axis on, two axes changing places where the strides of every operand that has both
    say so. Where they disagree the order of C wins.
    """
    strides = [_strides(x, ndim) for x in operands]
    inner_first: list[int] = []
    for axis in reversed(range(ndim)):
        at = len(inner_first)
        for place in reversed(range(len(inner_first))):
            said = [abs(s[inner_first[place]]) > abs(s[axis]) for s in strides if s[inner_first[place]] and s[axis]]
            if said and not all(said):
                break
            if said:
                at = place
        inner_first.insert(at, axis)
    return inner_first[::-1]


def in_order(ndim: int, order: str | None, like: Tensor | None = None) -> list[int]:
    """The axes of an array of this order, the outermost in memory first; ``like``: what "A" and "K" go by. ValueError for no order."""
    if order not in ("C", "F", "A", "K", None):
        raise ValueError(f"order must be one of 'C', 'F', 'A', or 'K' (got {order!r})")
    forward = list(range(ndim))
    if like is None or order == "C" or order == "F" or like.ndim != ndim or like.is_contiguous():
        return forward[::-1] if order == "F" else forward
    if order == "A":
        return forward[::-1] if aten.permute(like, forward[::-1]).is_contiguous() else forward
    strides = like.stride()
    return sorted(forward, key=lambda axis: -strides[axis])


def laid_out(x: Tensor, axes: Sequence[int]) -> Tensor:
    """``x`` in memory in which ``axes`` follow each other from the outermost to the innermost; itself where they do."""
    by_memory = aten.permute(x, axes)
    if by_memory.is_contiguous():
        return x
    return aten.permute(by_memory.contiguous(), sorted(range(len(axes)), key=axes.__getitem__))


def kept(result: Tensor, *operands, reduced: Sequence[int] = (), keepdims: bool = False) -> Tensor:
    """What an element-wise function of ``operands`` gave, or a reduction of one over the axes ``reduced``, in the order that NumPy leaves it in."""
    tensors = [x for x in operands if is_tensor(x) and x.ndim > 1]
    if all(x.is_contiguous() for x in tensors) and result.is_contiguous():
        return result
    ndim = max(x.ndim for x in tensors) if tensors else result.ndim
    axes = axes_by_memory(ndim, tensors)
    if reduced and not keepdims:
        left = [axis for axis in range(ndim) if axis not in reduced]
        axes = [left.index(axis) for axis in axes if axis in left]
    return laid_out(result, axes)
