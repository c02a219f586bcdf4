"""What PyTorch's FAQ says of NumPy under compile: its list of deviations from NumPy (there are none here), what it runs as NumPy, and its examples."""

import linecache
import warnings

import numpy as np
import pytest

import flambeau as torch
from flambeau.dynamo.utils import counters


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()


# --- "features where the semantics slightly deviate" ------------------------------------------------------------------
def scalars(x):
    """ "We model them as 0-D arrays" """
    s = np.float32(3)
    return s, s * x[0], x[0], x.sum(), type(s) is np.float32, isinstance(x[0], float), s.item(), np.float64(2) ** x[1]


def scalar_arithmetic(x):
    s = np.float32(3)
    return s + 1, s + 1.5, np.int8(100) // np.int8(7), type(s).__name__, hash(s), f"{s}"


def negative_strides(x):
    """ "return a copy" """
    y, f = x[::-1], np.flip(x)
    y[0], f[-1] = 5.0, 7.0
    return y, f, y.strides, np.shares_memory(y, x)


def promotion(x):
    return (
        np.float32(3) + 3.0,
        np.array([3], np.float32) + np.float64(3),
        x.astype(np.float32) * 2.5,
        x.astype(np.int8) + 1,
    )


def triangles(x):
    """ "return arrays rather than a tuple of arrays" """
    m = x.reshape(2, 2)
    return np.tril_indices_from(m), np.triu_indices_from(m, 1), np.tril_indices(3), np.triu_indices(3, -1)


# --- "we gracefully fallback to NumPy" --------------------------------------------------------------------------------
def dates(x):
    d = np.array(["2020-01-01", "2020-03-01"], "datetime64[D]")
    return (d[1] - d[0]).astype(int) + x.sum()


def strings(x):
    return np.char.upper(np.array(["a", "b"])), x * 2


def structured(x):
    r = np.zeros(2, [("a", "f8"), ("b", "i4")])
    r["a"] = x[:2]
    return r["a"] * 2, r


def records(x):
    r = np.rec.fromarrays([x, x + 1], names="a,b")
    return r.a + r.b


def long_dtypes(x):
    return (x.astype(np.longdouble) * 2).sum(), (x.astype(np.clongdouble) * 1j).sum()


def unsigned(x):
    return x.astype(np.uint16) + np.uint16(1), x.astype(np.uint64) // np.uint64(2), x.astype(np.uint32) << 3


class Sub(np.ndarray):
    pass


def subclasses(x):
    return x.view(Sub) * 2


def masked(x):
    return np.ma.masked_less(x, 2).sum(), np.ma.masked_less(x, 2).mask


def esoteric_ufuncs(x):
    m = x.reshape(2, 2)
    return (
        np.matmul(m, m, axes=[(1, 0), (0, 1), (0, 1)]), np.add.reduce(x), np.multiply.accumulate(x), np.add.reduceat(x, [0, 2]),
        np.subtract.outer(x, x), np.add.at(x, [0, 0], 1), x,
    )  # fmt: skip


def complex_order(x):
    z = x * (1 - 1j) + 1j * x[::-1]
    return np.sort(z), np.argsort(z), z.max(), np.sort(z.astype(np.complex64))


def polynomials(x):
    return np.poly1d([1, 2, 3])(x), np.polynomial.Polynomial([1, 2])(x)


def two_outs(x):
    a, b = np.empty_like(x), np.empty_like(x)
    given = np.divmod(x, 2.0, a, b)
    np.modf(x, out=(b, a))
    return a, b, len(given)


class Duck:
    def __array_function__(self, f, types, args, kwargs):
        return "function", f.__name__

    def __array_ufunc__(self, f, method, *args, **kwargs):
        return "ufunc", f.__name__, method

    def __array_wrap__(self, *args):
        return "wrapped"


def protocols(x):
    return np.concatenate([Duck()]), np.sin(Duck()), x + Duck()


def interfaces(x):
    return x.__array_interface__["shape"], x.ctypes.data == x.__array_interface__["data"][0], len(x.ctypes.shape)


def objects(x):
    return np.array([1, "a", None], object), x + 1


def with_numpy_scalars_in_lists(x):
    qs = [np.float64(2.5), np.float64(97.5)]
    return np.percentile(x, qs), np.interp(x, [np.float64(0), np.float64(3)], [np.float64(1), np.float64(2)])


ROWS = [
    scalars, scalar_arithmetic, negative_strides, promotion, triangles, dates, strings, structured, records, long_dtypes, unsigned, subclasses,
    masked, esoteric_ufuncs, complex_order, polynomials, two_outs, protocols, interfaces, objects, with_numpy_scalars_in_lists,
]  # fmt: skip


