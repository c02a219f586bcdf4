"""Derivatives of native loops, of first and higher order, with a small budget for the tape: the values of an unlimited one, finite differences, and what
is held meanwhile."""

import gc
import mmap
import resource
import signal
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import flambeau as torch
from flambeau import _C
from flambeau.loops.gradients import checkpoints, higher_orders, tapes
from flambeau.loops.gradients.checkpoints import Windows, budget_of, merged, renumbered
from flambeau.testing import guard_pages

func = torch.func
config = torch._inductor.config
RNG = np.random.default_rng(11)


def stencil(x):
    u, v = x * 1.0, np.zeros(len(x))
    for _ in range(60):
        for i in range(1, len(u) - 1):
            v[i] = u[i] + 0.1 * (u[i - 1] - 2 * u[i] + u[i + 1]) - 0.01 * u[i] * u[i]
        for i in range(1, len(u) - 1):
            u[i] = np.sin(v[i]) if v[i] > 0.5 else v[i] * 1.01
    return (u * u).sum()


def scalars(x):
    a, b = x[0], x[1]
    for i in range(2000):
        a, b = a + 0.01 * b * x[i % len(x)], b - 0.01 * np.sin(a)
    return a * b


def left_early(x):
    s, p, n = 0.0, 1.0, 0
    while p > 1e-9:
        p *= 1.0 - 0.01 * x[n % len(x)]
        if n == 1500:
            break
        s += np.log1p(p) * x[n % 7]
        n += 1
    return s * x[0]


def arrays_of_its_own(x):
    total = 0.0
    y = x.copy()
    for i in range(300):
        row = y * 0.99 + 0.001 * i
        y = row - 0.01 * row * row
        total += row[i % len(x)]
    return total + y.sum()


PROGRAMS = [stencil, scalars, left_early, arrays_of_its_own]
X = RNG.random(24) + 0.2


def with_budget(budget, f, *args):
    with config.patch(native_loop_tape_bytes=budget):
        return f(*args)


@pytest.mark.parametrize("budget", [1 << 13, 1 << 15, 1 << 17])
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_values(f, budget, monkeypatch):
    made = []
    original = tapes.CheckpointedTape.__init__

    def noted(self, *args):
        made.append(args)
        original(self, *args)

    monkeypatch.setattr(tapes.CheckpointedTape, "__init__", noted)
    want = func.grad(f)(X)
    assert not made
    got = with_budget(budget, func.grad(f), X)
    np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)
    direction = np.cos(np.arange(len(X)))
    slope = (f(X + 1e-6 * direction) - f(X - 1e-6 * direction)) / 2e-6
    assert got @ direction == pytest.approx(slope, rel=1e-5)
    (args,) = made
    tangents = [RNG.random(a.shape) for a in args[0] if a.dtype.kind == "f"]
    want = tapes.Tape(*args).tangents(tangents)
    got = with_budget(budget, lambda: tapes.CheckpointedTape(*args).tangents(tangents))
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def made_in_windows(monkeypatch):
    """The parts of numbers of each list that is made in windows from here on."""
    made = []
    swept = higher_orders.CheckpointedList.swept

    def noted(self, x, *rest):
        found = swept(self, x, *rest)
        made.append(x.shape[1])
        return found

    monkeypatch.setattr(higher_orders.CheckpointedList, "swept", noted)
    return made


D, E = RNG.standard_normal((2, len(X)))


def forward_over_reverse(f):
    return lambda x: func.jvp(func.grad(f), (x,), (D,))[1]


def reverse_over_reverse(f):
    return lambda x: func.grad(lambda y: np.sum(func.grad(f)(y) * D))(x)


def reverse_over_forward(f):
    return lambda x: func.grad(lambda y: func.jvp(f, (y,), (D,))[1])(x)


SECOND = [forward_over_reverse, reverse_over_reverse, reverse_over_forward]


