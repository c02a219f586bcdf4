"""Probability distributions: ``Distribution`` and its families, constraints, Kullback-Leibler divergences."""

from __future__ import annotations

from . import constraints, transforms
from .combined import Independent, MixtureSameFamily
from .constraint_registry import biject_to, transform_to
from .continuous import Cauchy, Exponential, Laplace, Normal, Uniform
from .discrete import Bernoulli, Categorical, Geometric, OneHotCategorical, OneHotCategoricalStraightThrough
from .distribution import Distribution, ExponentialFamily
from .gamma import (
    Beta,
    Binomial,
    Chi2,
    Dirichlet,
    FisherSnedecor,
    Gamma,
    Multinomial,
    NegativeBinomial,
    Poisson,
    StudentT,
)
from .kl import kl_divergence, register_kl
from .lkj import LKJCholesky
from .scaled import Gumbel, HalfCauchy, HalfNormal, LogNormal
from .special import ContinuousBernoulli, GeneralizedPareto, LowRankMultivariateNormal, VonMises, Wishart
from .transformed import (
    InverseGamma,
    Kumaraswamy,
    LogisticNormal,
    MultivariateNormal,
    Pareto,
    RelaxedBernoulli,
    RelaxedOneHotCategorical,
    TransformedDistribution,
    Weibull,
)
from .transforms import *  # noqa: F403

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

__all__ += [
    "Beta",
    "Binomial",
    "Chi2",
    "Dirichlet",
    "FisherSnedecor",
    "Gamma",
    "InverseGamma",
    "Kumaraswamy",
    "LogisticNormal",
]
__all__ += [
    "Multinomial",
    "MultivariateNormal",
    "NegativeBinomial",
    "Pareto",
    "Poisson",
    "RelaxedBernoulli",
    "StudentT",
]
__all__ += [
    "RelaxedOneHotCategorical",
    "TransformedDistribution",
    "Weibull",
    "biject_to",
    "transform_to",
]
__all__ += transforms.__all__
__all__ += [
    "ContinuousBernoulli",
    "GeneralizedPareto",
    "LKJCholesky",
    "LowRankMultivariateNormal",
    "VonMises",
    "Wishart",
]
