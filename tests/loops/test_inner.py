"""Loops within loops whose turns have to be taken in order: their own turns are spread over threads, or not, and all give NumPy's results."""

import os
import signal
import threading
import time

import numpy as np
import pytest

import flambeau as torch
from flambeau import _runtime
from flambeau.loops.threads import inner
from flambeau.testing.loops import check, run

R = np.random.RandomState(3)
WORTH = inner.WORTH


def sweeps(u, new):
    for _ in range(5):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                new[i, j] = 0.25 * (u[i + 1, j] + u[i - 1, j] + u[i, j + 1] + u[i, j - 1])
        u[1:-1, 1:-1] = new[1:-1, 1:-1]


def swapped(u, new):
    for _ in range(6):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                new[i, j] = u[i + 1, j] * 0.3 + u[i, j - 1]
        u, new = new, u
    return u


def plate(x, y):
    return x * 0.5 + y


def with_calls_and_branches(u, new):
    total = 0.0
    k = 0
    while k < 4:
        for i in range(u.shape[0] - 1, 0, -1):
            s = 0.0
            for j in range(u.shape[1]):
                if u[i, j] < 0.2:
                    continue
                s += plate(u[i, j], k)
            new[i, 0] = s + total
        total += new[3, 0]
        u[:, 1] = new[:, 0]
        k += 1
    return total


def all_pairs(u, new):
    for k in range(u.shape[1]):
        for i in range(u.shape[0]):
            for j in range(u.shape[1]):
                new[i, j] = min(new[i, j], u[i, k] + u[k, j])
        u[k, 0] += 1.0


def triangle(u, new):
    for k in range(3):
        for i in range(u.shape[0]):
            for j in range(i % u.shape[1]):
                new[i, j] += u[i, j] * k
        u[0, 0] += new[5, 3]


SPREAD = [sweeps, with_calls_and_branches, all_pairs, triangle]


def in_place(u, new):
    for _ in range(3):
        for i in range(1, u.shape[0]):
            for j in range(1, u.shape[1]):
                u[i, j] = 0.5 * (u[i - 1, j] + u[i, j - 1])


def rows_of_the_outer_loop(u, new):
    """What is known of a row is about the outer loop's index."""
    for i in range(1, u.shape[0]):
        row = u[i]
        for j in range(1, u.shape[1]):
            row[j] = row[j - 1] + u[i - 1, j]


def same_column(u, new):
    for i in range(1, u.shape[0]):
        for j in range(u.shape[1]):
            u[i, 0] += u[i - 1, j] * 0.01


def carried(u, new):
    s = 0.0
    for _ in range(3):
        for i in range(u.shape[0]):
            s += u[i, 0]
            new[i, 0] = s
    return s


def used_later(u, new):
    t = 0.0
    for k in range(3):
        for i in range(u.shape[0]):
            t = u[i, k]
            new[i, 0] = t * 2
        u[k, k] = t
    return t


def left_early(u, new):
    for _ in range(3):
        for i in range(u.shape[0]):
            new[i, 0] = u[i, 0]
            if u[i, 1] > 0.99:
                break
        u[0, 0] += new[0, 0]


def with_else(u, new):
    for _ in range(3):
        for i in range(u.shape[0]):
            new[i, 0] = u[i, 0]
            if u[i, 1] > 0.995:
                break
        else:
            u[0, 0] += 1.0
        u[0, 0] += new[0, 0]


IN_ORDER = [swapped, in_place, rows_of_the_outer_loop, same_column, carried, used_later, left_early, with_else]


@pytest.fixture(autouse=True)
def _eager(monkeypatch):
    """However short they are."""
    monkeypatch.setattr(inner, "WORTH", 1)
    before = _runtime.loops_worth(-1)
    yield
    _runtime.loops_worth(before)


def note(f, *args):
    (found,) = torch._dynamo.explain(f)(*args).loops
    return found


