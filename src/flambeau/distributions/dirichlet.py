"""The Dirichlet distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from ..core.bindings import function
from ..core.tensor import Tensor
from . import constraints
from .distribution import Distribution
from .exp_family import ExponentialFamily
from .sample_checks import checks_sample

__all__ = ["Dirichlet"]

_argmax, _dirichlet, _one_hot, _xlogy = map(function, ("argmax", "_sample_dirichlet", "one_hot", "xlogy"))
digamma, lgamma = map(function, ("digamma", "lgamma"))


class Dirichlet(ExponentialFamily):
    """Points of the simplex."""

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    _natural_params = property(lambda self: (self.concentration,))

    def _log_normalizer(self, x):
        return lgamma(x).sum(-1) - lgamma(x.sum(-1))

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Distribution | None = None) -> Self:
        return self._expanded(batch_shape, ("concentration",), self.event_shape, _instance)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return _dirichlet(self.concentration.expand(self._extended_shape(sample_shape)))

    @checks_sample
    def log_prob(self, value: Tensor) -> Tensor:
        a = self.concentration
        return _xlogy(a - 1.0, value).sum(-1) + lgamma(a.sum(-1)) - lgamma(a).sum(-1)

    mean = property(lambda self: self.concentration / self.concentration.sum(-1, True))

    @property
    def mode(self) -> Tensor:
        a = (self.concentration - 1).clamp(min=0.0)
        mode = a / a.sum(-1, True)
        if bool((self.concentration < 1).all(-1).any()):
            flat = (self.concentration < 1).all(-1)
            mode = mode.clone()
            at = _argmax(mode[flat], -1)
            mode[flat] = _one_hot(at, self.concentration.shape[-1]).to(mode.dtype)
        return mode

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.pow(2) * (total + 1))

    def entropy(self) -> Tensor:
        k, a = self.concentration.size(-1), self.concentration
        a0 = a.sum(-1)
        return lgamma(a).sum(-1) - lgamma(a0) - (k - a0) * digamma(a0) - ((a - 1.0) * digamma(a)).sum(-1)
