"""Draws are PyTorch's for the same seed: values recorded from PyTorch 2.13 (CPU), seed 3."""

import numpy as np
import pytest

import flambeau as torch

CASES = {
    "normal_": (lambda: torch.empty(3).normal_(), [0.80328, 0.17483, 0.08898]),
    "uniform_": (lambda: torch.empty(3).uniform_(-1, 2), [-0.98721, -0.68329, -0.14247]),
    "uniform_ half": (lambda: torch.empty(3, dtype=torch.half).uniform_(-1, 2), [-0.9873, -0.68311, -0.14246]),
    "bernoulli_": (lambda: torch.empty(20).bernoulli_(0.3), [1, 1, 0, 1, 0, 0]),
    "bernoulli": (lambda: torch.bernoulli(torch.full((20,), 0.3)), [1, 1, 1, 1, 0, 1]),
    "exponential_": (lambda: torch.empty(3).exponential_(2), [0.01735, 0.16895, 0.74122]),
    "geometric_": (lambda: torch.empty(20).geometric_(0.3), [10, 4, 1, 5, 1, 2]),
    "cauchy_": (lambda: torch.empty(3).cauchy_(), [-9.29661, -0.79221, 1.15544]),
    "log_normal_": (lambda: torch.empty(20).log_normal_(), [13.55224, 3.85614, 3.24773, 0.79657, 2.98132, 0.17613]),
    "random_": (lambda: torch.empty(3).random_(), [71389, 1771142, 4795460]),
    "random_ from to": (lambda: torch.empty(20).random_(2, 7), [3, 5, 4, 4, 2, 2]),
    "randn": (lambda: torch.randn(20), [-0.07664, 0.35988, -0.78202, 0.07153, 1.04602, 0.52219]),
    "randn half": (lambda: torch.randn(20, dtype=torch.half), [-0.07666, 0.35986, -0.78223, 0.07153, 0.26147, 0.93115]),
    "rand double": (
        lambda: torch.rand(20, dtype=torch.float64),
        [0.03411, 0.28674, 0.77291, 0.17493, 0.75537, 0.60825],
    ),
    "normal of tensors": (
        lambda: torch.normal(torch.zeros(20), torch.ones(20) * 2),
        [-0.15329, 0.71976, -1.56403, 0.14306, 2.09205, 1.04437],
    ),
    "uniform_ transposed": (
        lambda: torch.zeros(4, 3).t().uniform_(),
        [0.00426, 0.02695, 0.77187, 0.88786, 0.10557, 0.47161],
    ),
    "normal_ transposed": (
        lambda: torch.zeros(4, 8).t().normal_(),
        [0.80328, -1.43518, 0.92641, -0.39215, 0.17483, 0.97743],
    ),
    "random_ transposed": (
        lambda: torch.zeros(4, 3).t().random_(),
        [71389, 452012, 12949630, 14895652, 1771142, 7912302],
    ),
    "random_ from to, transposed": (
        lambda: torch.zeros(4, 3).t().random_(2, 7),
        [3, 4, 2, 6, 5, 2, 2, 6, 4, 2, 3, 3],
    ),
    "bernoulli_ of a tensor, transposed": (
        lambda: torch.zeros(4, 3).t().bernoulli_(torch.linspace(0, 1, 12).reshape(3, 4)),
        [0, 1, 0, 0, 1, 0, 0, 1, 1, 1, 1, 1],
    ),
    "normal_ with gaps": (
        lambda: torch.zeros(4, 12)[:, ::2].normal_(),
        [0.80328, 0.17483, 0.08898, -0.61372, 0.04618, -1.36826],
    ),
    "rand complex": (
        lambda: torch.view_as_real(torch.rand(6, dtype=torch.cfloat)),
        [0.00426, 0.10557, 0.28584, 0.02695],
    ),
    "randn complex": (
        lambda: torch.view_as_real(torch.randn(20, dtype=torch.cdouble)),
        [-0.15397, 0.10372, 0.47311, -0.36354],
    ),
    "normal_ complex": (
        lambda: torch.view_as_real(torch.empty(3, dtype=torch.cfloat).normal_(1, 2)),
        [2.136, 1.24725, 1.12583],
    ),
    "randn_like transposed": (
        lambda: torch.randn_like(torch.empty(6, 4).t()),
        [0.803276, 0.0461824, -1.435179, -0.8646356, 0.9264109, -0.6779622],
    ),
    "randn_like permuted": (
        lambda: torch.randn_like(torch.empty(2, 3, 4).permute(2, 0, 1)),
        [0.803276, 0.0461824, -1.435179, -0.8646356, 0.9264109, -0.6779622],
    ),
    "randn_like complex, transposed": (
        lambda: torch.view_as_real(torch.randn_like(torch.empty(5, 4, dtype=torch.cfloat).t())),
        [0.568002, 0.1236259, -1.014825, 0.6911486, 0.6550714, 0.5767711],
    ),
    "uniform_ of half": (
        lambda: torch.empty(4, dtype=torch.half).uniform_(-3.1, 7.3),
        [-3.0546875, -2.00195312, -0.127197266, -2.8203125],
    ),
    "uniform_ of bfloat16": (
        lambda: torch.empty(4, dtype=torch.bfloat16).uniform_(-3.1, 7.3),
        [-3.0625, -2.0, -0.126953125, -2.8125],
    ),
    "randint of two words": (lambda: torch.randint(0, 2**28, (4,)), [35325592, 117892739, 252666824, 29254421]),
    "randint of one": (lambda: torch.randint(0, 2**28 - 1, (4,)), [218175346, 35325593, 88681732, 117892752]),
    "random_ of bfloat16": (
        lambda: torch.empty(4, dtype=torch.bfloat16).random_(0, 200),
        [186, 48, 137, 67],
    ),
    "random_ from": (lambda: torch.empty(4).random_(7, None), [72383, 1771275, 4796734, 453524]),
    "random_ of truth values": (lambda: torch.empty(4, dtype=torch.bool).random_(0, None), [0, 0, 1, 1]),
    "Wishart": (
        lambda: torch.distributions.Wishart(torch.tensor([4.0, 5.0]), torch.eye(2).expand(2, 2, 2)).sample(),
        [4.871115, 1.092912, 1.092912, 6.404474, 5.68835, -0.3919],
    ),
    "gumbel_softmax transposed": (
        lambda: torch.nn.functional.gumbel_softmax(torch.zeros(4, 3).t()),
        [0.76535, 0.0786018, 0.0179167, 0.138131, 0.088215, 0.1325398],
    ),
    "dropout3d without a batch": (lambda: torch.nn.functional.dropout3d(torch.ones(3, 1, 1, 1)), [2, 2, 0]),
    "dropout": (lambda: torch.native_dropout(torch.ones(20), 0.4, True)[0], [1.66667, 1.66667, 0, 1.66667, 0, 0]),
}


