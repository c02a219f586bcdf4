"""The F distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Self

from ..base.shapes import Size
from ..core.bindings import function
from ..core.tensor import Tensor
from . import constraints
from .distribution import Distribution
from .gamma import Gamma, smallest_positive
from .sample_checks import checks_sample
from .utils import broadcast_all

__all__ = ["FisherSnedecor"]

lgamma = function("lgamma")


class FisherSnedecor(Distribution):
    """F with ``df1`` and ``df2`` degrees of freedom."""

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1: Tensor | float, df2: Tensor | float, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        self._gamma1, self._gamma2 = Gamma(self.df1 * 0.5, self.df1), Gamma(self.df2 * 0.5, self.df2)
        super().__init__(self.df1.size(), validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Distribution | None = None) -> Self:
        out = self._expanded(batch_shape, ("df1", "df2"), (), _instance)
        out._gamma1, out._gamma2 = self._gamma1.expand(Size(batch_shape)), self._gamma2.expand(Size(batch_shape))
        return out

    mean = property(lambda self: (self.df2 / (self.df2 - 2)).masked_fill(self.df2 <= 2, math.nan))
    mode = property(
        lambda self: ((self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)).masked_fill(self.df1 <= 2, math.nan)
    )

    @property
    def variance(self) -> Tensor:
        d = self.df2.masked_fill(self.df2 <= 4, math.nan)
        return 2 * d.pow(2) * (self.df1 + d - 2) / (self.df1 * (d - 2).pow(2) * (d - 4))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        a, b = self._gamma1.rsample(sample_shape).view(shape), self._gamma2.rsample(sample_shape).view(shape)
        tiny = smallest_positive(b)
        b.detach().clamp_(min=tiny)
        y = a / b
        y.detach().clamp_(min=tiny)
        return y

    @checks_sample
    def log_prob(self, value: Tensor) -> Tensor:
        a, b = self.df1 * 0.5, self.df2 * 0.5
        ratio = self.df1 / self.df2
        t1 = lgamma(a + b) - lgamma(a) - lgamma(b)
        return t1 + a * ratio.log() + (a - 1) * value.log() - (a + b) * (ratio * value).log1p()
