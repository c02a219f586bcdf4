"""What distributions given by probabilities or logits of one event share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from ..base.shapes import Size
from ..core.tensor import Tensor
from . import constraints
from .distribution import Distribution
from .utils import broadcast_all, lazy_property, logits_to_probs, one_of, probs_to_logits

__all__ = ["BinaryEvent", "ProbsOrLogits"]


class ProbsOrLogits(Distribution):
    """Given by probabilities or their log-odds; the other one is computed when it is first read."""

    @lazy_property
    def logits(self) -> Tensor:
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        return logits_to_probs(self.logits, is_binary=True)


class BinaryEvent(ProbsOrLogits):
    """Given by ``probs`` or ``logits``."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}

    def __init__(
        self,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        name, value = one_of(probs, logits)
        (value,) = broadcast_all(value)
        self.__dict__[name] = value
        self._param = value
        super().__init__(value.size(), validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Distribution | None = None) -> Self:
        return self._expanded(batch_shape, ("probs", "logits", "_param"), (), _instance)

    @property
    def param_shape(self) -> Size:
        return self._param.size()
