"""Gradients and values where the formulas of a textbook give nan: the branch not taken, ties, ends of intervals, numbers that don't fit."""

import math

import numpy as np
import pytest

import flambeau as torch

F = torch.nn.functional
INF, NAN = math.inf, math.nan


def leaf(values, dtype=np.float64):
    return torch.from_numpy(np.array(values, dtype)).requires_grad_(True)


def gradient(f, *xs):
    return [g.numpy() for g in torch.autograd.grad(f(*xs).sum(), xs)]


# (name, function, x, derivative, second derivative or None where it isn't defined)
ONE = [
    ("softplus", F.softplus, [1e4, -1e4, 0, 1e30, INF, -INF], [1, 0, 0.5, 1, 1, 0], [0, 0, 0.25, 0, 0, 0]),
    ("elu", F.elu, [1e4, -1e4, 0, INF, -INF, NAN], [1, 0, 1, 1, 0, 1], None),
    ("selu", F.selu, [0, -0.0, NAN, INF, -INF], [1.7580993408473766] * 2 + [1.0507009873554805] * 2 + [0], None),
    ("celu", lambda x: F.celu(x, 2.0), [0, -0.0, NAN, INF, -INF], [1, 1, 1, 1, 0], None),
    ("norm of one", lambda x: x.norm(2, -1), [[1e-310], [1e300], [0]], [[1], [1], [0]], None),
    ("mish", F.mish, [1e4, -1e4, 0, 1e30, -1e30], [1, 0, 0.6, 1, 0], [0, 0, 0.64, 0, 0]),
    ("silu", F.silu, [1e4, -1e4, 0, 1e30, -1e30], [1, 0, 0.5, 1, 0], [0, 0, 0.5, 0, 0]),
    ("hardswish", F.hardswish, [3, -3, 4, -4, INF, -INF], [1, 0, 1, 0, 1, 0], None),
    ("hardtanh", F.hardtanh, [1, -1, 0.5, 2, INF, NAN], [0, 0, 1, 0, 0, 1], None),
    ("relu6", F.relu6, [0, 6, 3, -1, INF], [0, 0, 1, 0, 0], None),
    ("leaky_relu", F.leaky_relu, [0, INF, -INF, NAN], [0.01, 1, 0.01, 0.01], None),
    ("logsigmoid", F.logsigmoid, [1e4, -1e4, 0, INF, -INF], [0, 1, 0.5, 0, 1], [0, 0, -0.25, 0, 0]),
    ("sinc", torch.sinc, [0, -0.0, 1e-300, 1], [0, 0, 0, -1], None),
    ("logit", torch.logit, [0, 1, 0.5, -1], [INF, INF, 4, NAN], None),
    ("logit eps", lambda x: torch.logit(x, 0.1), [0, 1, 0.5, -1, NAN], [0, 0, 4, 0, NAN], None),
    ("logit negative eps", lambda x: torch.logit(x, -0.5), [0, 1, 0.5, -0.25, 1.25], [INF, INF, 4, NAN, NAN], None),
    ("clamp", lambda x: x.clamp(-1, 1), [1, -1, 2, INF, NAN], [1, 1, 0, 0, 0], None),
    ("abs", torch.abs, [0, -0.0, NAN, -INF], [0, 0, 0, -1], None),
    ("sqrt", torch.sqrt, [0, 4, INF], [INF, 0.25, 0], None),
    ("0 ** x", lambda x: 0**x, [0, 4], [0, 0], None),
    ("x ** 0", lambda x: x**0, [0, INF, NAN], [0, 0, 0], None),
    ("nan_to_num", torch.nan_to_num, [NAN, INF, -INF, 1], [0, 0, 0, 1], None),
    ("max", torch.max, [2, 1, 2], [0.5, 0, 0.5], None),
    ("amax", lambda x: x.amax(0), [INF, 1, INF], [0.5, 0, 0.5], None),
    ("std", torch.std, [3, 3, 3], [0, 0, 0], None),
    ("var of no freedom", lambda x: torch.var(x, 0, correction=3), [1, 2, 3], [-INF, NAN, INF], None),
    ("var of less", lambda x: torch.var(x, 0, correction=5), [1, 2, 3], [1, 0, -1], None),
    ("var of one", lambda x: torch.var_mean(x)[0], [1], [NAN], None),
    ("norm", lambda x: torch.norm(x), [0, 0], [0, 0], None),
    ("softmax of -inf", lambda x: x.softmax(0)[:1], [0, -INF], [0, 0], None),
    (
        "huber",
        lambda x: F.huber_loss(x, torch.zeros(3).double(), reduction="sum"),
        [INF, -INF, 0.5],
        [1, -1, 0.5],
        None,
    ),
    (
        "smooth_l1",
        lambda x: F.smooth_l1_loss(x, torch.zeros(3).double(), reduction="sum"),
        [INF, -INF, 0.5],
        [1, -1, 0.5],
        None,
    ),
    (
        "cosine_similarity",
        lambda x: F.cosine_similarity(x, torch.ones(2).double(), 0),
        [0, 0],
        [1e8 / 2**0.5] * 2,
        None,
    ),
]


