"""The relaxed Bernoulli distribution and its logits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from ..core.bindings import function
from ..core.tensor import Tensor
from . import constraints
from .binary import ProbsOrLogits
from .distribution import Distribution
from .transformed_distribution import TransformedDistribution
from .transforms import SigmoidTransform
from .utils import broadcast_all, clamp_probs, one_of

__all__ = ["RelaxedBernoulli"]

_log, _rand, _scalar_tensor = map(function, ("log", "rand", "scalar_tensor"))


class _LogitRelaxedBernoulli(ProbsOrLogits):
    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    has_rsample = True

    def __init__(
        self,
        temperature: Tensor | float,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = temperature
        name, value = one_of(probs, logits)
        (self._param,) = broadcast_all(value)
        self.__dict__[name] = self._param
        super().__init__(self._param.size(), validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Distribution | None = None) -> Self:
        out = self._expanded(batch_shape, ("probs", "logits", "_param"), (), _instance)
        out.temperature = self.temperature
        return out

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        p = clamp_probs(self.probs.expand(shape))
        u = clamp_probs(_rand(shape, dtype=p.dtype, device=p.device))
        return (u.log() - (-u).log1p() + p.log() - (-p).log1p()) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        d = logits - value.mul(self.temperature)
        return _log(_scalar_tensor(float(self.temperature))) + d - 2 * d.exp().log1p()


class RelaxedBernoulli(TransformedDistribution):
    """A Bernoulli variable relaxed into (0, 1) at a temperature."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self,
        temperature: Tensor | float,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        base = _LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Distribution | None = None) -> Self:
        return super().expand(batch_shape, _instance=self._get_checked_instance(RelaxedBernoulli, _instance))

    temperature = property(lambda self: self.base_dist.temperature)
    logits = property(lambda self: self.base_dist.logits)
    probs = property(lambda self: self.base_dist.probs)
