"""Index tricks, places of arrays, and what writes by index: one graph, and NumPy's results, effects and errors."""

import numpy as np
import pytest
from agree import BACKENDS, difference

import flambeau as torch

R = np.random.RandomState(11)
X, A, B = R.rand(6), R.rand(4, 4), R.rand(3, 4, 5)


def added_at(x, i, v):
    np.add.at(x, i, v)
    np.maximum.at(x, [0, 2], 0.5)
    np.subtract.at(x[1:], (np.array([0, 0, 3]),), 1)
    np.negative.at(x, [1, 1, 1])
    return x * 2


def put(x):
    np.put(x, [0, -1], [5.0, 6.0])
    x.put([1, 2], 7.0)
    np.place(x, x > 6.5, [1.0, 2.0, 3.0])
    x[1:].partition(2)
    return x


def put_along(a):
    np.put_along_axis(a, np.argmax(a, axis=1)[:, None], -1.0, axis=1)
    return a.sum()


def flat(a):
    a.flat[::5] = 3.0
    a.flat[1] = 2
    part = a.flat[2:6]
    part[0] = 100.0
    return a.flat[7], part, a.T.flat[3], [v * 2 for v in a.T.flat], sum(v for v in a.flat), len(a.flat)


def places(a):
    s = 0.0
    for i, j in np.ndindex(2, 3):
        s += a[i, j] * (i + 2 * j)
    for index, v in np.ndenumerate(a):
        s += v * index[0] - a[index[::-1]]
    return s, [p for p in np.ndindex(a.shape[:1])], next(np.ndindex(3))


def live(a):
    """What is written while the elements are gone through is seen."""
    out = []
    for k, v in enumerate(a.flat):
        out.append(v)
        if k + 1 < a.size:
            a.flat[k + 1] = v + 1
    return out


CASES = {
    "mgrid": (lambda x: np.mgrid[0:3, 1:5] + x[0], X),
    "mgrid by steps": (lambda x: (np.mgrid[0:1:0.25], np.mgrid[0:1:5j, -1:1:3j] * x[0]), X),
    "mgrid of sizes": (lambda a: np.mgrid[: a.shape[0], : a.shape[1]][1] * a, A),
    "ogrid": (lambda x: [g * x[0] for g in np.ogrid[0:3, 0:4]], X),
    "r_": (lambda x: (np.r_[x, 1.0, x[::-1]], np.r_[0:5, x], np.r_["0,2", x, x], np.r_[2:4]), X),
    "c_": (lambda x: np.c_[x, x * 2, np.arange(6)], X),
    "ix_": (lambda a, i: (a[np.ix_([0, 2], [1, 3])], a[np.ix_(i, (0, 1))]), A, np.array([3, 0, 0])),
    "ix_ of truth": (lambda a: a[np.ix_([True, False, True, False], [1, 2])], A),
    "ix_ written": (lambda a: a.__setitem__(np.ix_([0, 2], [1]), 0.0), A),
    "s_": (lambda a: (a[np.s_[1:3, ::2]], a[np.index_exp[1]], np.s_[1:2]), A),
    "at": (added_at, X, np.array([0, 1, 0, -1]), X[:4]),
    "at, outside": (added_at, X, np.array([0, 9]), 1.0),
    "put": (put, X),
    "put along": (put_along, A),
    "flat": (flat, A),
    "flat, other order": (lambda a: (a.flat[3], list(a.flat)[:3]), np.asfortranarray(A)),
    "places": (places, A),
    "live": (live, A),
    "allclose": (lambda x, y: (np.allclose(x, y), np.allclose(x, x), np.allclose(x, 0.5, atol=2.0)), X, X + 1e-9),
    "count_nonzero": (lambda a: (np.count_nonzero(a > 0.5), np.count_nonzero(a > 0.5, axis=0), np.count_nonzero(a)), A),
    "rot90": (lambda b: [np.rot90(b, k) + 0 for k in range(-1, 5)] + [np.rot90(b, 1, (2, 0)) * 2], B),
    "fromfunction": (lambda x: np.fromfunction(lambda i, j: i * 2 + j, (3, 4)) + x[0], X),
    "fromfunction of integers": (lambda x: np.fromfunction(lambda i: i == 2, (4,), dtype=int) | (x[:4] > 0), X),
    "diagonal": (lambda a: a[np.diag_indices_from(a)], A),
    "dsplit": (lambda b: np.dsplit(b, [2, 3])[1] * 1, B),
    "ndarray": (
        lambda x: (np.ndarray((2, 3)).shape, np.ndarray(3, dtype=np.int32).dtype, np.ndarray((2,), float).size),
        X,
    ),
    "polynomials": (
        lambda x: np.polynomial.polynomial.polyval(x, [1.0, 2.0, 3.0]) + np.polynomial.legendre.leggauss(6)[0],
        X,
    ),
}
BREAKS = {"ix_ of truth", "ix_ written", "at, outside"}


@pytest.mark.parametrize("name", CASES)
def test_place(name):
    f, *args = CASES[name]
    for backend in BACKENDS:
        assert difference(f, args, backend) == ""
    if name not in BREAKS:
        torch._dynamo.reset()
        assert torch._dynamo.explain(f)(*[np.copy(a, order="K") for a in args]).graph_break_count == 0


def lists_written(a, x):
    for i in range(3):
        a[i, :2] = [i, 2]
    a[:, 3] = (x[0], 4.5, True, x[1])
    a[3] = np.float32(2), 1, x[2], i
    return a


def list_into_element(a):
    a[0, 0] = [1.0]


def nested(a):
    a[0] = [[1.0]]
    return a


def too_long(a):
    a[0] = [1.0, 2.0, 3.0]


LISTS = {
    "lists": (lists_written, A, X),
    "lists, integers": (lists_written, (A * 9).astype(int), X),
    "a list into an element": (list_into_element, A),
    "nested": (nested, A),
    "too long": (too_long, A),
}


@pytest.mark.parametrize("name", LISTS)
def test_list_written_into_an_array(name):
    f, *args = LISTS[name]
    for backend in BACKENDS:
        assert difference(f, args, backend) == ""
