"""What distributions of a number of successes share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from ..core.tensor import Tensor
from .binary import ProbsOrLogits
from .distribution import Distribution
from .utils import broadcast_all, one_of

__all__ = ["NumberOfSuccesses"]


class NumberOfSuccesses(ProbsOrLogits):
    """``total_count`` with ``probs`` or ``logits``."""

    def __init__(
        self,
        total_count: Tensor | int = 1,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        name, value = one_of(probs, logits)
        self.total_count, value = broadcast_all(total_count, value)
        self.__dict__[name] = self._param = value
        self.total_count = self.total_count.type_as(value)
        super().__init__(value.size(), validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Distribution | None = None) -> Self:
        return self._expanded(batch_shape, ("total_count", "probs", "logits", "_param"), (), _instance)

    param_shape = property(lambda self: self._param.size())
