"""The categorical distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Self

from ..autograd.grad_mode import no_grad
from ..base.dtypes import finfo
from ..base.shapes import Size
from ..core.bindings import function
from ..core.tensor import Tensor
from . import constraints
from .constraints import Constraint
from .distribution import Distribution
from .utils import lazy_property, logits_to_probs, one_of, probs_to_logits

__all__ = ["Categorical"]

arange, broadcast_tensors, multinomial = map(function, ("arange", "broadcast_tensors", "multinomial"))


class Categorical(Distribution):
    """0 to K - 1 with probabilities along the last dimension."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True

    def __init__(
        self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None
    ) -> None:
        name, given = one_of(probs, logits)
        if given.dim() < 1:
            raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        if probs is not None:
            self.probs = probs / probs.sum(-1, keepdim=True)
        else:
            self.logits = logits - logits.logsumexp(-1, keepdim=True)
        self._param = self.probs if probs is not None else self.logits
        self._num_events = given.shape[-1]
        super().__init__(given.shape[:-1], validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Distribution | None = None) -> Self:
        out = self._expanded(batch_shape, ("probs", "logits", "_param"), (), _instance)
        out._num_events = self._num_events
        return out

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Constraint:
        return constraints.integer_interval(0, self._num_events - 1)

    @lazy_property
    def logits(self) -> Tensor:
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self) -> Tensor:
        return logits_to_probs(self.logits)

    @property
    def param_shape(self) -> Size:
        return self._param.size()

    @property
    def mean(self) -> Tensor:
        return self.probs.new_full(self._extended_shape(), math.nan)

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(-1)

    @property
    def variance(self) -> Tensor:
        return self.probs.new_full(self._extended_shape(), math.nan)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        sample_shape = Size(sample_shape)
        with no_grad():
            flat = self.probs.reshape(-1, self._num_events)
            draws = multinomial(flat, sample_shape.numel(), True).transpose(0, 1)
            return draws.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        value, table = value.long().unsqueeze(-1), self.logits
        shape = broadcast_tensors([value.expand(*value.shape[:-1], table.shape[-1]), table])
        return shape[1].gather(-1, shape[0][..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        logits = self.logits.clamp(min=finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = arange(self._num_events, device=self._param.device).view(-1, *[1] * len(self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values
