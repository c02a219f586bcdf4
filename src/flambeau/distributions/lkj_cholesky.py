"""Cholesky factors of random correlation matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Self

from ..base.dtypes import finfo
from ..core.bindings import function
from ..core.tensor import Tensor
from . import constraints
from .beta import Beta
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["LKJCholesky"]

_arange, _cat, _lgamma, _mvlgamma = map(function, ("arange", "cat", "lgamma", "mvlgamma"))
_randn = function("randn")


class LKJCholesky(Distribution):
    """Cholesky factors of correlation matrices of size ``dim``; concentration 1 is uniform (Lewandowski, Kurowicka, Joe 2009, the onion method)."""

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim: int, concentration: Tensor | float = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        steps = _arange(dim - 1, dtype=self.concentration.dtype)
        steps = _cat([steps.new_zeros((1,)), steps])
        marginal = self.concentration + 0.5 * (dim - 2)
        self._beta = Beta(steps + 0.5, marginal.unsqueeze(-1) - 0.5 * steps)
        super().__init__(self.concentration.size(), (dim, dim), validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Distribution | None = None) -> Self:
        out = self._expanded(batch_shape, ("concentration",), self.event_shape, _instance)
        out.dim, out._beta = self.dim, self._beta.expand((*batch_shape, self.dim))
        return out

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        y = self._beta.sample(sample_shape).unsqueeze(-1)
        normal = _randn(self._extended_shape(sample_shape), dtype=y.dtype).tril(-1)
        sphere = normal / normal.norm(dim=-1, keepdim=True)
        sphere[..., 0, :].fill_(0.0)
        w = y.sqrt() * sphere
        rest = (1 - (w**2).sum(-1)).clamp(min=finfo(w.dtype).tiny).sqrt()
        return w + rest.diag_embed()

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        n = self.dim - 1
        order = _arange(2, self.dim + 1)
        order = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - order
        found = (order * value.diagonal(dim1=-1, dim2=-2)[..., 1:].log()).sum(-1)
        alpha = self.concentration + 0.5 * n
        norm = 0.5 * n * math.log(math.pi) + _mvlgamma(alpha - 0.5, p=n) - _lgamma(alpha) * n
        return found - norm
