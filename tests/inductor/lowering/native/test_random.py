"""Draws in compiled graphs: eager's stream, launched without Python, in all dtypes and layouts; what is refused; generators of one's own."""

import copy
import ctypes
import math
import mmap
import os
import sys
import threading

import numpy as np
import pytest
from rows import level, thinned

import flambeau as torch
from flambeau.base import kernels
from flambeau.base.kernels import Draw
from flambeau.core import generator
from flambeau.testing import guard_pages

F = torch.nn.functional
DRAWS = {
    "rand": lambda x: torch.rand(x.shape, dtype=x.dtype),
    "randn": lambda x: torch.randn(x.shape, dtype=x.dtype),
    "rand_like": lambda x: torch.rand_like(x),
    "randn_like": lambda x: torch.randn_like(x) + x,
    "randint": lambda x: torch.randint(3, 1000, x.shape),
    "randint long": lambda x: torch.randint(-5, 2**40, x.shape),
    "randint_like": lambda x: torch.randint_like(x, 100),
    "randperm": lambda x: torch.randperm(x.numel()),
    "normal_": lambda x: torch.empty_like(x).normal_(2, 3),
    "uniform_": lambda x: torch.empty_like(x).uniform_(-2, 3),
    "bernoulli_": lambda x: torch.empty_like(x).bernoulli_(0.3),
    "bernoulli": lambda x: torch.bernoulli(x.abs().clamp(0, 1)),
    "bernoulli_ of a tensor": lambda x: torch.empty_like(x).bernoulli_(torch.full(x.shape[-1:], 0.3)),
    "exponential_": lambda x: torch.empty_like(x).exponential_(1.5),
    "geometric_": lambda x: torch.empty_like(x).geometric_(0.2),
    "cauchy_": lambda x: torch.empty_like(x).cauchy_(0.5, 2),
    "log_normal_": lambda x: torch.empty_like(x).log_normal_(0.1, 0.5),
    "random_": lambda x: torch.empty_like(x).random_(),
    "random_ to": lambda x: torch.empty_like(x).random_(50),
    "random_ from to": lambda x: torch.empty_like(x).random_(-4, 50),
    "normal": lambda x: torch.normal(1.0, 2.0, x.shape),
    "dropout": lambda x: F.dropout(x, 0.4) * 2,
    "dropout twice": lambda x: F.dropout(F.dropout(x, 0.4).relu(), 0.2),
    "alpha_dropout": lambda x: F.alpha_dropout(x, 0.3, True),
    "rrelu": lambda x: F.rrelu(x, training=True),
}
# Their eager kernel: arithmetic in 16 bits between the draws and the result.
TENSORS = {
    "normal of tensors": lambda x: torch.normal(x, x.abs() + 1),
    "normal of a mean": lambda x: torch.normal(x, 2.0),
    "normal of a deviation": lambda x: torch.normal(0.5, x.abs()),
}


def both(f, *args, **kw):
    """(compiled, eager) from the same seed; and the next words are the same."""
    made = []
    for g in (torch.compile(lambda *a: f(*a), **kw), f):
        torch.manual_seed(7)
        made.append([g(*args), torch.rand(3)])
    assert torch.equal(made[0][1], made[1][1])
    return made[0][0], made[1][0]


def alike(f, *args, tolerance=0.0):
    before = torch._inductor.metrics.num_fallbacks
    got, want = both(f, *args)
    assert torch._inductor.metrics.num_fallbacks == before
    assert got.dtype == want.dtype and got.shape == want.shape and got.stride() == want.stride()
    torch.testing.assert_close(got, want, rtol=tolerance, atol=0)


DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16]


@pytest.mark.parametrize("name, dtype", thinned(DRAWS | TENSORS, DTYPES, torch.float32), ids=str)
def test_streams(name, dtype):
    if name in TENSORS and dtype not in (torch.float32, torch.float64):
        return
    exact = name in (
        "rand",
        "randn",
        "rand_like",
        "uniform_",
        "bernoulli_",
        "bernoulli",
        "randperm",
        "randint",
        "random_",
    )
    tolerance = 0.0 if exact else {torch.float32: 1e-6, torch.float64: 1e-11}.get(dtype, 1e-2)
    for x in (torch.linspace(-1, 2, 35).reshape(5, 7), torch.linspace(-1, 2, 7), torch.tensor(0.5)):
        for t in (x, x.t() if x.ndim == 2 else x, x[:, ::2] if x.ndim == 2 else x):
            alike((DRAWS | TENSORS)[name], t.to(dtype), tolerance=tolerance)


