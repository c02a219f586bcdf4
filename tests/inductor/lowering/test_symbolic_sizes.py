"""Graphs of symbolic sizes: one compilation, called at many sizes and compared with eager."""

import random

import numpy as np
import pytest

import flambeau as torch
from flambeau.inductor import compile_graph
from flambeau.inductor.machine import cache
from flambeau.proxy import make_fx

F = torch.nn.functional
SIZES = [(8, 96), (3, 5), (2, 1000), (64, 31), (100, 257)]


def R(*shape):
    rng = np.random.default_rng(sum(shape) + 1)
    return torch.from_numpy(rng.normal(size=shape).astype(np.float32))


def I(high, *shape):  # noqa: E743
    return torch.from_numpy(np.random.default_rng(sum(shape)).integers(0, high, shape))


def compiled(fn, *args):
    return compile_graph(make_fx(fn, tracing_mode="symbolic")(*args), None)


def agrees(got, want):
    for g, w in zip(got, want if isinstance(want, tuple) else (want,), strict=True):
        if isinstance(w, torch.Tensor):
            assert g.shape == w.shape and g.stride() == w.stride() and g.dtype is w.dtype
            np.testing.assert_allclose(g.numpy(), w.numpy(), rtol=3e-5, atol=3e-5)
        else:
            assert g == w


