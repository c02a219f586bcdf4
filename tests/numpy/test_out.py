"""Arrays that are given to be written (``out``), arguments that kernels don't take (``where``, ``initial``), and arrays that NumPy only lets read."""

import numpy as np
import pytest
from agree import BACKENDS, difference

import flambeau as torch
from flambeau.inductor import metrics

X = np.arange(12.0).reshape(3, 4)


def through_broadcast(x):
    y = np.broadcast_to(x, (2, 3, 4))
    y[0, 0, 0] = 5.0


def through_a_row_of_it(x):
    y = np.broadcast_to(x, (2, 3, 4))[0]
    y[0, 0] = 5.0


def through_diagonal(x):
    x[0, 0] = 3.0
    y = np.diagonal(x)
    y[0] = 5.0


def diagonal_in_place(x):
    y = x.diagonal()
    y += 5.0


def through_diag(x):
    np.diag(x)[0] = 5.0


def imaginary_part(x):
    y = x.imag
    y += 1


def written_as_out(x):
    np.add(x[0, :3], 1, out=np.diag(x))


def flags(x):
    y = np.broadcast_to(x, (2, 3, 4))
    return y, y.flags.writeable, np.diagonal(x), np.diagonal(x).copy(), np.diag(x) * 2


def parts_may_be_written(x):
    y = np.real(x)
    y[0] = 1
    z = np.diagonal(x).copy()
    z[0] = 3
    d = np.diag(x[0])
    d[0, 0] = 7
    return z, d


def sums(x):
    o, p = np.zeros(4, np.float32), np.zeros(4)
    return np.sum(x, axis=0, out=o) is o, o, np.add.reduce(x, 0, None, p) is p, p


def two_results(x):
    o, p, q, r = (np.zeros((3, 4)) for _ in range(4))
    s, t = np.divmod(x, 3.0, out=(o, p))
    u, v = np.modf(x / 4, q, r)
    return s is o, t is p, u is q, v is r, o, p, q, r


def chosen(x):
    o = np.full((3, 4), 9.0)
    return np.add(x, 1, out=o, where=x > 5) is o, o, np.sqrt(x, out=o, where=x < 3)


def called(x):
    o, p = np.full(4, 9.0), np.zeros(3)
    return np.median(x, 0, o) is o, np.matvec(x, x[0], out=p) is p, np.vecdot(x, x, p) is p, o, p


def used_up(x):
    return np.median(x, overwrite_input=True), np.sort(x)


def rounded_once(x):
    y = np.array([1.0 + 2**-11 + 2**-40, 65519.999999]) * (1 + x[0, 0])
    h = np.zeros(2, np.float16)
    h[:] = y
    return y.astype(np.float16), h, np.add(y, 0.0, out=np.zeros(2, np.float16), casting="same_kind")


def signs_of_nan(x):
    y = x.copy()
    y[0] = -np.nan
    y[1] = np.nan
    return np.signbit(y), np.signbit(np.where(x > 5, -np.nan, x)), np.signbit(np.full(3, -np.nan))


def without_nan(x):
    y, z = x / 0.0, (x / 0.0).astype(np.complex128)
    return np.nan_to_num(y, copy=False) is y, y, np.nan_to_num(z, False) is z, z


def parts_of_numbers(x):
    c = complex(2, 3)
    return np.real(c), np.imag(c), np.real(np.complex64(c)), np.real(3), np.imag(2.5), x


def bounds_given_twice(x):
    np.clip(x, 2, 3, max=3)


def one_bound(x):
    np.clip(x, 2)


def larger(x):
    o = np.zeros((2, 3, 4))
    return np.add(x, 1, o) is o, o


def methods(x):
    o = np.zeros(4, np.int64)
    return (
        x.argmax(0, o) is o,
        o,
        x.clip(2, 5, out=x) is x,
        x.round(out=x) is x,
        x.mean(axis=1, keepdims=True, where=x > 2),
    )


def products(x):
    o, p = np.zeros((3, 2, 3)), np.zeros((3, 3))
    return np.dot(x, np.ones((2, 4, 3)), o) is o, np.dot(x, x.T, out=p) is p, o, p


def arguments_of_reductions(x):
    h, u = x.astype(np.float16), x.astype(np.uint8)
    return (
        np.sum(x, where=x > 3), x.sum(initial=4), np.max(x, initial=100.0), x.mean(where=x > 2), u.sum(), h.mean(axis=0), np.prod(u + 1),
        np.min(x, where=x > 3, initial=50), np.maximum.reduce(x, initial=7.0), np.add.reduce(x, where=x > 3), h.sum(), np.cumsum(u),
        np.repeat(x, [1, 0, 2], axis=0), np.clip(h, 1, 2), np.where(h > 3),
    )  # fmt: skip


