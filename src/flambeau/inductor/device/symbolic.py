"""Calls of one operator with symbols for sizes: one graph for all shapes that the same questions are answered alike for."""

from __future__ import annotations

from typing import Any

from ...base import relations
from ...base.expr_walks import evaluate
from ...base.records import slotted
from ...base.relations import as_symbol
from ...base.shape_env import ShapeEnv
from ...core.definition import TensorMeta
from ..ir.sizes import size

__all__ = ["Sizes", "form", "symbolic_metas", "taken"]


@slotted
class Sizes:
    """What a graph takes for granted of the tensors that it is called with. ``tensors``: (sizes, strides) of each, numbers or expressions;
    ``guards``: relations of the symbols."""

    tensors: tuple
    guards: tuple

    def fit(self, tensors) -> bool:
        """Whether these are such tensors."""
        env: dict[Any, int] = {}
        pairs = [
            pair
            for t, (shape, strides) in zip(tensors, self.tensors)
            for pair in (*zip(shape, t._shape), *zip(strides, t._strides))
        ]
        for e, n in pairs:
            symbol = as_symbol(e)
            if symbol is not None and not symbol.lo <= env.setdefault(symbol, n) <= symbol.hi:
                return False
        return all(evaluate(e, env) == n for e, n in pairs) and all(relations.evaluate(g, env) for g in self.guards)


def form(t):
    """What of a tensor a graph with symbols is made for."""
    return len(t._shape), t._dtype, t._device.type, tuple(n if n < 2 else 2 for n in t._shape)


def symbolic_metas(tensors) -> tuple[ShapeEnv, list[TensorMeta], tuple]:
    """The tensors without data, with symbols for sizes from 2 on, and for strides that don't follow from sizes; and (sizes, strides) of each as
    expressions. (What is learned of a symbol later takes it out of the tensors, not out of what was written before.)"""
    env, made = ShapeEnv(), []
    for t in tensors:
        shape, strides = env.create_shape(t._shape, t._strides, lambda d: {})
        made.append(TensorMeta(shape, strides, t._dtype, t._device))
    return env, made, tuple((tuple(map(size, m.shape)), tuple(map(size, m.strides))) for m in made)


def taken(env: ShapeEnv, tensors: tuple) -> Sizes:
    """What was asked about the symbols of ``tensors`` so far."""
    return Sizes(tensors, tuple(g.relation for g in env.guards if not isinstance(g.relation, bool)))
