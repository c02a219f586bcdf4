"""Groups of one form share a kernel; what makes a difference keeps them apart."""

import pytest

import flambeau as torch
from flambeau.base.logs import ARTIFACTS
from flambeau.inductor import compile as passes
from flambeau.inductor.scheduling import building

X, Y = torch.arange(12.0).reshape(3, 4), torch.arange(12.0).reshape(3, 4) - 5


@pytest.fixture
def builds(monkeypatch):
    torch._dynamo.reset()
    made = []
    original = building.build
    monkeypatch.setattr(passes, "build", lambda *a: made.append(a[0]) or original(*a))
    return made


def check(f, *args):
    want, got = f(*args), torch.compile(f)(*args)
    for a, b in zip(want, got, strict=True):
        assert torch.allclose(a, b, rtol=1e-6, equal_nan=True)


def layers(w, x):
    out = []
    for _ in range(6):
        x = torch.tanh(x @ w) + x.sum(1, keepdim=True)
        out.append(x)
    return out


def test_repeated_layers_are_built_once(builds):
    check(layers, torch.eye(4) / 8, X)
    assert len(builds) <= 3  # the first reads an input, the last writes no buffer for another


@pytest.mark.parametrize(
    "f",
    [
        lambda w, x, y: (((x * 0.0) @ w).cos(), ((x * -0.0) @ w).cos()),
        lambda w, x, y: (((x * 0.0 + y) @ w) / 0.0, ((x * -0.0 + y) @ w) / -0.0),
        lambda w, x, y: ((x - y) @ w, (y - x) @ w, (x - x) @ w),
        lambda w, x, y: (x.sum(1) @ w[0, :3], x.amax(1) @ w[0, :3]),
        lambda w, x, y: ((x * 1).t() @ y, (x.t() * 1) @ y, (x.flip(0).t() * 1) @ y),
        lambda w, x, y: (((x * 2) @ w).exp() + x, ((x * 2) @ w).exp() + y, ((y * 2) @ w).exp() + x),
        lambda w, x, y: ((x > y).float() @ w, (x > y).double().float() @ w),
    ],
    ids=range(7),
)
def test_what_differs_is_kept_apart(f):
    check(f, torch.eye(4) * 3, X, Y)


def test_a_kernel_may_overwrite_what_its_twin_reads():
    def update(a, b, c, d):
        a.mul_(2).add_(b)
        c.mul_(2).add_(d)
        d.add_(a)

    args = [torch.arange(6.0) + k for k in range(4)]
    other = [t.clone() for t in args]
    update(*args)
    torch.compile(update)(*other)
    assert all(torch.equal(a, b) for a, b in zip(args, other))


def test_what_costs_time_is_said(monkeypatch):
    torch._dynamo.reset()
    stream, said = ARTIFACTS["perf_hints"], []
    monkeypatch.setattr(type(stream), "__call__", lambda self, text, *args: said.append(text % args))
    monkeypatch.setattr(stream, "on", True)
    torch.compile(lambda x: torch.linalg.ldl_factor(x @ x))(torch.eye(3))
    assert any("ldl" in t and "its eager one" in t for t in said), said
    at = torch.tensor([0, 2, 0, 1])
    torch.compile(lambda x: x.index_add(0, at, torch.ones(4) * x[0]))(torch.ones(3))
    assert any("runs on one thread" in t for t in said), said
