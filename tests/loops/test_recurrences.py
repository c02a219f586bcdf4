"""Sums, extrema and the like over turns that are spread over threads: plain, captured, on one thread and several, one result to the last bit."""

import numpy as np
import pytest

import flambeau as torch
from flambeau import _runtime
from flambeau.loops.threads import spreading
from flambeau.testing.loops import check, run

R = np.random.RandomState(11)


def whole_sum(a):
    n = 0
    for i in range(a.shape[0]):
        n += i * int(a[i, 0])
        n -= 3
    return n


def numpy_sum(a):
    s = np.int64(7)
    for i in range(a.shape[0]):
        s = s + a[i, 1]
    return s


def either_sum(a):
    s = 0
    for i in range(a.shape[0]):
        if a[i, 0] > 4:
            s += a[i, 1]
    return s, type(s).__name__


def small_integers(a):
    s = np.int8(0)
    b = a.astype(np.int8)
    for i in range(len(b)):
        s += b[i, 0]
    return s


def count(a):
    n = 0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            if a[i, j] > 3:
                n += 1
            elif a[i, j] < 0:
                n += 2
    return n


def sums_in_order(a):
    s, p = 0.0, 1.0
    for i in range(a.shape[0]):
        t = 0.0
        for j in range(a.shape[1]):
            t += a[i, j] * 0.1
        s = t + s
        p *= 1.0 + t * 1e-6
    return s, p


def sum_under_a_condition(a):
    s = 0
    for i in range(a.shape[0]):
        t = 0.0
        for j in range(a.shape[1]):
            t -= a[i, j] / 3
        if t < 0.0:
            s -= t
    return s


def complex_sum(a):
    s = 0j
    for i in range(a.shape[0]):
        t = 0j
        for j in range(a.shape[1]):
            t += (a[i, j] + 1j) * 0.1
        s += t
    return s


def extrema(a):
    least, most, where = 10**9, -(10**9), -1
    for i in range(a.shape[0]):
        t = 0
        for j in range(a.shape[1]):
            t += int(a[i, j]) * j
        if t > most:
            most = t
            where = i
        least = min(least, t)
    return least, most, where


def extrema_in_one_statement(a):
    most, where, least, at, twice = -1, -1, 10**9, -1, 0
    for i in range(a.shape[0]):
        t = 0
        for j in range(a.shape[1]):
            t += int(a[i, j]) * j
        if t > most:
            most, where = t, i
        if t < least:
            least, at, twice = t, i + 1, 2 * t
    return most, where, least, at, twice


def extrema_of_floats(a):
    low, high = np.inf, -np.inf
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            x = a[i, j] * 0.3
            if low > x:
                low = x
            high = max(high, x)
    return low, high


def bits(a):
    x, y, z = 0, -1, 0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            n = int(a[i, j])
            x ^= n * i
            y &= n | i
            z |= n
    return x, y, z


def happened(a):
    found, code = False, 0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            if a[i, j] == 5:
                found = True
            if a[i, j] == 1000:
                code = 3
    return found, code


def last_values(a):
    for i in range(a.shape[0]):
        t = a[i, 0]
        u = 2 * i
    return t, u, i


def with_writes(a):
    out, worst = np.zeros(len(a)), 0.0
    for i in range(a.shape[0]):
        s = 0.0
        for j in range(a.shape[1]):
            s += a[i, j]
        out[i] = s
        if s > worst:
            worst = s
    return out, worst


def downwards(a):
    n, k = 0, -1
    for i in range(a.shape[0] - 1, 2, -3):
        n += i
        if a[i, 0] > k:
            k = a[i, 0]
    return n, k


def over_rows(a):
    n, most = 0, -(10**9)
    for row in a:
        t = 0
        for j in range(len(row)):
            t += int(row[j])
        n += t
        if t > most:
            most = t
    return n, most


def enumerated(a):
    out, s = np.zeros(len(a)), 0.0
    for i, row in enumerate(a):
        t = 0.0
        for x in row:
            t += x * 0.1
        out[i] = t
        a[i, 0] = i
        row[1] = 2 * i
        s += t
    return out, s


def zipped(a):
    n = 0
    for x, y in zip(a[:, 0], a[3:, 1]):
        if x > y:
            n += 1
    return n


SPREAD = [
    over_rows, enumerated, zipped, whole_sum, numpy_sum, either_sum, count, sums_in_order, sum_under_a_condition, complex_sum, extrema,
    extrema_in_one_statement, extrema_of_floats,
    bits, happened, last_values, with_writes, downwards, small_integers,
]  # fmt: skip


def read_otherwise(a):
    s = 0
    out = np.zeros(len(a), np.int64)
    for i in range(len(a)):
        s += int(a[i, 0])
        out[i] = s
    return s, out


def two_operations(a):
    s = 1
    for i in range(len(a)):
        s += int(a[i, 0])
        s ^= 3
    return s


def sum_of_itself(a):
    s = 1
    for i in range(len(a)):
        s += s & int(a[i, 0])
        s &= 1023
    return s


def past_the_comparison(a):
    m = -1
    for i in range(len(a)):
        x = int(a[i, 0])
        if i == 5 or x > m:
            m = x
    return m


def place_of_others(a):
    m, k = -1, -1
    for i in range(len(a)):
        if i % 7 == 0:
            x = int(a[i, 0])
            if x > m:
                m = x
            k = i
    return m, k


