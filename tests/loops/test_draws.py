"""Random numbers in native loops: NumPy's, bit for bit, and the generator left where plain code leaves it."""

import numpy as np
import pytest

import flambeau as torch
from flambeau.dynamo.utils import counters
from flambeau.testing.loops import run, same

N = 500


def scalars(rng, x):
    s = 0.0
    for i in range(len(x)):
        x[i] = rng.random() + rng.uniform(-1.0, 2.0) * rng.normal(1.0, 0.5)
        s += rng.standard_normal() + rng.exponential(0.5) - rng.lognormal(0.0, 0.25)
        if i % 7 == 3:
            x[i] += rng.choice(5) + rng.choice(x)
    return s


def walk(rng, x):
    at, t = 0, 0
    while t < 1000:
        step = rng.standard_exponential()
        if rng.uniform() < 0.5:
            at += 1
        else:
            at -= 1
        t += 1
        x[at % len(x)] += step
    return at, step


def blocks(rng, x):
    for i in range(N):
        x += rng.normal(size=len(x)) * rng.random(1)
        x[i % 7] += rng.uniform(0, 1, (2, 3)).sum()
    return rng.random()


def of_generator(rng, x):
    s = 0
    for i in range(len(x)):
        k = rng.integers(0, i + 1)
        x[i], x[k] = x[k], x[i]
        s += rng.integers(10) + rng.integers(-5, 5, endpoint=True) + rng.integers(0, 1 << 40) % 3
        x[i] += rng.gamma(2.0, 0.5) * rng.beta(0.5, 2.0) + rng.poisson(3.0) + rng.integers(5, size=3).sum()
    return s


def of_state(rng, x):
    s = 0
    for i in range(len(x)):
        x[i] += (
            rng.rand()
            + rng.randn()
            + rng.random_sample()
            + rng.randint(10)
            + rng.randint(0, 1 << 40) % 5
            + rng.rand(2).sum()
        )
        if rng.randn() > 0:
            s += rng.randint(-3, 4)
    return s


def orders(rng, x):
    y, s = np.arange(60.0).reshape(20, 3), 0
    for i in range(40):
        rng.shuffle(x)
        rng.shuffle(y)
        p, q = rng.permutation(7), rng.permutation(x)
        s += p[0] * q[i] + y[i % 20, 1] + rng.permutation(y)[0, 1] + rng.permutation(0).size
        rng.shuffle(x[i : i + 1])
        rng.shuffle(x[::2])
    return s


def weighted(rng, x):
    p, w, s = np.array([0.1, 0.2, 0.0, 0.4, 0.3]), np.arange(5) * 1.5, 0
    for i in range(len(x)):
        k = rng.choice(5, p=p)
        s += k
        x[i] = rng.choice(w, p=p) + k + rng.choice(5, 3, p=p).sum()
    return s, k


def binomials(rng, x):
    s = 0
    for i in range(len(x)):
        s += rng.binomial(10, 0.3)
        x[i] += rng.binomial(i, 0.7) + rng.binomial(100_000, 0.4) + rng.binomial(i, 0.0)
        x[i] += rng.binomial(5, 0.5, size=4).sum()
    return s


def many_normals(rng, x):
    for i in range(len(x)):
        x[i] = rng.normal() if i % 3 else rng.standard_normal()
    return rng.random()


def state(rng):
    return repr(rng.bit_generator.state if isinstance(rng, np.random.Generator) else rng.get_state(legacy=False))


def check(f, make, n=N):
    torch._dynamo.reset()
    before = counters["stats"]["native_loops"]
    compiled, mine, plain = torch.compile(f), make(), make()
    for _ in range(3):
        a, b = np.arange(float(n)), np.arange(float(n))
        same(compiled(mine, a), f(plain, b))
        np.testing.assert_array_equal(a, b)
        assert state(mine) == state(plain)
    assert counters["stats"]["native_loops"] > before, torch._dynamo.explain(f)(make(), a).loops


GENERATORS = {
    name: (lambda bits=bits: np.random.Generator(bits(7)))
    for name, bits in (
        ("PCG64", np.random.PCG64),
        ("MT19937", np.random.MT19937),
        ("Philox", np.random.Philox),
        ("SFC64", np.random.SFC64),
    )
}


@pytest.mark.parametrize(
    "f", [scalars, walk, blocks, of_generator, orders, weighted, binomials], ids=lambda f: f.__name__
)
@pytest.mark.parametrize("kind", GENERATORS)
def test_generator(f, kind):
    check(f, GENERATORS[kind])


@pytest.mark.parametrize("kind", GENERATORS)
def test_normals_of_every_layer(kind):
    check(many_normals, GENERATORS[kind], 100_000)


def test_normals_without_the_quick_way(monkeypatch):
    monkeypatch.setattr("flambeau.loops.random_numbers.draws.bits.ziggurat_tables", lambda: None)
    check(many_normals, GENERATORS["PCG64"])


@pytest.mark.parametrize("f", [scalars, walk, blocks, of_state, orders, weighted], ids=lambda f: f.__name__)
def test_random_state(f):
    check(f, lambda: np.random.RandomState(3))


@pytest.mark.parametrize(
    "most", [1, 2, 3, 1000, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, (1 << 32) + 1, (1 << 61) + 1, (1 << 62) - 1]
)
def test_integers_of_all_sizes(most):
    def f(rng, x):
        for i in range(len(x)):
            x[i] = rng.integers(0, most)
        return rng.random()

    def g(rng, x):
        for i in range(len(x)):
            x[i] = rng.randint(0, most)
        return rng.random_sample()

    check(f, lambda: np.random.default_rng(1))
    check(g, lambda: np.random.RandomState(1))