def dtypes_of_reductions(x):
    i = x.astype(np.int64)
    return (
        np.sum(x, dtype=np.int32), i.sum(dtype=np.int16), i.prod(dtype=np.uint8), np.prod(i + 1, axis=0, dtype=np.int16), np.cumsum(x, dtype=np.int16),
        np.cumprod(i, axis=1, dtype=np.int8), np.sum(i, axis=0, dtype=np.float32), np.mean(i, dtype=np.float32), np.add.reduce(i, dtype=np.int16),
    )  # fmt: skip


def arrays_without_dimensions(x):
    return np.cov(x[0]), np.cross(x[0, :2], x[1, :2]), np.i0(0.5), np.corrcoef(x[0])


def signs_of_zeros_of_complex_numbers(x):
    numbers = [0.0, -0.0, complex(0.0, -0.0), complex(-0.0, -0.0), complex(-0.0, 0.0), complex(1, -0.0)]
    return (
        np.angle(numbers),
        np.array(numbers),
        np.array([*numbers, x[0, 0]]),
        np.angle(np.complex128(complex(0.0, -0.0))),
    )


def out_of_another_kind(x):
    try:
        np.add(x, 1, out=np.zeros((3, 4), np.int64))
    except TypeError as e:
        return str(e)


def out_of_another_shape(x):
    np.add(x, 1, out=np.zeros((3, 3)))


def dot_into_another_dtype(x):
    np.dot(x, x.T, out=np.zeros((3, 3), np.float32))


PROGRAMS = [
    through_broadcast, through_a_row_of_it, through_diagonal, diagonal_in_place, through_diag, imaginary_part, written_as_out, flags,
    parts_may_be_written, sums, two_results, chosen, called, used_up, larger, rounded_once, signs_of_nan, without_nan,
    parts_of_numbers, bounds_given_twice, one_bound, methods, products, arguments_of_reductions, out_of_another_kind,
    out_of_another_shape, dot_into_another_dtype, dtypes_of_reductions, arrays_without_dimensions, signs_of_zeros_of_complex_numbers,
]  # fmt: skip


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("f", PROGRAMS)
def test_as_plain(f, backend):
    assert not difference(f, (X,), backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_arguments_that_are_only_read(backend):
    x = X.copy()
    x.flags.writeable = False

    def read(a):
        return a.T, a[1:] * 2, a.sum(), a[0]

    def written(a):
        b = a[1:].T
        b[0] = 1

    def copied(a):
        b = a.copy()
        b[0] = a[1]
        return b

    for f in (read, written, copied):
        assert not difference(f, (x,), backend)
    torch._dynamo.reset()
    graphs = []
    f = torch.compile(read, backend=lambda gm, _: graphs.append(gm) or gm)
    shown = f(x)
    assert (
        len(graphs) == 1 and not shown[0].flags.writeable and not shown[3].flags.writeable and shown[1].flags.writeable
    )


def one_element(x):
    x[2, 3] = 1.0


def one_row(x, y):
    x[0] = y[1]


def rows_change_places(x):
    first = x[0].copy()
    x[0] = x[1]
    x[1] = first


def old_and_new(x, y):
    old = x.sum(0)
    x[0] = y[1]
    return old, x.sum(0), x[0] * 2


def shifted(x):
    x[1:] = x[:-1]


def columns(x, y):
    x[:, ::2] = y[:, 1::2]
    x[:, 1] += x[:, 0]
    x[-1, -1] = x[0, 0]


def written_twice(x, y):
    x[0] = y[0]
    y[1] = x[0] + x[1]
    x[1] = y[1] * y[0]


def diagonal_and_view(x):
    v = x[1]
    np.fill_diagonal(x, 7.0)
    v[0] = x[1, 1] + 1
    return v


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "f",
    [one_element, one_row, rows_change_places, old_and_new, shifted, columns, written_twice, diagonal_and_view],
    ids=lambda f: f.__name__,
)
@pytest.mark.parametrize("dtype", [float, "f", complex, int, np.uint8])
def test_parts_are_written_in_place(f, dtype, backend):
    args = [(X + 20 * k).astype(dtype) for k in range(f.__code__.co_argcount)]
    assert not difference(f, args, backend)


def test_writing_a_row_copies_nothing_else():
    torch._dynamo.reset()
    metrics.reset()
    many = np.zeros((40, 40))  # few elements are written by the function itself
    torch.compile(one_row)(many, many + 2)
    assert metrics.generated_kernel_count == 1 and (many[0] == 2).all() and not many[1:].any()
