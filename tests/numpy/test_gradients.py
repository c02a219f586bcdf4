"""Derivatives of NumPy functions beside finite differences: through writes in place, loops, branches on data, graph breaks and solvers."""

import sys
from pathlib import Path

import numpy as np
import pytest

import flambeau as torch

func = torch.func
RNG = np.random.default_rng(3)
X = RNG.random(6) + 0.2
M = RNG.random((4, 4)) + 2 * np.eye(4)
BACKWARDS = np.arange(5, -1, -1)
PLACES = np.array([2, 0, 3, 1])


def recurrence(x):
    y = x.copy()
    for i in range(1, 6):
        y[i] = y[i - 1] * np.sin(x[i])
    return np.sum(y**2)


def written_over(x):
    y = x * 1.0
    for _ in range(3):
        y[:] = np.minimum(y * 1.5, y[BACKWARDS] + 0.1)
        y[1:] -= 0.5 * y[:-1]
    return (y * y).sum()


def swapped(x):
    y = x * 2
    y[0], y[5] = y[5] * y[0], y[0]
    return np.sum(y * x)


def by_data(x):
    s = 0.0
    for k in range(4):
        s += x[PLACES[k]] * x[PLACES[k] + 1]
    return np.sin(s)


def knapsack(x):
    w, best = np.array([1, 2, 3]), np.zeros(6)
    for i in range(3):
        k = w[i]
        best[k:] = np.maximum(best[k:], best[:-k] + x[i])
    return np.sin(best).sum()


def branches(x):
    s = 0.0
    for i in range(6):
        if x[i] > 0.6:
            s += x[i] ** 3
        else:
            s -= np.exp(x[i])
    return s


def until_still(x):
    y, steps = x.copy(), 0
    while np.abs(y).max() > 0.3 and steps < 20:
        y = 0.7 * y + 0.01 * y * y
        steps += 1
    return np.sum(y * x)


def printed(x):
    y = np.tanh(x)
    print(end="")
    z = y * y
    z[2] = y[1] * 3
    print(end="")
    return z.sum() * y.mean()


def masked(x):
    return np.where(x > 0.5, x**2, np.sqrt(x)).sum() + x[x > 0.7].sum()


def gathered(x):
    return (x[PLACES] * x[[1, 1, 2, 0]]).sum() + np.take(x, [0, 0, 5]).prod()


def softmax(x):
    e = np.exp(x - x.max())
    return np.sum((e / e.sum()) ** 2)


def logsumexp(x):
    return np.log(np.sum(np.exp(x))) + np.logaddexp(x[0], x[1])


def sorted_up(x):
    return np.dot(np.sort(x), np.arange(6.0))


def convolved(x):
    out = np.zeros(8)
    for k in range(3):
        out[k : k + 6] += x[k] * x
    return np.sum(out**2)


def stacked(x):
    return np.sum(np.sin(np.concatenate([x, x[BACKWARDS] * 2]).reshape(3, 4)) @ np.cos(np.stack([x[:4], x[2:]])).T)


def statistics(x):
    return np.var(x) + np.std(x) * np.mean(x) + np.cumsum(x)[3] + np.cumprod(x)[4] + np.diff(x).sum()


def polynomial(x):
    return x[0] * x[1] ** 3 + np.arctan2(x[2], x[3]) + np.hypot(x[4], x[5])


def monte_carlo(x):
    draws = np.linspace(0.1, 0.9, 7)
    return np.mean(np.maximum(np.outer(draws, x).sum(axis=1) - 1.0, 0.0))


def bisection_free(x):
    r = x[0]
    for _ in range(8):  # Newton for r**2 = x[1] + 1
        r = r - (r * r - x[1] - 1.0) / (2 * r)
    return r * x[2]


VECTORS = [
    recurrence, written_over, swapped, by_data, knapsack, branches, until_still, printed, masked, gathered, softmax, logsumexp, sorted_up,
    convolved, stacked, statistics, polynomial, monte_carlo, bisection_free,
]  # fmt: skip


def solved(m):
    return np.linalg.solve(m, np.arange(4.0)).sum()


