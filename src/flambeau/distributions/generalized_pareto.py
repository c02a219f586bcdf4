"""The generalized Pareto distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Self

from ..base.dtypes import finfo
from ..core.bindings import function
from ..core.tensor import Tensor
from . import constraints
from .constraints import Constraint
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["GeneralizedPareto"]

_rand, _where = map(function, ("rand", "where"))


class GeneralizedPareto(Distribution):
    """1 - (1 + concentration z)^(-1 / concentration) below loc + scale z; exponential for a concentration of 0."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True

    def __init__(
        self,
        loc: Tensor | float,
        scale: Tensor | float,
        concentration: Tensor | float,
        validate_args: bool | None = None,
    ) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Distribution | None = None) -> Self:
        return self._expanded(batch_shape, ("loc", "scale", "concentration"), (), _instance)

    def _parts(self):
        """Where the concentration counts as 0, and one that isn't."""
        none = self.concentration.abs() < finfo(self.concentration.dtype).eps
        return none, _where(none, 1.0, self.concentration)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        none, c = self._parts()
        z = (value - self.loc) / self.scale
        return -self.scale.log() - _where(none, z, (1 + 1 / c) * (c * z).log1p())

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return -self.log_survival_function(value).expm1()

    def log_survival_function(self, value: Tensor) -> Tensor:
        """The logarithm of 1 - cdf."""
        none, c = self._parts()
        z = (value - self.loc) / self.scale
        return _where(none, -z, -(c * z).log1p() / c)

    def log_cdf(self, value: Tensor) -> Tensor:
        return (-self.log_survival_function(value).exp()).log1p()

    def icdf(self, value: Tensor) -> Tensor:
        none, c = self._parts()
        left = (-value).log1p()
        return self.loc + self.scale * _where(none, -left, (-c * left).expm1() / c)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(_rand(shape, dtype=self.loc.dtype, device=self.loc.device))

    @property
    def mean(self) -> Tensor:
        c = self.concentration
        return _where(c < 1, self.loc + self.scale / (1 - _where(c < 1, c, 0.0)), math.inf)

    @property
    def variance(self) -> Tensor:
        c = _where(self.concentration < 0.5, self.concentration, 0.0)
        return _where(self.concentration < 0.5, self.scale.pow(2) / ((1 - c).pow(2) * (1 - 2 * c)), math.inf)

    mode = property(lambda self: self.loc)

    def entropy(self) -> Tensor:
        return self.scale.log() + self.concentration + 1

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Constraint:
        bounded = self.concentration < 0
        upper = self.loc - self.scale / _where(bounded, self.concentration, -1.0)
        return constraints.interval(self.loc, _where(bounded, upper, math.inf))
