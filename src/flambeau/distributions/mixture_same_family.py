"""Mixtures of distributions of one family."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from ..base.shapes import Size
from ..core.tensor import Tensor
from . import constraints
from .categorical import Categorical
from .constraints import Constraint
from .distribution import Distribution

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """Components along the last batch dimension, chosen by a Categorical."""

    arg_constraints: dict = {}

    def __init__(
        self, mixture_distribution: Categorical, component_distribution: Distribution, validate_args: bool | None = None
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError("The Mixture distribution needs to be an instance of torch.distributions.Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("The Component distribution need to be an instance of torch.distributions.Distribution")
        batch, components = mixture_distribution.batch_shape, component_distribution.batch_shape
        for ours, theirs in zip(reversed(batch), reversed(components[:-1])):
            if 1 not in (ours, theirs) and ours != theirs:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({batch}) is not compatible with `component_distribution.batch_shape`({components[:-1]})"
                )
        chosen = mixture_distribution.param_shape[-1]
        if components and chosen != components[-1]:
            raise ValueError(
                f"`mixture_distribution component` ({chosen}) does not equal `component_distribution.batch_shape[-1]` ({components[-1]})"
            )
        self._mixture_distribution, self._component_distribution = mixture_distribution, component_distribution
        self._event_ndims = len(component_distribution.event_shape)
        super().__init__(
            component_distribution.batch_shape[:-1], component_distribution.event_shape, validate_args=validate_args
        )

    mixture_distribution = property(lambda self: self._mixture_distribution)
    component_distribution = property(lambda self: self._component_distribution)
    has_rsample = False

    @constraints.dependent_property
    def support(self) -> Constraint:
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    def expand(self, batch_shape: Sequence[int], _instance: Distribution | None = None) -> Self:
        out = self._get_checked_instance(MixtureSameFamily, _instance)
        batch_shape = Size(batch_shape)
        components = self._component_distribution
        out._component_distribution = components.expand((*batch_shape, components.batch_shape[-1]))
        out._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        out._event_ndims = self._event_ndims
        Distribution.__init__(out, batch_shape, self.event_shape, validate_args=False)
        out._validate_args = self._validate_args
        return out

    def __repr__(self):
        return f"MixtureSameFamily(\n  {self._mixture_distribution},\n  {self._component_distribution})"

    def _weights(self):
        p = self._mixture_distribution.probs
        return p.reshape(*p.shape, *[1] * self._event_ndims)

    @property
    def mean(self) -> Tensor:
        return (self._weights() * self._component_distribution.mean).sum(-1 - self._event_ndims)

    @property
    def variance(self) -> Tensor:
        at = -1 - self._event_ndims
        inner = (self._weights() * self._component_distribution.variance).sum(at)
        centred = self._component_distribution.mean - self.mean.unsqueeze(at)
        return inner + (self._weights() * centred.pow(2)).sum(at)

    def cdf(self, x: Tensor) -> Tensor:
        return (
            self._component_distribution.cdf(x.unsqueeze(-1 - self._event_ndims)) * self._mixture_distribution.probs
        ).sum(-1)

    def log_prob(self, x: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(x)
        each = self._component_distribution.log_prob(x.unsqueeze(-1 - self._event_ndims))
        return (each + self._mixture_distribution.logits.log_softmax(-1)).logsumexp(-1)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        at = len(sample_shape) + len(self.batch_shape)
        pick = self._mixture_distribution.sample(sample_shape)
        drawn = self._component_distribution.sample(sample_shape)
        pick = pick.reshape(*pick.shape, *[1] * (self._event_ndims + 1))
        shape = list(drawn.shape)
        shape[at] = 1
        return drawn.gather(at, pick.expand(shape)).squeeze(at)