def inverted(m):
    return np.sum(np.linalg.inv(m) ** 2)


def determinant(m):
    return np.linalg.det(m) + np.linalg.slogdet(m)[1]


def cholesky(m):
    return np.linalg.cholesky(m @ m.T + np.eye(4)).sum()


def spectrum(m):
    return np.sum(np.linalg.eigvalsh(m + m.T) ** 3)


def singular(m):
    return np.sum(np.linalg.svd(m, compute_uv=False) ** 1.5)


def norms(m):
    return np.linalg.norm(m) + np.linalg.norm(m[0]) + np.trace(m) + np.einsum("ij,jk->ik", m, m).sum()


def power_iteration(m):
    v = np.ones(4)
    for _ in range(6):
        v = m @ v
        v = v / np.sqrt(v @ v)
    return v @ (m @ v)


def elimination(m):
    a = m.copy()
    for i in range(4):
        for j in range(i + 1, 4):
            a[j] -= a[i] * (a[j, i] / a[i, i])
    return np.sum(np.log(np.abs(np.diagonal(a))))


def stencil(m):
    a = m.copy()
    for _ in range(3):
        a[1:-1, 1:-1] = 0.25 * (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:])
    return np.sum(a * a)


def transformed(m):
    return np.sum(np.abs(np.fft.fft(m[0])) ** 2) + np.kron(m[:2, :2], m[2:, 2:]).sum()


MATRICES = [
    solved, inverted, determinant, cholesky, spectrum, singular, norms, power_iteration, elimination, stencil, transformed,
]  # fmt: skip


def differences(fn, x, h=1e-6):
    out = np.zeros_like(x)
    for k in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[k] += h
        down[k] -= h
        out[k] = (fn(up) - fn(down)) / (2 * h)
    return out


@pytest.mark.parametrize("fn", VECTORS + MATRICES)
def test_gradient(fn):
    x = X if fn in VECTORS else M
    before = x.copy()
    got = func.grad(fn)(x)
    assert isinstance(got, np.ndarray) and got.dtype == np.float64 and np.array_equal(x, before)
    np.testing.assert_allclose(got, differences(fn, x), rtol=2e-4, atol=1e-6)


def vector(x):
    y = x[1:] * x[:-1]
    y[0] = np.sin(x[3])
    return y


def test_transforms():
    jacobian = func.jacrev(vector)(X)
    want = np.stack([differences(lambda x, k=k: vector(x)[k], X) for k in range(5)])
    np.testing.assert_allclose(jacobian, want, atol=1e-7)
    np.testing.assert_allclose(func.jacfwd(vector)(X), want, atol=1e-7)
    out, pull = func.vjp(vector, X)
    np.testing.assert_array_equal(out, vector(X))
    np.testing.assert_allclose(pull(np.ones(5))[0], want.sum(axis=0), atol=1e-7)
    out, tangent = func.jvp(vector, (X,), (np.ones(6),))
    np.testing.assert_allclose(tangent, want.sum(axis=1), atol=1e-7)
    hessian = func.hessian(recurrence)(X)
    rows = differences(lambda x: func.grad(recurrence)(x)[2], X, 1e-5)
    np.testing.assert_allclose(hessian[2], rows, rtol=1e-4, atol=1e-6)
    value = func.grad_and_value(recurrence)(X)[1]
    np.testing.assert_allclose(value, recurrence(X))
    batch = RNG.random((3, 6))
    np.testing.assert_allclose(func.vmap(vector)(batch), np.stack([vector(b) for b in batch]))
    np.testing.assert_allclose(func.vmap(func.grad(softmax))(batch), np.stack([func.grad(softmax)(b) for b in batch]))
    both = func.grad(lambda a, b: np.sum(a * np.sin(b)), argnums=(0, 1))(X, batch[0])
    np.testing.assert_allclose(both[0], np.sin(batch[0]))
    np.testing.assert_allclose(both[1], X * np.cos(batch[0]))


DIRECTION = np.linspace(-1.0, 2.0, 6)


