"""The continuous Bernoulli distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Self

from ..autograd.grad_mode import no_grad
from ..base.dtypes import finfo
from ..core.bindings import function
from ..core.tensor import Tensor
from . import constraints
from .binary import BinaryEvent
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["ContinuousBernoulli"]

_rand, _where = map(function, ("rand", "where"))


class ContinuousBernoulli(BinaryEvent):
    """On [0, 1]: proportional to p^x (1 - p)^(1 - x). Loaiza-Ganem & Cunningham, arXiv:1907.06845. Between ``lims`` series about
    p = 1/2 replace the formulas, which are 0/0 there."""

    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        super().__init__(probs, logits, validate_args=validate_args)
        self._lims = lims
        if probs is not None:
            eps = finfo(self.probs.dtype).eps
            self.probs = self.probs.clamp(eps, 1 - eps)

    def expand(self, batch_shape: Sequence[int], _instance: Distribution | None = None) -> Self:
        out = super().expand(batch_shape, _instance)
        out._lims = self._lims
        return out

    def _away_from_half(self):
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _cut(self):
        """The probabilities, with a harmless one where the series are meant."""
        return _where(self._away_from_half(), self.probs, self._lims[0])

    def _log_norm(self):
        p = self._cut()
        x = (self.probs - 0.5).pow(2)
        exact = (2 * (1 - 2 * p).atanh() / (1 - 2 * p)).log()
        return _where(self._away_from_half(), exact, math.log(2) + (4 / 3 + 104 / 45 * x) * x)

    @property
    def mean(self) -> Tensor:
        p, x = self._cut(), self.probs - 0.5
        exact = p / (2 * p - 1) + 1 / (2 * (1 - 2 * p).atanh())
        return _where(self._away_from_half(), exact, 0.5 + (1 / 3 + 16 / 45 * x.pow(2)) * x)

    @property
    def variance(self) -> Tensor:
        p, x = self._cut(), (self.probs - 0.5).pow(2)
        exact = p * (p - 1) / (1 - 2 * p).pow(2) + 1 / (2 * (1 - 2 * p).atanh()).pow(2)
        return _where(self._away_from_half(), exact, 1 / 12 - (1 / 15 - 128 / 945 * x) * x)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(_rand(shape, dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        p, value = broadcast_all(self.probs, value)
        return value * p.log() + (1 - value) * (-p).log1p() + self._log_norm()

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        p = self._cut()
        exact = (p.pow(value) * (1 - p).pow(1 - value) + p - 1) / (2 * p - 1)
        inside = _where(self._away_from_half(), exact, value)
        return _where(value <= 0, 0.0, _where(value >= 1, 1.0, inside))

    def icdf(self, value: Tensor) -> Tensor:
        p = self._cut()
        exact = ((-p + value * (2 * p - 1)).log1p() - (-p).log1p()) / (p.log() - (-p).log1p())
        return _where(self._away_from_half(), exact, value)

    def entropy(self) -> Tensor:
        low, high = (-self.probs).log1p(), self.probs.log()
        return self.mean * (low - high) - self._log_norm() - low
