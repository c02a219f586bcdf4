"""pyro: variational inference, automatic guides, Hamiltonian Monte Carlo, importance sampling."""

import torch
from harness import summary


def _start():
    import pyro

    pyro.clear_param_store()
    pyro.set_rng_seed(0)
    return pyro


def svi():
    """A coin's bias: Beta prior, Bernoulli data, a Beta guide."""
    pyro = _start()
    import pyro.distributions as dist
    from torch.distributions import constraints

    data = torch.tensor([1.0] * 6 + [0.0] * 4)

    def model():
        f = pyro.sample("f", dist.Beta(10.0, 10.0))
        with pyro.plate("data", len(data)):
            pyro.sample("obs", dist.Bernoulli(f), obs=data)

    def guide():
        a = pyro.param("a", torch.tensor(15.0), constraint=constraints.positive)
        b = pyro.param("b", torch.tensor(15.0), constraint=constraints.positive)
        pyro.sample("f", dist.Beta(a, b))

    work = pyro.infer.SVI(model, guide, pyro.optim.Adam({"lr": 0.01}), loss=pyro.infer.Trace_ELBO())
    losses = [work.step() for _ in range(5)]
    return {"losses": losses, "a": pyro.param("a"), "b": pyro.param("b")}


def linear_regression():
    """PyroModule, AutoNormal, a plate of observations."""
    pyro = _start()
    import pyro.distributions as dist
    from pyro.infer.autoguide import AutoNormal
    from pyro.nn import PyroModule, PyroSample

    x = torch.randn(20, 2)
    y = x @ torch.tensor([1.0, -2.0]) + 0.5

    class Model(PyroModule):
        def __init__(self):
            super().__init__()
            self.linear = PyroModule[torch.nn.Linear](2, 1)
            self.linear.weight = PyroSample(dist.Normal(0.0, 1.0).expand([1, 2]).to_event(2))
            self.linear.bias = PyroSample(dist.Normal(0.0, 10.0).expand([1]).to_event(1))

        def forward(self, x, y=None):
            sigma = pyro.sample("sigma", dist.Uniform(0.0, 10.0))
            mean = self.linear(x).squeeze(-1)
            with pyro.plate("data", x.shape[0]):
                pyro.sample("obs", dist.Normal(mean, sigma), obs=y)
            return mean

    model = Model()
    guide = AutoNormal(model)
    work = pyro.infer.SVI(model, guide, pyro.optim.Adam({"lr": 0.03}), loss=pyro.infer.Trace_ELBO())
    losses = [work.step(x, y) for _ in range(4)]
    found = pyro.infer.Predictive(model, guide=guide, num_samples=3)(x)
    return {"losses": losses, "median": guide.median()["linear.weight"], "predicted": found["obs"]}


def mixture():
    """Discrete choices summed out: TraceEnum_ELBO."""
    pyro = _start()
    import pyro.distributions as dist
    from pyro.infer import SVI, TraceEnum_ELBO, config_enumerate
    from pyro.infer.autoguide import AutoDelta

    data = torch.tensor([0.0, 1.0, 10.0, 11.0, 12.0])

    @config_enumerate
    def model():
        weights = pyro.sample("weights", dist.Dirichlet(0.5 * torch.ones(2)))
        with pyro.plate("components", 2):
            locs = pyro.sample("locs", dist.Normal(0.0, 10.0))
        with pyro.plate("data", len(data)):
            which = pyro.sample("which", dist.Categorical(weights))
            pyro.sample("obs", dist.Normal(locs[which], 2.0), obs=data)

    guide = AutoDelta(pyro.poutine.block(model, expose=["weights", "locs"]))
    work = SVI(model, guide, pyro.optim.Adam({"lr": 0.1}), TraceEnum_ELBO(max_plate_nesting=1))
    losses = [work.step() for _ in range(4)]
    return {"losses": losses, "locs": guide()["locs"]}


def hamiltonian():
    """NUTS on a Gaussian: few samples."""
    pyro = _start()
    import pyro.distributions as dist
    from pyro.infer import MCMC, NUTS

    def model():
        mean = pyro.sample("mean", dist.Normal(0.0, 1.0))
        pyro.sample("obs", dist.Normal(mean, 1.0), obs=torch.tensor(0.7))

    chain = MCMC(NUTS(model), num_samples=5, warmup_steps=5, disable_progbar=True)
    chain.run()
    return {"mean": summary(chain.get_samples()["mean"])}


def distributions():
    """pyro's own families and its versions of ours."""
    _start()
    import pyro.distributions as dist

    x = torch.tensor([0.2, 0.5, 0.3])
    return {
        "delta": dist.Delta(x).log_prob(x),
        "gamma": dist.Gamma(2.0, 3.0).log_prob(x),
        "student": dist.StudentT(3.0).log_prob(x),
        "normal": dist.MultivariateNormal(torch.zeros(3), torch.eye(3)).log_prob(x),
        "flow": dist.TransformedDistribution(dist.Normal(0.0, 1.0), [dist.transforms.ExpTransform()]).log_prob(x),
        "mixture": dist.MaskedMixture(
            torch.tensor([True, False, True]), dist.Normal(0.0, 1.0), dist.Normal(1.0, 2.0)
        ).log_prob(x),
        "lkj": dist.LKJCholesky(3, 2.0).log_prob(torch.eye(3)),
        "half": dist.HalfCauchy(1.0).log_prob(x),
    }