@pytest.mark.parametrize("name", CASES)
def test_stream(name):
    draw, want = CASES[name]
    torch.manual_seed(3)
    got = draw().double().numpy().reshape(-1)
    np.testing.assert_allclose(got[: len(want)], want, atol=1.1e-5 * max(1, abs(max(want, key=abs))))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("backend", [None, "inductor"])
def test_the_upper_end_is_not_drawn(dtype, backend):
    def draw():
        return torch.rand(50_000, dtype=dtype), torch.empty(50_000, dtype=dtype).uniform_(
            1, 1 + 4 * torch.finfo(dtype).eps
        )

    torch.manual_seed(3)
    eps = torch.finfo(dtype).eps
    drawn, stretched = (draw if backend is None else torch.compile(draw, backend=backend))()
    assert drawn.max() < 1
    assert sorted({round((x - 1) / eps) for x in stretched.tolist()}) == [0, 1, 2, 3]


@pytest.mark.parametrize("backend", [None, "inductor"])
def test_uniform_is_rounded_once(backend):
    def stretch(x):
        return x.uniform_(-3, 7)

    torch.manual_seed(3)
    u = torch.rand(1000)
    torch.manual_seed(3)
    x = (stretch if backend is None else torch.compile(stretch, backend=backend))(torch.empty(1000))
    assert torch.equal(x, (u.double() * 10 - 3).float())


def test_integers():
    torch.manual_seed(5)
    assert torch.randint(100, (6,)).tolist() == [11, 14, 67, 85, 6, 70]
    torch.manual_seed(5)
    assert torch.randperm(8).tolist()[:6] == [3, 6, 0, 2, 1, 4]
    torch.manual_seed(5)
    assert torch.multinomial(torch.tensor([0.1, 0.2, 0.3, 0.4]), 6, True).tolist() == [3, 1, 2, 2, 1, 3]
    torch.manual_seed(5)
    assert torch.multinomial(torch.tensor([0.1, 0.2, 0.3, 0.4]), 3).tolist() == [3, 2, 1]


