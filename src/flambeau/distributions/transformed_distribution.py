"""Distributions of transformed variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from ..base.shapes import Size
from ..core.tensor import Tensor
from . import constraints
from .constraints import Constraint
from .distribution import Distribution
from .independent import Independent
from .transforms import ComposeTransform, Transform
from .utils import sum_rightmost

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """The distribution of ``transforms`` applied to a draw of ``base_distribution``."""

    arg_constraints: dict = {}

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | Sequence[Transform],
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(transforms, (Transform, list)):
            raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
        self.transforms = [transforms] if isinstance(transforms, Transform) else list(transforms)
        if not all(isinstance(t, Transform) for t in self.transforms):
            raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
        shape = base_distribution.batch_shape + base_distribution.event_shape
        base_event = len(base_distribution.event_shape)
        transform = ComposeTransform(self.transforms)
        if len(shape) < transform.domain.event_dim:
            raise ValueError(
                f"base_distribution needs to have shape with size at least {transform.domain.event_dim}, but got {shape}."
            )
        forward = transform.forward_shape(tuple(shape))
        expanded = transform.inverse_shape(forward)
        if tuple(shape) != tuple(expanded):
            base_distribution = base_distribution.expand(expanded[: len(expanded) - base_event])
        more = transform.domain.event_dim - base_event
        if more > 0:
            base_distribution = Independent(base_distribution, more)
        self.base_dist = base_distribution
        change = transform.codomain.event_dim - transform.domain.event_dim
        event = max(transform.codomain.event_dim, base_event + change)
        cut = len(forward) - event
        super().__init__(forward[:cut], forward[cut:], validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Distribution | None = None) -> Self:
        out = self._get_checked_instance(TransformedDistribution, _instance)
        batch_shape = Size(batch_shape)
        transform = ComposeTransform(self.transforms)
        shape = transform.inverse_shape(tuple(batch_shape) + tuple(self.event_shape))
        base = len(self.base_dist.event_shape)
        out.base_dist = self.base_dist.expand(shape[: len(shape) - base])
        out.transforms = self.transforms
        Distribution.__init__(out, batch_shape, self.event_shape, validate_args=False)
        out._validate_args = self._validate_args
        return out

    @constraints.dependent_property
    def support(self) -> Constraint:
        if not self.transforms:
            return self.base_dist.support
        found, wanted = self.transforms[-1].codomain, len(self.event_shape)
        return constraints.independent(found, wanted - found.event_dim) if wanted > found.event_dim else found

    has_rsample = property(lambda self: self.base_dist.has_rsample)

    def _through(self, x):
        for transform in self.transforms:
            x = transform(x)
        return x

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        from ..autograd.grad_mode import no_grad

        with no_grad():
            return self._through(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._through(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        dims, total, y = len(self.event_shape), 0.0, value
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            dims += transform.domain.event_dim - transform.codomain.event_dim
            total = total - sum_rightmost(transform.log_abs_det_jacobian(x, y), dims - transform.domain.event_dim)
            y = x
        return total + sum_rightmost(self.base_dist.log_prob(y), dims - len(self.base_dist.event_shape))

    def _monotone(self, value):
        sign = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        return value if isinstance(sign, int) and sign == 1 else sign * (value - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._monotone(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        return self._through(self.base_dist.icdf(self._monotone(value)))
