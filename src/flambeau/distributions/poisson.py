"""The Poisson distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from ..autograd.grad_mode import no_grad
from ..core.bindings import function
from ..core.tensor import Tensor
from . import constraints
from .distribution import Distribution
from .exp_family import ExponentialFamily
from .sample_checks import checks_sample
from .utils import broadcast_all

__all__ = ["Poisson"]

_poisson, _xlogy, lgamma = map(function, ("poisson", "xlogy", "lgamma"))


class Poisson(ExponentialFamily):
    """Counts of events that come at ``rate``."""

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    _natural_params = property(lambda self: (self.rate.log(),))

    def _log_normalizer(self, x):
        return x.exp()

    def __init__(self, rate: Tensor | float, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.size(), validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Distribution | None = None) -> Self:
        return self._expanded(batch_shape, ("rate",), (), _instance)

    mean = variance = property(lambda self: self.rate)
    mode = property(lambda self: self.rate.floor())

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            return _poisson(self.rate.expand(self._extended_shape(sample_shape)))

    @checks_sample
    def log_prob(self, value: Tensor) -> Tensor:
        return _xlogy(value, self.rate) - self.rate - lgamma(value + 1)
