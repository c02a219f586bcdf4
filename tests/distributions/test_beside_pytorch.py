"""Distributions beside PyTorch: samples of the same seed, log-probabilities, entropies, gradients and divergences."""

import importlib

import numpy as np
import pytest

import flambeau

CASES = {
    "Normal": lambda t, d: d.Normal(t.tensor([0.5, -1.0]), t.tensor([1.0, 2.0])),
    "LogNormal": lambda t, d: d.LogNormal(t.tensor([0.5, -1.0]), t.tensor([0.3, 0.5])),
    "Laplace": lambda t, d: d.Laplace(t.tensor([0.5, -1.0]), t.tensor([1.0, 2.0])),
    "Gumbel": lambda t, d: d.Gumbel(t.tensor([0.5, -1.0]), t.tensor([1.0, 2.0])),
    "Uniform": lambda t, d: d.Uniform(t.tensor([0.5, -1.0]), t.tensor([1.0, 2.0])),
    "Exponential": lambda t, d: d.Exponential(t.tensor([0.5, 1.5])),
    "HalfNormal": lambda t, d: d.HalfNormal(t.tensor([0.5, 1.5])),
    "Bernoulli": lambda t, d: d.Bernoulli(t.tensor([0.2, 0.7])),
    "Bernoulli logits": lambda t, d: d.Bernoulli(logits=t.tensor([0.2, -0.7])),
    "Geometric": lambda t, d: d.Geometric(t.tensor([0.2, 0.7])),
    "Categorical": lambda t, d: d.Categorical(t.tensor([[0.2, 0.3, 0.5], [0.6, 0.2, 0.2]])),
    "Categorical logits": lambda t, d: d.Categorical(logits=t.tensor([0.2, -0.7, 1.0])),
    "OneHotCategorical": lambda t, d: d.OneHotCategorical(t.tensor([0.2, 0.3, 0.5])),
    "Independent": lambda t, d: d.Independent(d.Normal(t.zeros(2, 3), t.ones(2, 3)), 1),
    "MixtureSameFamily": lambda t, d: d.MixtureSameFamily(
        d.Categorical(t.tensor([0.3, 0.7])), d.Normal(t.tensor([0.0, 2.0]), t.tensor([1.0, 0.5]))
    ),
}


def _facts(lib, name):
    d = importlib.import_module(f"{lib.__name__}.distributions")
    lib.manual_seed(0)
    p = CASES[name](lib, d)
    x = p.sample((4,))
    out = [x, p.log_prob(x), p.mean, p.variance]
    if name != "MixtureSameFamily":
        out += [p.entropy(), p.expand((3, *p.batch_shape)).log_prob(p.sample((3,)))]
    if name in ("Normal", "Laplace", "Exponential", "Uniform", "LogNormal"):
        out += [p.cdf(x), p.icdf(p.cdf(x)), p.rsample((2,))]
    return [str(p.batch_shape), str(p.event_shape)], [np.asarray(v.detach().numpy()) for v in out]


@pytest.mark.parity
@pytest.mark.parametrize("name", CASES)
def test_distribution(name):
    torch = pytest.importorskip("torch")
    (shapes, expected), (here, got) = _facts(torch, name), _facts(flambeau, name)
    assert shapes == here
    for a, b in zip(expected, got):
        np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-5)


KL = [
    "Normal",
    "Bernoulli",
    "Categorical",
    "Exponential",
    "Laplace",
    "Geometric",
    "Uniform",
    "Independent",
    "LogNormal",
]


@pytest.mark.parity
@pytest.mark.parametrize("name", KL)
def test_divergence(name):
    torch = pytest.importorskip("torch")
    results = []
    for lib in (torch, flambeau):
        d = importlib.import_module(f"{lib.__name__}.distributions")
        p = CASES[name](lib, d)
        q = CASES[name](lib, d)
        if name == "Normal":
            q = d.Normal(0.0, 1.0)
        results.append(d.kl_divergence(p, q).numpy())
    np.testing.assert_allclose(results[1], results[0], rtol=1e-5, atol=1e-6)


def test_gradients_and_refusals():
    d = importlib.import_module("flambeau.distributions")
    loc = flambeau.tensor(0.3, requires_grad=True)
    d.Normal(loc, 2.0).rsample((100,)).mean().backward()
    assert abs(loc.grad.item() - 1.0) < 1e-6
    with pytest.raises(
        ValueError, match="Expected parameter scale .* of distribution Normal.* to satisfy the constraint"
    ):
        d.Normal(0.0, -1.0)
    with pytest.raises(ValueError, match="to be within the support"):
        d.Exponential(1.0).log_prob(flambeau.tensor(-1.0))
    with pytest.raises(NotImplementedError, match="No KL"):
        d.kl_divergence(d.Normal(0.0, 1.0), d.Geometric(0.5))
    with pytest.raises(ValueError, match="Exactly one of covariance_matrix"):
        d.Wishart(1.0)
