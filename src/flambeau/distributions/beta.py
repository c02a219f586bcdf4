"""The beta distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from ..base.shapes import Size
from ..core.bindings import function
from ..core.tensor import Tensor
from . import constraints
from .dirichlet import Dirichlet
from .distribution import Distribution
from .exp_family import ExponentialFamily
from .sample_checks import checks_sample
from .utils import broadcast_all

__all__ = ["Beta"]

_stack, lgamma = map(function, ("stack", "lgamma"))


class Beta(ExponentialFamily):
    """x^(a - 1) (1 - x)^(b - 1)."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    _natural_params = property(lambda self: (self.concentration1, self.concentration0))

    def _log_normalizer(self, x, y):
        return lgamma(x) + lgamma(y) - lgamma(x + y)

    def __init__(
        self, concentration1: Tensor | float, concentration0: Tensor | float, validate_args: bool | None = None
    ) -> None:
        one, zero = broadcast_all(concentration1, concentration0)
        self._dirichlet = Dirichlet(_stack([one, zero], -1), validate_args=validate_args)
        super().__init__(self._dirichlet._batch_shape, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Distribution | None = None) -> Self:
        out = self._get_checked_instance(Beta, _instance)
        batch_shape = Size(batch_shape)
        out._dirichlet = self._dirichlet.expand(batch_shape)
        Distribution.__init__(out, batch_shape, validate_args=False)
        out._validate_args = self._validate_args
        return out

    concentration1 = property(lambda self: self._dirichlet.concentration[..., 0])
    concentration0 = property(lambda self: self._dirichlet.concentration[..., 1])
    mean = property(lambda self: self.concentration1 / (self.concentration1 + self.concentration0))
    mode = property(lambda self: self._dirichlet.mode[..., 0])

    @property
    def variance(self) -> Tensor:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._dirichlet.rsample(sample_shape).select(-1, 0)

    @checks_sample
    def log_prob(self, value: Tensor) -> Tensor:
        return self._dirichlet.log_prob(_stack([value, 1.0 - value], -1))

    def entropy(self) -> Tensor:
        return self._dirichlet.entropy()
