"""Tensors whose elements are the conjugates, or the negatives, of what lies in their memory.

Such a view is a tensor without an array whose payload is a :class:`Lazy`: the plain tensor over the memory, and what is to be done to its
elements. So nothing that reads memory can take the one for the other. The backend (eager/lazy.py) lets view operators pass, carries writes
back, and computes the elements for everything else.
"""

from __future__ import annotations

from typing import Any

from .. import _C
from ..base.records import slotted
from .operator import namespace
from .tensor import Tensor

__all__ = ["Lazy", "applied", "lazy", "make", "plain_of", "resolved"]

aten = namespace("aten")


@slotted(eq=False)
class Lazy:
    """``plain``: a tensor over the memory, without history."""

    plain: Any
    conj: bool
    neg: bool


def lazy(t) -> Lazy | None:
    """The record of a lazy view, None for every other tensor."""
    if t._array is not None:
        return None
    p = t._payload
    return p if type(p) is Lazy else None


def plain_of(t):
    """``t`` as a plain tensor over the same memory, and its flags."""
    p = lazy(t)
    return (t, False, False) if p is None else (p.plain, p.conj, p.neg)


def make(plain, conj: bool, neg: bool):
    """The view of the memory of ``plain`` with these flags; without any a plain tensor."""
    if not (conj or neg):
        return _C.alias(plain, Tensor)
    out = _C.without_data(
        Tensor,
        tuple(plain._shape),
        tuple(plain._strides),
        plain._dtype,
        plain._device,
        plain._offset,
        plain._counter,
    )
    out._payload = Lazy(_C.alias(plain, Tensor), conj, neg)
    return out


def applied(x, conj: bool, neg: bool):
    """``x`` conjugated and negated, which is its own inverse."""
    x = aten._conj_physical.default(x) if conj else x
    return aten.neg.default(x) if neg else x


def resolved(t):
    """The elements of ``t`` in memory of their own; a plain tensor itself."""
    p = lazy(t)
    return t if p is None else applied(p.plain, p.conj, p.neg)
