"""Sizes as the compiler has them: ints, and expressions where the graph has symbolic integers."""

from __future__ import annotations

from .expr import Expr

__all__ = ["dense_strides", "size", "sizes"]


def size(n):
    """An int, or the expression of a symbolic integer, with what is known of its symbols put in: some may have become constants."""
    if type(n) is int or type(n) is Expr:
        return n
    return n.env.simplify(n.expr) if hasattr(n, "__sym__") else int(n)


def sizes(shape) -> tuple:
    return tuple(map(size, shape))


def dense_strides(shape) -> tuple:
    """Row-major strides."""
    out, step = [], 1
    for n in reversed(shape):
        out.append(step)
        step = step * (n if type(n) is Expr else max(n, 1))
    return tuple(reversed(out))
