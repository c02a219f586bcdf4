"""Methods of libraries that no list names: losses, flows, differential equations, optimizers, attacks, measures, counts."""

import torch
import torch.nn.functional as F
from harness import both, gradients, steps
from torch import nn


def metric_learning_losses():
    from pytorch_metric_learning import distances, losses, miners, reducers

    x, y, out = torch.randn(12, 8), torch.arange(12) % 4, {}
    net = nn.Linear(8, 6)
    for name, loss in {
        "triplet": losses.TripletMarginLoss(margin=0.2),
        "contrastive": losses.ContrastiveLoss(),
        "arcface": losses.ArcFaceLoss(4, 6),
        "ntxent": losses.NTXentLoss(),
        "proxy": losses.ProxyNCALoss(4, 6),
        "multi": losses.MultiSimilarityLoss(distance=distances.CosineSimilarity(), reducer=reducers.MeanReducer()),
    }.items():
        net.zero_grad()
        z = net(x)
        value = loss(z, y, miners.MultiSimilarityMiner()(z, y))
        value.backward()
        out[name], out[f"{name} gradient"] = value, net.weight.grad
    return out


def normalizing_flow():
    from nflows import distributions, flows, transforms

    layers = []
    for _ in range(2):
        layers += [
            transforms.ReversePermutation(features=2),
            transforms.MaskedAffineAutoregressiveTransform(features=2, hidden_features=8),
        ]
    flow = flows.Flow(transforms.CompositeTransform(layers), distributions.StandardNormal([2]))
    x = torch.randn(16, 2)
    return steps(flow, lambda: -flow.log_prob(x).mean()) | {"sample": flow.sample(3)}


def zuko_flow():
    import zuko

    flow = zuko.flows.NSF(2, context=1, transforms=2, hidden_features=(8, 8))
    x, c = torch.randn(16, 2), torch.randn(16, 1)
    return steps(flow, lambda: -flow(c).log_prob(x).mean())


def stochastic_differential_equation():
    import torchsde

    class SDE(nn.Module):
        noise_type, sde_type = "diagonal", "ito"

        def __init__(self):
            super().__init__()
            self.mu, self.sigma = nn.Linear(3, 3), nn.Linear(3, 3)

        def f(self, t, y):
            return self.mu(y)

        def g(self, t, y):
            return torch.sigmoid(self.sigma(y)) * 0.1

    sde, y0, ts = SDE(), torch.full((4, 3), 0.1), torch.linspace(0, 1, 5)
    bm = torchsde.BrownianInterval(t0=0.0, t1=1.0, size=(4, 3), entropy=7, dtype=torch.float32)
    ys = torchsde.sdeint(sde, y0, ts, bm=bm, method="euler", dt=0.05)
    ys.pow(2).mean().backward()
    return {"ys": ys, "gradients": gradients(sde)["total"]}


def controlled_differential_equation():
    import torchcde

    x = torch.randn(2, 6, 3)
    coeffs = torchcde.hermite_cubic_coefficients_with_backward_differences(x)
    path = torchcde.CubicSpline(coeffs)

    class Func(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 12)

        def forward(self, t, z):
            return self.linear(z).tanh().view(*z.shape, 3)

    func = Func()
    z = torchcde.cdeint(
        X=path, z0=torch.ones(2, 4), func=func, t=path.interval, method="rk4", options={"step_size": 0.5}, adjoint=False
    )
    z.pow(2).mean().backward()
    return {"z": z, "natural": torchcde.natural_cubic_coeffs(x), "gradients": gradients(func)["total"]}


def sparse_activations():
    import entmax

    x = torch.randn(3, 7, requires_grad=True)
    out = {}
    for name in ("sparsemax", "entmax15", "entmax_bisect"):
        x.grad = None
        y = getattr(entmax, name)(x, dim=-1)
        y.pow(2).sum().backward()
        out[name], out[f"{name} gradient"] = y, x.grad
    return out


def ignite_engine():
    from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
    from ignite.metrics import Accuracy, Loss

    model = nn.Linear(4, 3)
    data = [(torch.randn(8, 4), torch.randint(0, 3, (8,))) for _ in range(3)]
    trainer = create_supervised_trainer(model, torch.optim.SGD(model.parameters(), lr=0.1), nn.CrossEntropyLoss())
    losses = []
    trainer.add_event_handler(Events.ITERATION_COMPLETED, lambda e: losses.append(e.state.output))
    trainer.run(data, max_epochs=2)
    evaluator = create_supervised_evaluator(model, metrics={"accuracy": Accuracy(), "nll": Loss(nn.CrossEntropyLoss())})
    evaluator.run(data)
    return {"losses": losses, **{k: float(v) for k, v in evaluator.state.metrics.items()}}


def botorch_optimisation():
    from botorch.acquisition import LogExpectedImprovement
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from gpytorch.mlls import ExactMarginalLogLikelihood

    x = torch.linspace(0, 1, 8, dtype=torch.float64).unsqueeze(-1)
    y = torch.sin(6 * x) + 0.1 * x
    gp = SingleTaskGP(x, y)
    fit_gpytorch_mll(ExactMarginalLogLikelihood(gp.likelihood, gp))
    at = torch.tensor([[[0.33]], [[0.71]]], dtype=torch.float64)
    return {"mean": gp.posterior(at).mean, "acquisition": LogExpectedImprovement(gp, best_f=y.max())(at)}


