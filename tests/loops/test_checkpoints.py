"""Derivatives of native loops with a small budget for the tape: the values of an unlimited one, finite differences, and what is held meanwhile."""

import signal
import threading

import numpy as np
import pytest

import flambeau as torch
from flambeau.loops import derivatives
from flambeau.loops.checkpoints import Windows, budget_of, merged, renumbered

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
    original = derivatives.CheckpointedTape.__init__

    def noted(self, *args):
        made.append(args)
        original(self, *args)

    monkeypatch.setattr(derivatives.CheckpointedTape, "__init__", noted)
    want = func.grad(f)(X)
    assert not made
    got = with_budget(budget, func.grad(f), X)
    np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)
    direction = np.cos(np.arange(len(X)))
    slope = (f(X + 1e-6 * direction) - f(X - 1e-6 * direction)) / 2e-6
    assert got @ direction == pytest.approx(slope, rel=1e-5)
    (args,) = made
    tangents = [RNG.random(a.shape) for a in args[0] if a.dtype.kind == "f"]
    want = derivatives.Tape(*args).tangents(tangents)
    got = with_budget(budget, lambda: derivatives.CheckpointedTape(*args).tangents(tangents))
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def test_memory(monkeypatch):
    """Window and checkpoints stay within the budget, where that is more than two states of the loop take."""
    held = []
    checkpoint = Windows.checkpoint

    def counted(self):
        point = checkpoint(self)
        held.append(sum(copy.nbytes for _, copy in point.parts))
        return point

    room = []
    monkeypatch.setattr(Windows, "checkpoint", counted)
    monkeypatch.setattr(derivatives, "budget_of", lambda *a: room.append(budget_of(*a)) or room[-1])
    budget = 1 << 18
    with_budget(budget, func.grad(stencil), X)
    ((notes, checkpoints),) = room
    assert checkpoints * max(held) + 3 * 24 * notes <= 1.1 * budget
    assert len(held) > 3


def test_a_second_derivative_says_how_much_it_needs():
    with pytest.raises(MemoryError, match="native_loop_tape_bytes"):
        with_budget(1 << 13, func.hessian(stencil), X)


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
    """With room for a checkpoint in every eighth window, a window is run four times at most on average."""
    runs = []
    advance = Windows.advance

    def counted(self):
        runs.append(self.window)
        return advance(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Windows, "advance", counted)
        patch.setattr(derivatives, "budget_of", lambda *a: (256, 8))
        with_budget(1 << 13, func.grad(stencil), X)
    assert len(runs) < 8 * (max(runs) + 1)