@pytest.mark.parametrize("f,x,first,second", [pytest.param(*r[1:], id=r[0]) for r in ONE])
@pytest.mark.parametrize("how", ["eager", "compiled"])
def test_derivatives_at_the_edges(f, x, first, second, how):
    x = leaf(x)
    run = f if how == "eager" else torch.compile(lambda x: f(x))
    (g,) = torch.autograd.grad(run(x).sum(), x, create_graph=second is not None)
    np.testing.assert_allclose(g.detach().numpy(), first, rtol=1e-6, atol=1e-12)
    if second is not None:
        np.testing.assert_allclose(torch.autograd.grad(g.sum(), x)[0].numpy(), second, rtol=1e-6, atol=1e-12)


TWO = [
    ("maximum", torch.maximum, [NAN, 1, 1, INF], [1, 1, NAN, INF], [1, 0.5, 1, 0.5], [1, 0.5, 1, 0.5]),
    ("minimum", torch.minimum, [NAN, 1, 0], [1, 1, 1], [1, 0.5, 1], [1, 0.5, 0]),
    ("xlogy", torch.xlogy, [0, 1], [0, 2], [0, math.log(2)], [NAN, 0.5]),
    ("pow", torch.pow, [0, 2, 0], [0, 3, 2], [0, 12, 0], [0, 8 * math.log(2), 0]),
    ("atan2", torch.atan2, [0, 1], [0, 1], [0, 0.5], [0, -0.5]),
    ("logaddexp", torch.logaddexp, [1e4, -1e4], [-1e4, 1e4], [1, 0], [0, 1]),
    ("where", lambda a, b: torch.where(a > 0, a, b.exp()), [1, -1], [1e4, 0], [1, 0], [NAN, 1]),
    ("clamp min", lambda a, b: torch.clamp(a, min=b), [1, 3, 2], [2, 2, 2], [0, 1, 1], [1, 0, 0]),
    ("copysign", torch.copysign, [0, 2], [1, -1], [0, -1], [0, 0]),
]


@pytest.mark.parametrize("f,a,b,ga,gb", [pytest.param(*r[1:], id=r[0]) for r in TWO])
def test_derivatives_of_two(f, a, b, ga, gb):
    if f is TWO[6][1]:
        gb = [NAN, 1]  # written with two operators: exp of the branch not taken meets a cotangent of 0
    a, b = leaf(a), leaf(b)
    got = torch.autograd.grad(f(a, b).sum(), (a, b), allow_unused=True)
    for g, want in zip(got, (ga, gb)):
        np.testing.assert_allclose(np.zeros(len(want)) if g is None else g.numpy(), want, rtol=1e-6)


def test_clamp_between_tensors():
    bounds = [leaf([2.0, 2, 2]), leaf([2.0, 2, 2])]
    got = gradient(torch.clamp, leaf([1.0, 2, 3]), *bounds)
    np.testing.assert_array_equal(got, [[0, 1, 0], [0, 0, 0], [0, 0, 1]])
    x, low = leaf([1.0, 3]), leaf(2.0)
    np.testing.assert_array_equal(torch.autograd.grad(torch.clamp(x, min=low).sum(), low)[0].numpy(), 1)