def test_no_elements_and_any_size():
    for f in (lambda x: torch.rand_like(x), lambda x: F.dropout(x, 0.5), lambda x: torch.randn(x.shape)):
        alike(f, torch.zeros(3, 0))
        alike(f, torch.zeros(0))
    g = torch.compile(lambda x: F.dropout(x, 0.5) + torch.randn_like(x), dynamic=True)
    for n in (5, 16, 33, 700):
        torch.manual_seed(1)
        got = g(torch.ones(n))
        torch.manual_seed(1)
        assert torch.allclose(got, F.dropout(torch.ones(n), 0.5) + torch.randn(n))


def test_gradients_use_the_mask_that_was_drawn():
    x, y = (torch.linspace(-1, 1, 300).requires_grad_() for _ in range(2))
    for t, f in (
        (x, torch.compile(lambda t: F.dropout(t.sin(), 0.3).sum())),
        (y, lambda t: F.dropout(t.sin(), 0.3).sum()),
    ):
        torch.manual_seed(2)
        f(t).backward()
    assert torch.allclose(x.grad, y.grad)


def test_probabilities_outside_of_0_to_1_are_refused():
    f = torch.compile(lambda p: torch.bernoulli(p))
    for p in (2.0, -0.5, float("nan")):
        with pytest.raises(RuntimeError, match="p_in <= 1"):
            f(torch.full((40,), p))
    assert f(torch.ones(40)).sum() == 40


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("shape", [(5,), (7, 300), (2, 5000)], ids=str)
def test_categories(shape, dtype):
    p = torch.from_numpy(np.random.default_rng(0).random(shape)).to(dtype)
    p[..., 1] = 0
    for n, again in ((1, False), (1, True), (3, False), (4, False)):
        alike(lambda p: torch.multinomial(p, n, again), p)  # noqa: B023


def test_what_is_no_distribution_is_refused():
    fn = lambda p: torch.multinomial(p, 1) + 1  # noqa: E731
    for p in ([0.0, 0, 0], [1.0, -1, 2], [1.0, math.nan], [1.0, math.inf], [[1.0, 1], [0, 0]]):
        said = []
        for f in (fn, torch.compile(fn)):
            with pytest.raises(RuntimeError) as caught:
                f(torch.tensor(p))
            said.append(str(caught.value))
        assert said[0] == said[1]


def test_generators_of_ones_own():
    g = torch.Generator().manual_seed(3)
    h = copy.deepcopy(g)
    assert torch.equal(torch.randn(50, generator=g), torch.randn(50, generator=h))
    assert torch.equal(g.get_state(), h.get_state())
    torch.manual_seed(3)
    assert torch.equal(torch.randn(50), torch.randn(50, generator=torch.Generator().manual_seed(3)))
    copied = copy.deepcopy(generator.default_generator)  # goes on from the same place, and leaves the original alone
    first = torch.rand(3, generator=copied)
    assert torch.equal(torch.rand(3), first)
    state = torch.get_rng_state()
    a = torch.randn(5)
    torch.set_rng_state(state)
    assert torch.equal(a, torch.randn(5))


def test_streams_beside_numpy():
    """The words, after seeding and across blocks."""
    torch.manual_seed(123)
    bits = np.random.MT19937()
    bits._legacy_seeding(123)
    want = np.random.Generator(bits).integers(0, 2**32, 3000, dtype=np.uint32)
    got = np.concatenate([generator.default_generator.words(n) for n in (1, 700, 1, 2298)])
    np.testing.assert_array_equal(got, want)


def test_threads_that_draw_at_once():
    torch.manual_seed(5)
    want = np.sort(np.concatenate([torch.rand(1000).numpy() for _ in range(40)]))
    torch.manual_seed(5)
    made, f = [], torch.compile(lambda x: torch.rand_like(x))
    f(torch.ones(1000)), torch.manual_seed(5)
    threads = [
        threading.Thread(target=lambda: made.extend(f(torch.ones(1000)).numpy() for _ in range(10))) for _ in range(4)
    ]
    [t.start() for t in threads], [t.join() for t in threads]
    np.testing.assert_array_equal(np.sort(np.concatenate(made)), want)


