"""The gamma family, transformed and multivariate distributions, transforms and registries beside PyTorch."""

import importlib
import pickle

import numpy as np
import pytest

import flambeau

CASES = {
    "Gamma": lambda t, d: d.Gamma(t.tensor([0.5, 3.0]), t.tensor([1.0, 2.0])),
    "Chi2": lambda t, d: d.Chi2(t.tensor([1.5, 4.0])),
    "Beta": lambda t, d: d.Beta(t.tensor([0.5, 3.0]), t.tensor([2.0, 1.5])),
    "Dirichlet": lambda t, d: d.Dirichlet(t.tensor([[0.5, 1.0, 2.0], [3.0, 3.0, 1.2]])),
    "StudentT": lambda t, d: d.StudentT(t.tensor([3.0, 5.0]), 0.5, 2.0),
    "FisherSnedecor": lambda t, d: d.FisherSnedecor(t.tensor([3.0, 5.0]), t.tensor([6.0, 7.0])),
    "InverseGamma": lambda t, d: d.InverseGamma(t.tensor([3.0, 4.0]), t.tensor([1.0, 2.0])),
    "Pareto": lambda t, d: d.Pareto(t.tensor([1.0, 2.0]), t.tensor([3.0, 4.0])),
    "Weibull": lambda t, d: d.Weibull(t.tensor([1.0, 2.0]), t.tensor([1.5, 0.8])),
    "Kumaraswamy": lambda t, d: d.Kumaraswamy(t.tensor([1.0, 2.0]), t.tensor([1.5, 0.8])),
    "LogisticNormal": lambda t, d: d.LogisticNormal(t.tensor([0.1, 0.5]), t.tensor([1.0, 0.5])),
    "RelaxedBernoulli": lambda t, d: d.RelaxedBernoulli(t.tensor(0.7), probs=t.tensor([0.2, 0.6])),
    "RelaxedOneHotCategorical": lambda t, d: d.RelaxedOneHotCategorical(
        t.tensor(0.7), logits=t.tensor([0.2, 0.6, 1.0])
    ),
    "MultivariateNormal": lambda t, d: d.MultivariateNormal(t.tensor([0.0, 1.0]), t.tensor([[2.0, 0.3], [0.3, 1.0]])),
    "MultivariateNormal precision": lambda t, d: d.MultivariateNormal(
        t.tensor([0.0, 1.0]), precision_matrix=t.tensor([[2.0, 0.3], [0.3, 1.0]])
    ),
    "LKJCholesky": lambda t, d: d.LKJCholesky(3, t.tensor([1.0, 2.5])),
    "Poisson": lambda t, d: d.Poisson(t.tensor([0.5, 3.0, 25.0])),
    "Binomial": lambda t, d: d.Binomial(10, t.tensor([0.2, 0.7])),
    "Binomial large": lambda t, d: d.Binomial(100, t.tensor([0.4, 0.7])),
    "NegativeBinomial": lambda t, d: d.NegativeBinomial(5, t.tensor([0.2, 0.6])),
    "Multinomial": lambda t, d: d.Multinomial(6, t.tensor([0.2, 0.3, 0.5])),
    "TransformedDistribution": lambda t, d: d.TransformedDistribution(
        d.Normal(t.zeros(2), t.ones(2)), [d.AffineTransform(1.0, 2.0), d.SigmoidTransform()]
    ),
}
NO_MOMENTS = ("LKJCholesky", "LogisticNormal", "Relaxed", "TransformedDistribution")
NO_ENTROPY = (*NO_MOMENTS, "FisherSnedecor", "Poisson", "NegativeBinomial")


def _facts(lib, name):
    d = importlib.import_module(f"{lib.__name__}.distributions")
    lib.manual_seed(0)
    p = CASES[name](lib, d)
    x = p.sample((4,))
    out = [x, p.log_prob(x), p.expand((3, *p.batch_shape)).log_prob(x[:3].unsqueeze(1) if p.batch_shape else x[:3])]
    if not name.startswith(NO_MOMENTS):
        out += [p.mean, p.variance]
    if not name.startswith(NO_ENTROPY):
        out.append(p.entropy())
    if p.has_rsample:
        out.append(p.rsample((2,)))
    return [str(p.batch_shape), str(p.event_shape)], [np.asarray(v.detach().numpy()) for v in out]


@pytest.mark.parity
@pytest.mark.parametrize("name", CASES)
def test_distribution(name):
    torch = pytest.importorskip("torch")
    (shapes, expected), (here, got) = _facts(torch, name), _facts(flambeau, name)
    assert shapes == here
    for a, b in zip(expected, got):
        np.testing.assert_allclose(b, a, rtol=2e-4, atol=2e-5)