def test_the_mean_of_no_losses_is_nan():
    x = torch.zeros(0, 3)
    for target in (torch.zeros(0, dtype=torch.int64), torch.zeros(0, 3)):
        assert F.cross_entropy(x, target).isnan()
        assert F.cross_entropy(x, target, reduction="sum") == 0


def test_binary_cross_entropy_of_certain_answers():
    p, t = np.array([0, 1, 0.5, 0.2, 1, 0]), np.array([0, 1, 1, 0, 0, 1.0])
    (g,) = gradient(lambda p: F.binary_cross_entropy(p, torch.from_numpy(t)), leaf(p))
    np.testing.assert_allclose(g, (p - t) / np.maximum(p * (1 - p), 1e-12) / 6)


def test_a_masked_row_of_attention():
    q, k, v = (torch.randn(1, n, 4, requires_grad=True) for n in (2, 3, 3))
    mask = torch.tensor([[False, False, False], [True, True, False]])
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    assert not out[0, 0].detach().numpy().any()
    grads = torch.autograd.grad(out.sum(), (q, k, v))
    assert all(np.isfinite(g.numpy()).all() for g in grads)


def test_ignored_rows_do_not_count():
    x = leaf([[NAN, INF], [1, 2]])
    t = torch.tensor([1, 0])
    np.testing.assert_array_equal(F.nll_loss(x, t, reduction="none", ignore_index=1).detach().numpy(), [0, -1])
    (g,) = gradient(lambda x: F.nll_loss(x, t, ignore_index=1), x)
    np.testing.assert_array_equal(g, [[0, 0], [-1, 0]])


def test_a_padded_maximum_is_of_the_input():
    (g,) = gradient(lambda x: F.max_pool2d(x, 2, padding=1), leaf(np.full((1, 1, 4, 4), -np.inf)))
    assert g.sum() == 9


# ---- numbers, sums, memory -------------------------------------------------------------------------------------------------


def written(u, key, value):
    u[key] = value
    return u


@pytest.mark.parametrize(
    "f,want",
    [
        (lambda u: torch.where(u > 0, u, -1), [255, 254, 255, 5]),
        (lambda u: u % -3, [2, 1, 0, 5]),
        (lambda u: u + 300, [43, 42, 44, 49]),
        (lambda u: u * -1, [1, 2, 0, 251]),
        (lambda u: u.clamp(-1, 5), [5, 5, 5, 5]),
        (lambda u: u.masked_fill(u == 0, -2), [255, 254, 254, 5]),
        (lambda u: u.scatter(0, torch.tensor([2]), -1), [255, 254, 255, 5]),
        (lambda u: written(u, u == 0, -1), [255, 254, 255, 5]),
    ],
)
def test_numbers_wrap(f, want):
    u = torch.tensor([255, 254, 0, 5], dtype=torch.uint8)
    out = f(u)
    assert out.dtype is torch.uint8
    np.testing.assert_array_equal(out.numpy(), want)


@pytest.mark.parametrize(
    "f",
    [
        lambda u: u.fill_(300),
        lambda u: u.masked_fill(u > 0, 300),
        lambda u: u.clamp(0, 300),
        lambda u: torch.full((2,), 300, dtype=torch.uint8),
        lambda u: torch.tensor([300], dtype=torch.uint8),
        lambda u: torch.ones(2).fill_(1e300),
        lambda u: torch.ones(2, dtype=torch.int32).fill_(NAN),
        lambda u: u.scatter(0, torch.tensor([0]), 300),
        lambda u: u.__setitem__(u == 0, 300),
        lambda u: u.int().__setitem__(torch.tensor([0]), NAN),
    ],
)
def test_numbers_that_do_not_fit(f):
    with pytest.raises(RuntimeError, match="without overflow"):
        f(torch.zeros(3, dtype=torch.uint8))


INDEX = torch.zeros(3, 5, dtype=torch.int64)


