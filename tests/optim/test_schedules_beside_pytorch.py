"""Every schedule over its options, beside PyTorch: rates that are numbers and tensors, momenta, states, resuming, warnings, and what is refused."""

import copy
import importlib
import re
import warnings

import numpy as np
import pytest

import flambeau

pytestmark = pytest.mark.parity
torch = pytest.importorskip("torch")

CYCLE, ONCE, STALLED = (
    dict(base_lr=0.1, max_lr=0.5, step_size_up=3),
    dict(max_lr=0.5, total_steps=20),
    dict(patience=0, factor=0.5),
)
CASES = {
    "LambdaLR": [dict(lr_lambda=lambda e: 0.9**e), dict(lr_lambda=[lambda e: 0.9**e, lambda e: 1 / (1 + e)]), dict(lr_lambda=[abs]), dict(lr_lambda=3)],
    "MultiplicativeLR": [dict(lr_lambda=lambda e: 0.95), dict(lr_lambda=[lambda e: 0.9**e, lambda e: 0.9]), dict(lr_lambda=[abs])],
    "StepLR": [dict(step_size=3), dict(step_size=2, gamma=0.5), dict(step_size=0), dict(step_size=2.5), dict(step_size="x")],
    "MultiStepLR": [dict(milestones=m) for m in ([2, 5], [2, 2, 7], [], 3, [5, 2])],
    "ConstantLR": [{}, dict(factor=0.5, total_iters=3), dict(factor=1.5), dict(factor=-1), dict(factor=1.0, total_iters=0)],
    "LinearLR": [{}, dict(start_factor=0.1, end_factor=0.8, total_iters=7), dict(start_factor=0), dict(end_factor=-1), dict(total_iters=0)],
    "ExponentialLR": [dict(gamma=g) for g in (0.9, 0, 2, -0.5)],
    "PolynomialLR": [{}, dict(total_iters=7, power=2.0), dict(total_iters=0), dict(power=0)],
    "CosineAnnealingLR": [dict(T_max=5), dict(T_max=10, eta_min=0.01), dict(T_max=1), dict(T_max=0), dict(T_max=3.5)],
    "CosineAnnealingWarmRestarts": [dict(T_0=4), dict(T_0=2, T_mult=2, eta_min=0.01), dict(T_0=0), dict(T_0=2, T_mult=0), dict(T_0=2.5), dict(T_0=3, eta_min="x")],
    "CyclicLR": [CYCLE, CYCLE | dict(mode="triangular2"), dict(base_lr=[0.1, 0.2], max_lr=[0.5, 0.6], step_size_up=2, step_size_down=4, mode="exp_range", gamma=0.9),
                 CYCLE | dict(mode="bogus"), CYCLE | dict(base_lr=[0.1]), CYCLE | dict(cycle_momentum=False), CYCLE | dict(base_momentum=0.5, max_momentum=0.8),
                 CYCLE | dict(scale_fn=lambda x: 0.5, scale_mode="iterations"), CYCLE | dict(step_size_up=0)],
    "OneCycleLR": [ONCE, dict(max_lr=[0.5, 0.6], epochs=5, steps_per_epoch=4, anneal_strategy="linear"), ONCE | dict(three_phase=True, pct_start=0.4), dict(max_lr=0.5),
                   dict(max_lr=0.5, epochs=0, steps_per_epoch=3), dict(max_lr=0.5, epochs=2, steps_per_epoch=-1), dict(max_lr=0.5, epochs=2), dict(max_lr=0.5, total_steps=5),
                   *(ONCE | more for more in (dict(total_steps=-1), dict(total_steps=2.5), dict(pct_start=1.5), dict(pct_start=1), dict(anneal_strategy="x"), dict(max_lr=[0.5]),
                                              dict(cycle_momentum=False, div_factor=10.0, final_div_factor=100.0)))],
    "ReduceLROnPlateau": [{}, STALLED, dict(mode="max", patience=1), dict(mode="x"), dict(factor=1.0), STALLED | dict(threshold_mode="abs", threshold=0.1, cooldown=1, min_lr=[0.01, 0.02]),
                          dict(threshold_mode="x"), dict(min_lr=[0.1]), STALLED | dict(eps=1.0)],
}  # fmt: skip
SEVERAL = {
    "constant, exponential": lambda s, o: [s.ConstantLR(o, 0.1, total_iters=4), s.ExponentialLR(o, 0.9)],
    "linear, cosine": lambda s, o: [s.LinearLR(o, 0.1, total_iters=4), s.CosineAnnealingLR(o, 8)],
    "three": lambda s, o: [s.ExponentialLR(o, 0.9), s.StepLR(o, 2), s.CosineAnnealingWarmRestarts(o, 3)],
    "multiplicative": lambda s, o: [s.StepLR(o, 2), s.MultiplicativeLR(o, lambda e: 0.5)],
    "one cycle": lambda s, o: [s.OneCycleLR(o, 0.5, total_steps=20), s.StepLR(o, 2)],
    "none": lambda s, o: [],
    "plateau": lambda s, o: [s.ReduceLROnPlateau(o), s.StepLR(o, 2)],
    "numbers": lambda s, o: [3, 4],
}  # fmt: skip
LOSSES = [1, 0.9, 0.9, 0.95, 0.9, 0.5, 0.5, 0.6, 0.5, 0.4, 0.4, 0.4, 0.4, 0.4]


