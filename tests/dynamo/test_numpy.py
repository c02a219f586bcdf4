"""NumPy code under capture: NumPy's values, dtypes and types, in one graph where the table has an entry."""

import math
import operator
import subprocess
import sys

import numpy as np
import pytest
from helpers import Graphs, check

import flambeau as torch
from flambeau.compiler import compile
from flambeau.dynamo import exc

X = np.arange(1.0, 7).reshape(2, 3)
F = X.astype(np.float32) / 3
I = np.array([[5, -2, 7], [0, 1, 3]])  # noqa: E741


def faq(x, y):
    return np.sum(x[:, :, None] * y[:, None, :], axis=(-2, -1))


ONE_GRAPH = [
    (faq, X, X + 1), (faq, F, X), (faq, I, I),
    (lambda x: np.sin(x) + np.exp(-x) / 2, X), (lambda x: np.sin(x), I), (lambda x: x * 2.5, I), (lambda x: x / 2, I), (lambda x: x + 1, F),
    (lambda x: x + np.float64(1), F), (lambda x: 2 - x, F), (lambda x: x.sum(), X), (lambda x: x.mean(axis=0), I), (lambda x: x.std(), F),
    (lambda x: np.max(x, axis=1, keepdims=True), X), (lambda x: (x > 2) & (x < 5), X),
    (lambda x: x.T @ x, X), (lambda x: x.reshape(3, 2).astype(np.float32), I), (lambda x: np.concatenate([x, x], axis=1), X),
    (lambda x: (x.shape, x.ndim, x.size, x.dtype, x[0, 1], x[:, ::2]), X), (lambda x: x.argmax(), X), (lambda x: np.stack((x, x * 2)), F),
    (lambda x: np.clip(x, 2, 4.5), X), (lambda x, y: np.maximum(x, y), X, F), (lambda x: np.sqrt(np.abs(x)).round(), X),
    (lambda x: np.zeros(3) + x, X), (lambda x: x ** 2, X), (lambda x, y: x == y, X, X), (lambda x: np.mean(x) * np.float32(3), X),
]  # fmt: skip


@pytest.mark.parametrize("i", range(len(ONE_GRAPH)))
def test_one_graph(i):
    fn, *args = ONE_GRAPH[i]
    check(fn, *args, fullgraph=True)


ZERO = np.array(2.5)
TYPES = [
    lambda x, z: (
        x.sum(),
        np.sum(x),
        x[0, 1],
        x.mean() * 2,
        np.sin(z),
        np.clip(z, 0, 1),
        np.linalg.norm(x),
        np.einsum("ij->", x),
    ),
    lambda x, z: (
        np.reshape(x[:1, 0], ()),
        x[:1, 0].squeeze(),
        np.transpose(z),
        z.T,
        z.copy(),
        z.astype(np.float32),
        np.zeros_like(z),
    ),
    lambda x, z: (
        np.where(z > 1, z, 0),
        np.tensordot(x, x, 2),
        x[0, ..., 1],
        x.sum().astype(np.float32),
        np.broadcast_to(z, ()),
    ),
]


@pytest.mark.parametrize("f", TYPES)
def test_scalars_and_arrays_without_dimensions(f):
    """NumPy gives scalars for some results without dimensions and arrays for others."""
    for got, want in zip(compile(f, backend="eager", fullgraph=True)(X, ZERO), f(X, ZERO)):
        # Captured code has the compiled loops' sine, which may differ from NumPy's in the last bit.
        assert type(got) is type(want) and got.dtype == want.dtype and np.allclose(got, want, rtol=1e-15, atol=0)


def test_writes_reach_the_argument():
    def f(x):
        x += 1
        x[0] = 9
        return x

    check(f, X.copy(), fullgraph=True)


def test_graph_break_keeps_arrays():
    def f(x):
        a = x * 2
        print("break", end="")
        return np.sin(a), a

    check(f, X, graphs=2)