@pytest.mark.parametrize("how", [None, "aot_eager", "inductor"])
@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.__setitem__([1, 2, 3], torch.ones(2, 5)),
        lambda x: x.__setitem__((slice(None), [0]), torch.ones(3, 1)),
        lambda x: x.index_put((torch.arange(3),), torch.ones(2, 5), True),
        lambda x: x.scatter(0, INDEX, torch.ones(2, 5)),
        lambda x: x.scatter(0, INDEX[:, :1].expand(3, 7), 2.0),
        lambda x: x.scatter_add(0, INDEX, torch.ones(3, 4)),
        lambda x: x.scatter_reduce(0, INDEX, torch.ones(2, 5), "sum"),
    ],
)
def test_values_that_do_not_fit_their_places(f, how):
    """Compiled code would read past their ends."""
    torch._dynamo.reset()
    with pytest.raises(RuntimeError, match="shape mismatch: value tensor|Expected index"):
        (torch.compile(f, backend=how) if how else f)(torch.zeros(5, 5))


def test_a_number_first():
    x = torch.tensor([2, 3])
    for got, want in ((5.5 % x, [1.5, 2.5]), (5.5 // x, [2.0, 1.0]), (torch.remainder(7.25, x), [1.25, 1.25])):
        assert got.dtype is torch.float32
        np.testing.assert_array_equal(got.numpy(), np.float32(want))


@pytest.mark.parametrize(
    "f", [lambda b, x: x - b, lambda b, x: b - x, lambda b, x: x - True, lambda b, x: True - x, lambda b, x: -b]
)
def test_truth_values_have_no_difference(f):
    with pytest.raises(RuntimeError, match="bool tensor is not supported"):
        f(torch.tensor([True, False]), torch.ones(2))


def test_a_number_to_negative_powers():
    np.testing.assert_array_equal((2 ** torch.tensor([-1, 0, 3])).numpy(), [0, 1, 8])


def test_long_sums():
    x = np.random.default_rng(0).random((40_000, 3), np.float32)
    want = x.sum(0, dtype=np.float64)
    for t in (torch.from_numpy(x), torch.from_numpy(np.ascontiguousarray(x.T)).t()):
        np.testing.assert_allclose(t.sum(0).numpy(), want, rtol=5e-7)
    tenths = torch.full((4_000_000,), 0.1)
    np.testing.assert_allclose(tenths.cumsum(0)[-1].item(), 400_000, rtol=1e-6)


def test_reductions_along_what_is_there():
    x = torch.ones(0, 3)
    assert tuple(x.max(1)[0].shape) == tuple(x.argmin(1).shape) == tuple(x.amax(1).shape) == (0,)
    for f in (lambda: x.max(0), lambda: x.argmax(0), lambda: x.amax(0)):
        with pytest.raises(IndexError, match="non-zero size"):
            f()


def expanded():
    return torch.zeros(1, 3).expand(2, 3)


@pytest.mark.parametrize(
    "f",
    [
        lambda: expanded().add_(1),
        lambda: expanded().copy_(torch.ones(2, 3)),
        lambda: expanded().neg_(),
        lambda: torch.add(expanded(), 1, out=expanded()),
        lambda: expanded().__setitem__(slice(None), torch.ones(2, 3)),
    ],
)
def test_writes_to_shared_elements(f):
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        f()


def test_one_value_in_shared_elements():
    x = expanded()
    x.fill_(2)
    np.testing.assert_array_equal(x.numpy(), 2)


def test_partial_overlap():
    x = torch.arange(5.0)
    for f in (lambda: torch.add(x[:-1], 1, out=x[1:]), lambda: x[1:].copy_(x[:-1]), lambda: x[1:].add_(x[:-1])):
        with pytest.raises(RuntimeError, match="some elements of the input tensor and the written-to tensor"):
            f()
    torch.add(x[::2], 1, out=x[:3])  # gaps: can't be told cheaply, and is right
    np.testing.assert_array_equal(x.numpy(), [1, 3, 5, 3, 4])


# ---- 16-bit floats ----------------------------------------------------------------------------------------------------------

STATISTICS = [
    ("rms_norm", lambda x: F.rms_norm(x, (6,))),
    ("layer_norm", lambda x: F.layer_norm(x, (6,))),
    ("group_norm", lambda x: F.group_norm(x[None], 2)),
    ("batch_norm", lambda x: F.batch_norm(x, None, None, training=True)),
    ("instance_norm", lambda x: F.instance_norm(x[None])),
    ("std", lambda x: x.std(1)),
    ("attention", lambda x: F.scaled_dot_product_attention(x * 10, x, x)),
]


@pytest.mark.parametrize("scale", [300.0, 3e-4])
@pytest.mark.parametrize("f", [pytest.param(f, id=n) for n, f in STATISTICS])
def test_statistics_of_halves(f, scale):
    """Squares of 16-bit floats overflow and vanish: what is made of them is computed in float32."""
    x = (torch.arange(24.0).reshape(4, 6).sin() * scale).half()
    want = f(x.float())
    got = f(x)
    assert got.dtype is torch.float16
    np.testing.assert_allclose(got.float().numpy(), want.numpy(), rtol=2e-3, atol=1e-3 * float(want.abs().max()))


def test_a_step_has_the_derivative_zero():
    x = leaf([0.4, 1.6])
    for f in (torch.floor, torch.ceil, torch.round, torch.trunc, torch.sign):
        np.testing.assert_array_equal(gradient(f, x)[0], [0, 0])
    y = torch.tensor([2.0, 1.6], dtype=torch.float64)
    np.testing.assert_array_equal(gradient(lambda x: torch.nextafter(x, y), x)[0], [1, 0])


def test_powers_of_two_that_do_not_fit():
    got = torch.ldexp(torch.tensor([1e-30]), torch.tensor([140]))
    np.testing.assert_allclose(got.numpy(), [1e-30 * 2.0**140], rtol=1e-6)
    assert torch.ldexp(torch.ones(2).half(), torch.ones(2, dtype=torch.int64)).dtype is torch.float16


def test_a_norm_along_one_element_is_its_magnitude():
    np.testing.assert_array_equal(torch.tensor([[-1e30, 1e-40]]).norm(2, 0).numpy(), np.float32([1e30, 1e-40]))


def test_most_frequent_among_nans():
    values, at = torch.tensor([[1, NAN, 1], [NAN, NAN, NAN], [2, NAN, NAN]]).mode(1)
    np.testing.assert_array_equal(values.numpy(), [1, NAN, NAN])
    np.testing.assert_array_equal(at.numpy(), [2, 2, 2])


def test_integers_in_a_log_sum_of_exponentials():
    got = torch.tensor([[1, 7, 200]], dtype=torch.uint8).logsumexp(1)
    np.testing.assert_array_equal(got.numpy(), np.float32([200]))


def test_bfloat16_joined_with_integers():
    got = torch.cat([torch.ones(1, dtype=torch.int64), torch.ones(1, dtype=torch.bfloat16)])
    assert got.dtype is torch.bfloat16 and got.float().tolist() == [1, 1]


@pytest.mark.parametrize("how", ["eager", "compiled"])
def test_the_branch_not_taken_of_prelu(how):
    f = F.prelu if how == "eager" else torch.compile(lambda x, w: F.prelu(x, w))
    for weight in (INF, NAN):
        x, w = leaf([1.0, 2.0, INF]), leaf([weight])
        gx, gw = torch.autograd.grad(f(x, w).sum(), (x, w))
        assert gx.tolist() == [1, 1, 1] and gw.tolist() == [0]


@pytest.mark.parametrize("how", ["eager", "compiled"])
def test_logsumexp_of_an_infinity(how):
    f = torch.logsumexp if how == "eager" else torch.compile(lambda x, d: torch.logsumexp(x, d))
    x = leaf([[1e30, INF, 1.0], [-INF, 1.0, 1.0]])
    (g,) = torch.autograd.grad(f(x, 1).sum(), x)
    np.testing.assert_allclose(g.numpy(), [[0, NAN, 0], [0, 0.5, 0.5]])


@pytest.mark.parametrize("how", ["eager", "compiled"])
@pytest.mark.parametrize("value", [0.1, 1e30, -1 / 3])
def test_constant_data_deviates_by_nothing(how, value):
    f = (lambda x: x.std(0)) if how == "eager" else torch.compile(lambda x: x.std(0))
    x = leaf(np.full((7, 2), value))
    y = f(x)
    (g,) = torch.autograd.grad(y.sum(), x)
    assert not y.detach().numpy().any() and not g.numpy().any()


def test_a_tensor_set_to_itself():
    x = leaf([1.0, 2.0]) * 2
    assert x.set_(x) is x and x.requires_grad
    with pytest.raises(RuntimeError):
        leaf([1.0]).set_(leaf([1.0]))
    assert not torch.vander(leaf([2.0])).requires_grad and torch.vander(leaf([2.0, 3.0])).requires_grad


# What a user's number asks for without end: (expression of x, values of x, expected), at once and the same compiled.
BOUNDED = [
    (lambda x: torch.special.chebyshev_polynomial_t(x, 2**40), [1, -1, 2, -3, NAN], [1, 1, INF, INF, NAN]),
    (lambda x: torch.special.chebyshev_polynomial_u(x, 2**40), [1, -1, 2], [2**40 + 1, 2**40 + 1, INF]),
    (lambda x: torch.special.chebyshev_polynomial_v(x, 2**40 + 1), [1, -1, -2], [1, -(2**41) - 3, -INF]),
    (lambda x: torch.special.chebyshev_polynomial_w(x, 2**40 + 1), [1, -1, -2], [2**41 + 3, -1, -INF]),
    (lambda x: torch.special.shifted_chebyshev_polynomial_t(x, 2**40), [1, 0, 2], [1, 1, INF]),
    (lambda x: torch.special.chebyshev_polynomial_t(x, 10_001), [0.5, -0.5, 0.3], [0.5, -0.5, math.cos(10_001 * math.acos(0.3))]),
    (lambda x: torch.special.hermite_polynomial_h(x, 2**40), [1, 0], [NAN, NAN]),
    (lambda x: torch.special.legendre_polynomial_p(x, 2**40), [0.5, 2], [NAN, NAN]),
    (lambda x: torch.special.laguerre_polynomial_l(x, INF), [0.5, 2], [0, 0]),
    (lambda x: torch.histc(x, 5), [1e30, 1e30], [0, 0, 2, 0, 0]),
    (lambda x: torch.histc(x, 4, 3, 3), [3, 3], [0, 0, 2, 0]),
    (lambda x: F.ctc_loss(x.view(1, 1, 2), torch.ones(1, 1).long(), [0], [0], reduction="none"), [-1, -2], [0]),
    (lambda x: F.ctc_loss(x.view(1, 1, 2), torch.ones(1, 1).long(), [0], [1], reduction="none"), [-1, -2], [INF]),
]  # fmt: skip


@pytest.mark.parametrize("row", range(len(BOUNDED)))
def test_large_numbers_end_at_once(row):
    fn, x, expected = BOUNDED[row]
    for f in (fn, torch.compile(fn)):
        np.testing.assert_allclose(f(torch.tensor(x, dtype=torch.float64)).numpy(), expected, rtol=1e-9)


@pytest.mark.parametrize("values", [[1.0, 2.0], [[1.0], [2.0]], 1.0, [[1.0, 2.0]]])
def test_values_of_fewer_dimensions_are_added_at_every_place(values):
    """One index of two dimensions into a vector: NumPy 2.4's np.add.at reads memory beyond such values."""
    at, values = torch.tensor([[0, 3], [3, 1]]), torch.tensor(values)
    expected = torch.zeros(4)
    for k, v in zip(at.flatten().tolist(), values.expand(2, 2).flatten().tolist()):
        expected[k] += v
    assert torch.equal(torch.zeros(4).index_put((at,), values, accumulate=True), expected)
    assert torch.equal(torch.zeros(4).index_put_((at,), values, accumulate=True), expected)
    compiled = torch.compile(lambda x: x.index_put((at,), values, accumulate=True))
    assert torch.equal(compiled(torch.zeros(4)), expected)


def test_a_truth_value_as_index_is_written_as_a_view():
    x = torch.zeros(2, 2)
    x[True] = torch.tensor(3.25, dtype=torch.float64)
    assert x.tolist() == [[3.25] * 2] * 2 and x._version == 1
    x[False] = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    assert x.tolist() == [[3.25] * 2] * 2 and x._version == 1
    scalar = torch.tensor(1.0)
    scalar[True] = 2
    assert scalar == 2


def test_boundaries_without_elements():
    for shape in ((4, 0), (0, 3), (2, 0, 3)):
        found = torch.searchsorted(torch.ones(shape), torch.ones(shape))
        assert found.shape == shape and found.dtype == torch.int64
    assert torch.searchsorted(torch.ones(2, 0), torch.ones(2, 3)).tolist() == [[0] * 3] * 2


def test_parts_of_complex_numbers_are_replaced_by_themselves():
    inf, nan, big = math.inf, math.nan, torch.finfo(torch.float32).max
    x = torch.tensor([[complex(inf, 0), complex(nan, 1)], [complex(2, -inf), complex(nan, nan)]])
    expected = torch.tensor([[complex(big, 0), 1j], [complex(2, -big), 0j]])
    assert torch.equal(torch.nan_to_num(x), expected) and torch.equal(torch.nan_to_num(x.mT), expected.mT)
    assert torch.equal(torch.nan_to_num(x.conj()), expected.conj()) and torch.equal(x.clone().nan_to_num_(), expected)
    given = torch.tensor([[8 + 0j, 7 + 1j], [2 + 9j, 7 + 7j]])
    assert torch.equal(torch.nan_to_num(x, 7.0, 8.0, 9.0), given)
    assert torch.equal(torch.compile(lambda t: torch.nan_to_num(t, 7.0, 8.0, 9.0))(x), given)
    leaf = x.clone().requires_grad_()
    torch.view_as_real(torch.nan_to_num(leaf)).sum().backward()
    assert torch.equal(torch.view_as_real(leaf.grad), torch.isfinite(torch.view_as_real(x)).float())


# Coordinates (x, y) of a 4 by 4 image, the values there and the gradients (by x and y), of the image 0 to 15. The gradient ends at the border.
BORDERS = [
    (
        "border",
        True,
        [[1, 1], [-1, -1], [0, 1], [2, 0], [NAN, 0]],
        [15, 0, 13.5, 9, 6],
        [[0, 0], [0, 0], [1.5, 0], [0, 6], [0, 6]],
    ),
    (
        "border",
        False,
        [[1, 1], [-0.75, 0.75], [-INF, 0], [0.25, NAN]],
        [15, 12, 6, 2],
        [[0, 0], [0, 0], [0, 8], [2, 0]],
    ),
    ("reflection", True, [[1, 1], [-1, -1], [0, 1], [NAN, 0]], [15, 0, 13.5, 6], [[0, 0], [0, 0], [1.5, 0], [0, 6]]),
]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("padding, corners, at, values, slopes", BORDERS)
def test_grids_at_the_border(padding, corners, at, values, slopes, compiled):
    def f(image, grid):
        return F.grid_sample(image, grid, padding_mode=padding, align_corners=corners)

    image, grid = torch.arange(16.0, dtype=torch.float64).view(1, 1, 4, 4), leaf([[at]])
    torch.compiler.reset()
    run = torch.compile(f) if compiled else f
    np.testing.assert_allclose(run(image, grid.detach()).numpy()[0, 0, 0], values)
    np.testing.assert_allclose(run(image, grid).detach().numpy()[0, 0, 0], values)
    np.testing.assert_allclose(gradient(lambda g: run(image, g), grid)[0][0, 0], slopes)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_pooling_by_the_infinite_norm(n):
    pool, greatest = getattr(F, f"lp_pool{n}d"), getattr(F, f"max_pool{n}d")
    x = torch.from_numpy(np.random.RandomState(0).randn(2, 3, *(5,) * n))
    assert torch.equal(pool(x, INF, 2), greatest(x.abs(), 2))
    assert torch.equal(pool(x, INF, 3, 2, True), greatest(x.abs(), 3, 2, ceil_mode=True))
    assert torch.equal(pool(x, -INF, 2, 1), -greatest(-x.abs(), 2, 1))


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    "shape, orders", [((0, 3), [1, 2, INF, -1]), ((3, 0), [1, 2, INF, -INF]), ((2, 0, 0), [1, 2, INF])]
)
def test_norms_of_matrices_without_elements(shape, orders, compiled):
    for order in orders:
        for keepdim in (False, True):
            f = lambda x: torch.linalg.matrix_norm(x, order, keepdim=keepdim)  # noqa: B023, E731
            found = (torch.compile(f) if compiled else f)(torch.empty(shape))
            assert torch.equal(found, torch.zeros(shape[:-2] + (1, 1) * keepdim))
    with pytest.raises(IndexError, match="non-zero size"):
        torch.linalg.matrix_norm(torch.empty(shape), -2)
