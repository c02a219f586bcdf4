"""Checks of values. Captured code makes them in its graph (dynamo/variables/tensors/torch_functions.py), so they don't break it."""

from __future__ import annotations

from collections.abc import Callable

from ..core.tensor import Tensor

__all__ = ["checks_sample", "demand_all"]


def demand_all(valid: Tensor, error: Callable[[], Exception]) -> None:
    """Raises ``error()`` unless all elements of ``valid`` are true."""
    if not bool(valid.all()):
        raise error()


def checks_sample(method):
    """The method ``log_prob``, which first checks its argument where arguments are validated."""

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return method(self, value)

    return log_prob