@pytest.mark.parametrize("f", SPREAD + IN_ORDER, ids=lambda f: f.__name__)
def test_beside_plain(f):
    args = R.rand(70, 60), R.rand(70, 60)
    check(f, *args)
    assert (" on several" in note(f, *args)) == (f in SPREAD), note(f, *args)


@pytest.mark.parametrize("f", SPREAD + IN_ORDER, ids=lambda f: f.__name__)
def test_whatever_the_threads(f):
    before, got = torch.get_num_threads(), []
    args = R.rand(120, 100), R.rand(120, 100)
    copies = [a.copy() for a in args]
    want = repr((run(f, *copies), copies))
    try:
        for n in (1, 2, 3):
            torch.set_num_threads(n)
            torch._dynamo.reset()
            copies = [a.copy() for a in args]
            got.append(repr((torch.compile(f)(*copies), copies)))
    finally:
        torch.set_num_threads(before)
    assert got == [want] * 3


@pytest.mark.parametrize("bad", [0, 60, 119])
def test_errors_of_a_turn_leave_what_python_leaves(bad):
    def f(u, places, out):
        for k in range(4):
            for i in range(u.shape[0]):
                for j in range(u.shape[1]):
                    out[i] += u[i, places[i] + j * k - j * k]
            u[0, 0] += out[3]

    u, places = R.rand(120, 30), np.zeros(120, np.int64)
    places[bad] = 30
    check(f, u, places, np.zeros(120))


def steps(out, x, turns, n):
    """Many turns of unequal length, a few at a time, of which nothing is known when the kernel is written."""
    for k in range(n):
        for i in range(turns):
            s = 0.0
            for j in range((i + 1) * 100 * (k % 3)):
                s += x[i] * j
            out[i] = s
        x[0] += out[turns - 1] * 1e-9


@pytest.mark.parametrize("worth", [-1, 30_000, 10**12])
@pytest.mark.parametrize("turns", [9, 33])
def test_whatever_is_worth_the_pool(monkeypatch, worth, turns):
    """Turns that are looked at again and again, or stay where they are."""
    monkeypatch.setattr(inner, "WORTH", 1000)
    _runtime.loops_worth(worth)
    check(steps, np.zeros(turns), R.rand(turns), turns, 13)


def elsewhere(f, *args) -> float:
    """Processor time of other threads in some calls."""
    before = time.process_time() - time.thread_time()
    for _ in range(20):
        f(*args)
    return time.process_time() - time.thread_time() - before


@pytest.mark.skipif(os.cpu_count() == 1, reason="one core")
def test_few_long_turns_in_each_step_are_spread(monkeypatch):
    """From the second step on, however long they were thought to be."""
    monkeypatch.setattr(inner, "WORTH", WORTH)

    def f(out, x, turns):
        for _ in range(4):
            for i in range(turns):
                s = 0.0
                for k in range(20_000 + int(x[0])):
                    s += np.sin(x[i] + k)
                out[i] = s
            x[0] = out[1] * 1e-9

    compiled, args = torch.compile(f), (np.zeros(16), R.rand(16), 16)
    compiled(*args)
    _runtime.loops_worth(30_000)
    assert elsewhere(compiled, *args) > 0.02
    _runtime.loops_worth(10**12)
    assert elsewhere(compiled, *args) < 0.01


def test_signals_end_it():
    class Stop(Exception):
        pass

    def stop(*_):
        raise Stop

    def f(u, new, n):
        for _ in range(n):
            for i in range(1, u.shape[0] - 1):
                for j in range(1, u.shape[1] - 1):
                    new[i, j] = u[i - 1, j] * 0.5 + u[i + 1, j] * 0.5
            u[0, 0] += new[1, 1]

    compiled, args = torch.compile(f), (R.rand(300, 300), R.rand(300, 300))
    compiled(*args, 200)
    compiled(*args, 201)
    before = signal.signal(signal.SIGUSR1, stop)
    try:
        with pytest.raises(Stop):
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGUSR1)).start()
            compiled(*args, 10**9)  # would take hours
    finally:
        signal.signal(signal.SIGUSR1, before)
