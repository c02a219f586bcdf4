"""Distributions made of others: independent events, mixtures, and the Kullback-Leibler divergence between two."""

from __future__ import annotations

import functools
import math

from ..base.shapes import Size
from . import constraints
from .continuous import Exponential, Laplace, LogNormal, Normal, Uniform
from .discrete import Bernoulli, Categorical, Geometric, OneHotCategorical
from .distribution import Distribution, sum_rightmost

__all__ = ["Independent", "MixtureSameFamily", "kl_divergence", "register_kl"]


class Independent(Distribution):
    """The last batch dimensions of a distribution as event dimensions."""

    arg_constraints: dict = {}

    def __init__(self, base_distribution, reinterpreted_batch_ndims: int, validate_args=None):
        if reinterpreted_batch_ndims > len(base_distribution.batch_shape):
            raise ValueError(
                f"Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), actual {reinterpreted_batch_ndims} vs "
                f"{len(base_distribution.batch_shape)}"
            )
        shape = base_distribution.batch_shape + base_distribution.event_shape
        event = reinterpreted_batch_ndims + len(base_distribution.event_shape)
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, reinterpreted_batch_ndims
        super().__init__(shape[: len(shape) - event], shape[len(shape) - event :], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        out = self._get_checked_instance(Independent, _instance)
        batch_shape = Size(batch_shape)
        out.base_dist = self.base_dist.expand(
            tuple(batch_shape) + tuple(self.event_shape[: self.reinterpreted_batch_ndims])
        )
        out.reinterpreted_batch_ndims = self.reinterpreted_batch_ndims
        Distribution.__init__(out, batch_shape, self.event_shape, validate_args=False)
        out._validate_args = self._validate_args
        return out

    has_rsample = property(lambda self: self.base_dist.has_rsample)
    has_enumerate_support = property(
        lambda self: self.reinterpreted_batch_ndims == 0 and self.base_dist.has_enumerate_support
    )
    mean = property(lambda self: self.base_dist.mean)
    mode = property(lambda self: self.base_dist.mode)
    variance = property(lambda self: self.base_dist.variance)

    @property
    def support(self):
        base = self.base_dist.support
        return constraints.independent(base, self.reinterpreted_batch_ndims) if self.reinterpreted_batch_ndims else base

    def sample(self, sample_shape=()):
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape=()):
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value):
        return sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self):
        return sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def __repr__(self):
        return f"Independent({self.base_dist}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamily(Distribution):
    """Components along the last batch dimension, chosen by a Categorical."""

    arg_constraints: dict = {}

    def __init__(self, mixture_distribution, component_distribution, validate_args=None):
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError("The Mixture distribution needs to be an instance of torch.distributions.Categorical")
        self._mixture_distribution, self._component_distribution = mixture_distribution, component_distribution
        self._event_ndims = len(component_distribution.event_shape)
        super().__init__(
            component_distribution.batch_shape[:-1], component_distribution.event_shape, validate_args=validate_args
        )

    mixture_distribution = property(lambda self: self._mixture_distribution)
    component_distribution = property(lambda self: self._component_distribution)
    support = property(lambda self: self._component_distribution.support)

    def _weights(self):
        p = self._mixture_distribution.probs
        return p.reshape(*p.shape, *[1] * self._event_ndims)

    @property
    def mean(self):
        return (self._weights() * self._component_distribution.mean).sum(-1 - self._event_ndims)

    @property
    def variance(self):
        at = -1 - self._event_ndims
        inner = (self._weights() * self._component_distribution.variance).sum(at)
        centred = self._component_distribution.mean - self.mean.unsqueeze(at)
        return inner + (self._weights() * centred.pow(2)).sum(at)

    def cdf(self, x):
        return (
            self._component_distribution.cdf(x.unsqueeze(-1 - self._event_ndims)) * self._mixture_distribution.probs
        ).sum(-1)

    def log_prob(self, x):
        if self._validate_args:
            self._validate_sample(x)
        each = self._component_distribution.log_prob(x.unsqueeze(-1 - self._event_ndims))
        return (each + self._mixture_distribution.logits.log_softmax(-1)).logsumexp(-1)

    def sample(self, sample_shape=()):
        at = len(sample_shape) + len(self.batch_shape)
        pick = self._mixture_distribution.sample(sample_shape)
        drawn = self._component_distribution.sample(sample_shape)
        pick = pick.reshape(*pick.shape, *[1] * (self._event_ndims + 1))
        shape = list(drawn.shape)
        shape[at] = 1
        return drawn.gather(at, pick.expand(shape)).squeeze(at)


_KL: dict[tuple[type, type], object] = {}


def register_kl(type_p: type, type_q: type):
    """Decorator: the divergence of these two classes (and of subclasses without one of their own)."""
    for t in (type_p, type_q):
        if not isinstance(t, type):  # any class: libraries register their own bases
            raise TypeError(f"Expected type to be a Distribution subclass but got {t}")

    def register(fn):
        _KL[type_p, type_q] = fn
        _find.cache_clear()
        return fn

    return register


@functools.cache
def _find(p: type, q: type):
    matches = [(a, b) for a, b in _KL if issubclass(p, a) and issubclass(q, b)]
    if not matches:
        return None
    return _KL[min(matches, key=lambda m: (p.__mro__.index(m[0]), q.__mro__.index(m[1])))]


def kl_divergence(p, q):
    """KL(p || q). NotImplementedError for a pair that nobody registered."""
    fn = _find(type(p), type(q))
    if fn is None:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}"
        )
    return fn(p, q)


@register_kl(Normal, Normal)
def _normals(p, q):
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


register_kl(LogNormal, LogNormal)(_normals)


@register_kl(Bernoulli, Bernoulli)
def _bernoullis(p, q):
    a, b = p.probs, q.probs
    t1 = a * ((-q.logits).exp().log1p() - (-p.logits).exp().log1p())
    t1 = t1.masked_fill(b == 0, math.inf).masked_fill(a == 0, 0)
    t2 = (1 - a) * (q.logits.exp().log1p() - p.logits.exp().log1p())
    return t1 + t2.masked_fill(b == 1, math.inf).masked_fill(a == 1, 0)


@register_kl(Categorical, Categorical)
def _categoricals(p, q):
    t = p.probs * (p.logits - q.logits)
    t = t.masked_fill((q.probs == 0).expand_as(t), math.inf).masked_fill((p.probs == 0).expand_as(t), 0)
    return t.sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hots(p, q):
    return _categoricals(p._categorical, q._categorical)


@register_kl(Exponential, Exponential)
def _exponentials(p, q):
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(Geometric, Geometric)
def _geometrics(p, q):
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(Laplace, Laplace)
def _laplaces(p, q):
    ratio, far = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + far / q.scale + ratio * (-far / p.scale).exp() - 1


@register_kl(Uniform, Uniform)
def _uniforms(p, q):
    out = ((q.high - q.low) / (p.high - p.low)).log()
    return out.masked_fill((q.low > p.low) | (q.high < p.high), math.inf)


@register_kl(Independent, Independent)
def _independents(p, q):
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("KL of two Independent distributions of different numbers of event dimensions")
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)
