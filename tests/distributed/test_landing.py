"""Gradients that are made in the buckets in which they are reduced: what lies in a place is never overwritten, and gradients are right."""

import copy
import gc

import numpy as np
import pytest

import flambeau as torch
from flambeau import _C, nn
from flambeau.distributed import threads
from flambeau.distributed.landing import alone
from flambeau.nn.parallel import DistributedDataParallel as DDP

WIDTH = 256  # a weight is 256 KiB
GEN = torch.Generator().manual_seed(0)
X = torch.randn(
    2 * WIDTH, WIDTH, generator=GEN
)  # activations of a rank are as large as a weight: they take places, too


BASE = nn.Sequential(*(m for _ in range(3) for m in (nn.Linear(WIDTH, WIDTH), nn.ReLU())))


def made():
    return copy.deepcopy(BASE)


def loss(model, x, rows=None):
    return model(x[:rows]).pow(2).mean()


def wanted(rows=None, times=1):
    model = made()
    for half in (0, 1):
        for _ in range(times):
            (loss(model, X[WIDTH * half : WIDTH * (half + 1)], rows) / 2).backward()
    return [p.grad for p in model.parameters()]


def is_right(model, expected):
    for a, b in zip([p.grad for p in model.parameters()], expected, strict=True):
        torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-4)


def moved(model):
    return sum(b.home is not None for b in model.reducer.buckets)


def on_ranks(work, rows=None):
    """``work(ddp, call)`` on each rank; ``call()`` does one forward and backward."""

    def run(rank):
        model = DDP(made(), bucket_cap_mb=0.5, gradient_as_bucket_view=True)

        def call():
            loss(model, X[WIDTH * rank : WIDTH * (rank + 1)], rows).backward()

        return work(model, call)

    return threads.spawn(run, 2)


@pytest.mark.parametrize("rows", [8, None], ids=["other sizes", "activations as large as weights"])
@pytest.mark.parametrize("mode", [None, True, "python_reducer", False])
def test_gradients(rows, mode):
    torch._dynamo.reset()

    def work(model, call):
        run = model
        if mode is not None:
            run = torch.compile(model)
        for _ in range(8):
            model.zero_grad()
            loss(run, X[WIDTH * torch.distributed.get_rank() :][:WIDTH], rows).backward()
            is_right(model, wanted(rows))

    with torch._dynamo.config.patch(optimize_ddp=True if mode is None else mode):
        on_ranks(work)


def test_nothing_is_copied_into_buckets():
    """Once formulas are recorded weights' gradients are made in their places."""

    def work(model, call):
        found = []
        for _ in range(6):
            model.zero_grad()
            model.reducer.landing.landed = 0
            call()
            found.append((model.reducer.landing.landed, moved(model)))
        return found[-1]

    assert on_ranks(work, rows=8) == [(3, 0)] * 2


@pytest.mark.parametrize("keep", [lambda g: g, lambda g: g.numpy(), lambda g: g[1:]], ids=["tensor", "array", "view"])
def test_gradients_that_a_hook_keeps_stay_as_they_were(keep):
    kept = {}

    def work(model, call):
        weight, rank = model.module[2].weight, torch.distributed.get_rank()
        for _ in range(3):
            model.zero_grad()
            call()
        weight.register_hook(lambda g: kept.setdefault(rank, []).append((keep(g), g.clone())))
        for _ in range(6):
            model.zero_grad()
            call()
            is_right(model, wanted(8))

    on_ranks(work, rows=8)
    for rows in kept.values():
        for now, then in rows:
            then = then[1:] if len(now) < WIDTH else then
            np.testing.assert_array_equal(np.asarray(now), then.numpy())


def test_gradients_that_an_earlier_hook_keeps():
    kept = {}

    def run(rank):
        net = made()
        net[2].weight.register_post_accumulate_grad_hook(
            lambda p: kept.setdefault(rank, []).append((p.grad, p.grad.tolist()))
        )
        model = DDP(net, gradient_as_bucket_view=True)
        for _ in range(8):
            model.zero_grad()
            loss(model, X[WIDTH * rank :][:WIDTH], 8).backward()
            is_right(model, wanted(8))

    threads.spawn(run, 2)
    assert all(now.tolist() == then for rows in kept.values() for now, then in rows)


def test_results_that_take_a_place_and_live_on():
    """Gradients of activations have the size of weights, and a hook keeps them all."""
    kept = {}

    def work(model, call):
        rank = torch.distributed.get_rank()
        model.module[3].register_full_backward_hook(
            lambda m, given, got: kept.setdefault(rank, []).append((got[0], got[0].clone()))
        )
        for _ in range(8):
            model.zero_grad()
            call()
            is_right(model, wanted())

    on_ranks(work)
    assert all(torch.equal(now, then) for rows in kept.values() for now, then in rows)


def test_gradients_that_are_added_to():
    def work(model, call):
        for _ in range(6):
            model.zero_grad()
            with model.no_sync():
                call()
            call()
            is_right(model, wanted(8, times=2))
        for _ in range(2):
            model.zero_grad(set_to_none=False)
            call()
            is_right(model, wanted(8))

    on_ranks(work, rows=8)


def test_hooks_of_tensors_change_gradients_of_whole_graphs():
    torch._dynamo.reset()

    def work(model, call):
        model.module[0].weight.register_hook(lambda g: 3 * g)
        run = torch.compile(model)
        for _ in range(3):
            model.zero_grad()
            loss(run, X[WIDTH * torch.distributed.get_rank() :][:WIDTH], 8).backward()
            expected = wanted(8)
            expected[0] = 3 * expected[0]
            is_right(model, expected)

    with torch._dynamo.config.patch(optimize_ddp="python_reducer"):
        on_ranks(work)


def test_places():
    memory = np.zeros((1 << 18) + 64, np.uint8)
    first = -memory.__array_interface__["data"][0] % 64
    at = memory.__array_interface__["data"][0] + first
    _C.use_allocator()
    places = _C.Places(memory, ((at, 1 << 16), (at + (1 << 16), 1 << 17)))
    places.open(0)
    other, taken = np.empty(1 << 17, np.uint8), np.empty(1 << 16, np.uint8)
    assert taken.__array_interface__["data"][0] == at and places.taken(0) and not places.taken(1)
    assert np.empty(1 << 16, np.uint8).__array_interface__["data"][0] != at
    taken[...] = 7
    assert memory[first] == 7
    del taken
    assert not places.taken(0)
    taken = np.empty(1 << 16, np.uint8)
    assert places.taken(0)
    taken = np.resize(taken, 1 << 17)  # made elsewhere
    assert not places.taken(0)
    places.open(1)
    places.close_all()
    assert np.empty(1 << 17, np.uint8).__array_interface__["data"][0] != at + (1 << 16)
    places.open(1)
    last = np.empty(1 << 17, np.uint8)
    with pytest.raises(IndexError, match="no such place"):
        places.open(2)
    del places, memory  # the array outlives them
    gc.collect()
    last[...] = 1
    assert last.sum() == 1 << 17
    del last, other


def test_who_holds_a_gradient():
    layer = nn.Linear(WIDTH, WIDTH)
    for _ in range(3):
        layer.zero_grad()
        layer(X[:8]).sum().backward()
    grad = layer.weight.grad
    for make in (
        lambda: grad.t(),
        lambda: grad.numpy(),
        lambda: grad.numpy()[1:],
        lambda: grad.detach(),
        lambda: grad._array.base,
        lambda: grad,
    ):
        assert alone(grad, 2)
        other = make()
        assert other is None or not alone(grad, 2)
        del other
