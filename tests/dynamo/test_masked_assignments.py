"""``array[mask] *= number`` under capture: one graph, what NumPy gives and raises."""

import copy
import operator

import numpy as np
import pytest

import flambeau as torch

A = np.random.default_rng(0).standard_normal(20)
M = A > 0.3
I = np.arange(20)  # noqa: E741
READ_ONLY = A.copy()
READ_ONLY.flags.writeable = False


def multiplied(a, m, k):
    a[m] *= k
    return a


def divided(a, m, k):
    a[m] /= k
    return a


def united(a, m, k):
    a[m] |= k
    return a


def floored(a, m, k):  # not of the operators that have a value for every element
    a[m] //= k
    return a


def twice(a, m, k):
    held = {"a": a[1:]}
    held["a"][m[1:]] += k
    a[~m] -= k
    return a


def own(a, m, k):
    m[m] &= k
    return m


CALLS = {
    "floats": (multiplied, A, M, 2, True),
    "float32": (multiplied, A.astype(np.float32), M, 2.5, True),
    "by zero": (divided, A, M, 0.0, True),
    "a NumPy number": (multiplied, A, M, np.float32(3), True),
    "nothing chosen": (multiplied, A, np.zeros(20, bool), np.inf, True),
    "integers": (united, I, M, 3, True),
    "complex": (multiplied, A * 1j, M, 2j, True),
    "two dimensions, transposed": (multiplied, A.reshape(4, 5).T, M.reshape(5, 4), 2, True),
    "views": (twice, A, M, 2, True),
    "strides": (multiplied, A[::2], M[::2], 2, True),
    "the mask itself": (own, A, M, False, True),
    "a mask of rows": (multiplied, A.reshape(4, 5), M[:4], 2, False),
    "as many numbers as are chosen": (multiplied, A, M, np.arange(M.sum()), False),
    "too many numbers": (multiplied, A, M, np.arange(3), False),
    "another operator": (floored, I, M, 2, False),
    "places": (multiplied, A, I[:3], 2, True),
    "a float into integers": (multiplied, I, M, 2.5, False),
    "a complex number into floats": (multiplied, A, M, 2j, False),
    "a number out of range": (multiplied, I.astype(np.uint8), M, 300, False),
    "read-only": (multiplied, READ_ONLY, M, 2, False),
    "no number": (multiplied, A, M, None, False),
    "a mask of another size": (multiplied, A, M[:3], 2, False),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", CALLS)
def test_as_numpy(name):
    fn, a, m, k, one_graph = CALLS[name]
    outcomes = []
    for f in (fn, torch.compile(fn, fullgraph=one_graph)):
        args = [copy.deepcopy(a), m.copy(), k]
        args[0].flags.writeable = a.flags.writeable
        try:
            outcomes.append((f(*args), args))
        except Exception as e:
            outcomes.append(((type(e), str(e)), args))
    (want, theirs), (got, ours) = outcomes
    assert type(got) is type(want) and (want == got if isinstance(want, tuple) else want.dtype == got.dtype)
    for x, y in ((want, got), (theirs[0], ours[0]), (theirs[1], ours[1])):
        np.testing.assert_array_equal(x, y)


def test_of_any_size_in_one_graph():
    f = torch.compile(multiplied, dynamic=True, fullgraph=True)
    for n in (5, 9, 20):
        x, y = A[:n].copy(), A[:n].copy()
        np.testing.assert_array_equal(f(x, M[:n], 3.0), multiplied(y, M[:n], 3.0))
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("fn", [operator.iadd, operator.imul])
def test_read_outside_of_a_statement(fn):
    def f(a, m):
        part = a[m]
        part = fn(part, 2)
        return part, a

    x = A.copy()
    part, a = torch.compile(f)(x, M)
    np.testing.assert_array_equal(part, fn(A[M], 2))
    np.testing.assert_array_equal(a, A)