def _gradients(lib):
    d, out = importlib.import_module(f"{lib.__name__}.distributions"), []
    for make in (
        lambda a: d.Gamma(a, 2.0),
        lambda a: d.Beta(a, a + 1),
        lambda a: d.Dirichlet(a),
        lambda a: d.StudentT(a + 2),
        lambda a: d.InverseGamma(a, 1.0),
    ):
        lib.manual_seed(1)
        a = lib.tensor([0.3, 1.0, 4.0, 30.0], requires_grad=True)
        (make(a).rsample((3,)) * lib.arange(1.0, 5.0)).sum().backward()
        out.append(a.grad.numpy())
    return out


@pytest.mark.parity
def test_gradients_of_draws():
    torch = pytest.importorskip("torch")
    for a, b in zip(_gradients(torch), _gradients(flambeau)):
        np.testing.assert_allclose(b, a, rtol=3e-3, atol=1e-4)


TRANSFORMS = {
    "Exp": lambda d, t: d.ExpTransform(),
    "Sigmoid": lambda d, t: d.SigmoidTransform(),
    "Tanh": lambda d, t: d.TanhTransform(),
    "Softplus": lambda d, t: d.SoftplusTransform(),
    "Affine": lambda d, t: d.AffineTransform(t.tensor([1.0, 2.0, 3.0]), -2.0),
    "StickBreaking": lambda d, t: d.StickBreakingTransform(),
    "CorrCholesky": lambda d, t: d.CorrCholeskyTransform(),
    "Independent": lambda d, t: d.IndependentTransform(d.ExpTransform(), 1),
    "Compose": lambda d, t: d.ComposeTransform([d.AffineTransform(0.5, 2.0), d.ExpTransform()]),
    "Cat": lambda d, t: d.CatTransform([d.ExpTransform(), d.AffineTransform(0.0, 3.0)], dim=-1, lengths=[1, 2]),
    "Stack": lambda d, t: d.StackTransform([d.ExpTransform(), d.AffineTransform(0.0, 3.0)], dim=0),
    "Reshape": lambda d, t: d.ReshapeTransform((3,), (3, 1)),
    "inverse": lambda d, t: d.ComposeTransform([d.ExpTransform(), d.ExpTransform().inv]),
}


def _mapped(lib, name):
    d = importlib.import_module(f"{lib.__name__}.distributions")
    transform = TRANSFORMS[name](d, lib)
    x = lib.tensor([[0.3, -0.5, 0.9], [0.1, 0.2, -0.4]])
    y = transform(x)
    return [v.numpy() for v in (y, transform.inv(y), transform.log_abs_det_jacobian(x, y))] + [
        np.asarray(transform.forward_shape((2, 3)))
    ]


@pytest.mark.parity
@pytest.mark.parametrize("name", TRANSFORMS)
def test_transform(name):
    torch = pytest.importorskip("torch")
    for a, b in zip(_mapped(torch, name), _mapped(flambeau, name)):
        np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-5)


def _onto(lib):
    d = importlib.import_module(f"{lib.__name__}.distributions")
    c, out = d.constraints, []
    x = lib.tensor([[0.3, -0.5, 0.9], [0.1, 0.2, -0.4], [1.0, 0.5, 0.2]])
    for registry in (d.biject_to, d.transform_to):
        for constraint in (
            *(
                c.real,
                c.positive,
                c.nonnegative,
                c.greater_than(2.0),
                c.less_than(1.0),
                c.unit_interval,
                c.interval(-1.0, 2.0),
            ),
            *(c.half_open_interval(0.0, 3.0), c.simplex, c.corr_cholesky, c.independent(c.positive, 1), c.real_vector),
        ):
            out.append(registry(constraint)(x).numpy())
    out += [d.transform_to(k)(x).numpy() for k in (c.lower_cholesky, c.positive_definite)]
    return out


@pytest.mark.parity
def test_registries():
    torch = pytest.importorskip("torch")
    for a, b in zip(_onto(torch), _onto(flambeau)):
        np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-5)


def test_refusals():
    d = importlib.import_module("flambeau.distributions")
    with pytest.raises(ValueError, match="Exactly one of covariance_matrix"):
        d.MultivariateNormal(flambeau.zeros(2))
    with pytest.raises(ValueError, match="parameter concentration"):
        d.Gamma(-1.0, 1.0)
    with pytest.raises(NotImplementedError, match="Cannot transform"):
        d.biject_to(d.constraints.boolean)
    with pytest.raises(ValueError, match="parameter concentration"):
        d.VonMises(0.0, -1.0)
    with pytest.raises(RuntimeError, match="expected rate to be non-negative"):
        flambeau.poisson(flambeau.tensor([-1.0]))


