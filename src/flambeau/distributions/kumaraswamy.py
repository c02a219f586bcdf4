"""The Kumaraswamy distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Self

from ..core.bindings import function
from ..core.tensor import Tensor
from . import constraints
from .distribution import Distribution
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform
from .uniform import Uniform
from .utils import broadcast_all, euler_constant

__all__ = ["Kumaraswamy"]

_ones, digamma, lgamma = map(function, ("ones_like", "digamma", "lgamma"))


class Kumaraswamy(TransformedDistribution):
    """1 - (1 - x^a)^b below x."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self, concentration1: Tensor | float, concentration0: Tensor | float, validate_args: bool | None = None
    ) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        base = Uniform(
            self.concentration0.new_zeros(self.concentration0.shape), _ones(self.concentration0), validate_args
        )
        steps = [
            PowerTransform(self.concentration0.reciprocal()),
            AffineTransform(1.0, -1.0),
            PowerTransform(self.concentration1.reciprocal()),
        ]
        super().__init__(base, steps, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Distribution | None = None) -> Self:
        out = self._get_checked_instance(Kumaraswamy, _instance)
        out.concentration1 = self.concentration1.expand(batch_shape)
        out.concentration0 = self.concentration0.expand(batch_shape)
        return super().expand(batch_shape, _instance=out)

    def _moment(self, n):
        a, b = self.concentration1, self.concentration0
        return b * (lgamma(1 + n / a) + lgamma(b) - lgamma(1 + n / a + b)).exp()

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        inner = ((a - 1) / (a * b - 1)).pow(1 / a)
        return inner.masked_fill((a < 1) | (b < 1) | ((a == 1) & (b == 1)), math.nan)

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = digamma(b + 1) + euler_constant
        return (1 - 1 / b) + (1 - 1 / a) * harmonic - a.log() - b.log()

    mean = property(lambda self: self._moment(1))
    variance = property(lambda self: self._moment(2) - self._moment(1).pow(2))
