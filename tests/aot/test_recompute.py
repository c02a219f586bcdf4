"""Results that the backward makes again from their input and two numbers a row (aot/recompute.py)."""

import numpy as np
import pytest

import flambeau as torch
import flambeau.nn.functional as F
from flambeau.aot import default_partition, min_cut_rematerialization_partition
from flambeau.aot.api import aot_function
from flambeau.utils.checkpoint import checkpoint

ROWS, CLASSES = 24, 40


def run(fn, partition):
    """Loss and gradient of fn(x, w, target), and the shapes of what the forward saves."""
    torch.manual_seed(0)
    x, w = torch.randn(ROWS, 5), torch.randn(CLASSES, 5, requires_grad=True)
    target = torch.randint(0, CLASSES, (ROWS,))
    target[2] = -100
    saved = []

    def backward(gm, inputs):
        saved.extend(tuple(n.meta["val"].shape) for n in gm.graph.nodes if n.op == "placeholder")
        return gm

    compiled = aot_function(fn, lambda gm, inputs: gm, backward, partition)
    out = compiled(x, w, target)
    loss = out[0] if isinstance(out, (tuple, list)) else out
    loss.backward()
    return loss.detach().numpy(), w.grad.numpy(), saved


def plain(x, w, target):
    return F.cross_entropy(x @ w.T, target)


def smoothed(x, w, target):
    return F.cross_entropy(x @ w.T, target, label_smoothing=0.1, weight=torch.arange(CLASSES) / 10)


def columns(x, w, target):
    return F.log_softmax(x @ w.T, 0)[:, 3].sum()


def huge(x, w, target):
    return F.cross_entropy((x * 1e4) @ w.T, target)


@pytest.mark.parametrize("fn", [plain, smoothed, columns, huge], ids=lambda f: f.__name__)
def test_scores_and_two_numbers_a_row_are_kept(fn):
    loss, grad, saved = run(fn, min_cut_rematerialization_partition)
    wanted_loss, wanted_grad, _ = run(fn, default_partition)
    # Forward, a small softmax is a kernel of its own; made again, it is its parts.
    np.testing.assert_allclose(loss, wanted_loss, rtol=1e-6)
    np.testing.assert_allclose(grad, wanted_grad, rtol=1e-5, atol=1e-7)
    assert saved.count((ROWS, CLASSES)) == 1
    line = (1, CLASSES) if fn is columns else (ROWS, 1)
    assert saved.count(line) == 2


def test_a_result_that_is_handed_out_is_kept_itself():
    def both(x, w, target):
        logp = F.log_softmax(x @ w.T, -1)
        return F.nll_loss(logp, target), logp

    _, _, saved = run(both, min_cut_rematerialization_partition)
    assert saved.count((ROWS, CLASSES)) == 2 and (ROWS, 1) not in saved  # the result, and a cotangent


def test_loops_make_their_own_input_again_no_more_than_before():
    """What only loops have made isn't in memory: the result is saved, as ever."""

    def fn(x, w, target):
        return F.cross_entropy(x @ w.T * 2, target)

    _, _, saved = run(fn, min_cut_rematerialization_partition)
    assert saved.count((ROWS, CLASSES)) == 1 and (ROWS, 1) not in saved


@pytest.mark.parametrize("rows", [3, 300])
def test_compiled_beside_eager(rows):
    torch.manual_seed(1)
    x, w = torch.randn(rows, 16, requires_grad=True), torch.randn(700, 16, requires_grad=True)
    target = torch.randint(0, 700, (rows,))
    want = torch.autograd.grad(plain(x, w, target), (x, w))
    got = torch.autograd.grad(torch.compile(plain, dynamic=rows == 3)(x, w, target), (x, w))
    for a, b in zip(got, want):
        assert torch.allclose(a, b, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_statistics_of_what_is_checkpointed_are_counted_once(backend):
    """Eagerly the part runs again in the backward and counts its batch twice; a graph makes the values again, not the writes, as PyTorch's do."""
    norm = torch.nn.BatchNorm1d(3)
    step = torch.compile(lambda x: checkpoint(norm, x, use_reentrant=False).sum(), backend=backend)
    for k in (1, 2):
        step(torch.rand(4, 3, requires_grad=True)).backward()
        assert norm.num_batches_tracked.item() == k


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("known", [True, False])
def test_sizes_that_vary_in_what_is_opened(backend, known, monkeypatch):
    """The parts of batch norm view by a size: a number of the graph, or one that turned out to be known."""

    monkeypatch.setenv("FLAMBEAU_AOT_CACHE", "0")
    torch._dynamo.reset()

    def normed(x):
        running = (torch.zeros(4), torch.ones(4)) if known else (None, None)
        return F.batch_norm(x, *running, training=True).sin()

    compiled = torch.compile(normed, backend=backend, dynamic=True)
    for shape in ((4, 4), (6, 4), (5, 4 if known else 7)):
        x = torch.randn(*shape, requires_grad=True)
        y = x.detach().clone().requires_grad_()
        out, want = compiled(x), normed(y)
        (out * out).sum().backward()
        (want * want).sum().backward()
        assert torch.allclose(out, want, atol=1e-5) and torch.allclose(x.grad, y.grad, atol=1e-4)
