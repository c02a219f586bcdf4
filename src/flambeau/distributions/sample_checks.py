"""Densities check their argument first. Captured code traces this; the check of a value itself is :mod:`.validation`'s."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.tensor import Tensor

__all__ = ["checks_sample"]


def checks_sample(method: Callable[[Any, Tensor], Tensor]) -> Callable[[Any, Tensor], Tensor]:
    """The method ``log_prob``, which first checks its argument where arguments are validated."""

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return method(self, value)

    return log_prob
