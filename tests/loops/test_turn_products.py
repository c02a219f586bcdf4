"""Products that turns ask for one by one, made for several turns at once: NumPy's results, and where they are."""

import numpy as np
import pytest

import flambeau as torch
from flambeau import _runtime
from flambeau.testing.loops import check

R = np.random.RandomState(29)
SIZES = [0, 1, 2, 3, 7, 16, 17, 40, 67]


def upper_triangle(x, y, out):
    for i in range(x.shape[1]):
        out[i, i:] = x[:, i] @ x[:, i:]
        out[i:, i] = out[i, i:]


def lower_triangle(x, y, out):
    for i in range(x.shape[1]):
        out[i, : i + 1] = np.dot(x[:, i], x[:, : i + 1]) * 0.5


def one_matrix(x, y, out):
    for i in range(x.shape[1]):
        out[i] = x[:, i] @ y


def one_vector(x, y, out):
    for i in range(x.shape[1] // 2):
        out[i, : x.shape[1] // 2] = y[:, 0] @ x[:, i : i + x.shape[1] // 2]


def windows(x, y, out):
    for i in range(x.shape[1] - x.shape[1] // 2):
        out[i, : x.shape[1] // 2] = y[:, i] @ x[:, i : i + x.shape[1] // 2]


def the_same_each_turn(x, y, out):
    for i in range(x.shape[1]):
        out[i] = x[:, 0] @ y + i


def matrix_by_vector(x, y, out):
    for i in range(x.shape[1]):
        out[i, i:] = x[:, i:].T.dot(x[:, i])


def rows_of_transposes(x, y, out):
    a, b = x.T, y.T
    for i in range(a.shape[0]):
        out[i] = b @ a[i]


def downwards(x, y, out):
    for i in range(x.shape[1] - 1, -1, -1):
        out[i, i:] = x[:, i] @ y[:, i:]


def windows_downwards(x, y, out):
    n = x.shape[1] // 2
    for i in range(n - 1, -1, -1):
        out[i, :n] = y[:, i] @ x[:, i : i + n]


def every_third(x, y, out):
    for i in range(0, x.shape[1], 3):
        out[i, i:] = x[:, i] @ x[:, i:]


def only_some(x, y, out):
    for i in range(x.shape[1]):
        if i % 5 < 3:
            out[i] = x[:, i] @ y


def until_found(x, y, out):
    for i in range(x.shape[1]):
        out[i] = x[:, i] @ y
        if i > 5 and out[i, 0] > 0:
            break


def two_products(x, y, out):
    for i in range(x.shape[1]):
        out[i] = x[:, i] @ y - y[:, i] @ x


def six_products(x, y, out):
    for i in range(x.shape[1]):
        out[i] = x[:, i] @ y - y[:, i] @ x + x[:, i] @ x + y[:, i] @ y
        out[i] += x[:, -1 - i] @ y + 0.5 * (x[:, -1 - i] @ x)


def loops_within(x, y, out):
    for k in range(3):
        for i in range(x.shape[1]):
            out[i] = (x[:, i] @ y) * (k + 1) + out[i] * 0.1


def while_there_are(x, y, out):
    i = 0
    while i < x.shape[1]:
        out[i] = x[:, i] @ y
        i += 1


def by_function(x, y, out):
    def row(v, w):
        return v @ w

    for i in range(x.shape[1]):
        out[i] = row(x[:, i], y)


def to_and_fro(x, y, out):
    for i in range(x.shape[1]):
        k = i if i % 2 == 0 else x.shape[1] - i - 1
        out[i] = x[:, k] @ y


def over_columns(x, y, out):
    for i, column in enumerate(x.T):
        out[i] = column @ y


AHEAD = [
    upper_triangle,
    one_matrix,
    one_vector,
    the_same_each_turn,
    matrix_by_vector,
    rows_of_transposes,
    every_third,
    two_products,
]
AHEAD += [loops_within, while_there_are, by_function, over_columns, six_products, until_found]
GUESSED = [lower_triangle, windows, only_some, to_and_fro, windows_downwards]


def written(x, y, out):
    for i in range(x.shape[1]):
        out[i] = x[:, i] @ y
        y[0, :] += out[i] * 0.01


def written_at_the_end(x, y, out):
    """The last column is read by a product that would be made before it is written."""
    n = x.shape[1]
    for i in range(n):
        out[i] = x[:, i] @ y
        if i == n - 3:
            x[:, n - 1] = 0.5


def written_by_another_name(x, y, out):
    z = x
    for i in range(x.shape[1]):
        out[i] = x[:, i] @ y
        z[:, -1] += 1.0


def of_its_own_result(x, y, out):
    for i in range(1, x.shape[1]):
        out[i] = out[i - 1] @ out * 0.01 + x[0]


def made_in_the_turn(x, y, out):
    for i in range(x.shape[1]):
        z = x * (i + 1.0)
        out[i] = z[:, i] @ y


ALONE = [written, written_at_the_end, written_by_another_name, of_its_own_result, made_in_the_turn]


def arrays(n, k=300, dtype=np.float64):
    return tuple((R.rand(*s) - 0.5).astype(dtype) for s in ((k, n), (k, n), (n, n)))


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("f", AHEAD + GUESSED + ALONE, ids=lambda f: f.__name__)
def test_beside_numpy(f, n):
    with torch._dynamo.config.patch(error_on_recompile=False):
        check(f, *arrays(n), native=None)


@pytest.mark.parametrize("f", AHEAD + GUESSED, ids=lambda f: f.__name__)
def test_float32_and_other_orders(f):
    x, y, out = arrays(40, k=120, dtype=np.float32)
    x *= 0.2  # sums differ by their order
    y *= 0.2
    check(f, x, y, out)
    check(f, np.asfortranarray(x), y, out)
    wide = (R.rand(600, 120) - 0.5)[::2, 1::3]
    check(f, wide, np.asfortranarray(wide * 2), np.zeros((40, 40)))
    check(f, wide[::-1, ::-1], wide, np.zeros((40, 40)), native=None)


def blocks_of(f, *args) -> int:
    compiled = torch.compile(f)
    compiled(*(a.copy() for a in args))
    before = _runtime.turn_blocks()
    compiled(*(a.copy() for a in args))
    return _runtime.turn_blocks() - before


@pytest.mark.parametrize("f", AHEAD, ids=lambda f: f.__name__)
def test_which_are_made_ahead(f):
    assert 0 < blocks_of(f, *arrays(64)) <= (30 if f is not six_products else 400)


@pytest.mark.parametrize("f", ALONE, ids=lambda f: f.__name__)
def test_none_is_made_of_what_the_loop_writes(f):
    assert blocks_of(f, *arrays(64)) == 0


def test_small_products_are_made_alone():
    assert blocks_of(one_matrix, *arrays(16, k=8)) == 0


@pytest.mark.parametrize("f", AHEAD + GUESSED, ids=lambda f: f.__name__)
def test_threads_change_no_bit(f):
    x, y, out = arrays(67)
    compiled, results = torch.compile(f), []
    threads = torch.get_num_threads()
    try:
        for n in (1, 2, 2, 3, 1):
            torch.set_num_threads(n)
            given = out.copy()
            compiled(x, y, given)
            results.append(given)
    finally:
        torch.set_num_threads(threads)
    assert all(np.array_equal(r, results[0]) for r in results)


def test_operands_that_share_memory():
    x, y, _ = arrays(40)
    for out in (x[:40], y[100:140], x[::-1][:40]):
        before = x.copy(), y.copy()
        one_matrix(x, y, out)
        want, x[:], y[:] = out.copy(), *before
        torch.compile(one_matrix)(x, y, out)
        np.testing.assert_allclose(out, want, rtol=1e-10)
        x[:], y[:] = before


def test_calls_see_what_was_written_between_them():
    x, y, out = arrays(40)
    compiled = torch.compile(one_matrix)
    for k in range(4):
        got, want = out.copy(), out.copy()
        compiled(x, y, got)
        one_matrix(x, y, want)
        np.testing.assert_allclose(got, want, atol=1e-12)
        x[:, 20:] += k


def test_warnings_are_those_of_the_turns():
    """Column 5 by itself, which no turn asks for, overflows; and where a turn does, NumPy warns."""
    x, y, out = np.ones((300, 40)), np.ones((300, 40)), np.zeros((40, 40))
    x[:, 5] = 1e308

    def skips(x, y, out):
        for i in range(x.shape[1]):
            if i != 5:
                out[i] = x[:, i] @ y

    compiled = torch.compile(skips)
    for _ in range(3):
        with np.errstate(all="raise"):
            compiled(x, y, out)
    assert np.array_equal(out[4], np.full(40, 300.0)) and np.array_equal(out[6], out[4])
    with np.errstate(all="ignore"):
        check(one_matrix, x, y, out)


def test_not_a_number_stays_where_it_is():
    x, y, out = arrays(40)
    x[3, 7], y[5, 11] = np.nan, np.inf
    for f in AHEAD:
        with np.errstate(all="ignore"):
            check(f, x, y, out, native=None)


def test_random_loops():
    """Steps, starts and lengths from a seed: slices of a vector's and a matrix's columns that move, grow and shrink."""

    def slices(x, y, out, n, a, b, c, d, e, g):
        for i in range(n):
            at = g + c * i
            out[i, : e + i * d] = x[:, a + i * b] @ y[:, at : at + e + i * d]

    compiled = torch.compile(slices, dynamic=True)
    before = _runtime.turn_blocks()
    for _ in range(300):
        n, b, c, d = R.randint(1, 30), R.randint(-1, 3), R.randint(-2, 3), R.randint(-1, 2)
        e, a = int(R.randint(1, 30) + (n if d < 0 else 0)), int(R.randint(0, 4) + (n if b < 0 else 0))
        g = 2 * n if c < 0 else 0
        k, m = int(R.randint(1, 400)), max(a + n * abs(b), g + n * (abs(c) + 1) + e + 1)
        x, y = R.rand(k, m) - 0.5, R.rand(k, m) - 0.5
        got, want = np.zeros((n, m)), np.zeros((n, m))
        slices(x, y, want, n, a, b, c, d, e, g)
        compiled(x, y, got, n, a, b, c, d, e, g)
        np.testing.assert_allclose(got, want, atol=1e-12)
    assert _runtime.turn_blocks() > before + 100
