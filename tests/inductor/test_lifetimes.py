"""A compiled backward frees what was saved after its last use, unless somebody may ask for it again."""

import gc

import numpy as np
import pytest

import flambeau as torch
from flambeau import _C

WIDE, DEEP = 256, 8


def network():
    torch.manual_seed(0)
    layers = [m for _ in range(DEEP) for m in (torch.nn.Linear(WIDE, WIDE), torch.nn.Tanh())]
    return torch.nn.Sequential(*layers), torch.randn(1024, WIDE)


def loss_of(model, x):
    return torch.compile(model)(x).square().mean()


def peak_of(loss, **how):
    """Bytes of a backward beyond what is there before it."""
    gc.collect()
    torch.cpu.empty_cache()
    _C.memory_counters(True)
    before = _C.memory_counters(False)["in_use"]
    loss.backward(**how)
    return _C.memory_counters(False)["peak"] - before


def test_saved_values_make_room_for_what_comes():
    model, x = network()
    loss_of(model, x).backward()
    model.zero_grad()
    kept = peak_of(loss_of(model, x), retain_graph=True)
    model.zero_grad()
    gone = peak_of(loss_of(model, x))
    saved = 4 * 1024 * WIDE
    assert gone <= kept - DEEP * 4 * WIDE * WIDE + saved  # the gradients lie where saved values were


@pytest.mark.parametrize("times", [1, 2])
def test_gradients_are_those_of_a_kept_graph(times):
    model, x = network()
    loss = loss_of(model, x)
    for _ in range(times):
        loss.backward(retain_graph=True)
    kept = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    loss = loss_of(model, x)
    for k in range(times):
        loss.backward(retain_graph=k + 1 < times)
    for p, want in zip(model.parameters(), kept):
        np.testing.assert_array_equal(p.grad.numpy(), want.numpy())
    with pytest.raises(RuntimeError, match="second time"):
        loss.backward()


def test_what_a_program_holds_stays():
    """Saved values that the program reads, and the model's input and result, are as they were after the backward."""
    model, x = network()
    out = torch.compile(model)(x)
    node = out.grad_fn
    held = [t for t in node.saved_tensors if isinstance(t, torch.Tensor)]
    before = [t.clone() for t in [*held, x, out]]
    out.square().mean().backward()
    [torch.ones(1024, WIDE) for _ in range(DEEP)]  # would lie where something was freed
    for t, want in zip([*held, x, out], before):
        np.testing.assert_array_equal(t.detach().numpy(), want.detach().numpy())


def test_a_backward_that_runs_other_backwards():
    """What keeps a graph is the pass at hand: a pass inside one that keeps nothing may keep its own."""
    model, x = network()
    inner = loss_of(model, x)
    outer = loss_of(model, x)
    outer.grad_fn.register_prehook(lambda ct: inner.backward(retain_graph=True))
    outer.backward()
    first = [p.grad.clone() for p in model.parameters()]
    inner.backward()
    for p, twice in zip(model.parameters(), first):
        np.testing.assert_allclose(p.grad.numpy(), 1.5 * twice.numpy(), rtol=1e-5, atol=1e-8)


def test_consume_checks_its_list():
    from flambeau.inductor import compile_graph
    from flambeau.proxy import make_fx

    x = torch.randn(300, 300)
    graph = compile_graph(make_fx(lambda a, b: (a + b, b))(x, x + 1))
    inputs = [x, x + 1]
    total, second = graph.consume(inputs)
    assert not inputs
    [torch.zeros(300, 300) for _ in range(3)]
    np.testing.assert_array_equal(second.numpy(), (x + 1).numpy())
    np.testing.assert_array_equal(total.numpy(), (x + (x + 1)).numpy())
    for wrong in ((x, x), [x], [x, x, x], None):
        with pytest.raises(TypeError, match="list of 2"):
            graph.consume(wrong)
    with pytest.raises(RuntimeError, match="expected shape|layout|shape"):
        graph.consume([x, torch.ones(3)])