@pytest.mark.parametrize("fn", [recurrence, softmax])
def test_gradient_that_is_used_as_an_array(fn):
    """What a gradient within a function of arrays gives is an array: it meets others, and has a gradient itself."""

    def slope(x):
        got = func.grad(fn)(x)
        assert isinstance(got, np.ndarray)
        return (got * DIRECTION).sum()

    hessian = func.hessian(fn)(X)
    np.testing.assert_allclose(slope(X), func.grad(fn)(X) @ DIRECTION)
    np.testing.assert_allclose(func.grad(slope)(X), hessian @ DIRECTION, rtol=1e-10)
    np.testing.assert_allclose(torch.compile(func.grad(slope))(X), hessian @ DIRECTION, rtol=1e-10)


@pytest.mark.parametrize("transform", [func.grad, func.vmap, func.grad_and_value])
def test_compiled_transforms_of_arrays(transform):
    """The transform itself is what is compiled."""
    fn, x = (softmax, X) if transform is not func.vmap else (np.sum, M)
    plain, fast = transform(fn)(x), torch.compile(transform(fn))
    for _ in range(2):
        made = fast(x)
        assert type(made) is type(plain)
        for a, b in zip(made, plain) if isinstance(plain, tuple) else [(made, plain)]:
            np.testing.assert_allclose(a, b, rtol=1e-12)


def test_parts_of_a_gradient_within_are_arrays():
    def parts(x, y):
        gradients, value = func.grad_and_value(lambda a, b: np.sum(a * np.sin(b)), argnums=(0, 1))(x, y)
        return (
            np.sum(gradients[0] * DIRECTION + np.concatenate([gradients[1][:3], DIRECTION[:3]])) + value * DIRECTION[0]
        )

    x, y = X, X[::-1].copy()
    want = differences(lambda x: np.sum(np.sin(y) * DIRECTION) + np.sum((x * np.cos(y))[:3]) - np.sum(x * np.sin(y)), x)
    np.testing.assert_allclose(func.grad(parts)(x, y), want, atol=1e-7)


@torch._dynamo.disable(reason="it stands for code that can't be captured")
def unknown(x):
    return np.interp(x, [0.0, 1.0], [0.0, 2.0])


def test_what_would_be_lost_is_an_error():
    with pytest.raises((RuntimeError, NotImplementedError), match="interp"):
        func.grad(lambda x: np.sum(unknown(x * 2)))(X)


sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))
from numpy_suite import PROGRAMS  # noqa: E402

SMOOTH = (
    "floyd_warshall pagerank lu cholesky gram_schmidt triangular_solve thomas conjugate_gradient adi nbody lennard_jones_by_pairs "
    "black_scholes asian_option spiking_network sobel fir_filter iir_filter covariance_by_columns k_means arc_distance pairwise_distances "
    "logistic_regression moving_average jacobi_1d jacobi_2d heat_3d fdtd_2d horizontal_diffusion gray_scott"
).split()


@pytest.mark.slow
@pytest.mark.parametrize("name", SMOOTH)
def test_programs(name):
    program = PROGRAMS[name]
    arguments = program.arguments(np.random.default_rng(5), program.small)
    which = [k for k, a in enumerate(arguments) if isinstance(a, np.ndarray) and a.dtype == np.float64]

    def loss(*xs):
        given = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
        for k, x in zip(which, xs):
            given[k] = x * 1.0
        out = program.function(*given)
        total = 0.0
        for part in out if isinstance(out, tuple) else () if out is None else (out,):
            total = total + np.sum(np.sin(part))
        for k in which:
            total = total + np.sum(np.sin(given[k]))
        return total

    loss.__code__ = loss.__code__.replace(co_name=f"loss_of_{name}")
    xs = [arguments[k] for k in which]
    gradients = func.grad(loss, argnums=tuple(range(len(xs))))(*xs)
    for k, x in enumerate(xs):
        d, h = np.random.default_rng(9).standard_normal(x.shape), 1e-6
        up, down = ([y + s * h * d if j == k else y for j, y in enumerate(xs)] for s in (1, -1))
        np.testing.assert_allclose(np.sum(gradients[k] * d), (loss(*up) - loss(*down)) / (2 * h), rtol=1e-4, atol=1e-6)
