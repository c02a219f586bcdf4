"""Student's t distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Self

from ..base.shapes import Size
from ..core.bindings import function
from ..core.tensor import Tensor
from . import constraints
from .chi2 import Chi2
from .distribution import Distribution
from .sample_checks import checks_sample
from .utils import broadcast_all

__all__ = ["StudentT"]

_normal, digamma, lgamma = map(function, ("randn", "digamma", "lgamma"))


class StudentT(Distribution):
    """Student's t with ``df`` degrees of freedom, a location and a scale."""

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(
        self,
        df: Tensor | float,
        loc: Tensor | float = 0.0,
        scale: Tensor | float = 1.0,
        validate_args: bool | None = None,
    ) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(self.df.size(), validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Distribution | None = None) -> Self:
        out = self._expanded(batch_shape, ("df", "loc", "scale"), (), _instance)
        out._chi2 = self._chi2.expand(Size(batch_shape))
        return out

    mean = property(lambda self: self.loc.masked_fill(self.df <= 1, math.nan))
    mode = property(lambda self: self.loc)

    @property
    def variance(self) -> Tensor:
        m = self.df.clone()
        m = (self.scale.pow(2) * self.df / (self.df - 2)).masked_fill(self.df <= 2, math.inf)
        return m.masked_fill(self.df <= 1, math.nan)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        x = _normal(shape, dtype=self.df.dtype, device=self.df.device)
        return self.loc + self.scale * x * (self._chi2.rsample(sample_shape) / self.df).rsqrt()

    @checks_sample
    def log_prob(self, value: Tensor) -> Tensor:
        y = (value - self.loc) / self.scale
        constant = (
            self.scale.log() + 0.5 * self.df.log() + 0.5 * math.log(math.pi) + lgamma(0.5 * self.df)
            - lgamma(0.5 * (self.df + 1.0))
        )  # fmt: skip
        return -0.5 * (self.df + 1.0) * (y**2.0 / self.df).log1p() - constant

    def entropy(self) -> Tensor:
        half = lgamma(0.5 * self.df) + math.lgamma(0.5) - lgamma(0.5 * (1 + self.df))
        return (
            self.scale.log()
            + 0.5 * (self.df + 1) * (digamma(0.5 * (self.df + 1)) - digamma(0.5 * self.df))
            + 0.5 * self.df.log()
            + half
        )
