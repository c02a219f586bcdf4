"""Checks of values. Captured code makes them in its graph (dynamo/variables/tensors/checks.py), so they don't break it."""

from __future__ import annotations

from collections.abc import Callable

from ..core.tensor import Tensor

__all__ = ["demand_all"]


def demand_all(valid: Tensor, error: Callable[[], Exception]) -> None:
    """Raises ``error()`` unless all elements of ``valid`` are true."""
    if not bool(valid.all()):
        raise error()
