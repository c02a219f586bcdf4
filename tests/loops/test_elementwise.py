"""Element-wise statements in native loops: sizes that are as expected and sizes that aren't, broadcasting, overlap, and work for several threads."""

import numpy as np
import pytest

from flambeau.testing.loops import check

R = np.random.RandomState(1)


def jacobi(steps, a, b):
    for _ in range(steps):
        b[1:-1] = 0.3 * (a[:-2] + a[1:-1] + a[2:])
        a[1:-1] = 0.3 * (b[:-2] + b[1:-1] + b[2:])


def overlapping(steps, a):
    for _ in range(steps):
        a[1:] = a[:-1] * 0.5 + a[1:]


def in_place(steps, a):
    for _ in range(steps):
        a[1:, :] -= 0.5 * a[:-1, :]


def cross(steps, a):
    for k in range(steps):
        a[:] = np.minimum(a, a[:, k : k + 1] + a[k : k + 1, :])


def rows(steps, a, b):
    for _ in range(steps):
        a[:] = a * 0.5 + b


def between(steps, a, b, n):
    for _ in range(steps):
        a[:n] = a[:n] + b[:n]


def elementary(steps, a):
    for _ in range(steps):
        a[:] = np.tanh(np.exp(-a) + np.log1p(np.abs(a))) + np.expm1(0.1 * a) - np.log2(1.0 + a * a)


def temporaries(steps, a):
    for _ in range(steps):
        t = a[1:] - a[:-1]
        u = t * t
        a[1:] += 0.01 * u - 0.001 * t


def reversed_twice(steps, a):
    for _ in range(steps):
        a[:, 0] = a[:, 0] + a[:, -1]


def by_columns(data, cov):
    for i in range(data.shape[1]):
        cov[i, i:] = data[:, i] @ data[:, i:] / data.shape[0]
        cov[i:, i] = data[:, i:].T @ data[:, i]


def over_axes(x, out):
    for i in range(out.shape[0]):
        y = x * (i + 1)
        out[i] = (
            np.sum(y, axis=0)
            + np.max(y[:, :2], axis=(0, 1))
            - np.mean(y, axis=1)[0]
            + np.prod(y, axis=0) * np.min(y, axis=0)
        )


def kept_dimensions(x, out):
    for i in range(out.shape[0]):
        out[i] = (x / np.sum(x, axis=0, keepdims=True) + x.max(axis=0, keepdims=True))[0]


def extremes(x, places):
    for i in range(places.shape[0]):
        y = x * ((i % 3) - 1)
        places[i] = np.argmax(y, axis=0) - 2 * np.argmin(y, axis=0) + np.any(y > 0.5, axis=0) + np.all(y > -0.5, axis=0)


def held(x, out):
    """A row reduction that is kept in a variable and written."""
    total = np.zeros(x.shape[1])
    for i in range(out.shape[0]):
        s = np.sum(x, axis=0)
        s[0] += i
        total = total + s
        out[i] = total


def put_together(x, y, out):
    for i in range(out.shape[0]):
        z = np.concatenate([x, y * i])
        w = np.hstack([x, x[::2]]) + np.stack([x, x], axis=1)[0, 0] + np.vstack([x, x])[1, i % 3]
        out[i, : z.shape[0]] = z
        out[i, z.shape[0] : z.shape[0] + w.shape[0]] = w


def rolled(x, out):
    for i in range(out.shape[0]):
        out[i] = np.roll(np.roll(x, i - 30, axis=0), 2 * i, axis=1)


def products(w, x, out):
    for i in range(out.shape[0]):
        out[i] = np.tensordot(w, x * i, axes=1) + np.arange(x.shape[2])


def in_place_operators(x, v):
    for _ in range(60):
        a = np.hstack([x[:, 0:1] @ v, x[:, 1:2] @ v])
        v += 0.01
        x *= 0.99
        x -= a.mean()


def matrix_products(a, b, v):
    c, total = a @ b, 0.0
    for i in range(60):
        c = (a[::-1, :] @ b)[:, : c.shape[1]] + (a * 0.5) @ (b + 1)
        v = a.T @ (a @ v) / (np.sum(np.abs(v)) + 1) + c[0, 0] * (v @ a.T[:, ::2] @ a[::2])
        total += c[i % 3, 0] + np.dot(a[1:, 1:], b[1:, ::2])[0, 0]
    return c, v, total


