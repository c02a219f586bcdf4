"""Steps compiled as one graph: what plain steps compute, with rates that change at every step, and kernels that parameters share."""

import importlib

import pytest

import flambeau as torch
from flambeau.dynamo.utils import counters

# Bits are promised where elements are rounded alike: RAdam's and Adafactor's scalars are computed by other routines for powers and sums.
ROUNDED = {"RAdam": 1e-6, "Adafactor": 1e-5}
# Kernels of a later step: one for all parameters, one that counts; ASGD has one for its next rates. Matrices with reductions and products have more.
KERNELS = {"SGD": 1, "ASGD": 3, "Adafactor": 40, "Muon": 80}
CASES = [
    ("SGD", dict(momentum=0.9, nesterov=True)),
    ("SGD", dict(weight_decay=0.1, maximize=True)),
    ("Adam", dict(amsgrad=True)),
    ("AdamW", {}),
    ("Adamax", {}),
    ("Adamax", dict(weight_decay=0.1, maximize=True)),
    ("NAdam", {}),
    ("NAdam", dict(weight_decay=0.1, decoupled_weight_decay=True, maximize=True)),
    ("RAdam", {}),
    ("RAdam", dict(weight_decay=0.1, decoupled_weight_decay=True)),
    ("ASGD", dict(t0=2)),
    ("ASGD", dict(weight_decay=0.1, maximize=True)),
    ("RMSprop", dict(centered=True, momentum=0.5)),
    ("RMSprop", {}),
    ("Adadelta", dict(weight_decay=0.1)),
    ("Adagrad", dict(lr_decay=0.1)),
    ("Rprop", {}),
    ("Adafactor", dict(weight_decay=0.1)),
    ("Muon", {}),
]
RATES = {
    "fixed": lambda rate: rate,
    "number": lambda rate: rate,
    "tensor": lambda rate: torch.tensor(rate),
    "tensor of one element": lambda rate: torch.tensor([rate]),
}
COUNT = 8  # steps: RAdam is certain from the sixth on


@pytest.fixture
def infos():
    """What was compiled."""
    found, observers = [], importlib.import_module("flambeau.inductor.debug").observers
    torch.compiler.reset()
    counters.clear()
    observers.append(lambda gm, parts, info: found.append(info))
    yield found
    observers.pop()


def trained(name, options, rates, compiled):
    """Parameters and states after steps with two groups, whose rates go down."""
    torch.manual_seed(0)
    params = [torch.nn.Parameter(torch.randn(n, 8)) for n in (4, 8, 12, 16, 20, 24, 28, 32)]
    groups = [{"params": part, "lr": RATES[rates](rate)} for part, rate in ((params[:4], 0.02), (params[4:], 0.03))]
    optimizer = getattr(torch.optim, name)(groups, **options)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.8)
    step = torch.compile(optimizer.step, fullgraph=True) if compiled else optimizer.step
    for k in range(COUNT):
        for p in params:
            p.grad = (p.detach() - 0.3) * (0.5 + 0.1 * k)
        step()
        if rates != "fixed":
            schedule.step()
    states = [v for p in params for v in optimizer.state[p].values() if isinstance(v, torch.Tensor)]
    return [p.detach() for p in params] + states


# Numbers that change for every case, tensors for every optimizer, the other kinds of rates for three; the full product is slow.
FIRST = [CASES[k] for k in range(len(CASES)) if CASES[k][0] not in [name for name, _ in CASES[:k]]]
OFTEN = [
    (*case, rates) for case in CASES for rates in RATES
    if rates == "number" or case in FIRST and (rates == "tensor" or case[0] in ("SGD", "AdamW", "ASGD"))
]  # fmt: skip
SELDOM = [(*case, rates) for case in CASES for rates in RATES]
SELDOM = [pytest.param(*each, marks=pytest.mark.slow) for each in SELDOM if each not in OFTEN]


@pytest.mark.filterwarnings("ignore:Detected call of `lr_scheduler.step")
@pytest.mark.parametrize("name, options, rates", OFTEN + SELDOM, ids=lambda v: v if isinstance(v, str) else "-".join(v))
def test_one_graph(name, options, rates, infos):
    found = trained(name, options, rates, compiled=True)
    # A graph of the first step, and one of all others. Which of them the graph cache knows depends on what ran before.
    assert counters["stats"]["unique_graphs"] <= 2
    assert not infos or len(infos[-1].kernels) <= KERNELS.get(name, 2) + (1 if rates == "fixed" else 0)
    for a, b in zip(found, trained(name, options, rates, compiled=False), strict=True):
        assert a.dtype is b.dtype
        if name in ROUNDED:
            torch.testing.assert_close(a, b, rtol=ROUNDED[name], atol=1e-7)
        else:
            assert torch.equal(a, b)


def test_steps_with_schedules_and_hooks_after_a_write():
    """The note that a schedule makes of the first step, and hooks, hold the optimizer weakly, which breaks no graph."""

    class Run:
        loss = None

    def trained(compiled):
        p = torch.nn.Parameter(torch.arange(3.0))
        optimizer = torch.optim.SGD([p], lr=0.1, momentum=0.9)
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
        run, seen = Run(), []
        optimizer.register_step_post_hook(lambda o, args, kwargs: seen.append(o is optimizer))

        def step(x):
            optimizer.zero_grad()
            run.loss = (p * p * x).sum()
            run.loss.backward()
            optimizer.step()

        step = torch.compile(step, fullgraph=True) if compiled else step
        for _ in range(3):
            step(torch.ones(3))
            schedule.step()
        return p.tolist(), run.loss.item(), seen

    assert trained(True) == trained(False)