def same(a, b) -> bool:
    if isinstance(a, (tuple, list)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if type(a) is not type(b):
        return False
    if isinstance(a, (np.ndarray, np.generic)):
        fields = a.dtype == b.dtype and a.shape == b.shape
        return fields and (np.allclose(a, b, rtol=1e-14) if a.dtype.kind in "fc" else np.array_equal(a, b))
    return a == b


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("f", ROWS, ids=lambda f: f.__name__)
def test_means_what_numpy_means(f, backend):
    compiled = torch.compile(f, backend=backend)
    x, y = np.arange(1.0, 5.0), np.arange(1.0, 5.0)
    want = f(x)
    for _ in range(2):
        y[:] = np.arange(1.0, 5.0)
        assert same(want, compiled(y))
        assert same(x, y)


# --- its examples -----------------------------------------------------------------------------------------------------
def products(X, Y):
    return np.sum(X[:, :, None] * Y[:, None, :], axis=(-2, -1))


def test_one_graph():
    X, Y = np.random.default_rng(0).random((2, 64, 8))
    got = torch.compile(products, fullgraph=True)(X, Y)
    assert type(got) is np.ndarray
    np.testing.assert_allclose(got, products(X, Y))


def test_under_a_device():
    X, Y = np.ones((2, 4, 3))
    compiled = torch.compile(products, fullgraph=True)
    with torch.device("cpu"):
        assert type(compiled(X, Y)) is np.ndarray
        np.testing.assert_array_equal(compiled(X, Y), products(X, Y))


def test_wrap_numpy_gives_tensors_and_gradients():
    compiled = torch.compile(torch.compiler.wrap_numpy(products), fullgraph=True)
    X, Y = torch.randn(4, 3, dtype=torch.float64, requires_grad=True), torch.randn(4, 3, dtype=torch.float64)
    Z = compiled(X, Y)
    assert isinstance(Z, torch.Tensor) and Z.device.type == "cpu"
    Z.sum().backward()
    np.testing.assert_allclose(X.grad.numpy(), np.broadcast_to(Y.numpy().sum(1, keepdims=True), (4, 3)))


def test_wrap_numpy_with_a_break(capsys):
    def f(X, Y):
        prod = X[:, :, None] * Y[:, None, :]
        print("oops, a graph break!")
        return np.sum(prod, axis=(-2, -1))

    X, Y = torch.ones(4, 3), torch.ones(4, 3)
    Z = torch.compile(torch.compiler.wrap_numpy(f))(X, Y)
    assert isinstance(Z, torch.Tensor) and Z.tolist() == [9.0] * 4
    assert capsys.readouterr().out == "oops, a graph break!\n"


def test_trace_numpy_off():
    before = counters["stats"]["unique_graphs"]
    with torch._dynamo.config.patch(trace_numpy=False):
        X, Y = np.ones((2, 4, 3))
        np.testing.assert_array_equal(torch.compile(products)(X, Y), products(X, Y))
        with pytest.raises(torch._dynamo.exc.Unsupported):
            torch.compile(products, fullgraph=True)(X, Y)
    assert counters["stats"]["unique_graphs"] == before


def test_a_mixed_program():
    def f(t):
        a = t.numpy()
        a += 1
        return torch.from_numpy(np.log(a)) * t

    t, u = torch.ones(3, dtype=torch.float64), torch.ones(3, dtype=torch.float64)
    torch.testing.assert_close(torch.compile(f, fullgraph=True)(t), f(u))
    assert t.tolist() == u.tolist() == [2.0] * 3


# --- what a newcomer reads --------------------------------------------------------------------------------------------
def segment(img, threshold):
    img = img[::-2] * 2.0
    mask = img > threshold
    values = img[mask]
    labels = np.unique(np.round(values, 1))
    print(end="")
    return {"mean": values.mean(), "labels": labels}


def test_explain_says_what_becomes_of_each_line():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        explained = torch._dynamo.explain(segment)(np.random.default_rng(0).random((8, 8)), 0.5)
    said = {
        linecache.getline(file, line).strip(): what
        for (file, line), what in explained.lines.items()
        if file == __file__
    }
    assert said == {
        "img = img[::-2] * 2.0": "plain: a slice with a negative step.; plain: an ndarray of dtype float64, strides (-128, 8).",
        "mask = img > threshold": "compiled",
        "values = img[mask]": "plain: getitem: index: the size of the result depends on the values of the arguments.",
        "labels = np.unique(np.round(values, 1))": "compiled; plain: unique: np.unique: the size of the result depends on the values of the arguments.",
        'print(end="")': "plain: print() is ordinary Python with effects that a graph can't hold, or isn't traced with these arguments.",
        'return {"mean": values.mean(), "labels": labels}': "compiled",
    }
    text = str(explained)
    assert all(f"{line:60}  {what}" in text for line, what in said.items()) and "numpy.greater" in text


class Scaled:
    def __init__(self, factor):
        self.factor = factor

    @torch.compile
    def __call__(self, x):
        return x * self.factor

    @torch.compile
    def method(self, x):
        return x * self.factor + 1


def test_explain_of_a_compiled_method():
    assert torch._dynamo.explain(Scaled(2.0).method)(np.ones(3)).graph_count == 1
    np.testing.assert_array_equal(torch.compile(Scaled(2.0).method, fullgraph=True)(np.ones(3)), [3.0] * 3)
