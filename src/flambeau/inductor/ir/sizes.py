"""Sizes as the compiler has them: ints, and expressions where the graph has symbolic integers.

What operators are asked (view maps, coordinate maps, finalizers) gets symbolic integers back (:func:`symbolic`), which behave as Python's numbers.
"""

from __future__ import annotations

from ...base.expr import Expr, floordiv, mod
from ...base.sizes import size, sizes

__all__ = ["IndexOps", "size", "sizes", "symbolic"]


def symbolic(e, example):
    """The inverse of :func:`size`; ``example``: some symbolic integer of the same graph."""
    return type(example)(e, example.env) if type(e) is Expr else e


class IndexOps:
    """Arithmetic on indices for core.viewmap.source_index."""

    @staticmethod
    def add(a, b):
        return size(a) + size(b)

    @staticmethod
    def mul(a, b):
        return size(a) * size(b)

    @staticmethod
    def sub(a, b):
        return size(a) - size(b)

    @staticmethod
    def floordiv(a, k):
        return floordiv(size(a), size(k))

    @staticmethod
    def mod(a, k):
        return mod(size(a), size(k))
