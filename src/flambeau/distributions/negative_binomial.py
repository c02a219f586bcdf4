"""The negative binomial distribution."""

from __future__ import annotations

from collections.abc import Sequence

from ..autograd.grad_mode import no_grad
from ..core.bindings import function
from ..core.tensor import Tensor
from . import constraints
from .counts import NumberOfSuccesses
from .gamma import Gamma
from .sample_checks import checks_sample

__all__ = ["NegativeBinomial"]

_poisson, lgamma, _log_sigmoid = map(function, ("poisson", "lgamma", "log_sigmoid"))


class NegativeBinomial(NumberOfSuccesses):
    """Successes before ``total_count`` failures."""

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0), "probs": constraints.half_open_interval(0.0, 1.0), "logits": constraints.real,
    }  # fmt: skip
    support = constraints.nonnegative_integer

    def __init__(
        self,
        total_count: Tensor | float,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        super().__init__(total_count, probs, logits, validate_args)

    mean = property(lambda self: self.total_count * self.logits.exp())
    mode = property(lambda self: ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0))
    variance = property(lambda self: self.mean / (-self.logits).sigmoid())

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            rate = Gamma(self.total_count, (-self.logits).exp(), validate_args=False).sample(sample_shape)
            return _poisson(rate)

    @checks_sample
    def log_prob(self, value: Tensor) -> Tensor:
        n, x = self.total_count, self.logits
        plain = n * _log_sigmoid(-x) + value * _log_sigmoid(x)
        norm = -lgamma(n + value) + lgamma(1.0 + value) + lgamma(n)
        return plain - norm.masked_fill(n + value == 0.0, 0.0)