def test_what_is_not_in_the_table_runs_in_numpy():
    check(lambda x: np.linalg.norm(x * 2) + 1, X)
    check(lambda x: np.sort(x)[::-1], X)
    check(lambda x: x[x > 2] * 2, X)
    check(lambda x: x // 2 % 3, I)
    check(lambda x: np.add.reduce(x, axis=0), X)
    check(lambda x: np.unique(x), X)
    check(lambda x: np.trim_zeros(x[0]), X)
    with pytest.raises(exc.Unsupported, match="tensor counterpart"):
        compile(lambda x: np.trim_zeros(x[0]), backend="eager", fullgraph=True)(X)


def test_the_first_use_of_a_module_that_numpy_imports_when_it_is_asked_for():
    program = "import numpy as np, flambeau as torch\nx = np.arange(3.0)\n"
    for expression in ("np.fft.fft(x).real", "np.polynomial.polynomial.polyval(x, x)", "np.random.default_rng(7).normal(size=3) + x"):  # fmt: skip
        program += (
            f"f = lambda x: {expression}\n"
            "np.testing.assert_array_equal(torch.compile(f, backend='eager', fullgraph=True)(x), f(x))\n"
        )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_arrays_are_guarded():
    g = Graphs()
    f = compile(lambda x: x * 2, backend=g)
    for a, n in ((X, 1), (X + 1, 1), (X[:, :2], 2), (F, 3), (X.T, 4), (np.asfortranarray(X), 4), (X + 3, 4)):
        assert np.array_equal(f(a), a * 2) and len(g.gms) == n


def test_mixed_with_tensors():
    def f(t):
        a = np.exp(t.numpy())
        return torch.from_numpy(a).sum() + t.sum(), a

    check(f, torch.tensor([1.0, 2.0]), fullgraph=True, graphs=1)


def test_a_long_loop_that_is_not_native_runs_plainly():
    """Unrolled it would be a graph of as many operators, which takes minutes to compile."""

    def running(x):
        out, total = [], 0.0
        for v in x:
            total += v
            out.append([total])
        return np.array(out)

    x = np.arange(5000.0)
    graphs = []
    f = torch.compile(running, backend=lambda gm, inputs: graphs.append(gm) or gm.forward)
    assert np.array_equal(f(x), running(x)) and not graphs
    with pytest.raises(torch._dynamo.exc.Unsupported, match="too long to be unrolled"):
        torch.compile(running, backend="eager", fullgraph=True)(x)
    assert np.array_equal(f(x[:50]), running(x[:50]))


def _counted(labels):
    counts = {}
    for v in labels:
        counts[v] = counts.get(v, 0) + 1
    return sorted(counts.items())


@pytest.mark.parametrize(
    "f",
    [
        lambda labels: len(set(labels)),
        _counted,
        lambda labels: [v in {1, 2} for v in labels],
        lambda labels: {1: 5, 0: 3}.get(labels[0]),
        lambda labels: {labels[1]} | {labels[2]},
    ],
)
def test_numbers_are_keys_by_their_values(f):
    labels = np.array([0, 1, 1])
    assert torch.compile(f, backend="eager")(labels) == f(labels)


def _outcome(f, *args):
    try:
        got = f(*args)
    except (TypeError, ValueError, OverflowError) as e:
        return type(e)
    return got.dtype if isinstance(got, np.ndarray) else type(got), repr(got)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: round(x[1]),
        lambda x: x[round(x[1])],
        lambda x: round(x[1], None),
        lambda x: round(x[1], ndigits=1),
        lambda x: round(x[1], 1),
        lambda x: round(x.sum()),
        lambda x: round(x),
        lambda x: [0] * x[1],
        lambda x: x[1] * (0, 1),
        lambda x: operator.imul([0, 1], x.sum()),
        lambda x: "ab" * x[1],
        lambda x: [0, 1, 2] * x,
        lambda x: [1] * x.reshape(3)[:1],
    ],
)
@pytest.mark.parametrize("x", [[0, 2, 1], [0.5, 1.26, 2.5], [1.0, np.nan, np.inf]])
def test_numbers_give_what_numpys_scalars_do(f, x):
    """round() of one is Python's int; a product with a sequence of Python's repeats that."""
    x = np.array(x)
    assert _outcome(torch.compile(f, backend="eager"), x) == _outcome(f, x)


class Marked(torch.Tensor):
    pass


@pytest.mark.parametrize("backend", [None, "eager", "inductor"])
@pytest.mark.parametrize("make", [torch.from_numpy, torch.as_tensor, torch.asarray])
@pytest.mark.parametrize("cls", [torch.Tensor, Marked])
def test_a_tensor_of_a_tensors_array_is_another_tensor(cls, make, backend):
    def f(x):
        t = make(x.numpy())
        t += 1
        return t, t is x

    x = torch.ones(3).as_subclass(cls)
    t, same = (f if backend is None else torch.compile(f, backend=backend))(x)
    assert type(t) is torch.Tensor and t is not x and not same
    assert x.tolist() == [2.0, 2.0, 2.0] and t.data_ptr() == x.data_ptr()


def test_a_function_that_is_looked_up_in_its_module_by_name():
    def f(name, x):
        return np.__getattribute__(name)(x, axis=1) * math.__getattribute__("sqrt")(4.0)

    for name in ("sum", "max", "sum"):
        check(f, name, X)
