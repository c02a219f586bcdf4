"""Families that are a transform of a basic one: exponentials, absolute values, and Gumbel's by way of a uniform variable."""

from __future__ import annotations

import math

from ..base.dtypes import finfo
from ..core.bindings import function
from . import constraints
from .continuous import Cauchy, Normal, Uniform
from .distribution import broadcast_all, is_scalar
from .transformed import TransformedDistribution
from .transforms import AbsTransform, AffineTransform, ExpTransform

__all__ = ["Gumbel", "HalfCauchy", "HalfNormal", "LogNormal"]

full_like, ones_like = function("full_like"), function("ones_like")
_EULER = 0.57721566490153286060


class LogNormal(TransformedDistribution):
    """exp of a normal variable."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        super().__init__(Normal(loc, scale, validate_args=validate_args), ExpTransform(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, _instance=self._get_checked_instance(LogNormal, _instance))

    loc = property(lambda self: self.base_dist.loc)
    scale = property(lambda self: self.base_dist.scale)
    mean = property(lambda self: (self.loc + self.scale.pow(2) / 2).exp())
    mode = property(lambda self: (self.loc - self.scale.square()).exp())

    @property
    def variance(self):
        square = self.scale.pow(2)
        return square.expm1() * (2 * self.loc + square).exp()

    def entropy(self):
        return self.base_dist.entropy() + self.loc


class _Folded(TransformedDistribution):
    """|x| of a distribution around zero."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _base: type

    def __init__(self, scale, validate_args=None):
        super().__init__(self._base(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, _instance=self._get_checked_instance(type(self), _instance))

    scale = property(lambda self: self.base_dist.scale)
    mode = property(lambda self: self.scale * 0)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        out = self.base_dist.log_prob(value) + math.log(2)
        return out.masked_fill(value < 0, -math.inf)

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, prob):
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self):
        return self.base_dist.entropy() - math.log(2)


class HalfNormal(_Folded):
    """The absolute value of a normal around 0."""

    _base = Normal
    mean = property(lambda self: self.scale * math.sqrt(2 / math.pi))
    variance = property(lambda self: self.scale.pow(2) * (1 - 2 / math.pi))


class HalfCauchy(_Folded):
    """The absolute value of a Cauchy around 0."""

    _base = Cauchy
    mean = property(lambda self: full_like(self.scale, math.inf))
    variance = property(lambda self: self.base_dist.variance)


class Gumbel(TransformedDistribution):
    """The distribution of maxima: exp(-(z + exp(-z))) with z = (x - loc) / scale."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    def __init__(self, loc, scale, validate_args=None):
        self.loc, self.scale = broadcast_all(loc, scale)
        info = finfo(self.loc.dtype)
        if is_scalar(loc, scale):
            base = Uniform(info.tiny, 1 - info.eps, validate_args=validate_args)
        else:
            base = Uniform(
                full_like(self.loc, info.tiny), full_like(self.loc, 1 - info.eps), validate_args=validate_args
            )
        steps = [ExpTransform().inv, AffineTransform(0, -ones_like(self.scale)), ExpTransform().inv]
        super().__init__(base, [*steps, AffineTransform(self.loc, -self.scale)], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        out = self._get_checked_instance(Gumbel, _instance)
        out.loc, out.scale = self.loc.expand(batch_shape), self.scale.expand(batch_shape)
        return super().expand(batch_shape, _instance=out)

    mean = property(lambda self: self.loc + self.scale * _EULER)
    mode = property(lambda self: self.loc)
    stddev = property(lambda self: (math.pi / math.sqrt(6)) * self.scale)
    variance = property(lambda self: self.stddev.pow(2))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        y = (self.loc - value) / self.scale
        return (y - y.exp()) - self.scale.log()

    def entropy(self):
        return self.scale.log() + (1 + _EULER)
