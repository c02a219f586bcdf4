"""Optimizers and schedules beside PyTorch: the same parameters and rates after a few steps."""

import importlib
import warnings

import numpy as np
import pytest

pytestmark = pytest.mark.parity
torch = pytest.importorskip("torch")
import flambeau  # noqa: E402

OPTIMIZERS = [
    ("Adadelta", {}),
    ("Adadelta", {"weight_decay": 0.1, "lr": 0.5}),
    ("Adamax", {}),
    ("Adamax", {"weight_decay": 0.1, "maximize": True}),
    ("NAdam", {}),
    ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {}),
    ("RAdam", {"weight_decay": 0.1, "lr": 0.1}),
    ("ASGD", {"t0": 2}),
    ("ASGD", {"weight_decay": 0.1}),
    ("Rprop", {}),
    ("Adafactor", {}),
    ("Adafactor", {"weight_decay": 0.1, "lr": 0.3}),
    ("LBFGS", {"lr": 0.3, "max_iter": 4}),
    ("LBFGS", {"line_search_fn": "strong_wolfe", "max_iter": 6}),
    ("LBFGS", {"history_size": 2, "max_iter": 3, "lr": 0.2}),
    ("Adam", {"amsgrad": True}),
    ("AdamW", {}),
    ("SGD", {"momentum": 0.9, "nesterov": True, "lr": 0.1}),
    ("RMSprop", {"centered": True, "momentum": 0.5}),
    ("Adagrad", {"lr_decay": 0.1}),
]


def _run(lib, name, kwargs):
    nn, optim = (importlib.import_module(f"{lib.__name__}.{m}") for m in ("nn", "optim"))
    rng = np.random.default_rng(0)
    dtype = lib.float64 if name == "LBFGS" else lib.float32  # its decisions depend on the last bits
    x, y = (lib.tensor(rng.standard_normal(s)).to(dtype) for s in ((8, 3), (8, 2)))
    lib.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).to(dtype)
    optimizer = getattr(optim, name)(model.parameters(), **kwargs)

    def closure():
        optimizer.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        return loss

    for k in range(10):
        optimizer.step(closure)
        if k == 4:
            state = optimizer.state_dict()
            optimizer = getattr(optim, name)(model.parameters(), **kwargs)
            optimizer.load_state_dict(state)
    return [p.detach().numpy() for p in model.parameters()]


@pytest.mark.parametrize("case", OPTIMIZERS, ids=lambda c: f"{c[0]}-{'-'.join(c[1])}")
def test_optimizer(case):
    for a, b in zip(_run(torch, *case), _run(flambeau, *case)):
        np.testing.assert_allclose(b, a, rtol=2e-3, atol=2e-4)


SCHEDULES = {
    "PolynomialLR": lambda s, o: s.PolynomialLR(o, total_iters=6, power=2.0),
    "CosineAnnealingWarmRestarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, T_0=3, T_mult=2),
    "CyclicLR": lambda s, o: s.CyclicLR(o, base_lr=0.01, max_lr=0.1, step_size_up=3, mode="triangular2"),
    "CyclicLR exp": lambda s, o: s.CyclicLR(
        o, base_lr=0.01, max_lr=0.1, step_size_up=2, step_size_down=4, mode="exp_range", gamma=0.9
    ),
    "OneCycleLR": lambda s, o: s.OneCycleLR(o, max_lr=0.1, total_steps=20),
    "OneCycleLR three": lambda s, o: s.OneCycleLR(
        o, max_lr=0.1, epochs=4, steps_per_epoch=5, three_phase=True, anneal_strategy="linear"
    ),
    "SequentialLR": lambda s, o: s.SequentialLR(o, [s.LinearLR(o, 0.1, total_iters=4), s.ExponentialLR(o, 0.9)], [5]),
    "SequentialLR cosine": lambda s, o: s.SequentialLR(
        o, [s.ConstantLR(o, 0.1, total_iters=4), s.CosineAnnealingLR(o, 8)], [4]
    ),
    "ChainedScheduler": lambda s, o: s.ChainedScheduler([s.ConstantLR(o, 0.1, total_iters=4), s.ExponentialLR(o, 0.9)]),
    "StepLR": lambda s, o: s.StepLR(o, 3),
    "CosineAnnealingLR": lambda s, o: s.CosineAnnealingLR(o, 6),
    "LinearLR": lambda s, o: s.LinearLR(o),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedule(name):
    results = []
    for lib in (torch, flambeau):
        optim, schedules = (importlib.import_module(f"{lib.__name__}.{m}") for m in ("optim", "optim.lr_scheduler"))
        p = lib.zeros(1, requires_grad=True)
        o = optim.SGD([p], lr=0.5, momentum=0.9)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            s = SCHEDULES[name](schedules, o)
            rates = [o.param_groups[0]["lr"]]
            for _ in range(15):
                o.step()
                s.step()
                rates += [o.param_groups[0]["lr"], o.param_groups[0]["momentum"], s.get_last_lr()[0]]
        results.append(rates)
    np.testing.assert_allclose(results[1], results[0], rtol=1e-9, atol=1e-12)


def test_plateau_and_averages():
    results = []
    for lib in (torch, flambeau):
        nn, optim, schedules, swa = (
            importlib.import_module(f"{lib.__name__}.{m}")
            for m in ("nn", "optim", "optim.lr_scheduler", "optim.swa_utils")
        )
        lib.manual_seed(0)
        model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
        o = optim.SGD(model.parameters(), lr=0.5)
        s = schedules.ReduceLROnPlateau(o, patience=1, factor=0.5, cooldown=1)
        rates = []
        for v in (1, 0.9, 0.9, 0.9, 0.9, 0.91, 0.8, 0.8, 0.8, 0.8):
            s.step(v)
            rates.append(o.param_groups[0]["lr"])
        averages = [swa.AveragedModel(model), swa.AveragedModel(model, multi_avg_fn=swa.get_ema_multi_avg_fn(0.7))]
        o2 = optim.SGD(model.parameters(), lr=0.1)
        swalr = swa.SWALR(o2, 0.02, anneal_epochs=3)
        x = lib.randn(6, 3)
        for _ in range(5):
            o2.zero_grad()
            model(x).pow(2).sum().backward()
            o2.step()
            for a in averages:
                a.update_parameters(model)
            swalr.step()
            rates.append(o2.param_groups[0]["lr"])
        swa.update_bn([x, x], averages[0])
        results.append(
            [np.array(rates)] + [p.detach().numpy() for a in averages for p in (*a.parameters(), *a.buffers())]
        )
    for a, b in zip(*results):
        np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-6)
