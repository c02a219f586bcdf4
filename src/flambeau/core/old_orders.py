"""Signatures that PyTorch still takes with a warning: numbers before the tensors that they multiply."""

from __future__ import annotations

import warnings
from numbers import Number

from .. import _C

__all__ = ["reordered"]

_PRODUCTS = {"addbmm": 2, "addmm": 2, "addmv": 2, "addr": 2, "baddbmm": 2}
_SCALED = {"addcdiv": "value", "addcmul": "value", "add": "alpha", "sub": "alpha"}


def reordered(name: str, args: tuple, kwargs: dict) -> tuple[tuple, dict] | None:
    """The arguments of ``name`` in today's order, when they are in the old one: ``x.add_(2, y)`` for ``x.add_(y, alpha=2)``, ``x.addmm(b, a, m, n)``
    for ``x.addmm(m, n, beta=b, alpha=a)``. None when they are not."""
    base = name.removesuffix("_")
    numbers = [isinstance(a, Number) for a in args]
    new = None
    if base in _SCALED and len(args) >= 3 and numbers[:3] == [False, True, False] and _SCALED[base] not in kwargs:
        new = (args[0], *args[2:]), {**kwargs, _SCALED[base]: args[1]}
    elif base in _PRODUCTS and not {"beta", "alpha"} & kwargs.keys():
        at = next((i for i, number in enumerate(numbers) if number), None)
        rest = [a for a in args if not isinstance(a, Number)]
        given = [a for a in args if isinstance(a, Number)]
        if at in (0, 1) and len(rest) == 3 and len(given) <= 2:
            new = tuple(rest), {**kwargs, **dict(zip(("beta", "alpha"), given))}
    if new is None or not all(isinstance(a, _C.TensorBase) for a in new[0]):
        return None
    warnings.warn(f"This overload of {name} is deprecated: numbers belong behind the tensors, by name", stacklevel=3)
    return new
