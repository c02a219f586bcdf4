"""What a function's code refers to by name."""

from __future__ import annotations

import types

__all__ = ["names_of"]


def names_of(code: types.CodeType) -> set[str]:
    """Globals, builtins and attributes that the code and the functions within it read or write."""
    out = set(code.co_names)
    for c in code.co_consts:
        if isinstance(c, types.CodeType):
            out |= names_of(c)
    return out