def newer_optimizers():
    from lion_pytorch import Lion
    from prodigyopt import Prodigy
    from schedulefree import AdamWScheduleFree

    out = {}
    for name, make in {
        "lion": lambda p: Lion(p, lr=1e-2),
        "prodigy": lambda p: Prodigy(p),
        "free": lambda p: AdamWScheduleFree(p, lr=1e-2),
    }.items():
        torch.manual_seed(0)
        net = nn.Linear(3, 2)
        o = make(net.parameters())
        if name == "free":
            o.train()
        for _ in range(4):
            o.zero_grad()
            net(torch.ones(4, 3)).pow(2).mean().backward()
            o.step()
        out[name] = net.weight
    return out


def averages_and_counts():
    import torch_ema
    import torchinfo
    import torchsummary
    from ema_pytorch import EMA
    from thop import profile

    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 2))
    ema, other = (
        EMA(net, beta=0.9, update_every=1, update_after_step=0),
        torch_ema.ExponentialMovingAverage(net.parameters(), decay=0.9),
    )
    with torch.no_grad():
        for p in net.parameters():
            p.add_(1.0)
    ema.update(), ema.update(), other.update()
    info = torchinfo.summary(net, (1, 3, 8, 8), verbose=0)
    with other.average_parameters():
        averaged = net[0].weight.clone()
    torchsummary.summary(net, (3, 8, 8), device="cpu")
    return {
        "ema": ema.ema_model[0].weight,
        "other": averaged,
        "parameters": [float(info.total_params), float(info.total_mult_adds)],
        "thop": list(map(float, profile(net, (torch.randn(1, 3, 8, 8),), verbose=False))),
    }


def perceptual_measures():
    import lpips
    import pytorch_msssim

    x, y = torch.rand(2, 3, 48, 48), torch.rand(2, 3, 48, 48)
    torch.manual_seed(1)
    net = lpips.LPIPS(net="alex", pretrained=False, pnet_rand=True, verbose=False).eval()
    return {"ssim": pytorch_msssim.ssim(x, y, data_range=1.0), "lpips": net(x * 2 - 1, y * 2 - 1)}


def riemannian_optimisation():
    import geoopt

    ball, sphere = geoopt.PoincareBall(), geoopt.Sphere()
    a = geoopt.ManifoldParameter(torch.randn(4, 3) * 0.1, manifold=ball)
    b = geoopt.ManifoldParameter(sphere.projx(torch.randn(4, 3)), manifold=sphere)
    target, o = torch.full((4, 3), 0.2), geoopt.optim.RiemannianAdam([a, b], lr=0.05)
    for _ in range(4):
        o.zero_grad()
        (ball.dist(a, target).pow(2).sum() + (b - target).pow(2).sum()).backward()
        o.step()
    return {"a": a, "b": b}


def private_training():
    from opacus import GradSampleModule
    from opacus.optimizers import DPOptimizer

    net = GradSampleModule(
        nn.Sequential(nn.Conv2d(1, 2, 3), nn.GroupNorm(1, 2), nn.ReLU(), nn.Flatten(), nn.Linear(2 * 16, 3))
    )
    o = DPOptimizer(
        torch.optim.SGD(net.parameters(), lr=0.1), noise_multiplier=0.5, max_grad_norm=1.0, expected_batch_size=4
    )
    x, y = torch.randn(4, 1, 6, 6), torch.randint(0, 3, (4,))
    F.cross_entropy(net(x), y).backward()
    norms = [p.grad_sample.flatten(1).norm(dim=1) for p in net.parameters()]
    torch.manual_seed(0)
    o.step()
    return {"per sample": torch.stack(norms), "after": [p.detach().double().sum().item() for p in net.parameters()]}


def adversarial_attacks():
    import torchattacks

    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 3)).eval()
    x, y = torch.rand(2, 3, 8, 8), torch.tensor([0, 2])
    return {
        "fgsm": torchattacks.FGSM(net, eps=0.03)(x, y),
        "pgd": torchattacks.PGD(net, eps=0.03, steps=3, random_start=False)(x, y),
        "cw": torchattacks.CW(net, steps=4)(x, y),
    }


def optimal_transport():
    import geomloss

    x, y = torch.randn(10, 2, requires_grad=True), torch.randn(12, 2)
    out = {}
    for name in ("sinkhorn", "gaussian", "energy"):
        x.grad = None
        loss = geomloss.SamplesLoss(name, blur=0.1, backend="tensorized")(x, y)
        loss.backward()
        out[name], out[f"{name} gradient"] = loss, x.grad
    return out


def learned_gradients():
    import higher

    net = nn.Linear(3, 1)
    opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    x, y = torch.randn(8, 3), torch.randn(8, 1)
    with higher.innerloop_ctx(net, opt, copy_initial_weights=False) as (fnet, diffopt):
        for _ in range(2):
            diffopt.step((fnet(x) - y).pow(2).mean())
        (fnet(x) - y).pow(2).mean().backward()
    return {"gradients": net.weight.grad.clone()} | both(net, (x,))


def einstein_notation():
    import einx
    from einops.layers.torch import Rearrange, Reduce

    x = torch.randn(2, 3, 4)
    return {
        "sum": einx.sum("a [b] c", x),
        "dot": einx.dot("a b c, c d -> a b d", x, torch.ones(4, 2)),
        "layer": nn.Sequential(Rearrange("a b c -> a (b c)"), Reduce("a (b c) -> a b", "max", b=3))(x),
    }


def flop_counts():
    from fvcore.nn import parameter_count, sigmoid_focal_loss

    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 2))
    return {
        "parameters": [float(v) for v in parameter_count(net).values()],
        "focal": sigmoid_focal_loss(torch.tensor([0.3, -1.0]), torch.tensor([1.0, 0.0])),
    }
