"""What goes wrong inside loops, on one thread and on two: Python's error, at its line, with the effects of the turns before it."""

import math
import traceback
import warnings

import numpy as np
import pytest

import flambeau as torch
from flambeau.dynamo.utils import counters
from flambeau.testing.loops import same

R = np.random.RandomState(0)
N = 3000
PLAIN = R.rand(N)
WHOLE = R.randint(1, 9, N)


def changed(x, at, value):
    x = x.copy()
    x[at] = value
    return x


def beyond(x, n):
    for i in range(n):
        x[i] = x[i] * 2 + 1
    return x.sum()


def beyond_in_parallel(x, y, n):
    for i in range(n):
        s = 0.0
        for k in range(50):
            s += math.sin(y[i] + k)
        x[i] = s


def before_the_first(x, n):
    for i in range(n):
        x[-i - 1] += 1


def divided(x, y):
    for i in range(len(x)):
        x[i] = 1.0 / float(y[i])
    return x


def divided_whole(x, y):
    for i in range(len(x)):
        x[i] = 100 // int(y[i])
    return x


def rest(x, y):
    for i in range(len(x)):
        x[i] = 100 % int(y[i])
    return x


def factorials(x, n):
    f = 1
    for i in range(1, n):
        f = f * i
        x[i] = f
    return f


def roots(x, y):
    for i in range(len(x)):
        x[i] = math.sqrt(y[i])
    return x


def exponentials(x, y):
    for i in range(len(x)):
        x[i] = math.exp(y[i])
    return x


def raised(x, y):
    for i in range(len(x)):
        x[i] = y[i] + 1
        if y[i] < 0:
            raise ValueError("negative", i)
    return x


def raised_in_parallel(x, y):
    for i in range(len(x)):
        s = 0.0
        for k in range(60):
            s += math.sin(y[i] * k)
        x[i] = s
        if y[i] < 0:
            raise ValueError("negative")
    return x


def asserted(x, y):
    for i in range(len(x)):
        x[i] = y[i] + 1
        assert y[i] >= 0, "no"
    return x


def integers(x, y):
    for i in range(len(y)):
        x[i] = int(y[i])
    return x


def other_sizes(x, y):
    for i in range(len(x)):
        x[i, :] = y[: i % 4 + 2]
    return x


ZERO = np.zeros(N)
FAULTS = [
    (beyond, ZERO, N + 1), (beyond_in_parallel, ZERO, PLAIN, N + 1), (before_the_first, ZERO, N + 1),
    (divided, ZERO, changed(PLAIN, 2000, 0.0)), (divided_whole, ZERO, changed(WHOLE, 2222, 0)), (rest, ZERO, changed(WHOLE, 2222, 0)),
    (factorials, np.zeros(30), 25), (roots, ZERO, changed(PLAIN, 1500, -1.0)), (exponentials, ZERO, changed(PLAIN, 777, 1000.0)),
    (raised, ZERO, changed(PLAIN, 1500, -1.0)), (raised_in_parallel, ZERO, changed(PLAIN, 1500, -1.0)),
    (asserted, ZERO, changed(PLAIN, 1500, -1.0)), (integers, np.zeros(N, int), changed(PLAIN, 5, np.nan)),
    (integers, np.zeros(N, int), changed(PLAIN, 7, np.inf)), (other_sizes, np.zeros((N, 3)), np.ones(8)),
]  # fmt: skip


def outcome(f, args):
    """(what it gives, or the error with its line; the arguments after it; the warnings)"""
    args = [np.array(a) if isinstance(a, np.ndarray) else a for a in args]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            given = f(*args)
        except Exception as e:
            lines = [t.lineno for t in traceback.extract_tb(e.__traceback__) if t.filename == __file__]
            given = (type(e).__name__, str(e), lines[-1])
    return given, tuple(a for a in args if isinstance(a, np.ndarray)), sorted({str(w.message) for w in told})


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("case", range(len(FAULTS)), ids=lambda k: f"{k}-{FAULTS[k][0].__name__}")
def test_fault(case, threads):
    f, *args = FAULTS[case]
    torch._dynamo.reset()
    before, was = counters["stats"]["native_loops"], torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        want, compiled = outcome(f, args), torch.compile(f)
        for _ in range(2):
            got = outcome(compiled, args)
            same(got[:2], want[:2])
            assert got[2] == want[2]
    finally:
        torch.set_num_threads(was)
    if f is not factorials:  # a loop that once needed more than 64 bits stays Python
        assert counters["stats"]["native_loops"] > before
