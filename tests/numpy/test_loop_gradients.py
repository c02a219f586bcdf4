"""Derivatives through loops that stay loops (loops/gradients/tape), beside finite differences, and through SciPy's functions."""

import math

import numpy as np
import pytest
import scipy.linalg
import scipy.special

import flambeau as torch
from flambeau.dynamo.utils import counters

func = torch.func
RNG = np.random.default_rng(7)
X = RNG.random(300) + 0.2
M = RNG.random((20, 20)) + 0.1
PLACES = RNG.integers(0, 300, 400)


def recurrence(x):
    y = x.copy()
    for i in range(1, len(x)):
        y[i] = y[i - 1] * np.sin(x[i]) + x[i]
    return np.sum(y**2)


def branches(x):
    s = 0.0
    for i in range(len(x)):
        if x[i] > 0.6:
            s += x[i] ** 3
        elif x[i] > 0.4:
            continue
        else:
            s -= np.exp(x[i])
    return s


def left_early(x):
    s, p = 0.0, 1.0
    for v in x:
        p = p * v
        if p < 1e-30:
            break
        s += np.log1p(p) / (1.0 + v)
    return s * x[0]


def until_small(x):
    y = x.copy()
    n = 0
    while np.abs(y).max() > 0.05 and n < 500:
        y *= 0.99 - 0.01 * y
        n += 1
    return np.sum(y * x)


def by_places(x):
    out = np.zeros(300)
    for k in range(400):
        out[PLACES[k]] += x[k % 300] * np.sqrt(x[PLACES[k]])
    return np.sum(out * out)


def every_function(x):
    s = 0.0
    for i in range(300):
        v = x[i] * 0.5
        s += (
            np.sin(v) * np.cos(v) + np.tan(v) - np.exp(v) / np.log(v + 2) + np.tanh(v) * np.sqrt(v) + np.arctan2(v, 2.0)
        )
        s += (
            np.log2(v + 1)
            - np.log10(v + 1)
            + np.expm1(v) * np.exp2(v)
            + np.arcsin(v * 0.5)
            - np.arccos(v * 0.5)
            + np.arctan(v)
        )
        s += (
            np.sinh(v) * np.cosh(v)
            + abs(v - 0.3)
            + np.hypot(v, 1.5)
            + v**2.5
            + 1.5**v
            + np.maximum(v, 0.4) * np.minimum(v, 0.2)
        )
    return s


def remainders(x):
    s = 0.0
    for i in range(300):
        s += (x[i] % 0.07) * (x[i] // 0.3) + np.floor(x[i] * 9) * x[i] + math.sin(x[i]) * math.sqrt(x[i])
    return s


def with_temporaries(m):
    a = m.copy()
    for k in range(120):
        r = a[k % 20] * 0.5 + m[:, k % 20]
        a[(k + 1) % 20] = r * 0.3 + np.cos(a[(k + 2) % 20])
    return np.sum(a * m)


def product_by_loops(m):
    out = np.zeros((20, 20))
    for i in range(20):
        for j in range(20):
            t = 0.0
            for k in range(20):
                t += m[i, k] * m[k, j]
            out[i, j] = t
    return np.sum(np.sin(out))


def stencil(m):
    a = m.copy()
    for _ in range(200):
        a[1:-1, 1:-1] = 0.25 * (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:])
    return np.sum(a * a)


def elimination(m):
    a = m + 20 * np.eye(20)
    for i in range(20):
        for j in range(i + 1, 20):
            f = a[j, i] / a[i, i]
            for k in range(i, 20):
                a[j, k] -= f * a[i, k]
    return np.sum(np.log(np.abs(np.diagonal(a))))


def step(state, force, h):
    return state + h * (force - state * state)


def of_a_function(x):
    s = np.zeros(3)
    for i in range(300):
        for k in range(3):
            s[k] = step(s[k], x[(i + k) % 300], 0.05)
    return s[0] * s[1] + s[2]


def reductions_inside(m):
    s = 0.0
    for i in range(20):
        for _ in range(20):
            s += np.sum(m[i] * m[:, i]) * m[i, i] + m[i].max() - np.mean(m[i])
    return s


def selected(x):
    y = np.zeros(300)
    for i in range(300):
        y[i] = np.where(x[i] > 0.7, 1.0 / (x[i] - 0.1), x[i])
    return y.sum()


LOOPS = [
    recurrence, branches, left_early, until_small, by_places, every_function, remainders, with_temporaries, product_by_loops, stencil, elimination,
    of_a_function, reductions_inside, selected,
]  # fmt: skip
MATRICES = (with_temporaries, product_by_loops, stencil, elimination, reductions_inside)