PROGRAMS = {
    "pointwise": (lambda x: F.gelu(x) * 2 + 1, lambda m, n: (R(m, n),)),
    "broadcast": (lambda x, y: x * y + x[:, :1], lambda m, n: (R(m, n), R(n))),
    "transposed operand": (lambda x, y: x + y.t(), lambda m, n: (R(m, n), R(n, m))),
    "softmax": (lambda x: x.softmax(-1), lambda m, n: (R(m, n),)),
    "softmax over rows": (lambda x: x.softmax(0), lambda m, n: (R(m, n),)),
    "sums": (lambda x: (x.sum(0), x.sum(1), x.sum()), lambda m, n: (R(m, n),)),
    "means": (lambda x: (x.mean(0), x.mean(1), x.mean()), lambda m, n: (R(m, n),)),
    "extremes": (lambda x: (x.amax(1), x.argmax(1), x.argmin(0)), lambda m, n: (R(m, n),)),
    "layer norm": (lambda x, w: F.layer_norm(x.view(x.shape[0], -1), w.shape, w), lambda m, n: (R(m, n), R(n))),
    "matrix product": (lambda x, y: F.relu(x @ y + 1), lambda m, n: (R(m, n), R(n, 48))),
    "batched product": (lambda x, y: x @ y.transpose(1, 2), lambda m, n: (R(4, m, n), R(4, m, n))),
    "matrix times vector": (lambda x, y: x @ y, lambda m, n: (R(m, n), R(n))),
    "flattened": (lambda x: F.relu(x.reshape(-1)), lambda m, n: (R(m, n),)),
    "permuted": (lambda x: (x.permute(2, 0, 1) * 2).contiguous(), lambda m, n: (R(m, n, 6),)),
    "cut and joined": (lambda x: torch.cat([x[1:], x[:1], x * 2], 0), lambda m, n: (R(m, n),)),
    "joined columns": (lambda x, y: torch.cat([x, y], 1), lambda m, n: (R(m, n), R(m, n + 3))),
    "padded": (lambda x: F.pad(x, [1, 2], value=0.5), lambda m, n: (R(m, n),)),
    "embedding": (lambda w, i: F.embedding(i, w) * 2, lambda m, n: (R(50, n), I(50, m, 4))),
    "gathered": (lambda x, i: x.gather(1, i), lambda m, n: (R(m, n), I(n, m, 4))),
    "rows taken": (lambda x, i: x[i] + 1, lambda m, n: (R(m, n), I(m, 7))),
    "scattered": (lambda x, i, s: x.scatter_add(1, i, s), lambda m, n: (R(m, n), I(n, m, 4), R(m, 4))),
    "sorted": (lambda x: (*x.sort(1), *x.t().sort(0)), lambda m, n: (R(m, n),)),
    "most frequent": (lambda x: (*x.round().mode(1), *x.round().mode(0)), lambda m, n: (R(m, n),)),
    "put": (lambda x, i, s: x.index_put((i,), s, accumulate=True), lambda m, n: (R(m, n), I(m, 5), R(5, n))),
    "eager kernel": (lambda x: (x * 2).cumsum(1) + 1, lambda m, n: (R(m, n),)),
    "numbers of sizes": (lambda x: (x * x.shape[0] / x.shape[1], x.shape[0] * x.shape[1]), lambda m, n: (R(m, n),)),
    "positions": (lambda x: x + torch.arange(x.shape[1]), lambda m, n: (R(m, n),)),
    "expanded": (lambda x: x.unsqueeze(0).expand(3, -1, -1) * 2, lambda m, n: (R(m, n),)),
    "causal mask": (
        lambda x: x.masked_fill(torch.ones(x.shape[0], x.shape[1]).tril() == 0, float("-inf")).softmax(-1),
        lambda m, n: (R(m, n),),
    ),
    "attention": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        lambda m, n: (R(2, 3, m, 16), R(2, 3, m, 16), R(2, 3, m, 16)),
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_graph_for_all_sizes(name):
    fn, make = PROGRAMS[name]
    graph = compiled(fn, *make(*SIZES[0]))
    for m, n in SIZES:
        if name == "layer norm" and n != 96:
            n = 96
        args = make(m, n)
        agrees(graph(*args), fn(*args))


def test_large_sizes_are_split_over_threads_and_pieces():
    graph = compiled(lambda x: (x.sum(), (x * 2).softmax(-1), x.sum(0)), R(8, 96))
    x = R(700, 1111)
    total, soft, columns = graph(x)
    exact = x.numpy().astype(np.float64)
    assert abs(total.numpy() - exact.sum()) < 1e-4 * np.abs(exact).sum() ** 0.5
    np.testing.assert_allclose(columns.numpy(), exact.sum(0), atol=1e-4)
    agrees([soft], (x * 2).softmax(-1))


def test_long_rows_of_intermediate_results_come_from_the_heap():
    graph = compiled(lambda x: x.exp().softmax(-1).softmax(-1), R(3, 50))
    for n in (50, 7, 300_001):
        x = R(2, n) * 0.01
        agrees(graph(x), x.exp().softmax(-1).softmax(-1))


def test_other_strides_are_copied_and_what_contradicts_the_facts_is_refused():
    graph = compiled(lambda x: x * 2, R(8, 96))
    x = R(7, 5).t()
    np.testing.assert_array_equal(graph(x)[0].numpy(), x.numpy() * 2)
    with pytest.raises(RuntimeError, match="size of 1, it was compiled for values from 2"):
        graph(R(1, 5))
    with pytest.raises(RuntimeError, match="float64"):
        graph(R(4, 5).double())
    with pytest.raises(RuntimeError, match="more than 1 dimensions"):
        graph(R(4))
    both = compiled(lambda x, y: x + y, R(8, 96), R(8, 96))
    with pytest.raises(RuntimeError, match="it was compiled for shape"):
        both(R(4, 5), R(4, 6))


def test_numbers_are_arguments():
    from flambeau.base.shape_env import ShapeEnv
    from flambeau.core.definition import TensorMeta
    from flambeau.inductor.compile import compile_program
    from flambeau.inductor.passes.decompose import OpProgram, _Recording, _without_data

    aten = torch.ops.aten
    env, program = ShapeEnv(), OpProgram()
    recording = _Recording(program)
    twin = _without_data(TensorMeta((4,), (1,), torch.float32, torch.device("cpu")))
    x = recording.know(twin, program.add("input", "x", (), {}, twin))
    rate, count = env.create_float(0.5), env.create_int(3)
    program.add("input", "rate", (), {}, rate)
    program.add("input", "count", (), {}, count)
    with recording:
        y = aten.add.Tensor(aten.mul.Tensor(x, rate), count)
        z = aten.mul.Tensor(x, rate * 2 + count)
    program.outputs = [recording.reference(y), recording.reference(z)]
    program.count()
    graph, _ = compile_program(program)
    for r, n in ((0.5, 3), (-1.25, 7), (1e-3, -2)):
        v = R(4)
        y, z = graph(v, r, n)
        np.testing.assert_allclose(y.numpy(), v.numpy() * np.float32(r) + n, rtol=1e-6)
        np.testing.assert_allclose(z.numpy(), v.numpy() * np.float32(r * 2 + n), rtol=1e-6)


def test_sizes_that_depend_on_data():
    def fn(x):
        picked = x[torch.nonzero(x > 0).squeeze(1)]
        n = (x > 1).sum().item()
        torch._check(n >= 2)
        torch._check(n < 1000)
        return picked * 2, torch.zeros(n) + n, x.sum().item() * x

    graph = compiled(fn, R(40) + 1)
    for m in (40, 300, 9):
        x = R(m) + 1
        agrees(graph(x), fn(x))
    with pytest.raises(RuntimeError):
        graph(torch.zeros(8))


def test_index_errors_name_the_size_of_the_call():
    graph = compiled(lambda x, i: x[i], R(8, 3), I(8, 5))
    with pytest.raises(IndexError, match="index 11 is out of bounds for dimension with size 11"):
        graph(R(11, 3), I(8, 4) * 0 + 11)


def test_kernels_are_the_same_for_equal_nests_of_any_example():
    sources = [compiled(lambda x: x.softmax(-1), R(*s)).info.kernels for s in ((8, 96), (50, 200))]
    assert list(sources[0]) == list(sources[1])
    assert all(cache.read(name) is not None for name in sources[0])


def test_overflow_of_a_product_of_sizes_is_an_error():
    graph = compiled(lambda x, y: (x.unsqueeze(1) * y.unsqueeze(0)).sum(), R(8), R(9))
    huge = torch.from_numpy(np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), (1 << 40,), (0,)))
    with pytest.raises((OverflowError, MemoryError, RuntimeError)):
        graph(huge, huge)