# The larger budget, of fewer windows, with one of the ways.
@pytest.mark.parametrize("second, budget", [
    *((way, 1 << 13) for way in SECOND), (SECOND[1], 1 << 16), *(pytest.param(SECOND[k], 1 << 16, marks=pytest.mark.slow) for k in (0, 2)),
])  # fmt: skip
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_second_derivatives(f, second, budget, monkeypatch):
    """Products with the Hessian, beside those of a list in one piece and differences of gradients."""
    made = made_in_windows(monkeypatch)
    want = np.asarray(second(f)(X))
    assert not made
    got = np.asarray(with_budget(budget, second(f), X))
    assert made
    scale = np.abs(want).max()
    np.testing.assert_allclose(got / scale, want / scale, rtol=1e-12, atol=1e-13)
    gradient = func.grad(f)
    slope = (gradient(X + 1e-6 * D) - gradient(X - 1e-6 * D)) / 2e-6
    np.testing.assert_allclose(got / scale, slope / scale, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_third_derivatives(f, monkeypatch):
    made = made_in_windows(monkeypatch)

    def second(x):
        return np.sum(func.grad(lambda y: np.sum(func.grad(f)(y) * D))(x) * E)

    want = func.grad(second)(X)
    got = with_budget(1 << 14, func.grad(second), X)
    assert max(made) == 4
    scale = np.abs(want).max()
    np.testing.assert_allclose(got / scale, want / scale, rtol=1e-12, atol=1e-13)
    slope = (second(X + 1e-5 * E) - second(X - 1e-5 * E)) / 2e-5
    assert got @ E == pytest.approx(slope, rel=1e-5)


def test_hessians():
    x = X[:7]
    want = func.hessian(scalars)(x)
    got = with_budget(1 << 13, func.hessian(scalars), x)
    np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(got, got.T, rtol=1e-11, atol=1e-11)
    rows = with_budget(1 << 13, func.jacrev(func.grad(scalars)), x)
    np.testing.assert_allclose(rows, want, rtol=1e-11, atol=1e-11)


def several_results(x, w, dtype):
    """Arrays written in place, one of another precision, and numbers."""
    u, low, n = x.copy(), w.astype(dtype), 0
    for k in range(700):
        i = k % len(u)
        if u[i] > 1.5:
            u[i] *= 0.5
            n += 1
            continue
        u[i] += 0.1 * w[i % 5] * u[i - 1]
        low[i % 5] = np.exp(-low[i % 5]) * 0.5 + 0.5 * u[i]
        if n > 40:
            break
    return u, low, u[0] * low[1], n


def of_several_results_32(x, w):
    u, low, s, _ = several_results(x, w, np.float32)
    return np.sum(u * u) + np.sum(low * low) + s


def of_several_results_64(x, w):
    u, low, s, _ = several_results(x, w, np.float64)
    return np.sum(u * u) + np.sum(low * low) + s


@pytest.mark.parametrize("f", [of_several_results_32, of_several_results_64])
def test_loops_with_several_results(f, monkeypatch):
    made, w, single = made_in_windows(monkeypatch), RNG.random(5) + 0.5, f is of_several_results_32
    d, e = D / 10, E[:5] / 10

    def product(x, w):
        return func.jvp(func.grad(f, argnums=(0, 1)), (x, w), (d, e))[1]

    want = product(X, w)
    got = with_budget(1 << 13, product, X, w)
    assert made
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6 if single else 1e-12, atol=1e-6 if single else 1e-12)
    up, down = (func.grad(of_several_results_64, argnums=(0, 1))(X + h * d, w + h * e) for h in (1e-6, -1e-6))
    for a, b, c in zip(got, up, down, strict=True):
        np.testing.assert_allclose(a, (b - c) / 2e-6, rtol=1e-3 if single else 1e-6, atol=1e-3 if single else 1e-6)


def test_gradients_of_gradients_of_tensors(monkeypatch):
    """autograd.grad with create_graph, through a compiled function of tensors."""
    made, energy = made_in_windows(monkeypatch), torch.compile(torch.compiler.wrap_numpy(left_early))

    def product():
        x = torch.tensor(X, requires_grad=True)
        (g,) = torch.autograd.grad(energy(x), x, create_graph=True)
        (h,) = torch.autograd.grad(g @ torch.tensor(D), x, create_graph=True)
        (t,) = torch.autograd.grad(h @ torch.tensor(E), x)
        return h.detach().numpy(), t.numpy()

    want = product()
    assert not made
    got = with_budget(1 << 14, product)
    assert set(made) == {2, 4}
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("module", [tapes, higher_orders], ids=["first", "second"])
def test_memory(module, monkeypatch):
    """Window and checkpoints stay within the budget, where that is more than two states of the loop take."""
    held, room = [0], []
    to_the_end = Windows.to_the_end

    def measured(self, bytes):
        points = to_the_end(self, bytes)
        assert len(points) >= 3 and self.window > len(points)
        held.append(sum(copy.nbytes for p in points for _, copy in p.parts) + sum(p.values.nbytes for p in points))
        return points

    def noted(limit, each):
        notes, bytes = budget_of(limit, each)
        room.append(notes * each + bytes)
        return notes, bytes

    monkeypatch.setattr(Windows, "to_the_end", measured)
    monkeypatch.setattr(module, "budget_of", noted)
    budget = 3 << 15
    with_budget(budget, func.grad(stencil), X)
    if module is higher_orders:
        with_budget(budget, lambda x: func.jvp(func.grad(stencil), (x,), (x,)), X)
    assert room and all(n <= budget for n in room)
    assert budget / 4 < max(held) <= budget


