"""Kullback-Leibler divergences: the registry of pairs, and PyTorch's pairs.

KL(p || q) is the cross entropy -E_p[log q] less p's entropy. A pair of different families is said by what ``q``'s log density needs of ``p``
(mean, variance, E log x, ...) and by where ``q``'s support doesn't hold ``p``'s, which makes it infinite.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

from ..autograd.engine import grad
from ..autograd.grad_mode import enable_grad
from ..core.bindings import function
from ..core.tensor import Tensor
from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .categorical import Categorical
from .cauchy import Cauchy
from .continuous_bernoulli import ContinuousBernoulli
from .dirichlet import Dirichlet
from .distribution import Distribution
from .exp_family import ExponentialFamily
from .exponential import Exponential
from .gamma import Gamma
from .geometric import Geometric
from .gumbel import Gumbel
from .half_normal import HalfNormal
from .independent import Independent
from .laplace import Laplace
from .lowrank_multivariate_normal import LowRankMultivariateNormal
from .multivariate_normal import MultivariateNormal
from .normal import Normal
from .one_hot_categorical import OneHotCategorical
from .pareto import Pareto
from .poisson import Poisson
from .transformed_distribution import TransformedDistribution
from .uniform import Uniform
from .utils import euler_constant, sum_rightmost
from .wishart import Wishart

__all__ = ["kl_divergence", "register_kl"]

lgamma, digamma, xlogy, full_like = map(function, ("lgamma", "digamma", "xlogy", "full_like"))
_mvlgamma, _solve = map(function, ("mvlgamma", "linalg_solve_triangular"))

_KL_REGISTRY: dict[tuple[type, type], object] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Callable], Callable]:
    """Decorator: the divergence of these two classes (and of subclasses without one of their own)."""
    for t in (type_p, type_q):
        if not isinstance(t, type):  # any class: libraries register their own bases
            raise TypeError(f"Expected type to be a Distribution subclass but got {t}")

    def register(fn: Callable) -> Callable:
        _KL_REGISTRY[type_p, type_q] = fn
        _find.cache_clear()
        return fn

    return register


@functools.cache
def _find(p: type, q: type):
    matches = [(a, b) for a, b in _KL_REGISTRY if issubclass(p, a) and issubclass(q, b)]
    if not matches:
        return None
    return _KL_REGISTRY[min(matches, key=lambda m: (p.__mro__.index(m[0]), q.__mro__.index(m[1])))]


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """KL(p || q), of the batch shape of the two. NotImplementedError for a pair that nobody registered."""
    # The pair itself is looked up first: a graph can read the table, not the cache.
    fn = _KL_REGISTRY.get((type(p), type(q)))
    if fn is None:
        fn = _find(type(p), type(q))
    if fn is None:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}"
        )
    return fn(p, q)


# One family


@register_kl(Bernoulli, Bernoulli)
def _bernoullis(p, q):
    a, b = p.probs, q.probs
    t1 = a * ((-q.logits).exp().log1p() - (-p.logits).exp().log1p())
    t1 = t1.masked_fill(b == 0, math.inf).masked_fill(a == 0, 0)
    t2 = (1 - a) * (q.logits.exp().log1p() - p.logits.exp().log1p())
    return t1 + t2.masked_fill(b == 1, math.inf).masked_fill(a == 1, 0)


@register_kl(Beta, Beta)
def _betas(p, q):
    a, b, c, d = p.concentration1, p.concentration0, q.concentration1, q.concentration0
    norms = lgamma(c) + lgamma(d) + lgamma(a + b) - lgamma(c + d) - lgamma(a) - lgamma(b)
    return norms + (a - c) * digamma(a) + (b - d) * digamma(b) + (c + d - a - b) * digamma(a + b)


@register_kl(Binomial, Binomial)
def _binomials(p, q):
    if bool((p.total_count < q.total_count).any()):
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    kl = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    return kl.masked_fill(p.total_count > q.total_count, math.inf)


@register_kl(Categorical, Categorical)
def _categoricals(p, q):
    t = p.probs * (p.logits - q.logits)
    t = t.masked_fill((q.probs == 0).expand_as(t), math.inf).masked_fill((p.probs == 0).expand_as(t), 0)
    return t.sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hots(p, q):
    return _categoricals(p._categorical, q._categorical)


@register_kl(Cauchy, Cauchy)
def _cauchys(p, q):
    # Chyzak & Nielsen, arXiv:1905.10965
    return (((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)) / (4 * p.scale * q.scale)).log()


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoullis(p, q):
    return p.mean * (p.logits - q.logits) + p._log_norm() + (-p.probs).log1p() - q._log_norm() - (-q.probs).log1p()


@register_kl(Dirichlet, Dirichlet)
def _dirichlets(p, q):
    a, b = p.concentration, q.concentration
    norms = lgamma(a.sum(-1)) - lgamma(b.sum(-1)) + (lgamma(b) - lgamma(a)).sum(-1)
    return norms + ((a - b) * (digamma(a) - digamma(a.sum(-1, keepdim=True)))).sum(-1)


@register_kl(Exponential, Exponential)
def _exponentials(p, q):
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_families(p, q):
    """The Bregman divergence of the log normalizer (Nielsen & Nock, "Entropies and cross-entropies of exponential families", 2010)."""
    if type(p) is not type(q):
        raise NotImplementedError(
            f"The cross KL-divergence between different exponential families cannot be computed using Bregman divergences: "
            f"{type(p).__name__} and {type(q).__name__}"
        )
    own = [t.detach().requires_grad_() for t in p._natural_params]
    other = q._natural_params
    with enable_grad():
        norm = p._log_normalizer(*own)
        means = grad(norm.sum(), own, create_graph=True)
    out = q._log_normalizer(*other) - norm
    for a, b, mean in zip(own, other, means):
        out = out - sum_rightmost((b - a) * mean, len(q.event_shape))
    return out


@register_kl(Gamma, Gamma)
def _gammas(p, q):
    a, b = p.concentration, q.concentration
    scales = (p.rate / q.rate).log() * b
    return scales + lgamma(b) - lgamma(a) + (a - b) * digamma(a) + (q.rate - p.rate) * (a / p.rate)


@register_kl(Geometric, Geometric)
def _geometrics(p, q):
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(Gumbel, Gumbel)
def _gumbels(p, q):
    ratio, shift = p.scale / q.scale, q.loc / q.scale - p.loc / q.scale
    return -ratio.log() - shift + ratio * euler_constant + (shift + lgamma(1 + ratio)).exp() - (1 + euler_constant)


@register_kl(Laplace, Laplace)
def _laplaces(p, q):
    ratio, far = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + far / q.scale + ratio * (-far / p.scale).exp() - 1


@register_kl(Normal, Normal)
def _normals(p, q):
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(HalfNormal, HalfNormal)
def _half_normals(p, q):
    return _normals(p.base_dist, q.base_dist)


@register_kl(Pareto, Pareto)
def _paretos(p, q):
    ratio, scales = q.alpha / p.alpha, (p.scale / q.scale).log()
    return (q.alpha * scales - ratio.log() + ratio - 1).masked_fill(p.support.lower_bound < q.scale, math.inf)


@register_kl(Poisson, Poisson)
def _poissons(p, q):
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Uniform, Uniform)
def _uniforms(p, q):
    out = ((q.high - q.low) / (p.high - p.low)).log()
    return out.masked_fill((q.low > p.low) | (q.high < p.high), math.inf)


# Several dimensions, and distributions made of others


def _lower(d):
    """Cholesky factor of the covariance."""
    return d._unbroadcasted_scale_tril if isinstance(d, MultivariateNormal) else d.scale_tril


@register_kl(MultivariateNormal, MultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _multivariate_normals(p, q):
    if p.event_shape != q.event_shape:
        raise ValueError(
            f"KL-divergence between two Multivariate Normals with different event shapes cannot be computed: {p.event_shape}, {q.event_shape}"
        )
    a, b, n = _lower(p), _lower(q), p.event_shape[0]
    half_logs = [m.diagonal(dim1=-2, dim2=-1).log().sum(-1) for m in (a, b)]
    spread = _solve(b, a, upper=False).pow(2).sum((-2, -1))
    shift = _solve(b, (q.loc - p.loc).unsqueeze(-1), upper=False)
    return half_logs[1] - half_logs[0] + 0.5 * (spread + shift.squeeze(-1).pow(2).sum(-1) - n)


@register_kl(Wishart, Wishart)
def _wisharts(p, q):
    n = p.event_shape[-1]
    half_logs = [_lower(d).diagonal(dim1=-2, dim2=-1).log().sum(-1) for d in (p, q)]
    trace = (q.precision_matrix * p.covariance_matrix).sum((-2, -1))
    digammas = sum(digamma((p.df - k) / 2) for k in range(n))
    return (
        q.df * (half_logs[1] - half_logs[0])
        + p.df * (trace - n) / 2
        + _mvlgamma(q.df / 2, n)
        - _mvlgamma(p.df / 2, n)
        + (p.df - q.df) / 2 * digammas
    )


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p, q):
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError("KL of two transformed distributions is known for the same transforms only")
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Independent, Independent)
def _independents(p, q):
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("KL of two Independent distributions of different numbers of event dimensions")
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


# Two families


def _mean_log(p):
    """E log x."""
    if isinstance(p, Beta):
        return digamma(p.concentration1) - digamma(p.concentration1 + p.concentration0)
    if isinstance(p, Exponential):
        return -euler_constant - p.rate.log()
    if isinstance(p, Pareto):
        return p.scale.log() + p.alpha.reciprocal()
    return (xlogy(p.high, p.high) - xlogy(p.low, p.low)) / (p.high - p.low) - 1  # uniform


def _to_continuous_bernoulli(p, q):
    return -p.mean * q.logits - (-q.probs).log1p() - q._log_norm()


def _to_exponential(p, q):
    return q.rate * p.mean - q.rate.log()


def _to_gamma(p, q):
    a, b = q.concentration, q.rate
    return lgamma(a) - a * b.log() - (a - 1) * _mean_log(p) + b * p.mean


def _to_normal(p, q):
    return 0.5 * (2 * math.pi * q.scale.square()).log() + (p.variance + (p.mean - q.loc).square()) / (
        2 * q.scale.square()
    )


def _to_pareto(p, q):
    return (q.alpha + 1) * _mean_log(p) - q.alpha.log() - q.alpha * q.scale.log()


def _to_uniform(p, q):
    outside = (q.high < p.support.upper_bound) | (q.low > p.support.lower_bound)
    return (q.high - q.low).log().masked_fill(outside, math.inf)


def _to_beta(p, q):
    """Of a uniform variable: E log(1 - x) is E log x of its mirror image."""
    a, b = q.concentration1, q.concentration0
    mirrored = (xlogy(1 - p.low, 1 - p.low) - xlogy(1 - p.high, 1 - p.high)) / (p.high - p.low) - 1
    return lgamma(a) + lgamma(b) - lgamma(a + b) - (a - 1) * _mean_log(p) - (b - 1) * mirrored


def _to_gumbel(p, q):
    """(E x - loc) / scale + E exp(-(x - loc) / scale) + log scale: the middle is the moment generating function at -1 / scale."""
    t, shift = q.scale.reciprocal(), q.loc / q.scale
    if isinstance(p, Normal):
        middle = (shift - p.loc * t + (p.scale * t).pow(2) / 2).exp()
    elif isinstance(p, Uniform):
        middle = ((shift - p.low * t).exp() - (shift - p.high * t).exp()) / ((p.high - p.low) * t)
    elif isinstance(p, Gamma):
        middle = (1 + t / p.rate).pow(-p.concentration) * shift.exp()
    else:
        middle = shift.exp() / (1 + t / p.rate)
    return p.mean * t - shift + middle + q.scale.log()


_CROSS = {
    ContinuousBernoulli: (_to_continuous_bernoulli, "Beta"),
    Exponential: (_to_exponential, "Beta ContinuousBernoulli Gamma Pareto"),
    Gamma: (_to_gamma, "Beta Exponential Pareto"),
    Gumbel: (_to_gumbel, "Exponential Gamma Normal Uniform"),
    Normal: (_to_normal, "Beta ContinuousBernoulli Exponential Gamma Gumbel Laplace Uniform"),
    Uniform: (_to_uniform, "Beta ContinuousBernoulli"),
}
_NOWHERE = {  # q is zero where p isn't
    Beta: (Pareto,),
    ContinuousBernoulli: (Pareto,),
    Exponential: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gamma: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gumbel: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Laplace: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Normal: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Pareto: (Beta, ContinuousBernoulli, Uniform),
    Poisson: (Bernoulli, Binomial),
}
_FAMILIES = (Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Normal, Pareto, Uniform)


def _cross(cross_entropy, p, q):
    return cross_entropy(p, q) - p.entropy()


def _infinite(p, q):
    return full_like(p.mean, math.inf)


for _q, (_formula, _names) in _CROSS.items():
    for _p in _FAMILIES:
        if _p.__name__ in _names.split():
            register_kl(_p, _q)(functools.partial(_cross, _formula))
for _p, _others in _NOWHERE.items():
    for _q in _others:
        register_kl(_p, _q)(_infinite)


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p, q):
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(Normal, Laplace)
def _normal_laplace(p, q):
    far = p.loc - q.loc
    z = far / p.scale
    mean = math.sqrt(2 / math.pi) * p.scale * (-0.5 * z.pow(2)).exp() + far * (math.sqrt(0.5) * z).erf()
    return -p.scale.log() + (mean / q.scale + (2 * q.scale).log()) - 0.5 * (1 + math.log(2 * math.pi))


@register_kl(Pareto, Normal)
def _pareto_normal(p, q):
    return _cross(_to_normal, p, q).masked_fill(p.alpha <= 2, math.inf)


def _within(formula, outside):
    """A uniform variable's divergence, infinite where ``outside(p, q)``."""
    return lambda p, q: _cross(formula, p, q).masked_fill(outside(p, q), math.inf)


def _below_zero(p, q):
    return p.low < 0


def _beyond_unit(p, q):
    return (p.low < 0) | (p.high > 1)


register_kl(Uniform, Beta)(_within(_to_beta, _beyond_unit))
register_kl(Uniform, ContinuousBernoulli)(_within(_to_continuous_bernoulli, _beyond_unit))
register_kl(Uniform, Exponential)(_within(_to_exponential, _below_zero))
register_kl(Uniform, Gamma)(_within(_to_gamma, _below_zero))
register_kl(Uniform, Pareto)(_within(_to_pareto, lambda p, q: p.low < q.scale))