def another_value_is_stored(a):
    m, k = -1, -1
    for i in range(len(a)):
        x = int(a[i, 0])
        if x > m:
            k, m = x, i
    return m, k


def exchanged_with_the_extremum(a):
    m, k = -1, -1
    for i in range(len(a)):
        x = int(a[i, 0])
        if x > m:
            m, k = x, m
    return m, k


def last_of_equals(a):
    m, k = -1, -1
    for i in range(len(a)):
        x = int(a[i, 0])
        if x >= m:
            m = x
            k = i
    return m, k


def short_float_sum(a):
    s = 0.0
    for i in range(len(a)):
        s += a[i, 0] * 0.1
    return s


def inner_float_sum(a):
    s = 0.0
    for i in range(len(a)):
        for j in range(a.shape[1]):
            s += a[i, j] * 0.1
    return s


def sometimes_assigned(a):
    k = -1
    for i in range(len(a)):
        if a[i, 0] > 3:
            k = i
    return k


def enumerated_from_one(a):
    out = np.zeros(len(a) + 1)
    for i, row in enumerate(a, 1):
        out[i] = out[i - 1] + row[0]
    return out


def next_row(a):
    for i, row in enumerate(a):
        if i > 0:
            a[i - 1, 0] += row[0]
    return a


IN_ORDER = [
    enumerated_from_one, next_row, read_otherwise, two_operations, sum_of_itself, past_the_comparison, place_of_others, last_of_equals, short_float_sum,
    inner_float_sum, sometimes_assigned, another_value_is_stored, exchanged_with_the_extremum,
]  # fmt: skip


@pytest.fixture(autouse=True)
def _eager():
    """What is left after the first blocks goes to other threads, however short it is."""
    before = _runtime.loops_worth(-1)
    yield
    _runtime.loops_worth(before)


def data(n=301, m=40):
    return R.randint(-9, 10, (n, m))


def note(f, *args):
    (found,) = torch._dynamo.explain(f)(*args).loops
    return found.partition(": ")[2]


@pytest.mark.parametrize("f", SPREAD + IN_ORDER, ids=lambda f: f.__name__)
def test_beside_plain(f):
    check(f, data())
    check(f, data(3, 2), native=None)
    assert note(f, data()).startswith("native, on several threads") == (f in SPREAD), note(f, data())


@pytest.mark.parametrize("f", SPREAD, ids=lambda f: f.__name__)
def test_to_the_last_bit_whatever_the_threads(f, monkeypatch):
    a, before, got = data(700, 300), torch.get_num_threads(), []
    want = repr(run(f, a.copy()))
    try:
        for n in (1, 2, 3):
            torch.set_num_threads(n)
            torch._dynamo.reset()
            compiled = torch.compile(f)
            got += [repr(compiled(a.copy())), repr(compiled(a.copy()))]
    finally:
        torch.set_num_threads(before)
    assert got == [want] * 6


@pytest.mark.parametrize("name", ["fastmath", "parallel"])
def test_sums_in_another_order_where_that_is_allowed(name):
    a, before, got = data(700, 300), torch.get_num_threads(), set()
    try:
        for n in (1, 2, 3):
            torch.set_num_threads(n)
            torch._dynamo.reset()
            got.add(torch.compile(inner_float_sum, options={name: True})(a))
    finally:
        torch.set_num_threads(before)
    (one,) = got
    assert abs(one - inner_float_sum(a)) < 1e-9 * np.abs(a).sum()


def nan_and_zeros(a):
    m, low = a[0, 0], 0.0
    for i in range(len(a)):
        for j in range(a.shape[1]):
            if a[i, j] > m:
                m = a[i, j]
            if a[i, j] < low:
                low = a[i, j]
    return m, low


@pytest.mark.parametrize("place", [(0, 0), (200, 3), (0, 1)])
@pytest.mark.parametrize("value", [np.nan, -0.0, np.inf, -np.inf])
def test_nan_and_signed_zeros(place, value):
    a = np.where(R.rand(300, 20) < 0.5, -0.0, 0.0)
    a[place] = value
    torch._dynamo.reset()
    assert repr(torch.compile(nan_and_zeros)(a)) == repr(nan_and_zeros(a))


def test_integers_that_grow_too_long_in_a_part_or_in_all():
    def f(a):
        s = 0
        for i in range(len(a)):
            s += int(a[i])
        return s

    for a in (np.full(640, 1 << 55), np.r_[np.full(320, 1 << 55), np.full(320, -(1 << 55))], np.full(10, 1 << 61)):
        check(f, a, native=None)
        assert torch.compile(f)(a) == f(a)


def test_errors_of_a_turn_leave_what_python_leaves():
    def f(a, out):
        n = 0
        for i in range(len(a)):
            for j in range(a.shape[1]):
                out[i] += 10 // int(a[i, j])
            n += 1
        return n

    a = np.ones((300, 40), np.int64)
    for bad in ((0, 0), (150, 39), (299, 39)):
        a[:] = 1
        a[bad] = 0
        check(f, a, np.zeros(300))


def test_many_short_blocks_of_one_turn():
    """Sums of floats turn by turn: as many blocks as turns."""

    def f(a):
        s = 0.0
        for i in range(len(a)):
            t = 0.0
            for j in range(i % 5):
                t += a[i] * j
            s += t
        return s

    a = R.randn(5000)
    torch._dynamo.reset()
    assert torch.compile(f)(a) == f(a)
    assert spreading.BLOCKS < len(a)
