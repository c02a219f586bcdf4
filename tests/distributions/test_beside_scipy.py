"""Densities and masses beside SciPy's, which is always installed: every family that SciPy has under the same parameters."""

import numpy as np
import pytest
from scipy import stats

import flambeau as torch
from flambeau import distributions as d

INSIDE, POSITIVE, UNIT, COUNTS = [-1.5, 0.25, 2.0], [0.25, 1.0, 3.5], [0.1, 0.5, 0.8], [0.0, 1.0, 4.0]

CASES = {
    "Bernoulli": (lambda: d.Bernoulli(torch.tensor(0.3)), stats.bernoulli(0.3), [0.0, 1.0]),
    "Beta": (lambda: d.Beta(2.0, 0.7), stats.beta(2.0, 0.7), UNIT),
    "Binomial": (lambda: d.Binomial(6, torch.tensor(0.3)), stats.binom(6, 0.3), COUNTS),
    "Cauchy": (lambda: d.Cauchy(0.5, 2.0), stats.cauchy(0.5, 2.0), INSIDE),
    "Chi2": (lambda: d.Chi2(3.0), stats.chi2(3.0), POSITIVE),
    "Exponential": (lambda: d.Exponential(2.0), stats.expon(scale=0.5), POSITIVE),
    "FisherSnedecor": (lambda: d.FisherSnedecor(3.0, 5.0), stats.f(3.0, 5.0), POSITIVE),
    "Gamma": (lambda: d.Gamma(2.5, 2.0), stats.gamma(2.5, scale=0.5), POSITIVE),
    "GeneralizedPareto": (lambda: d.GeneralizedPareto(0.0, 2.0, 0.3), stats.genpareto(0.3, scale=2.0), POSITIVE),
    "Geometric": (lambda: d.Geometric(torch.tensor(0.3)), stats.geom(0.3, loc=-1), COUNTS),
    "Gumbel": (lambda: d.Gumbel(0.5, 2.0), stats.gumbel_r(0.5, 2.0), INSIDE),
    "HalfCauchy": (lambda: d.HalfCauchy(2.0), stats.halfcauchy(scale=2.0), POSITIVE),
    "HalfNormal": (lambda: d.HalfNormal(2.0), stats.halfnorm(scale=2.0), POSITIVE),
    "InverseGamma": (lambda: d.InverseGamma(2.5, 2.0), stats.invgamma(2.5, scale=2.0), POSITIVE),
    "Laplace": (lambda: d.Laplace(0.5, 2.0), stats.laplace(0.5, 2.0), INSIDE),
    "LogNormal": (lambda: d.LogNormal(0.5, 0.7), stats.lognorm(0.7, scale=np.exp(0.5)), POSITIVE),
    "NegativeBinomial": (lambda: d.NegativeBinomial(5, torch.tensor(0.3)), stats.nbinom(5, 0.7), COUNTS),
    "Normal": (lambda: d.Normal(0.5, 2.0), stats.norm(0.5, 2.0), INSIDE),
    "Pareto": (lambda: d.Pareto(0.2, 3.0), stats.pareto(3.0, scale=0.2), POSITIVE),
    "Poisson": (lambda: d.Poisson(torch.tensor(2.5)), stats.poisson(2.5), COUNTS),
    "StudentT": (lambda: d.StudentT(3.0, 0.5, 2.0), stats.t(3.0, 0.5, 2.0), INSIDE),
    "Uniform": (lambda: d.Uniform(-2.0, 3.0), stats.uniform(-2.0, 5.0), INSIDE),
    "VonMises": (lambda: d.VonMises(torch.tensor(0.5), torch.tensor(2.0)), stats.vonmises(2.0, 0.5), INSIDE),
    "Weibull": (lambda: d.Weibull(2.0, 1.5), stats.weibull_min(1.5, scale=2.0), POSITIVE),
}


@pytest.mark.parametrize("name", CASES)
def test_log_prob(name):
    made, expected, at = CASES[name]
    log = expected.logpmf if hasattr(expected.dist, "logpmf") else expected.logpdf
    np.testing.assert_allclose(made().log_prob(torch.tensor(at)).numpy(), log(at), rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("name", [n for n in CASES if n not in ("Cauchy", "HalfCauchy", "VonMises", "FisherSnedecor")])
def test_moments(name):
    made, expected, _ = CASES[name]
    p = made()
    np.testing.assert_allclose([float(p.mean), float(p.variance)], [expected.mean(), expected.var()], rtol=2e-5)