@pytest.mark.parametrize(
    "call,name",
    [
        (lambda t: t.normal_(), "aten.normal_.default"),
        (lambda t: t.uniform_(), "aten.uniform_.default"),
        (lambda t: t.bernoulli_(0.5), "aten.bernoulli_.float"),
        (lambda t: t.zero_(), "aten.zero_.default"),
        (lambda t: t.fill_(1), "aten.fill_.Scalar"),
        (lambda t: t.random_(3), "aten.random_.to"),
    ],
)
def test_modes_see_the_in_place_operator(call, name):
    from flambeau.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Record(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    t = torch.empty(3)
    with Record():
        assert call(t) is t
    assert seen == [name]


DRAWS_OF_ONE = {
    "exponential_": lambda t: t.exponential_(),
    "geometric_": lambda t: t.geometric_(0.5),
    "cauchy_": lambda t: t.cauchy_(),
    "log_normal_": lambda t: t.log_normal_(),
    "normal_": lambda t: t.normal_(),
    "uniform_": lambda t: t.uniform_(),
    "bernoulli_": lambda t: t.bernoulli_(),
    "bernoulli": lambda t: torch.bernoulli(t),
    "random_": lambda t: t.random_(),
    "dropout": lambda t: torch.dropout(t, 0.5, True),
    "rrelu": lambda t: torch.rrelu(t, training=True),
    "poisson": lambda t: torch.poisson(t),
    "randn_like": lambda t: torch.randn_like(t),
}


@pytest.mark.parametrize("name", DRAWS_OF_ONE)
def test_a_scalar_is_drawn_as_an_array_is(name):
    def drawn(shape):
        torch.manual_seed(3)
        return DRAWS_OF_ONE[name](torch.full(shape, 0.5))

    assert drawn(()).shape == ()
    assert torch.equal(drawn(()), drawn((1,))[0])


def test_probabilities_outside_of_0_to_1_are_refused():
    for p in (2.0, -0.5, float("nan")):
        for draw in (lambda: torch.bernoulli(torch.tensor([p])), lambda: torch.ones(1).bernoulli_(torch.tensor([p]))):
            with pytest.raises(RuntimeError, match="p_in <= 1"):
                draw()


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool])
@pytest.mark.parametrize("name", ["normal_", "uniform_", "exponential_", "cauchy_", "log_normal_"])
def test_continuous_distributions_refuse_integers(name, dtype):
    x = torch.zeros(4, dtype=dtype)
    state = torch.get_rng_state()
    with pytest.raises(RuntimeError):
        getattr(x, name)()
    assert not x.any() and torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("join", [torch.cat, torch.stack])
def test_joined_floats_dont_go_into_integers(join):
    out = torch.zeros(0, dtype=torch.int64)
    with pytest.raises(TypeError, match="can't be cast"):
        join([torch.ones(2) * 1.5, torch.ones(2)], out=out)
    assert out.shape == (0,)


def test_ends_that_a_float_does_not_have_are_moved_inwards():
    """To -2992 and 1992, as in PyTorch."""
    torch.manual_seed(3)
    with pytest.warns(UserWarning, match="within this range"):
        drawn = torch.empty(4, dtype=torch.bfloat16).random_(-3001, 2000)
    assert drawn.tolist() == [394, -1792, -2304, 1888]


# Numbers are PyTorch's for a generator with seed 3.
LIKE_BY_A_GENERATOR = {
    "rand": (lambda g: torch.rand_like(torch.ones(3), generator=g), [0.004263520240783691, 0.10556936264038086, 0.2858424782752991]),
    "randn": (
        lambda g: torch.randn_like(torch.ones(3, 2).t(), generator=g),
        [[0.8032760620117188, 0.08897809684276581, 0.04618244990706444], [0.17483338713645935, -0.6137180328369141, -1.3682591915130615]],
    ),
    "randint": (lambda g: torch.randint_like(torch.ones(3), 5, generator=g), [1.0, 3.0, 2.0]),
    "randint below a tensor": (lambda g: torch.randint_like(torch.ones(3), torch.tensor(5), generator=g), [1.0, 3.0, 2.0]),
    "randint between": (lambda g: torch.randint_like(torch.ones(3), 2, 5, generator=g), [3.0, 4.0, 3.0]),
}  # fmt: skip


@pytest.mark.parametrize("name", LIKE_BY_A_GENERATOR)
def test_factories_like_a_tensor_take_a_generator(name):
    draw, wanted = LIKE_BY_A_GENERATOR[name]
    before = torch.get_rng_state()
    for f in (draw, torch.compile(draw)):
        made = f(torch.Generator().manual_seed(3))
        torch.testing.assert_close(made, torch.tensor(wanted), rtol=1e-6, atol=0)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_permutation_by_a_generator_is_written_to_out():
    out = torch.empty(0, dtype=torch.int64)
    made = torch.randperm(7, generator=torch.Generator().manual_seed(3), out=out)
    assert made is out
    assert torch.equal(out, torch.randperm(7, generator=torch.Generator().manual_seed(3)))
