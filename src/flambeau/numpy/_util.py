"""``torch._numpy._util``: between arrays and tensors."""

from __future__ import annotations

from typing import Any

from .ndarrays import unwrap

__all__ = ["ndarrays_to_tensors"]


def ndarrays_to_tensors(*inputs) -> Any:
    """The tensors of the arrays in ``inputs``, in tuples and lists too; anything else is left. One argument gives one result."""
    return unwrap(inputs[0]) if len(inputs) == 1 else tuple(map(unwrap, inputs))
