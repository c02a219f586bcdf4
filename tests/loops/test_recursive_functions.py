"""Recursive functions that are compiled themselves: native where they are about numbers and arrays, plain where they are about objects, and in
no case captured call by call for long."""

import copy
import types

import numpy as np
import pytest
from recursions import ackermann, flood, is_even

import flambeau as torch
from flambeau.dynamo.utils import counters
from flambeau.testing.loops import run, same

SEEDS = [np.random.default_rng(k) for k in range(3)]


def merge_sort(items):
    if len(items) <= 1:
        return items
    middle = len(items) // 2
    left, right = merge_sort(items[:middle]), merge_sort(items[middle:])
    out, i, j = [], 0, 0
    while i < len(left) and j < len(right):
        if left[i] <= right[j]:
            out.append(left[i])
            i += 1
        else:
            out.append(right[j])
            j += 1
    return out + left[i:] + right[j:]


def quicksort_of_a_list(items):
    if len(items) <= 1:
        return items
    pivot = items[len(items) // 2]
    small, large = [x for x in items if x < pivot], [x for x in items if x > pivot]
    return quicksort_of_a_list(small) + [x for x in items if x == pivot] + quicksort_of_a_list(large)


def quicksort(a, low, high):
    if low < high:
        pivot, i = a[high], low
        for j in range(low, high):
            if a[j] < pivot:
                a[i], a[j] = a[j], a[i]
                i += 1
        a[i], a[high] = a[high], a[i]
        quicksort(a, low, i - 1)
        quicksort(a, i + 1, high)


def quicksort_of_arrays(a):
    if a.size <= 1:
        return a
    pivot = a[a.size // 2]
    return np.concatenate([quicksort_of_arrays(a[a < pivot]), a[a == pivot], quicksort_of_arrays(a[a > pivot])])


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def hanoi(n, source, target, spare, moves):
    if n:
        hanoi(n - 1, source, spare, target, moves)
        moves.append((source, target))
        hanoi(n - 1, spare, target, source, moves)


def tree(depth):
    return None if depth == 0 else (tree(depth - 1), depth, tree(depth - 1))


def total(node):
    return 0 if node is None else node[1] + total(node[0]) + total(node[2])


def search(a, x, low, high):
    if low > high:
        return -1
    middle = (low + high) // 2
    if a[middle] == x:
        return middle
    return search(a, x, low, middle - 1) if a[middle] > x else search(a, x, middle + 1, high)


def extremes(a, low, high):
    if high - low == 1:
        return a[low], a[low]
    middle = (low + high) // 2
    (x, y), (z, w) = extremes(a, low, middle), extremes(a, middle, high)
    return min(x, z), max(y, w)


def orbit(z, n):
    return z if n == 0 else orbit(z * z + 0.1j, n - 1) + z * 0.25


def permutations(items):
    if len(items) <= 1:
        return [items]
    return [[items[i], *p] for i in range(len(items)) for p in permutations(items[:i] + items[i + 1 :])]


def stepped(n, k=2, *, s=0):
    return s if n <= 0 else stepped(n - k, s=s + n)


def given_back(n, a):
    if n == 0:
        return a
    a[n % a.size] += n
    return given_back(n - 1, a)


def half_now_and_then(n):
    return 0 if n == 0 else half_now_and_then(n - 1) + (0.5 if n == 3 else 1)


def inner_functions(a, n):
    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    def halves(a, low, high):
        if low >= high:
            return 0
        middle = (low + high) // 2
        a[middle] += 1
        return 1 + halves(a, low, middle) + halves(a, middle + 1, high)

    return fib(n), halves(a, 0, len(a)), a


def called(a):
    quicksort(a, 0, len(a) - 1)
    return a * 2, fibonacci(12)


def factorial(n):
    return 1 if n == 0 else n * factorial(n - 1)


def endless(n):
    return endless(n + 1) + 1 if n >= 0 else 0


def divides(n):
    return 0 if n == -5 else 10 // n + divides(n - 1)


def beyond(a, n):
    return 0.0 if n == 10**6 else a[n] + beyond(a, n + 1)


def unbound(n):
    if n > 3:
        got = n
    rest = unbound(n - 1) if n > 0 else 0
    return got + rest


def tries(n):
    try:
        return 1 // n + tries(n - 1)
    except ZeroDivisionError:
        return -1


def numbers(n):
    return [tuple(map(int, rng.integers(0, 1000, n))) for rng in SEEDS]


def lists(n):
    return [(list(row),) for row in numbers(n)]


def arrays(n, *more):
    return [(rng.random(n), *more) for rng in SEEDS]


# Function, arguments of some calls, whether it is native, the most frames that are captured.
PROGRAMS = [
    (merge_sort, lists(200), False, 1),
    (quicksort_of_a_list, lists(200), False, 1),
    (quicksort, arrays(60, 0, 59), True, 1),
    (quicksort_of_arrays, arrays(60), False, 24),
    (fibonacci, [(12,), (13,), (1,), (14,), (0,)], True, 4),
    (ackermann, [(2, 3), (2, 4), (2, 5)], True, 2),
    (hanoi, [(n, "a", "b", "c", []) for n in (5, 6, 7)], False, 1),
    (flood, [((rng.random((9, 9)) < 0.3).astype(int), 0, 0, 0, 2) for rng in SEEDS], True, 1),
    (is_even, [(10,), (51,), (300,)], True, 2),
    (total, [(tree(5),), (tree(6),), (tree(7),)], False, 1),
    (search, [(np.arange(100.0), x, 0, 99) for x in (3.0, 70.0, 200.0)], True, 2),
    (extremes, arrays(17, 0, 17), True, 1),
    (orbit, [(0.1 + 0.2j, 3), (0.3 - 0.2j, 5), (0.25j, 6)], True, 3),
    (permutations, [([1, 2, 3, 4],), ([4, 5, 6, 7],)], False, 1),
    (stepped, [(9,), (10,), (20, 3)], True, 3),
    (given_back, [(5, np.zeros(3)), (7, np.zeros(3)), (0, np.ones(2))], True, 3),
    (half_now_and_then, [(2,), (3,), (5,)], True, 2),
    (inner_functions, [(np.zeros(9), 9), (np.zeros(12), 11)], True, 2),
    (called, arrays(40), True, 1),
    (factorial, [(5,), (10,), (30,), (12,)], True, 10),
    (endless, [(0,), (1,), (2,)], True, 3),
    (divides, [(3,), (4,), (-1,)], True, 4),
    (beyond, [(np.arange(3.0), 0), (np.arange(4.0), 1)], True, 2),
    (unbound, [(6,), (7,)], None, 8),
    (tries, [(3,), (4,)], False, 8),
]


def outcome(f, args):
    """What a call gives. How deep a RecursionError lies is no part of it."""
    out = run(f, *args)
    return out if not isinstance(out, tuple) or out[0] is not RecursionError else RecursionError


def compare(compiled, plain, calls):
    for args in [*calls, *calls]:
        given = [copy.deepcopy(args) for _ in range(2)]
        got, want = outcome(compiled, given[0]), outcome(plain, given[1])
        same(got, want) if want is not RecursionError else None
        assert (got is RecursionError) == (want is RecursionError)
        same(given[0], given[1])


@pytest.mark.parametrize("f, calls, native, most", PROGRAMS, ids=lambda p: getattr(p, "__name__", ""))
def test_compiled_itself(f, calls, native, most):
    torch._dynamo.reset()
    before = counters["stats"]["native_loops"], counters["frames"]["total"]
    compare(torch.compile(f), f, calls)
    assert native is None or (counters["stats"]["native_loops"] > before[0]) == native
    assert counters["frames"]["total"] - before[1] <= most


@torch.compile
def decorated(n, a):
    return a.sum() if n == 0 else decorated(n - 1, a) + n


def test_a_decorated_function_calls_itself_natively():
    torch._dynamo.reset()
    plain = types.FunctionType(decorated._torchdynamo_orig_callable.__code__, dict(globals()))
    plain.__globals__["decorated"] = plain
    before = counters["stats"]["native_loops"]
    compare(decorated, plain, [(5, np.ones(3)), (6, np.arange(3.0)), (0, np.zeros(3))])
    assert counters["stats"]["native_loops"] > before


def doubled(x, n):
    return x if n == 0 else doubled(x, n - 1) * 2


def test_a_recursion_over_tensors_is_traced_whole():
    torch._dynamo.reset()
    f = torch.compile(doubled, fullgraph=True)
    assert torch.equal(f(torch.ones(3), 20), torch.ones(3) * 2**20)


def long_walk(x, items):
    if not items:
        return x * 0
    n = 0
    for _ in range(400):
        n += 1
    return long_walk(x, items[1:]) + n


def test_long_work_in_a_recursion_is_not_unrolled():
    """Its every step would be looked at again each time the frame is captured."""
    torch._dynamo.reset()
    assert torch.equal(torch.compile(long_walk)(torch.ones(2), [0] * 60), torch.full((2,), 24000.0))


def scaled(a, p):
    return a[a < p].sum() * p if p else a


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.complex128])
def test_numpy_numbers_that_vary_are_operands(kind):
    torch._dynamo.reset()
    before = counters["frames"]["total"]
    f = torch.compile(lambda a, p: (a * p + p, p, np.sqrt(p)), fullgraph=True)
    for k in range(5):
        p = kind(k + 0.5)
        same(f(np.arange(3.0), p), (np.arange(3.0) * p + p, p, np.sqrt(p)))
        assert f(np.arange(3.0), p)[1] is p
    assert counters["frames"]["total"] - before == 2
    g = torch.compile(scaled)
    for k in range(5):
        same(g(np.arange(3.0), np.float64(k)), scaled(np.arange(3.0), np.float64(k)))