def along(fn, x, d, h=1e-6):
    return (fn(x + h * d) - fn(x - h * d)) / (2 * h)


@pytest.mark.parametrize("fn", LOOPS)
def test_native_loops(fn):
    x = M if fn in MATRICES else X
    before, native = x.copy(), counters["stats"]["native_loops"]
    got = func.grad(fn)(x)
    if fn is not until_small:  # behind the break at its condition the array has a history, and is written where it lies
        assert counters["stats"]["native_loops"] > native, "the loop is unrolled"
    assert isinstance(got, np.ndarray) and got.dtype == np.float64 and np.array_equal(x, before)
    for seed in range(3):
        d = np.random.default_rng(seed).standard_normal(x.shape)
        np.testing.assert_allclose(np.sum(got * d), along(fn, x, d), rtol=2e-5, atol=1e-7)


def test_float32():
    got = func.grad(recurrence)(X.astype(np.float32))
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, func.grad(recurrence)(X.astype(np.float32).astype(np.float64)), rtol=2e-4)


def vector(x):
    y = x.copy()
    for i in range(1, len(x)):
        y[i] = y[i - 1] * np.sin(x[i]) + x[i]
    return y


def test_transforms():
    x, directions = X[:120], np.random.default_rng(1).standard_normal((2, 120))
    jacobian = func.jacrev(vector)(x)
    for d in directions:
        np.testing.assert_allclose(jacobian @ d, along(vector, x, d), rtol=1e-5, atol=1e-8)
    out, pull = func.vjp(vector, x)
    np.testing.assert_array_equal(out, vector(x))
    np.testing.assert_allclose(pull(directions[0])[0], directions[0] @ jacobian)
    batch = np.stack([x, x[::-1]])
    func.grad(recurrence)(X)  # another size before: sizes are symbols from here on
    np.testing.assert_array_equal(func.vmap(vector)(batch), np.stack([vector(b) for b in batch]))
    np.testing.assert_allclose(
        func.vmap(func.grad(recurrence))(batch), np.stack([func.grad(recurrence)(b) for b in batch])
    )


@pytest.mark.parametrize("fn", LOOPS)
def test_second_derivatives(fn):
    """Along a direction, forward over reverse and reverse over reverse, beside differences of gradients."""
    x = M if fn in MATRICES else X
    d = np.random.default_rng(5).standard_normal(x.shape)
    _, forward = func.jvp(func.grad(fn), (x,), (d,))
    want = along(func.grad(fn), x, d, 1e-5)
    scale = np.abs(want).max() + 1.0
    np.testing.assert_allclose(forward / scale, want / scale, rtol=1e-4, atol=1e-7)
    reverse = func.grad(lambda x: np.sum(func.grad(fn)(x) * d))(x)
    np.testing.assert_allclose(reverse / scale, want / scale, rtol=1e-4, atol=1e-7)


def test_hessians_and_higher_orders():
    x = X[:12]
    d = np.random.default_rng(2).standard_normal(12)
    rows = func.hessian(recurrence)(x)
    np.testing.assert_allclose(rows, rows.T, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(rows @ d, along(func.grad(recurrence), x, d, 1e-5), rtol=1e-5, atol=1e-6)

    def squared_slope(x):
        return np.sum(func.grad(recurrence)(x) ** 2)

    def second(x):
        return np.sum(func.grad(squared_slope)(x) * d)

    np.testing.assert_allclose(np.sum(func.grad(second)(x) * d), along(second, x, d, 1e-5), rtol=1e-5)


def test_tangents_and_their_derivatives():
    x, (d, e) = X[:12], np.random.default_rng(2).standard_normal((2, 12))
    out, tangent = func.jvp(vector, (x,), (d,))
    np.testing.assert_allclose(out, vector(x))
    np.testing.assert_allclose(tangent, along(vector, x, d), rtol=1e-6, atol=1e-8)

    def along_d(x):
        return func.jvp(vector, (x,), (d,))[1]

    want = along(along_d, x, e, 1e-5)
    # What comes out still has a history, as that of a transform of a jvp does.
    got = func.grad(lambda x: np.sum(along_d(x) * d))(x).view(np.ndarray)
    np.testing.assert_allclose(np.sum(got * e), np.sum(want.view(np.ndarray) * d), rtol=1e-5)
    twice = func.jvp(along_d, (x,), (e,))[1].view(np.ndarray)
    np.testing.assert_allclose(twice, want.view(np.ndarray), rtol=1e-5, atol=1e-8)


def test_second_derivatives_of_other_precisions_and_of_what_is_not_selected():
    got = func.hessian(recurrence)(X[:6].astype(np.float32))
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, func.hessian(recurrence)(X[:6].astype(np.float32).astype(float)), rtol=2e-3)

    def f(x):
        y = np.zeros(300)
        for i in range(300):
            y[i] = np.where(x[i] > 0.0, np.log(x[i]), x[i] * x[i])
        return y.sum()

    x = np.where(np.arange(300) % 7 == 0, -X, X)
    diagonal = func.grad(lambda x: np.sum(func.grad(f)(x)))(x)
    np.testing.assert_allclose(diagonal, np.where(x > 0, -1 / x**2, 2.0))


