"""The multinomial distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Self

from ..base.shapes import Size
from ..core.bindings import function
from ..core.tensor import Tensor
from . import constraints
from .binomial import Binomial
from .categorical import Categorical
from .distribution import Distribution
from .sample_checks import checks_sample
from .utils import broadcast_all

__all__ = ["Multinomial"]

_ones_like, lgamma = map(function, ("ones_like", "lgamma"))


class Multinomial(Distribution):
    """Counts of ``total_count`` draws from a Categorical."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(
        self,
        total_count: int = 1,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        self._binomial = Binomial(total_count, self.probs)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Distribution | None = None) -> Self:
        out = self._get_checked_instance(Multinomial, _instance)
        batch_shape = Size(batch_shape)
        out.total_count, out._categorical = self.total_count, self._categorical.expand(batch_shape)
        out._binomial = self._binomial.expand((*batch_shape, *self.event_shape))
        Distribution.__init__(out, batch_shape, self.event_shape, validate_args=False)
        out._validate_args = self._validate_args
        return out

    support = constraints.dependent_property(
        lambda self: constraints.multinomial(self.total_count), is_discrete=True, event_dim=1
    )
    logits = property(lambda self: self._categorical.logits)
    probs = property(lambda self: self._categorical.probs)
    param_shape = property(lambda self: self._categorical.param_shape)
    mean = property(lambda self: self.probs * self.total_count)
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        drawn = self._categorical.sample((self.total_count, *sample_shape))
        order = list(range(1, drawn.dim())) + [0]
        drawn = drawn.permute(*order)
        counts = drawn.new_zeros(self._extended_shape(sample_shape))
        counts.scatter_add_(-1, drawn, _ones_like(drawn))
        return counts.type_as(self.probs)

    @checks_sample
    def log_prob(self, value: Tensor) -> Tensor:
        logits, value = broadcast_all(self.logits, value)
        logits = logits.masked_fill((value == 0) & (logits == -math.inf), 0)
        return lgamma(value.sum(-1) + 1) - lgamma(value + 1).sum(-1) + (logits * value).sum(-1)

    def entropy(self) -> Tensor:
        """n H(p) - log n! + the sum over categories of E[log x!], x being binomial."""
        n = self.total_count
        counts = self._binomial.enumerate_support(expand=False)[1:]
        weights = self._binomial.log_prob(counts).exp() * lgamma(counts + 1)
        factorial = math.lgamma(n + 1)
        return n * self._categorical.entropy() - factorial + weights.sum((0, -1))
