"""Functions that a loop makes and calls, and lists of one number, beside plain Python."""

import numpy as np
import pytest

from flambeau.testing.loops import check

RNG = np.random.default_rng(9)


def bisection(c):
    out = np.zeros(len(c))
    for i in range(len(c)):
        a, b = 0.0, 5.0
        f = lambda x: x**3 - c[i] * x - 1  # noqa: B023, E731
        for _ in range(50):
            m = (a + b) / 2
            if f(a) * f(m) <= 0:
                b = m
            else:
                a = m
        out[i] = a
    return out


def late_binding(a):
    out = np.zeros(len(a))
    for i in range(len(a)):
        k = 1.0
        f = lambda x: x * k + i  # noqa: B023, E731
        first = f(a[i])
        k = 3.0
        out[i] = first - f(a[i])
    return out


def two_functions(a):
    total = 0.0
    for i in range(len(a)):
        scale = a[i] + 1

        def square(x):
            return x * x / scale  # noqa: B023

        def shifted(x, by):
            return x + by * i  # noqa: B023

        total += square(shifted(a[i], 2.0)) + shifted(square(a[i]), by=0.5)
    return total


def without_free_variables(a):
    for i in range(len(a)):
        double = lambda x: 2 * x + 1  # noqa: E731
        a[i] = double(double(a[i]))
    return a


def used_behind_the_loop(a):
    for i in range(len(a)):
        f = lambda x: x + i  # noqa: B023, E731
        a[i] = f(a[i])
    return a, i


def carried(a):
    last = 0.0
    for i in range(len(a)):
        f = lambda x: x + last  # noqa: B023, E731
        a[i] = f(a[i])
        last = a[i] * 0.5
    return a


def changes_the_cell(a):
    for i in range(len(a)):
        n = 0

        def count():
            nonlocal n
            n += i
            return n

        a[i] = count() + count()
    return a


def with_defaults(a):
    for i in range(len(a)):
        f = lambda x, k=i: x + k  # noqa: E731
        a[i] = f(a[i])
    return a


def handed_on(a):
    for i in range(len(a)):
        a[i] = twice(lambda x: x * 1.5 + i, a[i])  # noqa: B023
    return a


def twice(f, x):
    return f(f(x))


def of_an_outer_function(a):
    factor = 3.0

    def work(b):
        for i in range(len(b)):
            f = lambda x: x * factor - i  # noqa: B023, E731
            b[i] = f(b[i])
        return b

    return work(a)


LOCAL = [bisection, late_binding, two_functions, without_free_variables, handed_on]


@pytest.mark.parametrize("f", LOCAL, ids=lambda f: f.__name__)
def test_native(f):
    check(f, RNG.random(130) * 3 + 2)


@pytest.mark.parametrize(
    "f",
    [used_behind_the_loop, carried, changes_the_cell, with_defaults, of_an_outer_function],
    ids=lambda f: f.__name__,
)
def test_values(f):
    check(f, RNG.random(130), native=None)


def divides(a):
    for i in range(len(a)):
        f = lambda x: 1 / (x - i)  # noqa: B023, E731
        a[i] += 1
        a[i] = f(70 if i == 70 else -5)
    return a


def reads_before(a):
    for i in range(len(a)):
        f = lambda x: x + later  # noqa: B023, E731, F821
        if i > 100:
            later = 1.0
        a[i] = f(a[i])
    return a


@pytest.mark.parametrize("f", [divides, reads_before], ids=lambda f: f.__name__)
def test_errors_are_pythons(f):
    check(f, np.zeros(130), native=None)


def big_product(a, b):
    out = [0] * (len(a) + len(b))
    for i in range(len(a)):
        carry = 0
        for j in range(len(b)):
            t = out[i + j] + int(a[i]) * int(b[j]) + carry
            out[i + j] = t % 10
            carry = t // 10
        out[i + len(b)] += carry
    return out


def counted(a):
    bins = [0.5] * 500
    for v in a:
        bins[int(v) % 500] += 1
    bins.append(7.0)
    return bins


def fills(a):
    seen = [False] * 100
    for v in a:
        seen[int(v) % 100] = True
    return seen, len(seen)


def ladder(a):
    steps = [0, 1] * 50
    for v in a:
        steps[int(v) % 100] += 1
    return steps


@pytest.mark.parametrize("n", [3, 60, 200])
def test_lists_of_one_number(n):
    check(big_product, RNG.integers(0, 10, n), RNG.integers(0, 10, 70))


@pytest.mark.parametrize("f", [counted, fills], ids=lambda f: f.__name__)
def test_long_lists_are_native(f):
    check(f, RNG.integers(0, 10_000, 700))


def test_long_lists_of_several_numbers():
    check(ladder, RNG.integers(0, 10_000, 700), native=False)
