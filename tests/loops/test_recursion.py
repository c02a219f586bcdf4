"""Recursive functions that native loops call, beside plain Python: results, effects, and Python's errors."""

import sys

import numpy as np
import pytest
from recursions import ackermann, flood, is_even

import flambeau as torch
from flambeau.testing.loops import check

RNG = np.random.default_rng(7)


def fib(n):
    if n < 2:
        return n
    return fib(n - 1) + fib(n - 2)


def sum_of_fibs(a):
    t = 0
    for i in range(len(a)):
        t += fib(i)
        a[i] += t
    return t, a


def ackermanns(a):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            a[i, j] = ackermann(i, j)
    return a


def gcd(a, b):
    return a if b == 0 else gcd(b, a % b)


def gcds(a, b):
    out = np.zeros(len(a), np.int64)
    for i in range(len(a)):
        out[i] = gcd(int(a[i]), int(b[i]))
    return out


def quicksort(a, low, high):
    if low >= high:
        return
    pivot, i = a[(low + high) // 2], low
    j = high
    while i <= j:
        while a[i] < pivot:
            i += 1
        while a[j] > pivot:
            j -= 1
        if i <= j:
            a[i], a[j] = a[j], a[i]
            i += 1
            j -= 1
    quicksort(a, low, j)
    quicksort(a, i, high)


def sorted_rows(a):
    for k in range(len(a)):
        quicksort(a[k], 0, a.shape[1] - 1)
    return a


def hanoi(n, source, target, spare, pegs, moves):
    if n == 0:
        return moves
    moves = hanoi(n - 1, source, spare, target, pegs, moves)
    pegs[source] -= 1
    pegs[target] += 1
    return hanoi(n - 1, spare, target, source, pegs, moves + 1)


def towers(pegs):
    out = np.zeros(9, np.int64)
    for n in range(9):
        out[n] = hanoi(n, 0, 2, 1, pegs, 0)
    return out, pegs


def wave(x):
    return np.sin(3 * x) * np.exp(-x)


def simpson(f, a, b, fa, fm, fb, whole, tolerance):
    m = (a + b) / 2
    left, right = (a + m) / 2, (m + b) / 2
    fl, fr = f(left), f(right)
    first, second = (m - a) / 6 * (fa + 4 * fl + fm), (b - m) / 6 * (fm + 4 * fr + fb)
    if abs(first + second - whole) < 15 * tolerance:
        return first + second + (first + second - whole) / 15
    return simpson(f, a, m, fa, fl, fm, first, tolerance / 2) + simpson(f, m, b, fm, fr, fb, second, tolerance / 2)


def integrals(ends):
    out = np.zeros_like(ends)
    for i in range(len(ends)):
        b = ends[i]
        fa, fm, fb = wave(0.0), wave(b / 2), wave(b)
        out[i] = simpson(wave, 0.0, b, fa, fm, fb, b / 6 * (fa + 4 * fm + fb), 1e-9)
    return out


def parities(a):
    out = np.zeros(len(a), bool)
    for i in range(len(a)):
        out[i] = is_even(int(a[i]))
    return out


def place(row, n, columns):
    if row == n:
        return 1
    count = 0
    for c in range(n):
        free = True
        for r in range(row):
            if columns[r] == c or abs(columns[r] - c) == row - r:
                free = False
                break
        if free:
            columns[row] = c
            count += place(row + 1, n, columns)
    return count


def queens(columns):
    out = np.zeros(6, np.int64)
    for n in range(1, 7):
        out[n - 1] = place(0, n, columns)
    return out, columns


def regions(grid):
    sizes = np.zeros(grid.size, np.int64)
    n = 0
    for i in range(grid.shape[0]):
        for j in range(grid.shape[1]):
            if grid[i, j] == 0:
                sizes[n] = flood(grid, i, j, 0, n + 2)
                n += 1
    return n, sizes, grid


def merge_sort(a, scratch, low, high):
    if high - low < 2:
        return
    middle = (low + high) // 2
    merge_sort(a, scratch, low, middle)
    merge_sort(a, scratch, middle, high)
    i, j = low, middle
    for k in range(low, high):
        if j >= high or (i < middle and a[i] <= a[j]):
            scratch[k] = a[i]
            i += 1
        else:
            scratch[k] = a[j]
            j += 1
    a[low:high] = scratch[low:high]


def merged(a):
    scratch = np.empty(a.shape[1])
    for row in a:
        merge_sort(row, scratch, 0, a.shape[1])
    return a


def bounds_of(a, low, high):
    if high - low == 1:
        return a[low], a[low]
    middle = (low + high) // 2
    least, most = bounds_of(a, low, middle)
    other, another = bounds_of(a, middle, high)
    return min(least, other), max(most, another)


def extremes(a):
    out = np.zeros((len(a), 2))
    for i in range(len(a)):
        out[i] = bounds_of(a[i], 0, a.shape[1])
    return out


def walk(n, x):
    if n == 0:
        return 0
    return walk(n - 1, x) + (x if n % 2 else 1)


def mixed_numbers(a):
    for i in range(len(a)):
        a[i] = walk(i, 0.5) + walk(i, 2)
    return a


def visits(n, out):
    if n > 0:
        visits(n - 1, out)
        out.append(n)
        visits(n - 2, out)


def listed(a):
    out = []
    for i in range(len(a)):
        visits(int(a[i]), out)
        a[i] = len(out)
    return a, out


def inner_calls(n, m):
    return n if n < 2 else inner_calls(n - 1, m) + fib(min(n, m))


def nested_recursions(a):
    for i in range(len(a)):
        a[i] = inner_calls(i, 6)
    return a


def subsets(weights, k, room):
    if room < 0:
        return -1000
    if k == len(weights):
        return 0
    with_it = weights[k] + subsets(weights, k + 1, room - weights[k])
    without = subsets(weights, k + 1, room)
    return with_it if with_it > without else without


def knapsacks(weights, rooms):
    out = np.zeros(len(rooms), np.int64)
    for i in range(len(rooms)):
        out[i] = subsets(weights, 0, rooms[i])
    return out


def parallel_heights(n):
    out = np.zeros(n)
    for i in range(n):
        out[i] = fib(i % 9) * 0.5
    return out


PROGRAMS = [
    (sum_of_fibs, lambda: (np.zeros(14),)),
    (ackermanns, lambda: (np.zeros((3, 6), np.int64),)),
    (gcds, lambda: (RNG.integers(0, 10**9, 40), RNG.integers(1, 10**9, 40))),
    (sorted_rows, lambda: (RNG.random((5, 60)),)),
    (sorted_rows, lambda: (RNG.integers(0, 5, (4, 40)),)),
    (towers, lambda: (np.array([40, 0, 0]),)),
    (integrals, lambda: (RNG.random(20) * 4,)),
    (parities, lambda: (RNG.integers(0, 60, 30),)),
    (queens, lambda: (np.zeros(8, np.int64),)),
    (regions, lambda: (RNG.integers(0, 2, (9, 11)),)),
    (merged, lambda: (RNG.random((4, 33)),)),
    (extremes, lambda: (RNG.random((30, 17)),)),
    (mixed_numbers, lambda: (np.zeros(12),)),
    (listed, lambda: (np.arange(8),)),
    (nested_recursions, lambda: (np.zeros(10, np.int64),)),
    (knapsacks, lambda: (RNG.integers(1, 30, 9), RNG.integers(5, 90, 12))),
    (parallel_heights, lambda: (400,)),
]


@pytest.mark.parametrize("f, arguments", PROGRAMS, ids=lambda p: getattr(p, "__name__", ""))
def test_programs(f, arguments):
    check(f, *arguments())


def endless(n):
    return 1 + endless(n + 1)


def falls_for_ever(a):
    for i in range(len(a)):
        a[i] += 1
        if i == 30:
            a[i] = endless(0)
    return a


def divides(n):
    return 1 // (n - 3) + divides(n - 1)


def divided(a):
    for i in range(len(a)):
        a[i] += 1
        if i == 40:
            a[i] = divides(i)
    return a


def reads_beyond(a, k):
    return a[k] + reads_beyond(a, k + 7)


def beyond(a):
    for i in range(len(a)):
        a[i] += reads_beyond(a, i)
    return a


def unbound(n):
    if n > 3:
        got = n
    rest = unbound(n - 1) if n > 0 else 0
    return got + rest


def reads_what_has_no_value(a):
    for i in range(len(a)):
        a[i] = unbound(i)
    return a


def grows(n):
    return 1 if n == 0 else 3 * grows(n - 1)


def grown(a):
    for i in range(len(a)):
        a[i] = grows(i) % 1000
    return a


@pytest.mark.parametrize(
    "f", [falls_for_ever, divided, beyond, reads_what_has_no_value, grown], ids=lambda f: f.__name__
)
def test_errors_are_pythons(f):
    """Numbers of more than 64 bits too: they are no errors, and are Python's."""
    check(f, np.arange(60), native=None)


def chain(n):
    return 0 if n == 0 else 1 + chain(n - 1)


def chains(a):
    for i in range(len(a)):
        a[i] = chain(int(a[i]))
    return a


@pytest.mark.parametrize("limit", [400, 20_000])
def test_deep_recursion(limit):
    """As deep as Python goes: beyond that Python's RecursionError, or its result where it allows more than a native loop does."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, 1000))
    try:
        check(chains, np.full(30, 700))
        # Since CPython 3.12 a frame that a hook looks at counts as one of C, of which there may be fewer.
        check(chains, np.full(30, 6000 if limit > 6000 and sys.version_info < (3, 12) else 3000))
    finally:
        sys.setrecursionlimit(before)


def test_explain_says_that_it_is_native():
    assert "native" in str(torch._dynamo.explain(sum_of_fibs)(np.zeros(14)))


def kept_array(n):
    made = np.zeros(3)
    if n > 0:
        made += kept_array(n - 1)
    made[n % 3] += n
    return made


def arrays_of_its_own(a):
    for i in range(len(a)):
        a[i] = kept_array(i).sum()
    return a


def test_arrays_made_in_a_recursion_are_pythons():
    check(arrays_of_its_own, np.zeros(8), native=False)


def digits(n):
    return "".join(chr(n % 85 + 33)) + digits(n // 85) if n > 0 else ""


def merged(a, out=None):
    out = out or []
    if not a:
        return out
    out.append(a.pop())
    merged(a, out)
    return out


@pytest.mark.parametrize("f, make", [(digits, lambda: 100_000), (merged, lambda: [3, 1, 2])])
def test_recursions_that_no_loop_has_a_place_for_stay_python(f, make):
    with torch._dynamo.config.patch(strict_capture=True):
        assert torch.compile(f, backend="eager")(make()) == f(make())