def shown(x):
    if isinstance(x, (torch.Tensor, flambeau.Tensor)):
        return f"{tuple(x.shape)} {str(x.dtype).rpartition('.')[2]} {np.asarray(x.detach()).round(6).tolist()}"
    if isinstance(x, dict):
        return dict(sorted((shown(k), shown(v)) for k, v in x.items()))
    if isinstance(x, (list, tuple)):
        return [shown(v) for v in x]
    if isinstance(x, float):
        return f"{x:.9g}"
    return re.sub(r" at 0x[0-9a-f]+", "", str(x)).replace("flambeau.", "torch.")


def told(call, lib):
    """What a call gave, or how it ended, and its warnings."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            result = shown(call(lib, importlib.import_module(f"{lib.__name__}.optim.lr_scheduler")))
        except Exception as e:
            result = f"{type(e).__name__}: {shown(e)}".split("\n")[0]
            result = re.sub(r"'[<>]=?' not supported.*", "comparison", result)
    return result, [(w.category, str(w.message)[:60]) for w in warned]


def optimizer(lib, tensors=False, name="SGD"):
    """Of two groups with their own rates."""
    rate = (lambda r: lib.tensor(r, dtype=lib.float64)) if tensors else (lambda r: r)
    params = [lib.nn.Parameter(lib.ones(2)) for _ in range(2)]
    groups = [{"params": params[:1]}, {"params": params[1:], "lr": rate(0.2)}]
    return getattr(lib.optim, name)(groups, lr=rate(0.5), **({"momentum": 0.9} if name == "SGD" else {}))


def run(o, s, steps=14):
    out = [[copy.copy(g["lr"]) for g in o.param_groups]]
    for k in range(steps):
        o.step()
        s.step(*([LOSSES[k]] if type(s).__name__ == "ReduceLROnPlateau" else []))
        out += [
            [copy.copy(g["lr"]) for g in o.param_groups],
            [g.get("momentum") or g.get("betas") for g in o.param_groups],
            s.get_last_lr(),
        ]
    return out


def alone(name, options, tensors, of="SGD"):
    def call(lib, schedules):
        o = optimizer(lib, tensors, of)
        first = [g["lr"] for g in o.param_groups]
        s = getattr(schedules, name)(o, **options)
        out = run(o, s)
        kept = [not tensors or a is g["lr"] for a, g in zip(first, o.param_groups)]
        return (
            out,
            kept,
            {k: v for k, v in s.state_dict().items() if not callable(v)},
            [sorted(g) for g in o.param_groups],
        )

    return call


@pytest.mark.parametrize("tensors", [False, True], ids=["numbers", "tensors"])
@pytest.mark.parametrize("name", CASES)
def test_schedule(name, tensors):
    for options in CASES[name]:
        call = alone(name, options, tensors)
        assert told(call, flambeau) == told(call, torch), options


@pytest.mark.parametrize("name", CASES)
def test_around(name):
    """Other optimizers, resuming, and what warns."""
    options, plateau = CASES[name][0], name == "ReduceLROnPlateau"
    metric = [1.0] if plateau else []

    def early(lib, schedules):
        o = optimizer(lib)
        getattr(schedules, name)(o, **options).step(*metric)
        return [g["lr"] for g in o.param_groups]

    def to_epochs(lib, schedules):
        o = optimizer(lib)
        s = getattr(schedules, name)(o, **options)
        o.step()
        out = []
        for epoch in (3, 1, 5, 2):
            s.step(*metric, epoch)
            out.append([s.last_epoch, *(g["lr"] for g in o.param_groups)])
        return out

    def loaded(lib, schedules):
        (o, p), states = (optimizer(lib) for _ in range(2)), []
        s, t = (getattr(schedules, name)(x, **options) for x in (o, p))
        run(o, s, 4)
        t.load_state_dict(copy.deepcopy(s.state_dict()))
        p.load_state_dict(o.state_dict())
        return run(p, t, 4), states

    def resumed(lib, schedules, known=True):
        o = optimizer(lib)
        for g in o.param_groups if known else ():
            g.update(initial_lr=g["lr"] * 2, max_lr=0.5, min_lr=0.001, max_momentum=0.9, base_momentum=0.8)
        return run(o, getattr(schedules, name)(o, **options, last_epoch=3), 4)

    calls = [alone(name, options, False, "Adam"), alone(name, options, False, "Adagrad"), early, to_epochs, loaded,
             lambda lib, schedules: getattr(schedules, name)(3, **options)]  # fmt: skip
    if not plateau:
        calls += [resumed, lambda lib, schedules: resumed(lib, schedules, False), lambda lib, schedules: getattr(schedules, name)(optimizer(lib), **options).get_lr()]  # fmt: skip
    for call in calls:
        assert told(call, flambeau) == told(call, torch), call


@pytest.mark.parametrize("name", SEVERAL)
def test_several(name):
    def chained(lib, schedules):
        o = optimizer(lib)
        return run(o, schedules.ChainedScheduler(SEVERAL[name](schedules, o), o), 8)

    def in_turn(milestones, tensors=False):
        def call(lib, schedules):
            o = optimizer(lib, tensors)
            return run(o, schedules.SequentialLR(o, SEVERAL[name](schedules, o), milestones), 12)

        return call

    for call in (chained, *(in_turn(m) for m in ([4], [2, 5], [], [0], [-1], [5, 2], [1])), in_turn([3], True)):
        assert told(call, flambeau) == told(call, torch)