@pytest.mark.parametrize("f", [func.grad(stencil), func.hessian(stencil)], ids=["first", "second"])
def test_nothing_is_held_afterwards(f):
    """The tape goes back to the system with the call, not with a collection of reference cycles."""
    f(X)
    gc.collect()
    gc.disable()
    try:
        before = _C.memory_counters(False)["in_use"]
        f(X)
        assert _C.memory_counters(False)["in_use"] == before
    finally:
        gc.enable()


def in_little_address_space() -> None:
    """A tape for half of the machine's memory isn't to be had here: it is smaller."""
    want = func.grad(stencil)(X)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * mmap.PAGESIZE
    resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30), resource.RLIM_INFINITY))
    np.testing.assert_array_equal(func.grad(stencil)(X), want)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the process's size is read as Linux tells it")
def test_a_tape_is_smaller_where_the_system_gives_less():
    guard_pages.run_alone(__file__, "in_little_address_space()", 100)


def test_what_no_number_can_count_is_an_error(monkeypatch):
    """Notes have numbers of 32 bits."""
    monkeypatch.setattr(checkpoints, "LAST", 2000)
    for f in (func.grad(stencil), func.hessian(stencil)):
        with pytest.raises(MemoryError, match="more than 4 billion operations"):
            with_budget(1 << 13, f, X)


def test_where_stacks_are_unknown_the_error_names_the_setting(monkeypatch):
    monkeypatch.setattr(tapes, "are_possible", lambda: False)
    monkeypatch.setattr(higher_orders, "are_possible", lambda: False)
    with pytest.raises(MemoryError, match="24 bytes for each.*native_loop_tape_bytes"):
        with_budget(1 << 13, func.grad(stencil), X)
    with config.patch(native_loop_tape_bytes=1 << 19):  # enough for a tape
        func.grad(stencil)(X)
        with pytest.raises(MemoryError, match="64 bytes for each.*native_loop_tape_bytes"):
            func.hessian(stencil)(X)


def test_the_loop_is_interrupted():
    """Between windows, whose number is large here."""

    def long(x):
        a = x[0]
        for _ in range(2_000_000):
            a = a + 1e-7 * np.sin(a)
        return a

    class Stop(Exception):
        pass

    def stop(*_):
        raise Stop

    func.grad(scalars)(X)
    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 2.0)
        with pytest.raises(Stop):
            with_budget(1 << 13, func.grad(long), X)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_threads_have_stacks_of_their_own():
    want, out = func.grad(stencil)(X), {}

    def work(k):
        out[k] = func.grad(stencil)(X * (1 + k))

    with config.patch(native_loop_tape_bytes=1 << 15):
        threads = [threading.Thread(target=work, args=(k,)) for k in range(3)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    np.testing.assert_allclose(out[0], want, rtol=1e-10)
    np.testing.assert_allclose(out[2], func.grad(stencil)(X * 3), rtol=1e-10)


def test_numbers_of_a_window():
    notes = np.zeros(3, [("a", "<u4"), ("b", "<u4"), ("wa", "<f8"), ("wb", "<f8")])
    notes["a"], notes["b"] = [7, 100, 3], [0, 7, 101]
    assert renumbered(notes, 100).tolist() == [3, 7]
    assert notes["a"].tolist() == [2, 3, 1] and notes["b"].tolist() == [0, 2, 4]
    numbers, sums = merged(np.array([2, 5]), np.array([1.0, 2.0]), np.array([5, 9]), np.array([3.0, 4.0]))
    assert numbers.tolist() == [2, 5, 9] and sums.tolist() == [1.0, 5.0, 4.0]


def test_reversal_restarts_seldom():
    """With room for a checkpoint in every tenth window, a window is run four times at most on average."""
    runs = []
    advance = Windows.advance

    def counted(self):
        runs.append(self.window)
        return advance(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Windows, "advance", counted)
        patch.setattr(tapes, "budget_of", lambda *a: (256, 5 * 12_000))
        with_budget(1 << 13, func.grad(stencil), X)
    assert max(runs) > 40 and len(runs) < 5 * (max(runs) + 1)