def test_a_long_loop_is_not_unrolled():
    def f(a):
        u = a.copy()
        for _ in range(200):
            for i in range(1, 6):
                u[i] = 0.9 * u[i] + 0.1 * np.sin(u[i - 1]) * u[i + 1]
        return np.sum(u * u)

    a, native = np.linspace(0.1, 0.9, 7), counters["stats"]["native_loops"]
    rows = func.hessian(f)(a)
    assert counters["stats"]["native_loops"] > native
    d = np.random.default_rng(2).standard_normal(7)
    np.testing.assert_allclose(rows @ d, along(func.grad(f), a, d, 1e-6), rtol=1e-4)


def test_cotangents_of_what_is_not_selected():
    def f(x):
        y = np.zeros(300)
        for i in range(300):
            y[i] = np.where(x[i] > 0.0, np.log(x[i]), x[i])
        return y.sum()

    x = X.copy()
    x[::7] = -1.0
    got = func.grad(f)(x)
    np.testing.assert_allclose(got, np.where(x > 0, 1 / x, 1.0))


def test_the_switch():
    with torch._dynamo.config.patch(native_loop_gradients=False):
        native = counters["stats"]["native_loops"]

        def f(x):
            s = 0.0
            for i in range(110):
                s += x[i] * x[i]
            return s

        np.testing.assert_allclose(func.grad(f)(X[:110]), 2 * X[:110])
        assert counters["stats"]["native_loops"] == native


S = RNG.random((4, 4)) + 4 * np.eye(4)
V = RNG.random(6) + 0.3


def solved(m):
    return np.sum(scipy.linalg.solve(m, m[0]) ** 2)


def factored(m):
    return np.sum(scipy.linalg.cholesky(m @ m.T) ** 3)


def factored_lower(m):
    return np.sum(np.sin(scipy.linalg.cholesky(m @ m.T, lower=True)))


def exponential(m):
    return np.sum(scipy.linalg.expm(m * 0.1) ** 2)


def singular(m):
    u, s, vh = np.linalg.svd(m)
    return np.sum(s**3) + scipy.linalg.svdvals(m)[0]


def inverse(m):
    return np.sum(scipy.linalg.inv(m) * m.T) + scipy.linalg.det(m)


def triangular(m):
    return np.sum(scipy.linalg.solve_triangular(np.tril(m), m[1], lower=True) ** 2)


def spectrum(m):
    return np.sum(scipy.linalg.eigvalsh(m + m.T) ** 3)


def partition(x):
    return (
        scipy.special.logsumexp(x * 2)
        + np.sum(scipy.special.softmax(x) ** 2)
        + np.sum(scipy.special.log_softmax(x) * x)
    )


def special(x):
    return np.sum(
        scipy.special.gammaln(x + 1)
        + scipy.special.erf(x) * scipy.special.expit(x)
        + scipy.special.digamma(x + 2)
        + scipy.special.xlogy(x, x)
    )


def more_special(x):
    return np.sum(
        scipy.special.i0(x)
        - scipy.special.ndtr(x) * scipy.special.entr(x)
        + scipy.special.logit(x / 2)
        + scipy.special.erfc(x)
    )


SCIPY = [
    (solved, S), (factored, S), (factored_lower, S), (exponential, S), (singular, S), (inverse, S), (triangular, S), (spectrum, S), (partition, V),
    (special, V), (more_special, V),
]  # fmt: skip


@pytest.mark.parametrize("fn, x", SCIPY)
def test_scipy(fn, x):
    got = func.grad(fn)(x)
    for seed in range(3):
        d = np.random.default_rng(seed).standard_normal(x.shape)
        np.testing.assert_allclose(np.sum(got * d), along(fn, x, d), rtol=1e-5, atol=1e-7)