def test_the_global_generator():
    def f(n):
        np.random.seed(5)
        inside = 0
        for _ in range(n):
            x, y = np.random.random(), np.random.rand()
            if x * x + y * y <= 1.0:
                inside += 1
        return 4.0 * inside / n, np.random.normal(), np.random.randint(3)

    before = counters["stats"]["native_loops"]
    compiled = torch.compile(f)
    for n in (2000, 3000):
        got, where = compiled(n), state(np.random.mtrand._rand)
        same(got, f(n))
        assert where == state(np.random.mtrand._rand)
    assert counters["stats"]["native_loops"] > before


def test_a_loop_that_only_draws():
    def f(n):
        s = 0.0
        for _ in range(n):
            s += np.random.normal(0.0, 1.0)
        return s

    torch._dynamo.reset()
    before, compiled = counters["stats"]["native_loops"], torch.compile(f)
    for n in (101, 101, 100):
        np.random.seed(n)
        want, after = f(n), np.random.random()
        np.random.seed(n)
        assert compiled(n) == want and np.random.random() == after
    assert counters["stats"]["native_loops"] > before


def test_a_generator_made_inside():
    def f(n, seed):
        rng = np.random.default_rng(seed)
        a = np.empty(n)
        for i in range(n):
            a[i] = rng.normal() if rng.random() < 0.5 else -rng.random()
        return a, rng.random()

    compiled = torch.compile(f, fullgraph=True)
    for seed in (1, 2, 3):
        same(compiled(400, seed), f(400, seed))


@pytest.mark.parametrize("bad", [(0.0, -1.0), (0.0, -0.0), (0.0, float("nan"))])
def test_what_numpy_refuses_is_refused_there(bad):
    def f(rng, out, scales):
        for i in range(len(out)):
            out[i] = rng.normal(bad[0], scales[i])
        return rng.random()

    compiled, mine, plain = torch.compile(f), np.random.default_rng(1), np.random.default_rng(1)
    for at in (None, 30):
        scales = np.ones(100)
        if at is not None:
            scales[at] = bad[1]
        a, b = np.zeros(100), np.zeros(100)
        same(run(compiled, mine, a, scales), run(f, plain, b, scales))
        np.testing.assert_array_equal(a, b)
        assert state(mine) == state(plain)


@pytest.mark.parametrize("draw", [lambda r, p: r.choice(3, p=p), lambda r, p: r.binomial(9, p[0])])
@pytest.mark.parametrize("bad", [[0.5, 0.6, 0.2], [-0.1, 0.6, 0.5], [np.nan, 0.5, 0.5], [0.5, 0.5], [1.5, 0.0, 0.0]])
def test_probabilities_that_numpy_refuses(draw, bad):
    def f(rng, out, p, q):
        for i in range(100):
            out[i] = draw(rng, p if i < 50 else q)
        return rng.random()

    torch._dynamo.reset()
    compiled, mine, plain = torch.compile(f), np.random.default_rng(1), np.random.default_rng(1)
    for q in (np.array([0.2, 0.2, 0.6]), np.array(bad)):
        a, b = np.zeros(100), np.zeros(100)
        same(run(compiled, mine, a, np.array([0.3, 0.2, 0.5]), q), run(f, plain, b, np.array([0.3, 0.2, 0.5]), q))
        np.testing.assert_array_equal(a, b)
        assert state(mine) == state(plain)


def test_an_index_out_of_bounds_after_draws():
    def f(rng, out):
        rng.random()
        for i in range(200):
            out[i] += rng.integers(3)
        return out

    compiled, mine, plain = torch.compile(f), np.random.default_rng(1), np.random.default_rng(1)
    for n in (200, 200, 150):
        a, b = np.zeros(n), np.zeros(n)
        same(run(compiled, mine, a), run(f, plain, b))
        np.testing.assert_array_equal(a, b)
        assert state(mine) == state(plain)


def test_legacy_state_is_read_where_it_lies():
    """NumPy's own get_state takes longer than a thousand draws. Spare normal numbers, their absence, and states after errors are NumPy's."""
    from flambeau.loops.random_numbers.twister import Twister, spare_place

    assert spare_place() is not None
    rng = np.random.RandomState(5)
    mirror = Twister(rng, rng._bit_generator)
    for draws in range(3):
        rng.standard_normal(draws)
        state = rng.get_state(legacy=False)
        spare = np.zeros(2, np.int64)
        mirror.read_spare(spare)
        assert (spare[0], spare[1:].view(np.float64)[0]) == (state["has_gauss"], state["gauss"])
    kept, before = mirror.state(), repr(rng.get_state(legacy=False))
    rng.standard_normal(700)
    mirror.restore(kept)
    assert repr(rng.get_state(legacy=False)) == before


@pytest.mark.parametrize("before", [0, 1])
def test_spare_normal_numbers_go_in_and_out(before):
    def walk(rng, n):
        x = 0.0
        for _ in range(n):
            x += rng.standard_normal() if rng.random() < 0.7 else 1.0
        return x

    for n in (200, 201, 1003):
        generators = [np.random.RandomState(n) for _ in range(2)]
        for g in generators:
            g.standard_normal(before)
        assert torch.compile(walk)(generators[0], n) == walk(generators[1], n)
        assert repr(generators[0].get_state()) == repr(generators[1].get_state())
        assert generators[0].standard_normal() == generators[1].standard_normal()