def test_a_subclass_that_shows_other_event_shapes():
    """A multitask distribution of gpytorch's kind: it shows events as matrices, and is a distribution of vectors below."""

    class Matrices(flambeau.distributions.MultivariateNormal):
        @property
        def event_shape(self):
            return flambeau.Size([2, self._event_shape[0] // 2])

    plain = flambeau.distributions.MultivariateNormal(flambeau.zeros(6), flambeau.eye(6) * 2)
    shown = Matrices(flambeau.zeros(6), flambeau.eye(6) * 2)
    assert shown.entropy() == plain.entropy() and shown.log_prob(flambeau.ones(6)) == plain.log_prob(flambeau.ones(6))


CONSTRAINTS = [
    n
    for n in flambeau.distributions.constraints.__all__
    if isinstance(getattr(flambeau.distributions.constraints, n), flambeau.distributions.constraints.Constraint)
]


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_constraints_are_pickled(name):
    constraint = getattr(flambeau.distributions.constraints, name)
    again = pickle.loads(pickle.dumps(constraint))
    assert type(again) is type(constraint) and repr(again) == repr(constraint)
    if not flambeau.distributions.constraints.is_dependent(constraint):
        assert again.event_dim == constraint.event_dim


_D = flambeau.distributions


def _mixture(components):
    return _D.MixtureSameFamily(_D.Categorical(flambeau.ones(3)), components)


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        # Each component asks what lies in its support of every value, not of the value at its own place.
        (lambda: _mixture(_D.Uniform(flambeau.zeros(3), 2.0)).log_prob(flambeau.full((4,), 0.5)), [-np.log(2)] * 4),
        (
            lambda: _mixture(_D.Uniform(flambeau.zeros(3), 2.0)).expand((2,)).log_prob(flambeau.ones(2)),
            [-np.log(2)] * 2,
        ),
        (lambda: _D.Multinomial(2, flambeau.tensor([0.5, 0.5])).entropy(), 1.5 * np.log(2)),
        (lambda: _D.Kumaraswamy(2.0, 2.0).entropy(), 0.5 + 0.5 * 1.5 - 2 * np.log(2)),
        (lambda: _D.Kumaraswamy(2.0, 2.0).mode, 3**-0.5),
        (lambda: _D.GeneralizedPareto(0.0, 1.0, -0.5).log_survival_function(flambeau.tensor(1.0)), 2 * np.log(0.5)),
        (lambda: _D.GeneralizedPareto(0.0, 1.0, -0.5).log_cdf(flambeau.tensor(1.0)), np.log(0.75)),
        (lambda: _D.constraints.cat([_D.constraints.real, _D.constraints.simplex]).event_dim, 1),
        (lambda: _D.constraints.stack([_D.constraints.boolean, _D.constraints.simplex], -2).event_dim, 2),
        (lambda: _D.constraints.is_dependent(_D.Uniform.support) and _D.Multinomial.support.event_dim, 1),
        (lambda: _D.Wishart(4.0, flambeau.eye(3)).arg_constraints["df"].lower_bound, 2),
        (lambda: _D.SoftmaxTransform().forward_shape((2, 3)), (2, 3)),
    ],
)
def test_facts_of_families(got, expected):
    np.testing.assert_allclose(np.asarray(got()), expected, rtol=1e-5)


@pytest.mark.parametrize("family", ["Exponential", "Geometric", "HalfCauchy", "HalfNormal"])
def test_a_mode_at_zero_depends_on_no_parameter(family):
    mode = getattr(_D, family)(flambeau.tensor([0.5, 0.25], requires_grad=True)).mode
    assert not mode.requires_grad and mode.tolist() == [0.0, 0.0]


class _Own(_D.Distribution):
    pass


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: _D.Multinomial(-1, flambeau.ones(2)), ValueError, "IntegerGreaterThan"),
        (lambda: _D.Uniform(1.0, 0.0), ValueError, "parameter low .* LessThan"),
        (lambda: _D.transform_to(_D.constraints.integer_interval(0, 3)), NotImplementedError, "IntegerInterval"),
        (lambda: _D.constraints.dependent.event_dim, NotImplementedError, "statically"),
        (lambda: _D.SoftmaxTransform().forward_shape(()), ValueError, "Too few dimensions"),
        (
            lambda: _mixture(_D.Uniform(flambeau.zeros(3), 2.0)).log_prob(flambeau.tensor(3.0)),
            ValueError,
            "MixtureSame",
        ),
        (lambda: _D.ContinuousBernoulli(0.3).cdf(flambeau.tensor(2.0)), ValueError, "within the support"),
        (lambda: _D.ContinuousBernoulli(0.3).log_prob(flambeau.tensor(-1.0)), ValueError, "within the support"),
        (lambda: repr(_Own(validate_args=False)), NotImplementedError, "arg_constraints"),
        (
            lambda: _D.Independent(_D.Bernoulli(flambeau.ones(2) / 2), 1).enumerate_support(),
            NotImplementedError,
            "cartesian",
        ),
    ],
)
def test_refusals_of_families(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_families_without_constraints_warn():
    with pytest.warns(UserWarning, match="does not define `arg_constraints`"):
        _Own()