def running_product(a, steps):
    out = np.eye(a.shape[0], dtype=a.dtype)
    for _ in range(steps):
        out = out @ a
        out = out / np.max(np.abs(out))
    return out


def product_in_place(a, b, steps):
    kept = a
    for _ in range(steps):
        a @= b
        a /= np.max(np.abs(a))
    return kept


def vdot_of_complex(a, b, steps):
    total = 0j
    for k in range(steps):
        total += np.vdot(a * k, b)
    return total


def powers(x, out):
    for _ in range(60):
        out[0], out[1], out[2], out[3], out[4], out[5] = x**0.5, x**-0.5, x**1.5, x**-1.5, x**-1.0, x**2.5


N = 300
CASES = {
    "jacobi": (jacobi, 20, R.rand(1000), R.rand(1000)),
    "jacobi_tiny": (jacobi, 60, R.rand(3), R.rand(3)),
    "jacobi_of_two": (jacobi, 60, R.rand(2), R.rand(2)),
    "jacobi_of_one": (jacobi, 60, R.rand(1), R.rand(1)),
    "jacobi_parallel": (jacobi, 20, R.rand(200_000), R.rand(200_000)),
    "jacobi_float32": (jacobi, 5, R.rand(100_000).astype(np.float32), R.rand(100_000).astype(np.float32)),
    "overlapping": (overlapping, 20, R.rand(500)),
    "overlapping_parallel": (overlapping, 20, R.rand(150_000)),
    "in_place": (in_place, 20, R.rand(N, N)),
    "in_place_strided": (in_place, 20, R.rand(N, 2 * N)[:, ::2]),
    "in_place_parallel": (in_place, 20, R.rand(3, 100_000)),
    "in_place_transposed": (in_place, 20, R.rand(N, N).T),
    "cross": (cross, 40, R.rand(50, 50)),
    "cross_beyond": (cross, 60, R.rand(50, 50)),  # k : k + 1 is empty in the end, which is an error
    "rows_one": (rows, 60, R.rand(20, 30), R.rand(1, 30)),
    "rows_column": (rows, 60, R.rand(20, 30), R.rand(20, 1)),
    "rows_vector": (rows, 60, R.rand(20, 30), R.rand(30)),
    "rows_wrong": (rows, 60, R.rand(20, 30), R.rand(20)),
    "between": (between, 60, R.rand(20), R.rand(30), 7),
    "between_beyond": (between, 60, R.rand(20), R.rand(30), 25),
    "between_one": (between, 60, R.rand(20), R.rand(1), 5),
    "elementary": (elementary, 20, R.randn(1000)),
    "elementary_special": (elementary, 20, np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e300, -700.0, 5e-324])),
    "temporaries": (temporaries, 20, R.rand(1000)),
    "temporaries_parallel": (temporaries, 20, R.rand(120_000)),
    "by_columns": (by_columns, R.rand(50, 40), np.zeros((40, 40))),
    "by_columns_float32": (by_columns, R.rand(50, 40).astype(np.float32), np.zeros((40, 40), np.float32)),
    "by_columns_of_integers": (by_columns, R.randint(-9, 9, (50, 40)), np.zeros((40, 40))),
    "over_axes": (over_axes, R.rand(5, 6, 7), np.zeros((60, 6, 7))),
    "over_no_rows": (over_axes, R.rand(0, 6, 7), np.zeros((60, 6, 7))),
    "kept_dimensions": (kept_dimensions, R.rand(9, 8), np.zeros((60, 8))),
    "extremes": (extremes, R.randn(9, 8), np.zeros((60, 8), np.int64)),
    "extremes_with_nan": (extremes, np.where(R.rand(9, 8) < 0.2, np.nan, R.randn(9, 8)), np.zeros((60, 8), np.int64)),
    "held": (held, R.rand(9, 8), np.zeros((60, 8))),
    "put_together": (put_together, R.rand(7), R.rand(5), np.zeros((60, 40))),
    "rolled": (rolled, R.rand(5, 7), np.zeros((60, 5, 7))),
    "rolled_empty": (rolled, R.rand(0, 7), np.zeros((60, 0, 7))),
    "products": (products, R.rand(4), R.rand(4, 5, 6), np.zeros((60, 5, 6))),
    "products_that_do_not_fit": (products, R.rand(3), R.rand(4, 5, 6), np.zeros((60, 5, 6))),
    "in_place_operators": (in_place_operators, R.rand(9, 2), R.rand(1)),
    "matrix_products": (matrix_products, R.rand(12, 31), R.rand(31, 17), R.rand(31)),
    "matrix_products_float32": (matrix_products, *(R.rand(*s).astype("f") for s in ((12, 31), (31, 17), (31,)))),
    "matrix_products_of_both": (matrix_products, R.rand(12, 31).astype("f"), R.rand(31, 17), R.rand(31)),
    "matrix_products_by_columns": (matrix_products, R.rand(31, 12).T, R.rand(17, 31).T, R.rand(62)[::2]),
    "matrix_products_of_strides": (matrix_products, R.rand(24, 62)[::2, ::2], R.rand(31, 34)[:, ::-2], R.rand(31)),
    "matrix_products_that_do_not_fit": (matrix_products, R.rand(12, 31), R.rand(30, 17), R.rand(31)),
    "matrix_products_large": (matrix_products, R.rand(300, 310), R.rand(310, 170), R.rand(310)),
    "running_product": (running_product, R.rand(30, 30), 60),
    "running_product_small": (running_product, R.rand(3, 3), 60),
    "running_product_of_integers": (running_product, R.randint(0, 9, (5, 5)), 60),
    "running_product_of_nothing": (running_product, R.rand(0, 0), 60),
    "product_in_place": (product_in_place, R.rand(6, 6), R.rand(6, 6), 60),
    "vdot_of_complex": (vdot_of_complex, R.rand(6) + 1j * R.rand(6), R.rand(6) + 1j * R.rand(6), 60),
    "powers": (
        powers,
        np.array([0.0, -0.0, 1.0, 2.5, 1e300, 1e-300, 1e210, 5e-324, -1.0, np.inf, -np.inf, np.nan]),
        np.zeros((6, 12)),
    ),
    "empty": (rows, 60, R.rand(0, 30), R.rand(30)),
    "last_column": (reversed_twice, 60, R.rand(20, 30)),
}


