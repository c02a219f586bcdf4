"""Random numbers of graphs with a backward: each draw is made where the program makes it, whether anything reads it or not."""

import pytest

import flambeau as torch
from flambeau.nn import functional as F
from flambeau.utils.checkpoint import checkpoint


class Draws(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        torch.rand(1)
        return x * 2

    @staticmethod
    def backward(ctx, g):
        torch.rand(1)
        return torch.rand(2) * g + torch.rand(2)


def noisy(x):
    torch.rand(2)
    return F.dropout(x, 0.5).sin()


PROGRAMS = {
    "unused": lambda x: (torch.rand(3), (x * 2).sum())[1],
    "unused dropout": lambda x: (F.dropout(x, 0.5), (x * 2).sum())[1],
    "between": lambda x: (F.dropout(x, 0.5) * (torch.rand(3), F.dropout(x, 0.3))[1]).sum(),
    "of tensors": lambda x: (torch.normal(x.detach(), 1.0), torch.bernoulli(torch.full((4,), 0.5)), (x * x).sum())[2],
    "in the backward": lambda x: Draws.apply(x).sum(),
    "recomputed": lambda x: checkpoint(noisy, x, use_reentrant=False).sum(),
}


def told(f):
    torch.manual_seed(0)
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = f(x)
    between = torch.rand(1).item()
    y.backward()
    return y.item(), between, *x.grad.tolist(), torch.rand(1).item()


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_the_program_draws(name, backend):
    f = PROGRAMS[name]
    want, compiled = told(f), torch.compile(f, backend=backend)
    for _ in range(2):
        assert told(compiled) == pytest.approx(want)