STEPS = [
    ("relu", lambda r, v: F.relu(v)),
    ("exp", lambda r, v: torch.exp(v * 0.1)),
    ("softmax", lambda r, v: v.softmax(r.choice([0, 1]))),
    ("centred", lambda r, v: v - v.mean(r.choice([0, 1]), keepdim=True)),
    ("normed", lambda r, v: v / (1 + v.abs().amax(1, keepdim=True))),
    ("transposed", lambda r, v: v.t()),
    ("contiguous", lambda r, v: v.contiguous()),
    ("flat and back", lambda r, v: (v.reshape(-1) + 1).reshape(v.shape)),
    ("joined", lambda r, v: torch.cat([v, v * 2], r.choice([0, 1]))),
    ("without the first", lambda r, v: v[1:] if r.random() < 0.5 else v[:, 1:]),
    ("every second", lambda r, v: v[:, ::2]),
    ("times itself", lambda r, v: v @ v.t() * 0.01),
    ("summed and spread", lambda r, v: v.sum(0).expand(v.shape[0], -1) * 0.1),
    ("padded", lambda r, v: F.pad(v, [1, 1])),
    ("positions", lambda r, v: v + torch.arange(v.shape[1]) * 0.01),
    ("scaled by a size", lambda r, v: v * v.shape[0] / 10),
    ("flipped", lambda r, v: v.flip(1)),
    ("cumulative", lambda r, v: v.cumsum(0) * 0.1),
]


@pytest.mark.parametrize("seed", range(40))
def test_random_program(seed):
    def fn(x, y):
        rng = random.Random(seed)
        values = [x, y * 2]
        for _ in range(rng.randint(2, 9)):
            v = values[-1] if rng.random() < 0.7 else rng.choice(values)
            _, step = rng.choice(STEPS)
            values.append(step(rng, v))
        return values[-1], rng.choice(values) + 0

    graph = compiled(fn, R(24, 41), R(24, 41))
    for m, n in ((24, 41), (17, 12), (40, 130), (12, 300), (33, 64)):
        args = R(m, n), R(m, n) + 0.5
        agrees(graph(*args), fn(*args))


def test_numbers_computed_from_numbers_come_out_and_go_into_eager_kernels():
    def fn(x, scale):
        n = x.sum().item()
        return x * scale, scale / 50, n / x.shape[0], torch.sort(x * n)[0], (x > 0).any().item()

    compiled_fn = torch.compile(fn, dynamic=True)
    for m, scale in ((8, 0.5), (9, 0.75), (30, 2.5)):
        x = R(m)
        got, want = compiled_fn(x, scale), fn(x, scale)
        for g, w in zip(got, want):
            if isinstance(w, torch.Tensor):
                np.testing.assert_allclose(g.numpy(), w.numpy(), rtol=1e-5)
            else:
                assert type(g) is type(w) and g == pytest.approx(w, rel=1e-6)


def test_strides_of_sizes_that_became_numbers():
    """A guard makes one of the sizes a number after the input's strides were written with its symbol."""

    def f(x, weight):
        return (x * weight[:, None, None] + 1).relu()

    compiled = torch.compile(f, dynamic=True)
    for c, n in ((6, 5), (6, 7), (4, 7)):
        x, weight = torch.randn(2, c, n, n), torch.nn.Parameter(torch.randn(6)[:c].clone())
        torch._dynamo.mark_static(weight)
        assert torch.equal(compiled(x, weight), f(x, weight))


def test_products_of_sizes_that_a_guard_makes_equal():
    """``reshape(.., -1)`` has a quotient for its last size; that it is the weight's is a guard, not the same expression."""

    def f(x, y, weight):
        return x.transpose(1, 2).reshape(2, y.shape[1], -1) @ weight

    compiled = torch.compile(f, dynamic=True)
    for n in (5, 9):
        args = R(2, 4, n, 8), R(2, n), R(32, 3)
        torch._dynamo.mark_static(args[2])
        np.testing.assert_allclose(compiled(*args), f(*args), rtol=1e-4, atol=1e-4)


def test_an_order_that_varies():
    """`polygamma` of another order at each call: the eager kernel runs."""
    f = torch.compile(lambda x, n: torch.polygamma(n, x))
    x = torch.tensor([1.5, 2.5], dtype=torch.float64)
    for n in (0, 1, 2, 3, 5, 1):
        torch.testing.assert_close(f(x, n), torch.polygamma(n, x))


def test_a_symbol_told_by_another_that_equals_it():
    """The backward's only inputs that tell the sizes of its result are numbers, which the forward found to equal the sizes of its tensor."""

    def f(x, place):
        return torch.ops.aten._as_strided_scatter(x, *place)

    place = ([6], [1], [2, 2], [1, 2], 1)
    gradients = []
    for fn in (f, torch.compile(f, dynamic=True)):
        x = R(2, 2).requires_grad_()
        gradients.append(torch.autograd.grad(fn(x, place).cumsum(0).sum(), x)[0].tolist())
    assert gradients[0] == gradients[1]
