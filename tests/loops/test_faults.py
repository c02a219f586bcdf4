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


def sorted_by_assertions(x):
    for i in range(1, len(x)):
        assert x[i - 1] <= x[i], f"not sorted at {i}"
    return True


def sorted_by_raises(x):
    for i in range(1, len(x)):
        if x[i - 1] > x[i]:
            raise ValueError(f"at {i}")
    return x * 2


def limited_elements(x):
    for v in x:
        assert v < 2.0
    return 1


def reads_outside(x):
    k = 0
    while k <= len(x):
        x[k]
        k += 1
    return x + 1


def divides(x):
    for i in range(2000):
        1 // (1000 - i)
    return x + 1


def fills_what_is_dropped(x):
    scratch = np.zeros(2)
    for i in range(4):
        scratch[i] = x[i]
    return x * 2


def element_of_no_use(x):
    x[np.argmax(x) + len(x)]
    return x * 2


def elements_of_no_use(x):
    x[(x * 1000).astype(np.int64)]
    return x * 2


def decomposition_of_no_use(x):
    np.linalg.cholesky(-np.outer(x, x))
    return x * 2


@pytest.mark.parametrize(
    "f",
    [
        sorted_by_assertions, sorted_by_raises, limited_elements, reads_outside, divides, fills_what_is_dropped, element_of_no_use,
        elements_of_no_use, decomposition_of_no_use,
    ],
)  # fmt: skip
@pytest.mark.parametrize("reported", ["default", "off"])
def test_errors_of_what_nothing_uses(f, reported):
    """A loop, an index or a solver whose result is dropped still raises."""

    def told(g, x):
        try:
            return g(x)
        except Exception as e:
            return type(e), str(e)

    torch._dynamo.reset()
    x = np.array([0.5, 1.0, 1.5, 2.5, 1.25, 3.0] * 10)
    with torch._dynamo.config.patch(numpy_floating_point_errors=reported):
        compiled = torch.compile(f)
        for _ in range(2):
            want = told(f, x)
            assert want[0] is not None and isinstance(want, tuple)
            assert told(compiled, x) == want
        fine = np.arange(1.0, 1.5, 0.1)
        same(told(compiled, fine), told(f, fine))