@pytest.mark.parametrize("case", CASES)
def test_elementwise(case):
    f, *args = CASES[case]
    check(f, *args, native=None)


def differences(x, m, turns):
    v, w, s = np.zeros(len(x) + 1), np.zeros(len(x) - 1), np.zeros((4, 5))
    for _ in range(turns):
        v += np.diff(np.concatenate((np.zeros(1), x, np.zeros(1)))) * 0.1
        w += np.diff(x * x)
        x[1:] += np.diff(x) * 0.01
        s += np.diff(m, axis=-1)
        m[0] += s[0].sum() * 1e-3
        m[1, 1:] = np.diff(m[1], 1, 0)
    return v, w, s


def test_differences():
    r = np.random.RandomState(4)
    check(differences, r.rand(30), r.rand(4, 6), 200)


def variances(x, out):
    for k in range(60):
        x[k % len(x)] += 0.1 * k
        out[k, :, :7] = x.var(axis=0)
        out[k, :5, 0] += np.std(x, axis=-1)[0]
        out[k, 0] += x[0].var(0) + np.var(x[:, 1], 1).sum() + x.std()
        out[k, 1, 0] += np.std(x * 2, axis=1)[0, 0] + x.var(axis=None)
    return out


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
def test_variances(dtype):
    x = (np.random.RandomState(5).rand(4, 5, 7) * 20).astype(dtype)
    check(
        variances if dtype != "int64" else whole_variances, x, np.zeros((60, 5, 7), "f" if dtype == "float32" else "d")
    )


def whole_variances(x, out):
    for k in range(60):
        x[k % len(x)] += k
        out[k] = x.var(0) + np.std(x[0], axis=1)[0]
    return out


def complex_variances(z, out):
    for k in range(60):
        z[0] += 1j * k
        out[k] = z.var(axis=0) + np.std(z)
    return out


def test_variances_of_complex_numbers():
    r = np.random.RandomState(6)
    check(complex_variances, r.rand(4, 5) + 1j * r.rand(4, 5), np.zeros((60, 5)), native=None)
