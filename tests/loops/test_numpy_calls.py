"""What a native loop leaves to NumPy gives NumPy's results and errors, and the loop stays native."""

import numpy as np
import pytest

import flambeau as torch
from flambeau.testing.loops import check

R = np.random.default_rng(3)
SPD = np.array([[3.0, 1.0, 0.5, 0.2], [1.0, 4.0, 0.3, 0.1], [0.5, 0.3, 5.0, 0.7], [0.2, 0.1, 0.7, 2.0]])
X = R.random(300)


def kalman(zs, F, H, Q, noise):
    x, P = np.zeros(F.shape[0]), np.eye(F.shape[0])
    out = np.zeros((len(zs), F.shape[0]))
    for k in range(len(zs)):
        x = F @ x
        P = F @ P @ F.T + Q
        K = P @ H.T @ np.linalg.inv(H @ P @ H.T + noise)
        x = x + K @ (zs[k] - H @ x)
        P = P - K @ H @ P
        out[k] = x
    return out


def newton(x, n):
    for _ in range(n):
        f = x**3 - 1
        x = x - np.linalg.solve(np.outer(x, x) + 3 * np.eye(3), f)
        if np.linalg.norm(f) < 1e-12:
            break
    return x


def rotations(A, n):
    for _ in range(n):
        Q, upper = np.linalg.qr(A)
        A[:] = upper @ Q
    return A


def spectra(x, w, n):
    out = np.zeros((n, len(w) // 2 + 1))
    for k in range(n):
        f = np.fft.rfft(x[k * 4 : k * 4 + len(w)] * w)
        out[k] = f.real**2 + f.imag**2
    return out


def ranks(x):
    s = 0.0
    for row in x:
        order = np.argsort(row)
        s += row[order[0]] + np.sort(row)[-1] + np.percentile(row, 30) + np.median(row[2:])
        s += row.std() + row.cumsum()[-1] + row.argsort()[0]
    return s


def fixed_point(A, b, x, n):
    D = np.diag(A)
    for _ in range(n):
        new = (b - A @ x + D * x) / D
        if np.allclose(new, x, atol=1e-10):
            break
        x = new
    return x


def special(x):
    s = 0.0
    for v in x:
        s += np.sinc(v) + np.logaddexp(v, 1.0) + np.heaviside(v, 0.5) + np.interp(v, x[:3].cumsum(), x[3:6])
    return s


def histograms(x, n):
    out = np.zeros((n, 8), np.int64)
    for i in range(n):
        counts, _ = np.histogram(x[i : i + 20], bins=8, range=(0.0, 1.0))
        out[i] = counts
    return out


def contour(points, H, Y):
    total = np.zeros(Y.shape, dtype=np.complex128)
    for z in points:
        T = np.zeros(H.shape[1:], dtype=np.complex128)
        for n in range(3):
            T += np.power(z, 1 - n) * H[n]
        X = np.linalg.solve(T, Y)
        if abs(z) < 1.0:
            X = -X
        total += z * X
    return total


def singular(A, n):
    s = 0.0
    for i in range(n):
        A[0, 0] = i - 30.0
        s += np.linalg.inv(A)[0, 0]
    return s


def singular_later(A, n):
    A += 1.0
    for i in range(n):
        A[0, 0] = i - 30.0
        A[0, 1] = A[1, 0] = 0.0
        A[1, 1] = np.linalg.inv(A)[0, 0]
    return A


def complex_numbers(*shape):
    return R.random(shape) + 1j * R.random(shape)


CASES = [
    (kalman, R.random((60, 2)), R.random((4, 4)) / 3, R.random((2, 4)), np.eye(4) / 10, np.eye(2)),
    (newton, np.array([2.0, 1.5, 0.7]), 80),
    (newton, np.ones(3), 80),
    (rotations, SPD, 60),
    (spectra, X, np.hanning(64), 50),
    (ranks, R.random((60, 12))),
    (fixed_point, SPD, X[:4], np.zeros(4), 100),
    (special, X),
    (histograms, X, 100),
    (contour, complex_numbers(40), complex_numbers(3, 5, 5), complex_numbers(5, 4)),
    (singular, np.eye(2), 60),
    (singular_later, np.eye(2), 60),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].__name__)
def test_loop_stays_native(case):
    check(*case)


def flipped_dots(r):
    """Durbin's recursion."""
    y = np.empty_like(r)
    alpha, beta = -r[0], 1.0
    y[0] = -r[0]
    for k in range(1, r.shape[0]):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + np.dot(np.flip(r[:k]), y[:k])) / beta
        y[:k] += alpha * np.flip(y[:k])
        y[k] = alpha
    return y


def shortest_paths(path):
    for k in range(path.shape[0]):
        path[:] = np.minimum(path[:], np.add.outer(path[:, k], path[k, :]))


def compaction(C, turns):
    counts, Z = np.zeros(C.shape, dtype=np.int64), np.zeros(C.shape, dtype=np.complex128)
    for n in range(turns):
        inside = np.less(abs(Z), 2.0)
        counts[inside] = n
        Z[inside] = Z[inside] ** 2 + C[inside]
    return Z, counts


