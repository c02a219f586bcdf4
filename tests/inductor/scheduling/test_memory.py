"""A compiled backward frees what was saved after its last use, unless somebody may ask for it again; large intermediate results live from their first use
to their last."""

import gc
import subprocess
import sys
import threading

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


def chain(x, times=6):
    for _ in range(times):
        x = (x @ x).relu() * 0.1
    return x


def test_large_intermediate_results_live_from_their_first_use_to_their_last():
    x = torch.rand(512, 512)
    f = torch.compile(chain)
    want = f(x)
    torch.cpu.empty_cache()
    torch.cpu.reset_peak_memory_stats()
    before = torch.cpu.memory_allocated()
    results: list = []
    threads = [threading.Thread(target=lambda: results.append(f(x))) for _ in range(4)]
    results.append(f(x))
    one = torch.cpu.max_memory_allocated() - before
    # The result, a product, what it is made of, an operand packed: by tiles of AMX in three parts of 16 bits.
    assert one < 4.7 * x.nbytes
    [t.start() for t in threads]
    [t.join() for t in threads]
    for y in results:
        np.testing.assert_array_equal(y.numpy(), want.numpy())
    np.testing.assert_allclose(want.numpy(), chain(x).numpy(), rtol=1e-4)
    results.clear()
    del y
    assert torch.cpu.memory_allocated() <= before


@pytest.mark.parametrize(
    "program",
    [
        lambda x, n: torch.linalg.matrix_exp(x @ x).relu() @ x,  # an eager kernel among native steps
        lambda x, n: (x @ x)[(x @ x).sum(1) > 0] @ x,  # memory whose size is told late
        lambda x, n: torch.softmax(x @ x.T, 1) @ x + n,
    ],
    ids=["call", "tell", "rows"],
)
def test_steps_of_all_kinds_find_them(program):
    with torch._inductor.config.patch(own_bytes=1):
        for size in (30, 50):
            x = torch.randn(size, size) * 0.1
            f = torch.compile(program, dynamic=True)
            np.testing.assert_allclose(f(x, 2).numpy(), program(x, 2).numpy(), rtol=2e-4, atol=1e-5)


def test_a_step_of_a_network_takes_little_more_than_what_it_saves():
    """A U-Net of two levels: at the peak there are saved values, and beside them the gradients of a layer and a template's workspace."""
    torch.manual_seed(0)
    nn = torch.nn

    def twice(i, o):
        layers = [m for a in (i, o) for m in (nn.Conv2d(a, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU())]
        return nn.Sequential(*layers)

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.down, self.low, self.last = twice(3, 32), twice(32, 64), nn.Conv2d(32, 4, 1)
            self.up, self.join = nn.ConvTranspose2d(64, 32, 2, stride=2), twice(64, 32)

        def forward(self, x):
            high = self.down(x)
            low = self.up(self.low(nn.functional.max_pool2d(high, 2)))
            return self.last(self.join(torch.cat([high, low], 1))).mean((2, 3))

    model, x = Network(), torch.randn(4, 3, 64, 64)
    f = torch.compile(model)

    def step():
        model.zero_grad()
        return f(x).square().mean()

    for _ in range(2):
        step().backward()
    model.zero_grad()
    gc.collect()
    before = torch.cpu.memory_allocated()
    loss = step()
    saved = torch.cpu.memory_allocated() - before
    plane = 4 * 32 * 64 * 64 * 4
    assert 10 * plane < saved < 13 * plane
    assert peak_of(loss) < 3.5 * plane
    loss = step()
    assert peak_of(loss, retain_graph=True) < 8 * plane


STARVED = """
import resource, flambeau as torch
f = torch.compile(lambda x, y: ((x @ y).exp() @ x).sum(0), dynamic=True)
sides = lambda n: (torch.full((n, 4), 0.1), torch.full((4, n), 0.1))
want = f(*sides(700))
before = torch.cpu.memory_allocated()
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30), resource.RLIM_INFINITY))
for _ in range(3):
    try:
        f(*sides(30000))
    except MemoryError as e:
        print(e)
assert torch.cpu.memory_allocated() == before
assert (f(*sides(700)) == want).all()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/statm")
def test_a_call_that_gets_no_memory_raises_and_leaves_none():
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", STARVED], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "a compiled graph got no memory for intermediate results\n" * 3
