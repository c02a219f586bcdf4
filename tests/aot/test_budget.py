"""``torch._functorch.config.activation_memory_budget``: what a forward keeps when it may keep only a part."""

import pytest

import flambeau as torch
import flambeau.nn.functional as F
from flambeau.aot import min_cut_rematerialization_partition
from flambeau.aot.api import aot_function
from flambeau.aot.settings import config

WIDTH, ROWS = 16, 64


def network(x, *weights):
    for w in weights:
        x = F.gelu(F.layer_norm(x @ w, (WIDTH,)))
    return x.square().mean()


def convolutional(x, *weights):
    x = x.reshape(4, 4, 16, 4)
    for w in weights:
        x = F.max_pool2d(F.relu(F.conv2d(x, w[:4, :].reshape(4, 4, 4)[..., None][:, :, :3], padding=(1, 0))), 1)
    return x.square().mean()


def noisy(x, *weights):
    for w in weights:
        x = F.dropout(x @ w, 0.5)
    return x.square().mean()


def assert_same(again, found, loss, grads):
    """The same up to the last bits: what is computed again need not go through the kernels that computed it first."""
    torch.testing.assert_close([again, *found], [loss, *grads], rtol=1e-5, atol=1e-6)


def run(fn, part):
    """(loss, gradients, bytes that are saved of what isn't an input)."""
    torch.manual_seed(0)
    x = torch.randn(ROWS, WIDTH)
    weights = [torch.randn(WIDTH, WIDTH, requires_grad=True) for _ in range(4)]
    saved = []

    def backward(gm, inputs):
        kept = [
            n for n in gm.graph.nodes if n.op == "placeholder" and "primals" not in n.name and "tangents" not in n.name
        ]
        saved.extend(n.meta["val"].numel() * n.meta["val"].element_size() for n in kept)
        return gm

    with config.patch(activation_memory_budget=part):
        loss = aot_function(fn, lambda gm, inputs: gm, backward, min_cut_rematerialization_partition)(x, *weights)
    return loss, torch.autograd.grad(loss, weights), sum(saved)


@pytest.mark.parametrize("fn", [network, convolutional], ids=lambda f: f.__name__)
def test_what_is_kept_is_within_the_budget_and_gradients_are_the_same(fn):
    loss, grads, whole = run(fn, 1.0)
    before = whole
    for part in (0.75, 0.5, 0.25, 0.0):
        again, found, kept = run(fn, part)
        assert kept <= max(part * whole, 8) and kept <= before
        assert_same(again, found, loss, grads)
        before = kept


def test_random_draws_are_kept():
    loss, grads, _ = run(noisy, 1.0)
    again, found, kept = run(noisy, 0.0)
    assert kept > 0
    assert_same(again, found, loss, grads)


@pytest.mark.parametrize("part", [1.5, -0.1, "all", True])
def test_parts_from_nothing_to_all(part):
    with pytest.raises(RuntimeError, match="valid ranges for memory budget are 0 <= m <= 1"):
        run(network, part)


def test_compiled_code_heeds_it_and_is_compiled_anew():
    torch.manual_seed(0)
    model = torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.GELU()) for _ in range(4)))
    x, want = torch.randn(8, 16), None
    for part in (1.0, 0.3, 0.0):
        torch.compiler.reset()
        with torch._functorch.config.patch(activation_memory_budget=part):
            model.zero_grad()
            torch.compile(model)(x).sum().backward()
        found = [p.grad.clone() for p in model.parameters()]
        want = want or found
        for a, b in zip(found, want):
            assert torch.allclose(a, b, rtol=1e-5, atol=1e-6)
