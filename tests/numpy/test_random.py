"""NumPy's random numbers in captured code: the numbers of plain NumPy, of its types, and the generator left where plain NumPy leaves it."""

import numpy as np
import pytest

import flambeau as torch
from flambeau.dynamo.utils import counters

P = np.array([0.2, 0.3, 0.5])
BOTH = {
    "beta": (0.5, 2.0), "binomial": (10, 0.3), "chisquare": (2.0,), "exponential": (1.5,), "f": (2.0, 3.0), "gamma": (2.0, 0.5), "geometric": (0.3,),
    "gumbel": (1.0, 2.0), "hypergeometric": (5, 6, 7), "laplace": (0.0, 2.0), "logistic": (1.0,), "lognormal": (0.1, 0.5), "logseries": (0.4,),
    "negative_binomial": (3, 0.4), "noncentral_chisquare": (2.0, 1.0), "noncentral_f": (2.0, 3.0, 1.0), "normal": (1.0, 2.0), "pareto": (3.0,),
    "poisson": (4.0,), "power": (2.0,), "random": (), "rayleigh": (1.0,), "standard_cauchy": (), "standard_exponential": (), "standard_gamma": (2.0,),
    "standard_normal": (), "standard_t": (3.0,), "triangular": (0.0, 1.0, 2.0), "uniform": (-1.0, 2.0), "vonmises": (0.0, 1.0), "wald": (1.0, 2.0),
    "weibull": (1.5,), "zipf": (2.5,),
}  # fmt: skip
"""Parameters by method."""


def makers():
    return {"Generator": lambda: np.random.default_rng(5), "RandomState": lambda: np.random.RandomState(5)}


def state(rng):
    return repr(rng.bit_generator.state if isinstance(rng, np.random.Generator) else rng.get_state(legacy=False))


def same(got, want):
    assert type(got) is type(want), (got, want)
    if isinstance(want, tuple):
        for g, w in zip(got, want, strict=True):
            same(g, w)
    elif isinstance(want, np.ndarray):
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)
    else:
        assert got == want


def check(f, make, *args, graphs=1):
    """f(rng, *args) plain and compiled, twice with one generator each."""
    torch._dynamo.reset()
    before = counters["stats"]["unique_graphs"]
    compiled, mine, plain = torch.compile(f), make(), make()
    for _ in range(2):
        got, want = ([np.array(a) if isinstance(a, np.ndarray) else a for a in args] for _ in range(2))
        same(compiled(mine, *got), f(plain, *want))
        assert state(mine) == state(plain)
        same(tuple(got), tuple(want))
    if graphs is not None:
        assert counters["stats"]["unique_graphs"] - before == graphs


@pytest.mark.parametrize("kind", ["Generator", "RandomState"])
@pytest.mark.parametrize("name", sorted(BOTH))
def test_distributions(name, kind):
    parameters = BOTH[name]

    def f(rng, x):
        draw = getattr(rng, name)
        a, b, c = draw(*parameters), draw(*parameters, size=4), draw(*parameters, size=(2, 3))
        return x + b, c, a, draw(*parameters, size=())

    check(f, makers()[kind], np.arange(4.0))


@pytest.mark.parametrize("kind", ["Generator", "RandomState"])
def test_parameters_that_are_arrays(kind):
    def f(rng, mean, scale, n):
        a = rng.normal(mean, scale)
        b = rng.uniform(mean - 1, mean[:, None] + scale.max(), size=(3, 3))
        c = rng.poisson(scale, (4, 3)) + rng.binomial(n, 0.5)
        return a, b, c, rng.normal(mean[0], 2.0), rng.exponential(scale[1], 3)

    check(f, makers()[kind], np.arange(3.0), np.arange(1.0, 4.0), np.arange(1, 4))


@pytest.mark.parametrize("kind", ["Generator", "RandomState"])
def test_choices(kind):
    def f(rng, x, p):
        a = (
            rng.choice(x, 4),
            rng.choice(5, size=(2, 2)),
            rng.choice(3, 5, p=p),
            rng.choice(x, 2, replace=False),
            rng.choice(x),
            rng.choice(9),
        )
        b = rng.permutation(x), rng.permutation(6), rng.permutation(x[:4].reshape(2, 2))
        rng.shuffle(x)
        y = x * 2
        rng.shuffle(y[1:])
        return a, b, y, rng.multinomial(20, p, size=3), rng.dirichlet(p, 2), rng.multivariate_normal(p, np.eye(3), 2)

    check(f, makers()[kind], np.arange(6.0), P)


def test_integers():
    def f(rng, high):
        a = (
            rng.integers(10),
            rng.integers(0, 5, size=(2, 3)),
            rng.integers(1, 6, 4, endpoint=True),
            rng.integers(0, 200, 5, dtype=np.uint8),
        )
        return (
            a,
            rng.integers(0, high),
            rng.random(3, dtype=np.float32),
            rng.standard_normal(2, np.float32),
            rng.permuted(high),
        )

    check(f, makers()["Generator"], np.array([3, 9, 100]))

    def g(rng, high):
        a = (
            rng.randint(10),
            rng.randint(0, 5, size=(2, 3)),
            rng.randint(0, high),
            rng.randint(0, 200, 5, dtype=np.uint8),
        )
        return a, rng.rand(), rng.rand(2, 3), rng.randn(), rng.randn(4), rng.random_sample((2,))

    check(g, makers()["RandomState"], np.array([3, 9, 100]))


