"""The Bernoulli distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..autograd.grad_mode import no_grad
from ..core.bindings import function
from ..core.tensor import Tensor
from ..nn import functional as F
from . import constraints
from .binary import BinaryEvent
from .exp_family import ExponentialFamily
from .utils import broadcast_all

__all__ = ["Bernoulli"]

arange, bernoulli = map(function, ("arange", "bernoulli"))


class Bernoulli(BinaryEvent, ExponentialFamily):
    """1 with probability ``probs``, else 0."""

    support = constraints.boolean
    has_enumerate_support = True

    _mean_carrier_measure = 0
    _natural_params = property(lambda self: (self.logits,))

    def _log_normalizer(self, x):
        return x.exp().log1p()

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return (self.probs >= 0.5).to(self.probs.dtype).masked_fill(self.probs == 0.5, math.nan)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            return bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -F.binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        return F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = arange(2, dtype=self._param.dtype, device=self._param.device).view(-1, *[1] * len(self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values
