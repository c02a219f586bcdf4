"""The Weibull distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from ..core.bindings import function
from ..core.tensor import Tensor
from . import constraints
from .distribution import Distribution
from .exponential import Exponential
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform
from .utils import broadcast_all, euler_constant

__all__ = ["Weibull"]

_ones, lgamma = map(function, ("ones_like", "lgamma"))


class Weibull(TransformedDistribution):
    """1 - exp(-(x / scale)^concentration) below x."""

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(self, scale: Tensor | float, concentration: Tensor | float, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        base = Exponential(_ones(self.scale), validate_args=validate_args)
        steps = [PowerTransform(self.concentration_reciprocal), AffineTransform(0, self.scale)]
        super().__init__(base, steps, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Distribution | None = None) -> Self:
        out = self._get_checked_instance(Weibull, _instance)
        out.scale, out.concentration = self.scale.expand(batch_shape), self.concentration.expand(batch_shape)
        out.concentration_reciprocal = out.concentration.reciprocal()
        base = self.base_dist.expand(batch_shape)
        steps = [PowerTransform(out.concentration_reciprocal), AffineTransform(0, out.scale)]
        TransformedDistribution.__init__(out, base, steps, validate_args=False)
        out._validate_args = self._validate_args
        return out

    mean = property(lambda self: self.scale * lgamma(1 + self.concentration_reciprocal).exp())

    @property
    def mode(self) -> Tensor:
        k = self.concentration
        return self.scale * ((k - 1) / k) ** self.concentration_reciprocal

    @property
    def variance(self) -> Tensor:
        r = self.concentration_reciprocal
        return self.scale.pow(2) * (lgamma(1 + 2 * r).exp() - (2 * lgamma(1 + r)).exp())

    def entropy(self) -> Tensor:
        r = self.concentration_reciprocal
        return euler_constant * (1 - r) + (self.scale * r).log() + 1
