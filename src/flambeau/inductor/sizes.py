"""Sizes as the compiler has them: ints, and expressions where the graph has symbolic integers.

What operators are asked (view maps, coordinate maps, finalizers) gets symbolic integers back (:func:`symbolic`), which behave as Python's numbers.
"""

from __future__ import annotations

from ..base.expr import Expr, floordiv, mod

__all__ = ["IndexOps", "size", "sizes", "symbolic"]


def size(n):
    """An int, or the expression of a symbolic integer, with what is known of its symbols put in: some may have become constants."""
    if type(n) is int or type(n) is Expr:
        return n
    return n.env.simplify(n.expr) if hasattr(n, "__sym__") else int(n)


def sizes(shape) -> tuple:
    return tuple(map(size, shape))


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
