"""Processes that train one model in shared memory, without a lock; flags of optimisers that say how, not what."""

import flambeau.multiprocessing as mp
import pytest

import flambeau as torch


def train(model, seed):
    torch.manual_seed(seed)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(60):
        x = torch.randn(8, 3)
        optimizer.zero_grad()
        (model(x) - x.sum(1, keepdim=True)).square().mean().backward()
        optimizer.step()


def test_hogwild():
    torch.manual_seed(0)
    model, x = torch.nn.Linear(3, 1), torch.randn(64, 3)
    model.share_memory()

    def loss():
        with torch.no_grad():
            return (model(x) - x.sum(1, keepdim=True)).square().mean().item()

    before = loss()
    processes = [mp.Process(target=train, args=(model, seed)) for seed in range(2)]
    for p in processes:
        p.start()
    for p in processes:
        p.join()
    assert [p.exitcode for p in processes] == [0, 0] and loss() < before / 50


FUSED = ("SGD", "Adam", "AdamW", "Adagrad")
OTHERS = ("RMSprop", "Adadelta", "Adamax", "NAdam", "RAdam", "ASGD", "Rprop")


@pytest.mark.parametrize("name", FUSED + OTHERS)
def test_flags_say_how_not_what(name):
    def step(**flags):
        p = torch.nn.Parameter(torch.ones(3))
        optimizer = getattr(torch.optim, name)([p], lr=0.1, **flags)
        for _ in range(3):
            optimizer.zero_grad()
            (p * p).sum().backward()
            optimizer.step()
        return p.detach()

    wanted = step()
    for flags in ({"foreach": True}, {"foreach": False}, {"maximize": False}):
        torch.testing.assert_close(step(**flags), wanted)
    if name in FUSED:
        torch.testing.assert_close(step(fused=True), wanted)
        with pytest.raises(RuntimeError, match="`fused` and `foreach` cannot be `True` together"):
            step(fused=True, foreach=True)
    else:
        with pytest.raises(TypeError, match="unexpected keyword argument 'fused'"):
            step(fused=True)
    if name not in ("SGD", "Adagrad"):
        torch.testing.assert_close(step(capturable=True), wanted)