def test_a_fork_draws():
    read, write = os.pipe()
    torch.manual_seed(9)
    if not (pid := os.fork()):
        os.write(write, torch.rand(4).numpy().tobytes())
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    assert os.read(read, 16) == torch.rand(4).numpy().tobytes()


def normal_numbers() -> np.ndarray:
    torch.manual_seed(11)
    return torch.randn(100_000).numpy()


@pytest.mark.slow
def test_normal_numbers_beside_doubles():
    torch.manual_seed(11)
    u = torch.rand(100_000).numpy().astype(np.float64).reshape(-1, 16)
    torch.manual_seed(11)
    radius, theta = np.sqrt(-2 * np.log(1 - u[:, :8])), np.float32(2 * np.pi) * u[:, 8:]
    want = np.concatenate([radius * np.cos(theta), radius * np.sin(theta)], 1)
    assert np.abs(normal_numbers().reshape(-1, 16) - want).max() < 2e-6


def stays_inside() -> None:
    """Numbers between pages that nobody may touch."""
    protect, maps = ctypes.CDLL(None, use_errno=True).mprotect, []
    for at_end in (False, True):
        for what, dtype in (
            *((Draw.UNIFORM, "f4"), (Draw.UNIFORM, "f8"), (Draw.NORMAL, "f4"), (Draw.NORMAL, "f8")),
            *((Draw.SEQUENCE, "f8"), (Draw.BERNOULLI, "?"), ("integers", "i8"), ("permutation", "i8")),
        ):
            for n in (1, 15, 16, 17, 511, 1024, 1025):
                size = n * np.dtype(dtype).itemsize
                room = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
                maps.append(mmap.mmap(-1, room + 2 * mmap.PAGESIZE))
                start = ctypes.addressof(ctypes.c_char.from_buffer(maps[-1]))
                for place in (start, start + mmap.PAGESIZE + room):
                    assert protect(ctypes.c_void_p(place), ctypes.c_size_t(mmap.PAGESIZE), 0) == 0
                out = np.frombuffer(maps[-1], dtype, n, mmap.PAGESIZE + (room - size if at_end else 0))
                if what == "integers":
                    kernels.draw_integers([], [out], wide=False, low=0, span=10)
                elif what == "permutation":
                    kernels.draw_permutation([], [out])
                else:
                    kernels.draw([], [out], what=what, f64=dtype == "f8", narrow=False, first=0.0, second=1.0)
    os._exit(0)


@pytest.mark.skipif(sys.platform != "linux", reason="mprotect through ctypes is Linux's here")
def test_writes_nothing_outside_its_array():
    guard_pages.run_alone(__file__, "stays_inside()")


def draws_by_formula() -> None:
    """Draws of the default generator beside MT19937's words from NumPy, made numbers in float64."""
    n = 4000
    words = lambda count: np.random.RandomState(7).randint(0, 2**32, count, np.uint64)  # noqa: E731
    uniform = (words(n) & 0xFFFFFF) / 2.0**24
    torch.manual_seed(7)
    assert (torch.rand(n).numpy() == uniform.astype("f")).all()
    pairs = words(2 * n).reshape(n, 2)
    doubles = ((pairs[:, 0] << np.uint64(32) | pairs[:, 1]) & np.uint64(2**53 - 1)) / 2.0**53
    torch.manual_seed(7)
    assert (torch.rand(n, dtype=torch.float64).numpy() == doubles).all()
    torch.manual_seed(7)
    assert (torch.empty(n, dtype=torch.bool).bernoulli_(0.3).numpy() == (doubles < 0.3)).all()
    first, second = uniform.reshape(-1, 2, 8).swapaxes(0, 1)
    radius, angle = np.sqrt(-2 * np.log(1 - first)), 2 * np.pi * second
    torch.manual_seed(7)
    want = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).reshape(-1)
    np.testing.assert_allclose(torch.randn(n).numpy(), want, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("cpu", ["", level("avx2"), "default"])
def test_draws_of_each_kind_of_cpu(cpu):
    guard_pages.run_alone(__file__, "draws_by_formula()", FLAMBEAU_CPU=cpu)
