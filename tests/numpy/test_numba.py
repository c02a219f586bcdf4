"""flambeau.numba: Numba's decorators give what the functions give as they were written, and refuse what they don't know by its name."""

import math

import numpy as np
import pytest

import flambeau as torch
import flambeau.numba as numba
from flambeau.numba import float64, guvectorize, int64, jit, njit, prange, vectorize

R = np.random.RandomState(7)


@njit
def square(x):
    return x * x


@njit(parallel=True, fastmath={"reassoc"}, cache=True, nogil=True)
def squares(a, out):
    for i in prange(len(a)):
        out[i] = square(a[i]) + 1.0


def test_functions_that_call_each_other_are_native():
    a, out = R.rand(1000), np.zeros(1000)
    squares(a, out)
    np.testing.assert_array_equal(out, a * a + 1.0)
    assert square.py_func(3) == square(3) == 9
    (note,) = torch._dynamo.explain(squares)(a, out).loops
    assert note.endswith("native, on several threads")


SIGNATURES = {
    "text": "float64(float64[:], int64)",
    "objects": float64(float64[:], int64),
    "arguments": (float64[:], int64),
    "several": ["float32(float32[::1], i4)", "f8(f8[:], i8)"],
}


@pytest.mark.parametrize("signature", SIGNATURES.values(), ids=SIGNATURES)
def test_signatures_convert_numbers_and_refuse_other_arrays(signature):
    @jit(signature, nopython=True)
    def item(a, n):
        return a[n] * 2

    a = np.arange(5.0)
    assert item(a, 3.0) == item(n=3, a=a) == 6.0
    with pytest.raises(TypeError, match=r"No matching definition for argument type\(s\) array\(int64, 1d, C\), int64"):
        item(np.arange(5), 3)
    with pytest.raises(TypeError, match="No matching definition"):
        item(a, 3j)


REFUSED = {
    "unknown option": (lambda: njit(paralel=True), KeyError, "paralel.*nearest is 'parallel'"),
    "types of variables": (lambda: njit(locals={"x": float64}), NotImplementedError, "locals"),
    "a GPU": (lambda: vectorize(["f8(f8)"], target="cuda"), NotImplementedError, "target"),
    "no signature": (lambda: njit("float64[float64"), TypeError, "no signature"),
    "array type by a number": (lambda: float64[3], TypeError, "array type"),
    "twice": (lambda: njit(square), TypeError, "already jitted"),
    "not built": (lambda: numba.stencil, NotImplementedError, "numba.stencil"),
    "no name of Numba's": (lambda: numba.flot64, AttributeError, "nearest is 'float64'"),
    "ufunc of arrays": (lambda: vectorize(["f8(f8[:])"]), TypeError, "numbers"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_by_name(name):
    call, error, text = REFUSED[name]
    with pytest.raises(error, match=text):
        call()


def test_options_that_have_no_meaning_are_taken():
    for options in ({"error_model": "numpy"}, {"boundscheck": False}, {"inline": "always"}, {"forceobj": True}):
        assert njit(**options)(lambda x: x + 1)(1) == 2


def positive(x, y):
    if x > y:
        return x - y
    return 0


@vectorize
def inferred(x, y):
    return positive(x, y)


@vectorize(["int64(int64, int64)", "float64(float64, float64)"], identity=0, target="parallel")
def added(x, y):
    return x + y


def test_vectorize():
    x, y = R.rand(3, 4), R.rand(4)
    got, want = inferred(x, y), np.vectorize(positive, otypes=[float])(x, y)
    np.testing.assert_array_equal(got, want)
    # The type is that of all paths, whichever the values take.
    assert inferred(np.zeros(3), 1.0).dtype == np.float64 and inferred(np.arange(3), 1).dtype == np.int64
    assert inferred(np.float32(2), np.float32(1)).dtype == np.float32
    for a, b in ((1, 2), (np.arange(3), 1.5), (np.arange(3, dtype=np.int8), np.ones((2, 1)))):
        np.testing.assert_array_equal(added(a, b), np.add(a, b))
    table = R.randint(0, 9, (3, 4, 2))
    for axis in (0, 1, -1):
        np.testing.assert_array_equal(added.reduce(table, axis), np.add.reduce(table, axis))
        np.testing.assert_array_equal(added.accumulate(table, axis), np.add.accumulate(table, axis))
    np.testing.assert_array_equal(added.outer(table[0], x), np.add.outer(table[0], x))
    assert added.reduce(np.zeros((0, 3))).tolist() == [0, 0, 0]
    out = np.zeros(3)
    assert added(np.arange(3), 1, out=out) is out and out.tolist() == [1, 2, 3]
    with pytest.raises(TypeError, match="could not be safely coerced"):
        added(1j, 2)
    with pytest.raises(ValueError, match="no identity"):
        inferred.reduce(np.zeros(0))


def test_vectorize_of_what_loops_do_not_understand():
    @vectorize
    def digits(x):
        return len(str(x))

    assert digits(np.array([7, 77, 777])).tolist() == [1, 2, 3]


@guvectorize(["void(float64[:], float64[:, :], int64, float64[:], float64[:])"], "(n),(n,m),()->(m),()")
def product(v, a, k, out, norm):
    norm[0] = 0.0
    for j in range(a.shape[1]):
        s = 0.0
        for i in range(a.shape[0]):
            s += v[i] * a[i, j]
        out[j] = s * k
        norm[0] += s * s
    norm[0] = math.sqrt(norm[0])


def test_guvectorize():
    v, a = R.rand(5, 1, 3), R.rand(2, 3, 4)
    out, norm = product(v, a, np.array([2, 3]))
    want = np.einsum("pqi,qij->pqj", np.broadcast_to(v, (5, 2, 3)), a)
    np.testing.assert_allclose(out, want * np.array([2, 3])[:, None])
    np.testing.assert_allclose(norm, np.linalg.norm(want, axis=-1))
    with pytest.raises(ValueError, match="core dimension n"):
        product(R.rand(2), a, 1)
    with pytest.raises(TypeError, match="not supported"):
        product(v * 1j, a, 1)
