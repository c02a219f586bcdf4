"""Absolute values of a symmetric distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Self

from ..core.tensor import Tensor
from . import constraints
from .distribution import Distribution
from .transformed_distribution import TransformedDistribution
from .transforms import AbsTransform

__all__ = ["Folded"]


class Folded(TransformedDistribution):
    """|x| of a distribution around zero."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _base: type

    def __init__(self, scale: Tensor | float, validate_args: bool | None = None) -> None:
        super().__init__(self._base(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Distribution | None = None) -> Self:
        return super().expand(batch_shape, _instance=self._get_checked_instance(type(self), _instance))

    scale = property(lambda self: self.base_dist.scale)
    mode = property(lambda self: self.scale.new_zeros(self.scale.shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        out = self.base_dist.log_prob(value) + math.log(2)
        return out.masked_fill(value < 0, -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, prob: Tensor) -> Tensor:
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)
