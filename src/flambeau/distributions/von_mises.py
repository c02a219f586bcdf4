"""The von Mises distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Self

from ..autograd.grad_mode import no_grad
from ..base.dtypes import float64
from ..core.bindings import function
from ..core.tensor import Tensor
from . import constraints
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["VonMises"]

_i0e, _i1e, _rand, _where = map(function, ("special_i0e", "special_i1e", "rand", "where"))
_zeros = function("zeros")


class VonMises(Distribution):
    """On the circle: proportional to exp(concentration cos(x - loc)). Draws: Best & Fisher, "Efficient simulation of the von Mises
    distribution", 1979 (rejection from a wrapped Cauchy distribution)."""

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False

    def __init__(self, loc: Tensor | float, concentration: Tensor | float, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Distribution | None = None) -> Self:
        return self._expanded(batch_shape, ("loc", "concentration"), (), _instance)

    mean = mode = property(lambda self: self.loc)
    variance = property(lambda self: 1 - _i1e(self.concentration) / _i0e(self.concentration))  # of the direction

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        k = self.concentration
        return k * (value - self.loc).cos() - math.log(2 * math.pi) - (_i0e(k).log() + k)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            k = self.concentration.to(float64).expand(shape)
            tau = 1 + (1 + 4 * k.pow(2)).sqrt()
            rho = (tau - (2 * tau).sqrt()) / (2 * k)
            # For small k the quotient loses its digits; its series begins so.
            r = _where(k < 1e-5, 1 / k + k, (1 + rho.pow(2)) / (2 * rho))
            angle, done = _zeros(shape, dtype=float64), k != k
            while not bool(done.all()):
                u1, u2, u3 = _rand((3, *shape), dtype=float64).unbind()
                z = (math.pi * u1).cos()
                f = (1 + r * z) / (r + z)
                c = k * (r - f)
                accept = (c * (2 - c) - u2 > 0) | ((c / u2).log() + 1 - c >= 0)
                angle = _where(accept, (u3 - 0.5).sign() * f.acos(), angle)
                done = done | accept
            angle = (angle + math.pi + self.loc.to(float64)) % (2 * math.pi) - math.pi
            return angle.to(self.loc.dtype)
