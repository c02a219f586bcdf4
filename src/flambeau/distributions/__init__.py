"""Probability distributions: ``Distribution`` and its families, constraints, Kullback-Leibler divergences.

Those of the gamma family, of several correlated variables, and transforms aren't built: they can be named and refuse to be made.
"""

from __future__ import annotations

from . import constraints
from .combined import Independent, MixtureSameFamily, kl_divergence, register_kl
from .continuous import Cauchy, Exponential, Gumbel, HalfCauchy, HalfNormal, Laplace, LogNormal, Normal, Uniform
from .discrete import Bernoulli, Categorical, Geometric, OneHotCategorical, OneHotCategoricalStraightThrough
from .distribution import Distribution, ExponentialFamily

__all__ = [
    "Bernoulli",
    "Categorical",
    "Cauchy",
    "Distribution",
    "Exponential",
    "ExponentialFamily",
    "Geometric",
    "Gumbel",
    "HalfCauchy",
]
__all__ += ["HalfNormal", "Independent", "Laplace", "LogNormal", "MixtureSameFamily", "Normal", "OneHotCategorical"]
__all__ += ["OneHotCategoricalStraightThrough", "Uniform", "constraints", "kl_divergence", "register_kl"]

_ABSENT = frozenset(
    "Beta Binomial Chi2 ContinuousBernoulli Dirichlet FisherSnedecor Gamma GeneralizedPareto InverseGamma Kumaraswamy LKJCholesky LogisticNormal "
    "LowRankMultivariateNormal Multinomial MultivariateNormal NegativeBinomial Pareto Poisson RelaxedBernoulli RelaxedOneHotCategorical StudentT "
    "TransformedDistribution VonMises Weibull Wishart".split()
)


def __getattr__(name):
    if name not in _ABSENT:
        raise AttributeError(f"module 'torch.distributions' has no attribute {name!r}")

    def __init__(self, *args, **kwargs):
        raise NotImplementedError(f"torch.distributions.{name} is not implemented in flambeau")

    made = globals()[name] = type(name, (Distribution,), {"__init__": __init__, "__module__": __name__})
    return made
