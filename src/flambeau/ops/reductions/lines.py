"""The batching rule of operators that work line by line."""

from __future__ import annotations

from ...base.shapes import normalize_dim
from ...core.operator import OpOverload, namespace

__all__ = ["by_lines"]

aten = namespace("aten")


def by_lines(op: OpOverload) -> None:
    """Give an operator of lines along ``dim``, whose results have a line's elements or one in their place, its batching rule."""
    names = [a.name for a in op._schema.arguments]
    keywords = [a.name for a in op._schema.arguments if a.kwarg_only]
    at = names.index("dim")

    def rule(call, *values):
        dims, given = values[0].ndim - 1, dict(zip(names, values))
        if not dims:  # examples of one element
            given["self"] = aten.unsqueeze.default(values[0], 1)
        given["dim"] = 1 + normalize_dim(values[at], max(dims, 1))
        made = op(*(given[n] for n in names if n not in keywords), **{n: given[n] for n in keywords})
        if dims:
            return made
        parts = made if isinstance(made, tuple) else (made,)
        parts = tuple(aten.reshape.default(x, list(values[0].shape)) for x in parts)
        return parts if isinstance(made, tuple) else parts[0]

    op.override("batch", rule)
