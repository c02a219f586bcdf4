"""Native loops under vmap: one call of the kernel an example, the plain function beside it."""

import numpy as np
import pytest

import flambeau as torch

func = torch.func
X = np.random.default_rng(2).random((7, 60)) + 0.1


def filtered(x):
    a = x * 1.0
    for i in range(1, len(a)):
        a[i] = a[i - 1] * 0.9 + a[i]
    return a


def total(x):
    s = 0.0
    for i in range(len(x)):
        if x[i] > 0.5:
            s += x[i] ** 2
    return s


def both(x, w):
    a = x.copy()
    for i in range(1, len(a)):
        a[i] += w[i] * a[i - 1]
    return a, a[-1] * w[0]


def steps(x):
    y = x * 1.0
    for _ in range(300):
        if y[0] > 0.05:
            y *= 0.97 - 0.1 * y
    return y


@pytest.mark.parametrize("fn", [filtered, total])
def test_each_example(fn):
    want = np.stack([fn(x) for x in X])
    np.testing.assert_allclose(func.vmap(fn)(X), want, rtol=1e-14)
    np.testing.assert_allclose(func.vmap(fn, in_dims=1)(np.ascontiguousarray(X.T)), want, rtol=1e-14)
    np.testing.assert_allclose(func.vmap(fn)(X[:, ::2]), np.stack([fn(x) for x in X[:, ::2]]), rtol=1e-14)


def test_some_operands_are_mapped():
    w = X[3]
    want = [np.stack(part) for part in zip(*[both(x, w) for x in X])]
    for got, part in zip(func.vmap(both, in_dims=(0, None))(X, w), want):
        np.testing.assert_allclose(got, part, rtol=1e-14)


def test_operands_stay_and_turns_differ():
    before = X.copy()
    y = func.vmap(steps)(X)
    np.testing.assert_array_equal(X, before)
    np.testing.assert_allclose(y, np.stack([steps(x) for x in X]), rtol=1e-13)


def test_derivatives():
    want = np.stack([func.grad(total)(x) for x in X])
    np.testing.assert_allclose(func.vmap(func.grad(total))(X), want, rtol=1e-13)
    np.testing.assert_allclose(func.grad(lambda x: func.vmap(total)(x).sum())(X), want, rtol=1e-13)
    nested = func.vmap(func.vmap(filtered))(X.reshape(7, 3, 20))
    np.testing.assert_allclose(nested, np.stack([[filtered(y) for y in x] for x in X.reshape(7, 3, 20)]), rtol=1e-13)


def looked_up(x, table):
    s = 0.0
    for i in range(len(x)):
        s += table[int(x[i] * 10)]
    return s


def test_errors():
    table = np.arange(11.0)
    np.testing.assert_allclose(func.vmap(looked_up, in_dims=(0, None))(X, table), [looked_up(x, table) for x in X])
    beyond = X.copy()
    beyond[4, 30] = 5.0
    before = beyond.copy()
    with pytest.raises(
        (IndexError, RuntimeError)
    ):  # where the function can't run plainly on mapped arrays, that is told
        func.vmap(looked_up, in_dims=(0, None))(beyond, table)
    np.testing.assert_array_equal(beyond, before)