def test_a_recursion_whose_argument_a_function_within_shares():
    def decorator(f=None, **options):
        options.setdefault("backend", "eager")
        return (lambda g: decorator(g, **options)) if f is None else torch.compile(f, **options)

    def outer(x):
        return decorator(lambda y: y * 3)(x) + 1

    f = decorator(outer)
    with torch._dynamo.config.patch(strict_capture=True):
        assert [f(torch.ones(1)).item() for _ in range(2)] == [4.0, 4.0]


def collatz(n, steps):
    if n == 1:
        return steps
    return collatz(n // 2 if n % 2 == 0 else 3 * n + 1, steps + 1)


def longest_collatz(m):
    best = (0, 0)
    for n in range(1, m):
        steps = collatz(n, 0)
        if steps > best[0]:
            best = (steps, n)
    return best


def test_loop_of_few_turns_over_a_recursion_is_native():
    torch._dynamo.reset()
    assert torch.compile(longest_collatz, fullgraph=True)(200) == longest_collatz(200) == (124, 171)


def power_along(a, n, axis):
    if n == 0:
        return np.sum(a, axis=axis)[0] * 1.0
    return a[0, 0] * power_along(a, n - 1, axis)


@pytest.mark.parametrize("n, axis", [(4, 0), (2, 2), (1, 1)])
def test_whole_numbers_of_an_inlined_recursion_are_operands_or_known(n, axis):
    a = np.arange(1.0, 28.0).reshape(3, 3, 3)[:, :, 0].copy() if axis < 2 else np.arange(1.0, 10.0).reshape(3, 3)

    def f(a):
        return a * power_along(a, n, min(axis, 1)), collatz(n + 5, n)

    torch._dynamo.reset()
    same(torch.compile(f)(a), f(a))


def remembered(n, memo):
    if n not in memo:
        memo[n] = n if n < 2 else remembered(n - 1, memo) + remembered(n - 2, memo)
    return memo[n]


def of_a_dict(n):
    memo = {}
    return remembered(n, memo), memo


def test_long_traces_in_which_nothing_is_captured_are_not_repeated():
    torch._dynamo.reset()
    before = counters["frames"]["total"]
    f = torch.compile(of_a_dict)
    for _ in range(10):
        assert f(60) == of_a_dict(60)
    assert counters["frames"]["total"] - before <= 4
