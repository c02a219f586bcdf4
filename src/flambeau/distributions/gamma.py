"""The gamma distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from ..core.bindings import function
from ..core.tensor import Tensor
from . import constraints
from .distribution import Distribution
from .exp_family import ExponentialFamily
from .sample_checks import checks_sample
from .utils import broadcast_all

__all__ = ["Gamma"]

_gamma, _gammainc, _xlogy, digamma = map(function, ("_standard_gamma", "special_gammainc", "xlogy", "digamma"))
lgamma = function("lgamma")


class Gamma(ExponentialFamily):
    """x^(a - 1) exp(-b x), concentration a and rate b."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    _mean_carrier_measure = 0
    _natural_params = property(lambda self: (self.concentration - 1, -self.rate))

    def _log_normalizer(self, x, y):
        return lgamma(x + 1) + (x + 1) * (-y.reciprocal()).log()

    def __init__(self, concentration: Tensor | float, rate: Tensor | float, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.size(), validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Distribution | None = None) -> Self:
        return self._expanded(batch_shape, ("concentration", "rate"), (), _instance)

    mean = property(lambda self: self.concentration / self.rate)
    mode = property(lambda self: ((self.concentration - 1) / self.rate).clamp(min=0))
    variance = property(lambda self: self.concentration / self.rate.pow(2))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        value = _gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        value.detach().clamp_(min=smallest_positive(value))
        return value

    @checks_sample
    def log_prob(self, value: Tensor) -> Tensor:
        a, b = self.concentration, self.rate
        return _xlogy(a, b) + _xlogy(a - 1, value) - b * value - lgamma(a)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - self.rate.log() + lgamma(a) + (1.0 - a) * digamma(a)

    def cdf(self, value: Tensor) -> Tensor:
        return _gammainc(self.concentration, self.rate * value)


def smallest_positive(t: Tensor) -> float:
    from ..base.dtypes import finfo

    return finfo(t.dtype).tiny