@pytest.mark.parametrize("kind", ["Generator", "RandomState"])
def test_numbers_of_pythons_dtypes_are_pythons(kind):
    def f(rng):
        draw = rng.integers if kind == "Generator" else rng.randint
        return tuple(draw(0, 2, dtype=t) for t in (bool, int, np.bool_, np.int64, np.int8)) + (
            draw(2, size=2, dtype=bool),
        )

    check(f, makers()[kind], graphs=None)


def test_made_inside():
    def f(seed, x):
        rng, old = np.random.default_rng(seed), np.random.RandomState(seed)
        other = np.random.Generator(np.random.MT19937(seed + 1))
        return rng.random(3) + x, old.rand(2), other.normal(size=2), rng, np.random.default_rng([1, seed]).random()

    compiled = torch.compile(f, fullgraph=True)
    for seed in (3, 4, 5, 6):
        *got, rng, a = compiled(seed, np.ones(3))
        *want, plain, b = f(seed, np.ones(3))
        same((*got, a), (*want, b))
        assert state(rng) == state(plain) and rng.random() == plain.random()


def test_the_global_generator():
    def f(n):
        np.random.seed(n)
        a = (
            np.random.rand(3),
            np.random.randn(),
            np.random.normal(0, 1, n),
            np.random.ranf(2),
            np.random.sample(),
            np.random.random(),
        )
        np.random.seed(7)
        return a, np.random.randint(5), np.random.choice(4, 2), np.random.permutation(4)

    compiled = torch.compile(f, fullgraph=True)
    for n in (3, 4, 5):
        got, where = compiled(n), state(np.random.mtrand._rand)
        same(got, f(n))
        assert where == state(np.random.mtrand._rand)


def test_draws_stay_in_order_and_are_never_dropped():
    def f(rng, x):
        rng.random(3)  # nobody looks at them
        a, b = rng.random(4), rng.random(4)  # not the same numbers
        other = rng
        c = other.random(4)
        if x.sum() > 0:
            rng.normal()
        return a - b, b - c, rng.random()

    check(f, makers()["Generator"], np.ones(3), graphs=None)


def test_one_generator_by_two_names():
    def f(rng, x):
        return rng.random(2), x["again"].random(2)

    mine, plain = np.random.default_rng(1), np.random.default_rng(1)
    compiled = torch.compile(f, fullgraph=True)
    for _ in range(2):
        same(compiled(mine, {"again": mine}), f(plain, {"again": plain}))
    same(compiled(mine, {"again": np.random.default_rng(2)}), f(plain, {"again": np.random.default_rng(2)}))


def test_an_error_leaves_the_stream_where_plain_code_does():
    def f(rng, scale, out):
        out += rng.random(3)
        out += rng.normal(0.0, scale)
        return out

    mine, plain = np.random.default_rng(1), np.random.default_rng(1)
    compiled = torch.compile(f)
    for scale in (1.0, -1.0, 1.0):
        a, b = np.zeros(3), np.zeros(3)
        scale = np.full(3, scale)
        for call, rng, out in ((compiled, mine, a), (f, plain, b)):
            try:
                call(rng, scale, out)
            except ValueError as e:
                assert str(e) == "scale < 0"
        np.testing.assert_array_equal(a, b)
        assert state(mine) == state(plain)


def test_another_class_of_generator_is_another_variant():
    def f(rng):
        return rng.normal(size=3)

    compiled = torch.compile(f, fullgraph=True)
    for make in (*makers().values(), lambda: np.random.Generator(np.random.SFC64(1))):
        same(compiled(make()), f(make()))


def test_what_is_not_a_draw_breaks_the_graph():
    def f(rng, x):
        x = x + rng.random(2)
        return x, rng.bytes(3), rng.bit_generator.state["bit_generator"], rng.random(2, out=np.zeros(2))

    check(f, makers()["Generator"], np.ones(2), graphs=None)


def test_a_python_number_divides_as_pythons():
    def f(x):
        k, a = np.random.randint(0, 2), np.random.random()
        return x * (10 / k) + 1.0 / a, (a - 1.0) * x, 1.0 / (a - a + k), k * k

    compiled, raised = torch.compile(f), 0
    for seed in range(8):
        out = []
        for g in (compiled, f):
            np.random.seed(seed)
            try:
                out.append(g(np.ones(2)))
            except ZeroDivisionError as e:
                out.append(str(e))
            out.append(state(np.random.mtrand._rand))
        raised += isinstance(out[0], str)
        same(tuple(out[:2]), tuple(out[2:]))
    assert 0 < raised < 8


def test_no_arguments_at_all():
    def f():
        return np.random.random(), np.random.rand(2)

    compiled = torch.compile(f, fullgraph=True)
    np.random.seed(1)
    got = compiled()
    np.random.seed(1)
    same(got, f())


def test_a_number_that_was_drawn_beside_complex_arrays():
    def f(rng, z, x):
        a = rng.normal()
        return z * a + rng.random(), (x - a) * 2.0, z * (a * 2.0)

    check(f, makers()["Generator"], np.ones(3) + 2j, np.arange(3.0))


def state_between_draws(bits):
    rng = np.random.Generator(bits)
    rng.standard_normal()
    state = bits.state
    first = rng.standard_normal(size=3)
    bits.state = state
    return first, rng.standard_normal(size=3), state["state"]["pos"], bits.state["state"]["pos"]


@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_the_state_is_read_after_the_draws_before_it(backend):
    torch._dynamo.reset()
    want = state_between_draws(np.random.MT19937(1))
    got = torch.compile(state_between_draws, backend=backend)(np.random.MT19937(1))
    np.testing.assert_array_equal(got[0], got[1])
    np.testing.assert_array_equal(got[0], want[0])
    assert got[2:] == want[2:]
