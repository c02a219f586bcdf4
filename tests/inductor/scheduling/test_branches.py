"""Small launches that don't depend on one another run side by side: the same bits as in turn, on any number of threads, and errors as in turn."""

import gc
import io
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from flambeau._inductor import aoti_compile_and_package, aoti_load_package

import flambeau as torch
from flambeau import _runtime
from flambeau.base import kernels
from flambeau.export import package
from flambeau.inductor.ir.nodes import Buffer, ExternCall, Region
from flambeau.inductor.runtime.records import CallStep, KernelStep
from flambeau.inductor.scheduling import branches
from flambeau.inductor.scheduling.branches import side_by_side
from flambeau.inductor.settings import config

F = torch.nn.functional
gen = np.random.default_rng(0)


def data(*shape, dtype=np.float32):
    return torch.from_numpy(gen.normal(size=shape).astype(dtype))


def projections(x, w, v, u):
    q, k, y = x @ w, x @ v, x @ u
    return (q @ k.t()).softmax(-1) @ y, q.sum(0), k.amax(0)


def towers(x, w, v, u):
    return tuple(torch.tanh(x @ m).cumsum(1) @ m.t() for m in (w, v, u, w + v, w - u, v * u))


def convolutions(x, w, v, u):
    y = x.reshape(2, 1, -1, x.shape[1])
    kernels = (m.reshape(-1)[: 4 * k * k].reshape(4, 1, k, k) for m, k in ((w, 1), (v, 3), (u, 5)))
    return tuple(F.conv2d(y, m, padding=m.shape[-1] // 2) for m in kernels)


def mixed(x, w, v, u):
    parts = [x @ w, x.softmax(1), F.max_pool2d(x[None, None], 2)[0, 0], x.cumsum(0), v.sort(1)[0], u.exp().sum(1)]
    return (*parts, parts[0].mean() + parts[3].mean())


def shapes(x, w, v, u):
    return tuple((t.exp() * t[:1]).sum(d) for t in (x, w, v, u, x.t(), w[:, 3:]) for d in (0, 1))


FUNCTIONS = [projections, towers, convolutions, mixed, shapes]


def operands():
    return data(40, 48), data(48, 48), data(48, 48), data(48, 48)


def graphs():
    return {id(o): o for o in gc.get_objects() if isinstance(o, _runtime.Graph)}


def compiled(f, *args, **settings):
    """(results, the sizes of the batches of its graphs)."""
    torch._dynamo.reset()
    before = graphs()
    with config.patch(**{"force_disable_caches": True, **settings}):
        run = torch.compile(f)
        out = run(*args)
    made = [g for k, g in graphs().items() if k not in before]
    counts = [count for g in made for _, count in g.info.plan.together]
    return out if isinstance(out, tuple) else (out,), counts


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_the_bits_are_those_of_launches_in_turn(f, threads):
    args = operands()
    threads(1)
    want, none = compiled(f, *args, parallel_branches=False)
    assert not none
    for n in (1, 2, 3, 7):
        threads(n)
        got, counts = compiled(f, *args)
        assert counts and min(counts) > 1
        for a, b in zip(got, want):
            assert a.numpy().tobytes() == b.numpy().tobytes()
    for a, b in zip(want, f(*args)):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-4)


def test_many_runs(threads):
    """What members write is there when what follows reads it."""
    threads(4)
    args = operands()
    torch._dynamo.reset()
    run = torch.compile(towers)
    want = [t.numpy().copy() for t in run(*args)]
    for _ in range(300):
        for a, b in zip(run(*args), want):
            np.testing.assert_array_equal(a.numpy(), b)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = torch.nn.ModuleList(
            torch.nn.Sequential(torch.nn.Linear(20, 24), torch.nn.Tanh(), torch.nn.Linear(24, 20)) for _ in range(5)
        )
        self.head = torch.nn.Linear(100, 7)

    def forward(self, x):
        return self.head(torch.cat([F.dropout(p(x), 0.2) for p in self.parts], 1))


@pytest.mark.parametrize("kept", [False, True])
def test_training(threads, kept):
    """Forward, a backward that consumes what was saved (or keeps it), and the update: weights after a few steps."""

    def train(n, **settings):
        threads(n)
        torch.manual_seed(0)
        torch._dynamo.reset()
        net, x = Net(), torch.randn(33, 20)
        optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
        with config.patch(force_disable_caches=True, **settings):
            run, step = torch.compile(net), torch.compile(optimizer.step)
            for _ in range(4):
                run(x).square().mean().backward(retain_graph=kept)
                step()
                optimizer.zero_grad()
        return b"".join(p.detach().numpy().tobytes() for p in net.parameters())

    want = train(1, parallel_branches=False)
    assert train(1) == want
    assert train(4) == want


def bad_rows(x, w, v, u, i, j):
    a = (x @ w).cumsum(0)
    return a, v[i].exp().sum(1), u[j].exp().sum(1), x.cumsum(1)


@pytest.mark.parametrize("which", [(5, 99), (99, 5), (99, 77)])
def test_what_is_reported(which, threads):
    threads(3)
    args = operands()
    at = [torch.tensor([0, k]) for k in which]

    def said(**settings):
        torch._dynamo.reset()
        with config.patch(force_disable_caches=True, **settings):
            run = torch.compile(bad_rows)
            run(*args, *(t.clamp(0, 3) for t in at))
            with pytest.raises(IndexError) as e:
                run(*args, *at)
            run(*args, *(t.clamp(0, 3) for t in at))  # and it goes on
        return str(e.value)

    assert said() == said(parallel_branches=False)


def test_draws_stay_in_order(threads):
    threads(3)

    def f(x, w, v, u):
        return torch.rand(30), x @ w, torch.randn(30, 2), x @ v, torch.rand(30), x @ u

    def numbers(**settings):
        torch.manual_seed(3)
        return [t.numpy().tobytes() for t in compiled(f, *operands_once, **settings)[0]]

    operands_once = operands()
    assert numbers() == numbers(parallel_branches=False)


def test_times_of_steps(threads):
    threads(2)
    torch._dynamo.reset()
    before = graphs()
    args = operands()
    run = torch.compile(towers)
    run(*args)
    (graph,) = (g for k, g in graphs().items() if k not in before)
    assert graph.info.plan.together
    _runtime.time_steps(time.CLOCK_MONOTONIC)
    try:
        start = time.monotonic()
        for _ in range(20):
            run(*args)
        whole = time.monotonic() - start
    finally:
        _runtime.time_steps(None)
    assert len(graph.step_seconds) == graph.nsteps
    assert min(graph.step_seconds) > 0 and sum(graph.step_seconds) <= whole


def test_a_package_runs_them_too(threads, monkeypatch):
    read, plans = package.read_plan, []
    monkeypatch.setattr(package, "read_plan", lambda *a: plans.append(read(*a)) or plans[-1])
    threads(3)
    args, f = operands(), io.BytesIO()
    aoti_compile_and_package(torch.export.export(_Towers(), args), package_path=f)
    f.seek(0)
    run = aoti_load_package(f)
    assert [p for p in plans if p.together]
    for a, b in zip(run(*args), compiled(towers, *args)[0]):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


class _Towers(torch.nn.Module):
    def forward(self, x, w, v, u):
        return towers(x, w, v, u)


@pytest.mark.parametrize(
    "together",
    [
        [(0, 1)],
        [(0, 3)],
        [(-1, 2)],
        [(1, 2)],
        [(0, 2), (1, 2)],
        [(0, 17)],
        [(0, 2**31 - 1)],
        [(2**31 - 1, 2)],
        [0],
        [(0,)],
    ],
)
def test_batches_that_are_refused(together):
    kernel = KernelStep("k", [], 0, 0, 0, 0)
    with pytest.raises((ValueError, TypeError)):
        _runtime.Graph(0, [0, 0], [([], [])], [], [kernel, kernel], [], 0, None, None, None, False, together)


def test_calls_are_no_members():
    steps = [KernelStep("k", [], 0, 0, 0, 0), CallStep(print, [], [], [], 0)]
    with pytest.raises(ValueError, match="beside"):
        _runtime.Graph(0, [0, 0], [([], [])], [], steps, [], 0, None, None, None, False, [(0, 2)])


# ---- which launches go together ------------------------------------------------------------------------------------------------


@dataclass
class Work:
    """A native kernel of so many operations."""

    kernel: Any = kernels.convolution
    flops: int = 300_000
    numbers: list = field(default_factory=list)


def step(reads, writes, what="native", effect=False, data=None):
    inputs = [Region(n, (4,), (1,)) for n in reads.split()]
    return ExternCall(what, "step", inputs, writes.split(), data or Work(), effect)


def batches(steps, places=None, inplace=None):
    """The steps as numbers in their new order, those of a batch as a set."""
    names = {n for s in steps for n in (*(r.buffer for r in s.inputs), *s.outputs)}
    buffers = {n: Buffer(n, (16,), (1,), "f32") for n in names}
    order, together = side_by_side(steps, buffers, places or {}, inplace or {})
    number = {id(s): i for i, s in enumerate(steps)}
    out, done = [], 0
    for begin, count in together:
        out += [number[id(s)] for s in order[done:begin]]
        done = begin + count
        out.append({number[id(s)] for s in order[begin:done]})
    return [*out, *(number[id(s)] for s in order[done:])]


BIG = Work(flops=10**9)
APART = [
    ("all at once", [("x", "a"), ("x", "b"), ("x", "c")], {}, [{0, 1, 2}]),
    ("a chain", [("x", "a"), ("a", "b"), ("b", "c")], {}, [0, 1, 2]),
    ("two chains", [("x", "a"), ("a", "b"), ("x", "c"), ("c", "d")], {}, [{0, 2}, {1, 3}]),
    ("read before it is written", [("a", "b"), ("x", "a")], {}, [0, 1]),
    ("written twice", [("x", "a"), ("y", "a")], {}, [0, 1]),
    ("past what is in between", [("x", "a"), ("a", "b"), ("b", "c"), ("x", "d")], {}, [{0, 3}, 1, 2]),
    ("not past what it needs", [("x", "a"), ("a", "b"), ("b", "c"), ("b x", "d")], {}, [0, 1, {2, 3}]),
    ("places that overlap", [("x", "a"), ("x", "b"), ("x", "c")], {"places": {"a": 0, "b": 32, "c": 96}}, [{0, 2}, 1]),
    ("a place that is used again", [("x", "a"), ("a", "y"), ("x", "b")], {"places": {"a": 0, "b": 0}}, [0, 1, 2]),
    ("an input that is overwritten", [("x", "a"), ("y", "b")], {"inplace": {"b": "x"}}, [0, 1]),
]


@pytest.mark.parametrize(("steps", "how", "want"), [c[1:] for c in APART], ids=[c[0] for c in APART])
def test_what_goes_together(steps, how, want):
    assert batches([step(*s) for s in steps], **how) == want


def test_what_stays_in_turn():
    a, b = step("x", "a"), step("x", "b")
    assert batches([a, step("y", "c", effect=True), b]) == [0, 1, 2]
    assert batches([a, step("y", "c", "call"), b]) == [0, 1, 2]
    assert batches([a, step("y", "c", "tell"), b]) == [0, 1, 2]
    assert batches([a, step("y", "c", data=BIG), b]) == [{0, 2}, 1]  # split over the threads: a member it isn't
    checked = [step("x", n, data=Work(kernels.max_pool_backward, 30_000)) for n in "cd"]
    assert batches([a, *checked]) == [{0, 1}, 2]  # which may both fail, the first first
    assert batches([step("x", n, data=Work(kernels.scan, 100)) for n in "cd"]) == [0, 1]  # not worth it


def test_a_batch_has_an_end():
    many = [step("x", f"b{i}") for i in range(40)]
    assert [len(b) for b in batches(many)] == [branches.MOST, branches.MOST, 40 - 2 * branches.MOST]
