"""Results that are views of an argument, or an element of it, come from captured code without a graph (dynamo/numpy/views.py), and are what NumPy gives."""

import numpy as np
import pytest

import flambeau as torch
from flambeau import _frame, _runtime


def written_through(a):
    v = a.T
    v[1] = 3.0
    return v


def written_before(a):
    v = a[1:]
    a += 1
    return v, a[2, 3]


def read_before_a_write(a):
    x = a[1, 2]
    a[1, 2] = 5
    return x


def beside_a_graph(a):
    return a[1, 2], a * 2, a[::2, 1:5], a.T[2]


def turned(a):
    return a.T


def element(a):
    return a[1, -2]


VIEWS = [
    turned, lambda a: a[1:], lambda a: a[::2, ::3], lambda a: a.ravel(), lambda a: a.reshape(4, 12), lambda a: a[-1], lambda a: a[None, ..., 1],
    lambda a: a[:0], lambda a: a.swapaxes(0, 1)[2:], lambda a: a[...], lambda a: (a[0], a[1]), lambda a: np.squeeze(a[None]), element,
    lambda a: a[::-1], lambda a: np.flip(a), lambda a: (a[:, ::-1], a.T), lambda a: np.broadcast_to(a[1], (3, 8)), lambda a: a.diagonal(), lambda a: np.diag(a),
    lambda a: a.real.T, lambda a: a.view(),
]  # fmt: skip
OTHERS = [
    lambda a: a.T.ravel(), lambda a: a[::-1] * 2, lambda a: (a[::-1], a + 1),
    written_through, written_before, read_before_a_write, beside_a_graph,
]  # fmt: skip
LAYOUTS = [
    lambda a: a,
    lambda a: np.asfortranarray(a),
    lambda a: np.repeat(np.repeat(a, 2, 0), 2, 1)[::2, ::2],
    lambda a: a[::-1],
]


def parts(result):
    return result if isinstance(result, tuple) else (result,)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("f", VIEWS + OTHERS)
def test_as_numpy_has_them(f, layout):
    compiled = torch.compile(f)
    for seed in range(3):
        a, b = (layout(np.random.default_rng(seed).random((6, 8))) for _ in range(2))
        want, got = parts(f(a)), parts(compiled(b))
        for w, g in zip(want, got, strict=True):
            np.testing.assert_array_equal(w, g)
            assert type(w) is type(g)
            if isinstance(w, np.ndarray):
                assert np.shares_memory(w, a) == np.shares_memory(g, b) or layout is LAYOUTS[3]
                assert w.flags.writeable == g.flags.writeable
        np.testing.assert_array_equal(a, b)


def calls(f):
    """What the captured variants of f call instead of a graph."""
    (cache,) = _frame.caches(f.__code__).values()
    return [c for _, code, _ in cache.entries for c in code.co_consts if isinstance(c, _runtime.ArrayView)]


@pytest.mark.parametrize("f", VIEWS)
def test_no_graph_is_called(f):
    torch._dynamo.reset()
    compiled = torch.compile(f)
    compiled(np.ones((6, 8)))
    assert calls(f)


@pytest.mark.parametrize("f", [turned, lambda a: a[1], lambda a: a[::-1], lambda a: a[:, ::2], lambda a: (a[0], a.T)])
def test_what_isnt_writable_stays_so(f):
    a = np.ones((3, 4))
    a.flags.writeable = False
    compiled = torch.compile(f)
    for got in parts(compiled(a)):
        assert np.shares_memory(got, a) and not got.flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            got[0] = 1
    assert calls(f)
    b = np.ones((3, 4))
    assert all(got.flags.writeable for got in parts(compiled(b)))


@pytest.mark.parametrize(
    "f",
    [
        lambda z: z.real,
        lambda z: z.imag,
        lambda z: z.imag[1],
        lambda z: np.real(z)[::-1],
        lambda z: z[::-1],
        lambda z: z.T,
    ],
)
def test_parts_of_complex_numbers(f):
    compiled = torch.compile(f)
    for dtype in ("c16", "c8"):
        z = (np.arange(12.0).reshape(3, 4) * (1 - 2j)).astype(dtype)
        want, got = f(z), compiled(z)
        assert (got.dtype, got.strides, got.flags.writeable) == (want.dtype, want.strides, want.flags.writeable)
        got[1] = 7
        np.testing.assert_array_equal(want, got)
    assert calls(f)


def test_a_place_outside_of_the_array():
    view = _runtime.ArrayView(np.dtype("f8"), (2,), (8,), 8, False)
    np.testing.assert_array_equal(view(np.arange(3.0)), [1, 2])
    for wrong in (np.arange(2.0), np.arange(3), np.arange(4.0)[::-1]):
        with pytest.raises(ValueError, match="another description"):
            view(wrong)
    backwards = _runtime.ArrayView(np.dtype("c16"), (2,), (-16,), 24, False, True, np.dtype("f8"))
    np.testing.assert_array_equal(backwards(np.array([1 + 2j, 3 + 4j])), [4, 2])
    with pytest.raises(ValueError, match="another description"):
        backwards(np.array([1 + 2j]))
    with pytest.raises(TypeError, match="such elements"):
        _runtime.ArrayView(np.dtype("c16"), (), (), 8, True, False, np.dtype("f8"))