def written(x, y, n):
    for _ in range(n):
        np.multiply(x, y, x)
        np.add(x, 0.25, out=x)
        np.subtract(y, np.add.reduce(x) / 100, out=y)
    return np.greater_equal(x, y)


def mirrored(a, n):
    for k in range(n):
        a += np.fliplr(a) * 0.1 + np.flipud(a) * 0.1
        a -= np.flip(a, 0) * 0.2 + np.flip(a)[k % 3, 0] * np.multiply.outer(a[:, 0], a[0])
    return a


PATTERNS = [
    (flipped_dots, np.cumsum(X[:60])[::-1] * 0.01),
    (shortest_paths, R.integers(1, 100, (30, 30))),
    (compaction, complex_numbers(12, 12) * 2 - 1.5 - 1j, 40),
    (written, R.random((8, 9)), R.random((8, 9)), 60),
    (mirrored, R.random((5, 6)), 80),
]


@pytest.mark.parametrize("case", PATTERNS, ids=lambda case: case[0].__name__)
def test_pattern_stays_native(case):
    check(*case)


def test_interrupt_and_exit_pass_through():
    class Stop(BaseException):
        pass

    def stop(*_):
        raise Stop

    def roots(A, n):
        s = 0.0
        for _ in range(n):
            s += np.linalg.slogdet(A)[1]
        return s

    run = torch.compile(roots)
    assert run(SPD, 200) == pytest.approx(roots(SPD, 200))
    from flambeau.loops.numpy_calls import performing

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(performing, "results_of", stop)
        with pytest.raises(Stop):
            run(SPD, 200)
    assert run(SPD, 200) == pytest.approx(roots(SPD, 200))


def test_warnings_are_told():
    def logs(x):
        s = 0.0
        for row in x:
            s += np.sinc(row[0]) + np.linalg.norm(np.logaddexp2(row, np.log(row)))
        return s

    x = R.random((80, 3))
    x[40] = 0.0
    run = torch.compile(logs)
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        assert run(x) == logs(x) or np.isnan(logs(x))


def outside_later(a, n):
    a += 1.0
    for i in range(n):
        a[i] = a[i] * 2
    return a


def test_error_after_something_has_happened_leaves_what_python_would():
    check(outside_later, np.ones(60), 80)


def one_array(y, z):
    y, z = y * 1, z * 1
    for _ in range(400):
        y = y + 1
        z = y
    z[0] = 77
    return y, z


def test_names_of_one_array_stay_names_of_one_array():
    check(one_array, np.ones(3), np.ones(3), native=None)


def from_outside(x, tolerance):
    for _ in range(400):
        new = x * 0.5 + 0.5
        if np.linalg.norm(new - x) < tolerance:
            break
        x = new
    x[0] = -1.0
    return x


@pytest.mark.parametrize("tolerance", [1e-9, 1e9])
def test_array_from_outside_or_made_in_the_loop(tolerance):
    check(from_outside, X[:4], tolerance, native=None)


def lists(n, small):
    out, s = np.zeros((n, 3)), 0.0
    for i in range(n):
        x = np.array([i, small[i % 3] * 2, True])
        y = np.array([[1, 2, i], [i, i, 2]], dtype=np.float32)
        z = np.asarray([small[0], np.float32(1.5)])
        out[i] = x[0], y[1, 2] * z[0], s
        s += np.array([1, 2, 3]).sum() + np.array([out[i], x]).shape[0] + np.array(x)[1]
        out[i, :2] = [i, 2]
    return out, s


def strides(x, n):
    s = 0
    for k in range(2, n):
        x[k * k :: k] += 1
        s += x[::k].sum() + np.arange(k, n)[-1] + np.arange(0, n, 3).sum()
    return s


def downwards(x, n):
    s = 0
    for k in range(n, -n, -1):
        s += x[:: k if k else 1].sum()
    return s


def rows(x, labels, n):
    centres = np.zeros((3, x.shape[1]))
    for _ in range(n):
        for k in range(3):
            mask = labels == k
            if mask.any():
                centres[k] = x[mask].mean(axis=0)
        x[labels == 2] = 0.25
    return centres


def integers_that_do_not_fit(x, n):
    for i in range(n):
        x[i % 3] = np.array([i, 1 << 40])[1] + np.array([i], dtype=np.int8)[0]
    return x


MORE = [
    (lists, 60, np.float32([1.5, 2.5, 3.5])),
    (strides, R.integers(0, 9, 400), 20),
    (rows, R.random((40, 3)), R.integers(0, 3, 40), 30),
    (integers_that_do_not_fit, np.zeros(3), 300),
]


@pytest.mark.parametrize("case", MORE, ids=lambda case: case[0].__name__)
def test_arrays_of_numbers(case):
    check(*case, native=None if case[0] is integers_that_do_not_fit else True)


def test_slice_that_turns():
    check(downwards, R.integers(0, 9, 400), 60, native=None)


def counted(x, n):
    seen, s = {}, 0.0
    for i in range(n):
        seen[str(i % 7)] = x[i % 10] * 2
        s += seen[str(i % 7)]
    return s


def test_loop_that_stays_python_is_not_unrolled_for_minutes():
    check(counted, X[:10], 50_000, native=False)
