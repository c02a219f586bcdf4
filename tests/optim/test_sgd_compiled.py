"""SGD's update of large parameters, compiled after a few steps, is bit for bit the plain one."""

import itertools

import pytest

import flambeau as torch
from flambeau.eager import backend

CASES = [c for c in itertools.product((0, 0.9), (0, 0.1), (0, 0.01), (False, True)) if not c[3] or (c[0] and not c[1])]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_same_bits(case, monkeypatch):
    momentum, dampening, weight_decay, nesterov = case

    def train():
        torch.manual_seed(0)
        model = torch.nn.Linear(300, 300)
        how = dict(momentum=momentum, dampening=dampening, weight_decay=weight_decay, nesterov=nesterov)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, **how)
        for i in range(7):
            optimizer.zero_grad()
            (model(torch.ones(2, 300) * i) ** 2).mean().backward()
            optimizer.param_groups[0]["lr"] = 0.1 / (i + 1)
            optimizer.step()
        return [p.detach().clone() for p in model.parameters()]

    compiled = train()
    monkeypatch.setattr(backend, "accelerate", None)
    assert all(torch.equal(a, b) for a, b in zip(compiled, train()))
