"""Divisions of several turns at once: NumPy's results to the bit, and which loops are so."""

import numpy as np
import pytest

import flambeau as torch
from flambeau.loops.turns import quotients

R = np.random.RandomState(31)


def moving_average(x, out, n):
    total = np.float64(0.0)
    for i in range(n):
        total += x[i]
    for i in range(n, len(x)):
        total += x[i] - x[i - n]
        out[i] = total / n
    return total


def two_quotients(x, out, n):
    s, t = x[0], x[1]
    for i in range(2, len(x)):
        s = s * 0.5 + x[i]
        t = t + s
        out[i] = s / n - 1.0 / t
    return s, t


def quotient_of_a_quotient(x, out, n):
    s = x[0]
    for i in range(1, len(x)):
        s = s * 0.75 + x[i]
        out[len(x) - 1 - i] = 100.0 - 100.0 / (1.0 + s / (x[i] + n))
    return s


def last_quotient_is_kept(x, out, n):
    s, q = x[0], x[1]
    for i in range(1, len(x)):
        s = s * 0.75 + x[i]
        q = s / n
        out[i] = q
    return s, q


def over_elements(x, out, n):
    s = x[0] * 0
    for i, v in enumerate(x):
        s = s * 0.5 + v
        out[i] = v / s
    return s


def rows(x, out, n):
    a, b = x[: len(x) // 6 * 6].reshape(6, -1), out[: len(x) // 6 * 6].reshape(6, -1)
    for r in range(a.shape[0] if a.size else 0):
        s = a[r, 0]
        for i in range(1, a.shape[1]):
            s += a[r, i]
            b[r, i] = s / (i + n)


def over_one_place(x, out, n):
    s = x[0]
    for i in range(1, len(x)):
        s = s * 0.5 + x[i]
        out[i] = s / n
        out[i - 1] = 1.0 / s
    return s


TOGETHER = [
    moving_average,
    two_quotients,
    quotient_of_a_quotient,
    last_quotient_is_kept,
    over_elements,
    rows,
    over_one_place,
]


def quotient_goes_on(x, out, n):
    s = x[0]
    for i in range(1, len(x)):
        s = s / n + x[i]
        out[i] = s
    return s


def reads_the_quotients(x, out, n):
    s = x[0]
    for i in range(1, len(x)):
        s = s * 0.5 + out[i - 1]
        out[i] = s / n
    return s


def writes_into_what_it_reads(x, out, n):
    s = x[0]
    for i in range(len(x) - 3):
        s = s * 0.5 + x[i]
        x[i + 3] = s / n
    return s


def nothing_goes_on(x, out, n):
    for i in range(len(x)):
        out[i] = x[i] / n


def written_in_two_ways(x, out, n):
    s = x[0]
    for i in range(1, len(x)):
        s = s * 0.5 + x[i]
        out[i] = s / n
        out[i - 1] = s
    return s


ONE_BY_ONE = [quotient_goes_on, reads_the_quotients, writes_into_what_it_reads, nothing_goes_on, written_in_two_ways]


@pytest.fixture
def together(monkeypatch):
    """Whether each loop is written so."""
    torch._dynamo.reset()
    made, known = [], quotients.divide_together

    def divide_together(*args):
        made.append(known(*args))
        return made[-1]

    monkeypatch.setattr(quotients, "divide_together", divide_together)
    return made


def same_bits(f, compiled, x, out, n):
    plain, ours = (x.copy(), out.copy()), (x.copy(), out.copy())
    with np.errstate(all="ignore"):
        want, got = f(*plain, n), compiled(*ours, n)
    for a, b in zip((*plain, want), (*ours, got)):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("f", TOGETHER + ONE_BY_ONE, ids=lambda f: f.__name__)
def test_bits_of_numpy(f, together):
    compiled = torch.compile(f)
    for _ in range(2):
        same_bits(f, compiled, R.rand(1003) + 0.5, R.rand(1003), 7)
    assert together
    assert any(together) == (f in TOGETHER)


@pytest.mark.parametrize("size", [2, 3, 8, 9, 10, 15, 16, 17, 18, 25, 50])
def test_sizes(size, together):
    for f in TOGETHER:
        same_bits(f, torch.compile(f), R.rand(size) + 0.5, R.rand(size), min(size, 3))


def test_float32_and_zeros(together):
    for f in TOGETHER:
        compiled = torch.compile(f)
        same_bits(f, compiled, R.rand(400).astype(np.float32), R.rand(400).astype(np.float32), 5)
    x = np.zeros(300)
    x[100:] = R.rand(200)
    for f in TOGETHER:
        same_bits(f, torch.compile(f), x, R.rand(300), 3)


def test_one_memory(together):
    """The arrays may be one."""

    def f(a, b, n):
        s = a[0]
        for i in range(1, len(b)):
            s = s * 0.5 + a[i]
            b[i] = s / n
        return s

    compiled = torch.compile(f)
    for moved in (0, 1, 3, 8, 20):
        whole = R.rand(200)
        plain, ours = whole.copy(), whole.copy()
        assert f(plain[:-20], plain[moved : moved + 150], 3) == compiled(ours[:-20], ours[moved : moved + 150], 3)
        np.testing.assert_array_equal(plain, ours)


def test_steps_of_arrays(together):
    x, out = R.rand(900), R.rand(900)
    for cut in (slice(None, None, 3), slice(None, None, -2)):
        plain, ours = out.copy(), out.copy()
        want = moving_average(x[cut], plain[cut], 5)
        assert torch.compile(moving_average)(x[cut], ours[cut], 5) == want
        np.testing.assert_array_equal(plain, ours)


def test_loops_that_return(together):
    def f(x, n):
        s = x[0]
        while True:
            for i in range(1, len(x)):
                s = s * 0.5 + x[i]
                x[i - 1] = n
            if s > 1.0:
                return s / n

    x = R.rand(300) + 2
    assert torch.compile(f)(x.copy(), 3) == f(x.copy(), 3)
    assert together
