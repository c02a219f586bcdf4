"""Compiled graphs on the simulated device give what they give on the CPU."""

import copy

import numpy as np
import pytest

import flambeau as torch


def in_place(x):
    x.add_(1)
    row = x[0]
    row.mul_(2)
    return row.sin(), torch.zeros(3, device=x.device)


FUNCTIONS = [
    lambda x: (x.sin() + 1).sum(0),
    lambda x: torch.softmax(x @ x.t(), -1).relu(),
    lambda x: (x.t(), x[0], x * 2),
    lambda x: (x.cumsum(0), x.argmax(1), x[x[:, 0] > 0]),
    lambda x: torch.cat([x, torch.ones(1, 3, device=x.device)]).sort(0),
    lambda x: x.to("cpu") + 1,
    lambda x: x + torch.arange(3, device=x.device),
    in_place,
]


def flat(x):
    return [x] if isinstance(x, torch.Tensor) else [t for y in x for t in flat(y)]


@pytest.mark.parametrize("f", FUNCTIONS)
@pytest.mark.parametrize("dynamic", [False, True])
def test_functions(f, dynamic):
    compiled = torch.compile(f, dynamic=dynamic)
    for n in (2, 4):
        x = torch.randn(n, 3)
        moved = x.cuda()
        expected, found = flat(f(x)), flat(compiled(moved))
        for a, b in zip(found, expected):
            torch.testing.assert_close(a.cpu(), b)
        assert {t.device.type for t in found} <= {"cuda", "cpu"} and torch.equal(moved.cpu(), x)
        assert found[0].is_cuda or f is FUNCTIONS[5]


# Numbers that become symbols when a later call brings another: each call has its own result.
NUMBERS = [
    lambda x, n: torch.conv2d(x, x[:1, :, :3, :3], None, n, n, n),
    lambda x, n: torch.conv_transpose2d(x, x[:1, :, :3, :3].transpose(0, 1), None, n),
    lambda x, n: x.cumsum(n),
    lambda x, n: x.cummax(n).indices,
    lambda x, n: x.logcumsumexp(n),
    lambda x, n: x.sort(n).values,
    lambda x, n: x.softmax(n),
    lambda x, n: x.topk(n, dim=2).values,
    lambda x, n: torch.nn.functional.avg_pool2d(x, n),
    lambda x, n: x.roll(n, 1).tril(n),
    lambda x, n: x.kthvalue(n, dim=3).values,
    lambda x, n: x + torch.tril_indices(n, 3, device=x.device).sum(),
    lambda x, n: torch.pdist(x.reshape(-1, 12)[: n + 1]),
    lambda x, n: torch.gather(x, n, torch.zeros_like(x, dtype=torch.int64)),
]


@pytest.mark.parametrize("f", NUMBERS, ids=range(len(NUMBERS)))
def test_numbers_that_calls_bring(f):
    x = torch.linspace(0, 30, 2 * 3 * 6 * 6).sin().reshape(2, 3, 6, 6)
    if f is NUMBERS[1]:
        x = x[:, :1]
    compiled, moved = torch.compile(f), x.cuda()
    for n in (1, 2, 3):
        torch.testing.assert_close(compiled(moved, n).cpu(), f(x, n), rtol=1e-5, atol=1e-5)


def test_a_training_step():
    torch.manual_seed(0)
    plain = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.Linear(8, 2))
    moved, x = copy.deepcopy(plain).cuda(), torch.randn(5, 4)

    def train(model, x):
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        step = torch.compile(lambda x: model(x).pow(2).mean())
        losses = []
        for _ in range(3):
            optimizer.zero_grad()
            loss = step(x)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    np.testing.assert_allclose(train(moved, x.cuda()), train(plain, x), rtol=1e-5)


def test_draws_are_the_devices():
    f = torch.compile(lambda x: torch.nn.functional.dropout(x) + torch.rand_like(x))
    x = torch.ones(16, device="cuda")
    torch.manual_seed(0)
    host = torch.rand(3)
    torch.manual_seed(0)
    a = f(x)
    assert torch.equal(torch.rand(3), host)
    torch.manual_seed(0)
    assert torch.equal(f(x), a)


def test_compiled_numpy_code_under_the_device():
    f = torch.compile(lambda a: np.sum(np.sin(a) ** 2, axis=0))
    a = np.ones((2, 3))
    with torch.device("cuda"):
        np.testing.assert_allclose(f(a), (np.sin(a) ** 2).sum(0))
