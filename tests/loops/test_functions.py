"""Loops that call Python functions, are left by return, or raise."""

import math
import types

import numpy as np
import pytest

import flambeau as torch
from flambeau.testing.loops import check, run

R = np.random.RandomState(1)
N = 300
OFFSET = 3.0


def piecewise(x, y=2.0, *, z=1):
    if x > 0.5:
        return x * y + OFFSET
    return math.sqrt(abs(x)) - z


def distance(p, i, j):
    s = 0.0
    for k in range(p.shape[1]):
        d = p[i, k] - p[j, k]
        s += d * d
    return math.sqrt(s)


def ends(x):
    return x + 1, x * 2


def row(a, i):
    return a[i] * 2 + 1


def accumulate(out, i, v):
    out[i] += v


def collatz(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def twice(x):
    return outer_once(outer_once(x))


def outer_once(x):
    return piecewise(x) * 0.5


def checked(x, limit):
    if x > limit:
        raise ValueError(f"{x:.3f} is over {limit}")
    return x


def calls(a, p):
    out = np.zeros(len(a))
    t = 0.0
    for i in range(len(a)):
        out[i] = piecewise(a[i]) + piecewise(a[i], z=2) * piecewise(piecewise(a[i]), y=3.0)
        t += distance(p, i % len(p), (i + 1) % len(p))
    return out, t


def tuples_and_rows(a):
    s, c = np.zeros(a.shape[1]), 0.0
    for i in range(a.shape[0]):
        p, q = ends(i)
        s += row(a, i) * p
        c += q
    return s, c


def writes(a, out):
    for i in range(len(a)):
        accumulate(out, i % 7, a[i])
    return out


def counts(n, a):
    most = 0
    for i in range(1, n):
        most = max(most, collatz(i))
    a[0] = most
    return most


def chains(a):
    s = 0.0
    for i in range(len(a)):
        s += twice(a[i])
    return s


def raises(a, limit):
    s = 0.0
    for i in range(len(a)):
        s += checked(a[i], limit)
        a[i] = s
    return s


def raises_itself(a, limit):
    for i in range(len(a)):
        if a[i] > limit:
            raise IndexError(f"at {i}")
        a[i] = -a[i]
    return a


def first_over(a, x):
    for i in range(len(a)):
        if a[i] > x:
            return i
    return -1


def first_over_while(a, x):
    i = 0
    while True:
        if a[i] > x:
            return i, a[i]
        i += 1
        if i == len(a):
            return -1, 0.0


def scaled(a, lim):
    for i in range(len(a)):
        if a[i] < lim:
            return a
        a[i] *= 2
    return a


def nothing(a, lim):
    for i in range(len(a)):
        if a[i] < lim:
            return
        a[i] *= 2
    a[0] = 7


def two_loops(a, lim):
    s = 0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            if a[i, j] > lim:
                return s
            s += 1
    for i in range(100):
        s += i
    return s + 1


def number_or_float(a, lim):
    for i in range(len(a)):
        if a[i] > lim:
            return a[i]
    return 0.5


def finds_often(a, b):
    c = 0
    for k in range(len(b)):
        c += first_over(a, b[k])
    return c


def primes(a):
    """Functions that return from inside a loop, called in a loop."""
    c = 0
    for n in range(2, len(a)):
        if prime(n):
            c += 1
            a[n] = 1.0
    return c


def prime(n):
    k = 2
    while k * k <= n:
        if n % k == 0:
            return False
        k += 1
    return True


def clamp(x):
    return (lambda v: min(v, 0.5))(x)


A, P = R.rand(N), R.rand(20, 3)


@pytest.mark.parametrize(
    "f, args",
    [
        (calls, (A, P)),
        (tuples_and_rows, (R.rand(40, 20),)),
        (writes, (A, np.zeros(7))),
        (counts, (3000, A)),
        (chains, (A,)),
        (raises, (A, 2.0)),
        (raises, (A, 0.9)),
        (raises_itself, (A, 2.0)),
        (raises_itself, (A, 0.9)),
        (first_over, (A, 0.99)),
        (first_over, (A, 2.0)),
        (first_over_while, (A, 0.99)),
        (first_over_while, (A, 2.0)),
        (scaled, (A, 0.01)),
        (scaled, (A, -1.0)),
        (nothing, (A, 0.01)),
        (nothing, (A, -1.0)),
        (two_loops, (R.rand(20, 30), 0.999)),
        (two_loops, (R.rand(20, 30), 2.0)),
        (number_or_float, (A, 0.99)),
        (number_or_float, (A, 2.0)),
        (finds_often, (A, R.rand(50))),
        (primes, (np.zeros(3000),)),
    ],
    ids=lambda v: getattr(v, "__name__", None),
)
def test_agrees(f, args):
    check(f, *args)


def test_what_is_called_may_change():
    g = types.FunctionType(piecewise.__code__, {"math": math, "OFFSET": 3.0, "abs": abs}, "g", (2.0,))
    g.__kwdefaults__ = {"z": 1}
    space = types.SimpleNamespace(g=g)

    def f(a):
        s = 0.0
        for i in range(len(a)):
            s += space.g(a[i])
        return s

    c = torch.compile(f)
    assert c(A) == pytest.approx(f(A))
    g.__defaults__ = (5.0,)
    assert c(A) == pytest.approx(f(A))
    g.__kwdefaults__ = {"z": 7}
    assert c(A) == pytest.approx(f(A))
    g.__globals__["OFFSET"] = -1.0
    assert c(A) == pytest.approx(f(A))
    g.__globals__["abs"] = lambda x: x + 1
    assert c(A) == pytest.approx(f(A))
    space.g = lambda x: x * 3
    assert c(A) == pytest.approx(f(A))
    g.__code__ = (lambda x, y=0: x - y).__code__
    space.g = g
    assert c(A) == pytest.approx(f(A))


def factorial(n):
    return 1 if n < 2 else n * factorial(n - 1)


def recursive(a):
    for i in range(len(a)):
        a[i] = factorial(i % 10)
    return a


def generated(x):
    yield x


def from_generator(a):
    s = 0.0
    for i in range(len(a)):
        for v in generated(a[i]):
            s += v
    return s


@torch._dynamo.disable(reason="the test wants a break")
def disabled(x):
    return x + 1


def calls_disabled(a):
    s = 0.0
    for i in range(len(a)):
        s += disabled(a[i])
    return s


@pytest.mark.parametrize("f", [recursive, from_generator, calls_disabled], ids=lambda f: f.__name__)
def test_left_to_python(f):
    check(f, R.rand(25), native=None)


def wrong_arguments(a):
    for i in range(len(a)):
        if i == 250:
            piecewise(a[i], 1, 2, 3)
        a[i] = 0.0
    return a


def test_a_call_that_does_not_fit_is_pythons_error():
    want = run(wrong_arguments, A.copy())
    got_args = A.copy()
    assert run(torch.compile(wrong_arguments), got_args) == want
    assert want[0] is TypeError and not got_args[:250].any() and got_args[250]
