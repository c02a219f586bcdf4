"""Captured NumPy functions do what plain ones do: errors at the right place with earlier effects, overlapping writes, classes of scalars."""

import numpy as np
import pytest
from agree import BACKENDS, difference

import flambeau as torch

X = np.arange(6.0)
OUT = np.array([1, 9])
ZERO = np.zeros((3, 3))


def index_after_a_write(x, i):
    x += 1
    return x[i]


def index_then_product(x, i):
    return x[i] * 2


def write_out_of_bounds(x, i):
    x[0] = 5
    x[i] = 3


def singular_is_caught(m):
    try:
        return np.linalg.inv(m)
    except np.linalg.LinAlgError as e:
        return str(e)


def unused_result_raises(m):
    try:
        np.linalg.inv(m)
    except np.linalg.LinAlgError as e:
        return str(e)


def singular_after_a_write(m):
    m[0, 0] = 2
    try:
        np.linalg.cholesky(m)
    finally:
        m[1, 1] = 7


def shifted_onto_itself(x):
    x[1:] = x[:-1]
    return x


def added_onto_itself(x):
    x[1:] += x[:-1]
    x[:-1] *= x[1:]
    return x


def reversed_onto_itself(x):
    x[:] = x[::-1]
    return x


def out_overlaps(x):
    np.add(x[:-1], x[1:], out=x[1:])
    return np.multiply(x[1:], 2, out=x[:-1])


def scalars_are_not_changed(x):
    s = t = x[0]
    s += 1
    n = m = x.sum()
    n *= 2
    return s, t, n, m


def bins_by_data(x):
    return np.histogram(x, "fd")


def complex_eigenvalues(m):
    w = np.linalg.eigvals(m)
    return w.dtype, w * 2


def classes_of_dtypes(x):
    k = x.dtype.type
    return (
        k is np.float64,
        k in (np.float32, np.float64),
        np.float64 == k,
        {np.float64: 1}.get(k),
        k(2),
        issubclass(k, np.floating),
    )


def division_in_place(x):
    i = (x * 3).astype(np.int64)
    i //= 2
    j = i.copy()
    j %= np.array([1, 2, 0, -3, 4, 5])
    i >>= 1
    i <<= np.array([1, 70, 2, 3, 4, 5])
    return i, j


def floats_into_integers(x):
    i = x.astype(np.int32)
    i += 1.5
    return i


def writes_by_function(x):
    m = np.outer(x, x)
    np.copyto(m[1:3], x)
    np.copyto(m, 0.5, where=m > 12)
    np.putmask(m, m == 4, -1)
    np.fill_diagonal(m, 9)
    x[::2].sort()
    m[0].fill(3)
    i = np.zeros(3, np.int8)
    np.copyto(i, 2)
    i.fill(7)
    return (
        m,
        i,
        np.angle(x - 2),
        np.append(x, 3.0),
        np.insert(x, 2, [5, 6]),
        np.delete(x, [0, 3]),
        np.linalg.diagonal(m),
    )


def writes_that_are_refused(x):
    i = np.zeros(3, np.int32)
    try:
        np.copyto(i, 2.5)
    except TypeError as e:
        return str(e)


def numbers_are_written_as_numpy_does(x):
    i = np.zeros(4, np.int8)
    i[0] = 2.9
    i[1:] = np.float32(-3.5)
    x[[]] = 2
    try:
        i[2] = np.uint64(2**63)
    except OverflowError as e:
        return i, str(e)


def complex_into_floats(x):
    try:
        x[[]] = 1j
    except TypeError as e:
        return str(e)


def padded_without_dimensions(x):
    return np.pad(x[..., 0], 1), np.block(x[0])


def objects_that_are_called(x):
    p = np.poly1d([1.0, 2.0])
    return p(x), p.coeffs


CASES = [
    (numbers_are_written_as_numpy_does, (X,)), (complex_into_floats, (X,)), (padded_without_dimensions, (X,)), (objects_that_are_called, (X,)),
    (writes_by_function, (np.array([3.0, 1, 2, 0, -1, 4]),)), (writes_that_are_refused, (X,)),
    (index_after_a_write, (X, OUT)), (index_then_product, (X, OUT)), (write_out_of_bounds, (X, OUT)), (singular_is_caught, (ZERO,)),
    (unused_result_raises, (ZERO,)), (singular_after_a_write, (ZERO,)), (shifted_onto_itself, (X,)), (added_onto_itself, (X,)),
    (reversed_onto_itself, (X,)), (out_overlaps, (X,)), (scalars_are_not_changed, (X,)), (bins_by_data, (np.linspace(-10, 10, 500),)),
    (complex_eigenvalues, (np.array([[0.0, 1], [-1, 0]]),)), (complex_eigenvalues, (np.eye(2),)), (classes_of_dtypes, (X,)),
    (division_in_place, (X,)), (floats_into_integers, (X,)),
]  # fmt: skip


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("f, args", CASES, ids=lambda v: getattr(v, "__name__", None))
def test_as_plain(f, args, backend):
    if backend == "eager" and f in (index_after_a_write, write_out_of_bounds, singular_after_a_write):
        return  # this backend writes as it goes, so that the frame can't be run again
    assert not difference(f, args, backend)


def test_sizes_of_empty_arrays_vary():
    torch._dynamo.reset()
    f = torch.compile(lambda x: (x * 2).shape, backend="eager")
    for shape in ((0, 3), (0, 4), (2, 0, 5), (3, 0, 6), (4, 0, 7)):
        assert f(np.zeros(shape)) == shape  # a warning, which is an error here, says that a guard failed at once
