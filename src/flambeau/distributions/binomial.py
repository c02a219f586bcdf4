"""The binomial distribution."""

from __future__ import annotations

from collections.abc import Sequence

from ..autograd.grad_mode import no_grad
from ..core.bindings import function
from ..core.tensor import Tensor
from . import constraints
from .counts import NumberOfSuccesses
from .sample_checks import checks_sample

__all__ = ["Binomial"]

_arange, _binomial, lgamma = map(function, ("arange", "binomial", "lgamma"))


class Binomial(NumberOfSuccesses):
    """Successes in ``total_count`` trials."""

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True

    support = constraints.dependent_property(
        lambda self: constraints.integer_interval(0, self.total_count), is_discrete=True, event_dim=0
    )
    mean = property(lambda self: self.total_count * self.probs)
    mode = property(lambda self: ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count))
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return _binomial(self.total_count.expand(shape), self.probs.expand(shape))

    @checks_sample
    def log_prob(self, value: Tensor) -> Tensor:
        n, x = self.total_count, self.logits
        top = n * x.clamp(min=0) + n * (-x.abs()).exp().log1p() - lgamma(n + 1)
        return value * x - lgamma(value + 1) - lgamma(n - value + 1) - top

    def entropy(self) -> Tensor:
        if not bool((self.total_count == self.total_count.reshape(-1)[0]).all()):
            raise NotImplementedError("Inhomogeneous total count not supported by `entropy`.")
        each = self.log_prob(self.enumerate_support(False))
        return -(each.exp() * each).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = int(self.total_count.max())
        if not bool((self.total_count == n).all()):
            raise NotImplementedError("Inhomogeneous total count not supported by `enumerate_support`.")
        values = _arange(1 + n, dtype=self._param.dtype, device=self._param.device)
        values = values.view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1,) + tuple(self._batch_shape)) if expand else values
