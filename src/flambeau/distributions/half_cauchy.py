"""The half Cauchy distribution."""

from __future__ import annotations

import math

from ..core.bindings import function
from .cauchy import Cauchy
from .folded import Folded

__all__ = ["HalfCauchy"]

full_like = function("full_like")


class HalfCauchy(Folded):
    """The absolute value of a Cauchy around 0."""

    _base = Cauchy
    mean = property(lambda self: full_like(self.scale, math.inf))
    variance = property(lambda self: self.base_dist.variance)
