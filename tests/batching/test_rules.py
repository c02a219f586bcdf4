"""vmap(op) against a loop over the examples, for every kind of operator; nested, in-place, random, and the errors."""

import logging

import pytest

import flambeau as torch
from flambeau.base.errors import MissingFacet
from flambeau.batching import fallback
from flambeau.core.declare import extern, pointwise
from flambeau.core.definition import TensorMeta
from flambeau.core.layouts import strides_of
from flambeau.func import grad, vmap

B = 3
aten = torch.ops.aten


def T(*shape, dtype=torch.float32, positive=False):
    torch.manual_seed(sum(shape) + len(shape))
    if dtype in (torch.int64,):
        return torch.randint(0, 3, list(shape))
    if dtype is torch.bool:
        return torch.rand(list(shape)) > 0.5
    x = torch.rand(list(shape), dtype=dtype) + 0.5 if positive else torch.randn(list(shape), dtype=dtype)
    return x


I, BOOL = torch.int64, torch.bool

# (function, arguments of one example by shape or value). Each tensor argument is mapped in turn, and all together.
CASES = {
    "pointwise": [
        ("add", lambda a, b: a + b, [T(B, 2, 4), T(B, 4)]),
        ("mul_scalar_tensor", lambda a, b: a * b, [T(B, 2, 4), T(B)]),
        ("where", lambda c, a, b: aten.where(c, a, b), [T(B, 2, 4, dtype=BOOL), T(B, 4), T(B, 2, 1)]),
        ("exp", torch.exp, [T(B, 2)]),
        ("pow", lambda a, b: a**b, [T(B, 2, positive=True), T(B, 2)]),
        ("clamp", lambda a: a.clamp(-0.1, 0.3), [T(B, 5)]),
        ("to", lambda a: a.to(torch.float64), [T(B, 5)]),
        ("gelu", torch.nn.functional.gelu, [T(B, 5)]),
        ("clone", torch.clone, [T(B, 5)]),
        ("masked_fill", lambda a, m: a.masked_fill(m, 2.0), [T(B, 4), T(B, 4, dtype=BOOL)]),
        ("lerp-like", lambda a, b, c: torch.addcmul(a, b, c, value=2), [T(B, 2, 3), T(B, 3), T(B, 1)]),
        ("scalar operands", lambda a, b: a.mul(b).sub(1), [T(B), T(B)]),
    ],
    "reduction": [
        ("sum", lambda a: a.sum(), [T(B, 2, 4)]),
        ("sum dim", lambda a: a.sum(-1), [T(B, 2, 4)]),
        ("sum keepdim", lambda a: a.sum([0, 1], True), [T(B, 2, 4)]),
        ("mean", lambda a: a.mean(), [T(B, 2, 4)]),
        ("amax", lambda a: a.amax(), [T(B, 2, 4)]),
        ("max", lambda a: a.max(), [T(B, 2, 4)]),
        ("argmax", lambda a: a.argmax(), [T(B, 2, 4)]),
        ("argmax dim", lambda a: a.argmax(1, True), [T(B, 2, 4)]),
        ("argmin keepdim", lambda a: a.argmin(None, True), [T(B, 2, 4)]),
        ("prod", lambda a: a.prod(), [T(B, 2, 4)]),
        ("any", lambda a: a.any(), [T(B, 2, 4, dtype=BOOL)]),
        ("all dim", lambda a: a.all(0), [T(B, 2, 4, dtype=BOOL)]),
        ("sum of scalars", lambda a: a.sum(), [T(B)]),
        ("sum of scalars dim", lambda a: a.sum(0), [T(B)]),
        ("integer sum", lambda a: a.sum(), [T(B, 4, dtype=I)]),
    ],
    "view": [
        ("view", lambda a: a.view(-1), [T(B, 2, 4)]),
        ("reshape", lambda a: a.reshape(4, 2), [T(B, 2, 4)]),
        ("transpose", lambda a: a.transpose(0, -1), [T(B, 2, 4)]),
        ("permute", lambda a: a.permute(2, 0, 1), [T(B, 2, 4, 3)]),
        ("t", lambda a: a.t(), [T(B, 2, 4)]),
        ("expand", lambda a: a.expand(5, 2, 4), [T(B, 2, 1)]),
        ("unsqueeze", lambda a: a.unsqueeze(-1), [T(B, 2, 4)]),
        ("squeeze", lambda a: a.squeeze(), [T(1, 2, 1)]),
        ("squeeze dim", lambda a: a.squeeze(1), [T(B, 2, 1)]),
        ("select", lambda a: a[1], [T(B, 2, 4)]),
        ("slice", lambda a: a[:, 1:4:2], [T(B, 2, 4)]),
        ("diagonal", lambda a: a.diagonal(1), [T(B, 3, 4)]),
        ("unfold", lambda a: a.unfold(1, 2, 1), [T(B, 2, 4)]),
        ("split", lambda a: a.split(3, 1), [T(B, 2, 4)]),
        ("unbind", lambda a: a.unbind(0), [T(B, 2, 4)]),
        ("detach", lambda a: a.detach(), [T(B, 2, 4)]),
        ("chunk", lambda a: a.chunk(2, -1), [T(B, 2, 4)]),
    ],
    "index": [
        ("gather", lambda a, i: a.gather(1, i), [T(B, 2, 4), T(B, 2, 3, dtype=I)]),
        ("index_select", lambda a, i: a.index_select(1, i), [T(B, 2, 4), T(B, 3, dtype=I)]),
        ("embedding", lambda w, i: torch.embedding(w, i), [T(B, 3, 4), T(B, 2, 2, dtype=I)]),
        ("scatter", lambda a, i, s: a.scatter(1, i, s), [T(B, 2, 4), T(B, 2, 1, dtype=I), T(B, 2, 1)]),
        ("scatter value", lambda a, i: a.scatter(0, i, 2.5), [T(B, 4), T(B, 2, dtype=I)]),
        ("scatter_add", lambda a, i, s: a.scatter_add(0, i, s), [T(B, 4), T(B, 5, dtype=I), T(B, 5)]),
        ("index_add", lambda a, i, s: a.index_add(0, i, s), [T(B, 4, 2), T(B, 3, dtype=I), T(B, 3, 2)]),
        ("slice_backward", lambda g: aten.slice_backward(g, [5, 4], 0, 1, 3, 1), [T(B, 2, 4)]),
    ],
    "contraction": [
        ("mm", lambda a, b: a.mm(b), [T(B, 2, 4), T(B, 4, 5)]),
        ("bmm", lambda a, b: a.bmm(b), [T(B, 6, 2, 4), T(B, 6, 4, 5)]),
        ("mv", lambda a, b: a.mv(b), [T(B, 2, 4), T(B, 4)]),
        ("dot", lambda a, b: a.dot(b), [T(B, 4), T(B, 4)]),
        ("matmul", lambda a, b: a @ b, [T(B, 6, 2, 4), T(B, 4)]),
        ("outer", lambda a, b: torch.outer(a, b), [T(B, 4), T(B, 2)]),
        ("linear", lambda a, b: torch.nn.functional.linear(a, b), [T(B, 5, 4), T(B, 2, 4)]),
    ],
    "factory": [
        ("zeros_like", lambda a: torch.zeros_like(a) + a, [T(B, 2)]),
        ("full_like", lambda a: torch.full_like(a, 2.0), [T(B, 2)]),
        ("new_ones", lambda a: a.new_ones(2, 3) * a, [T(B)]),
        ("ones", lambda a: torch.ones(2, 3) * a, [T(B)]),
        ("arange", lambda a: torch.arange(4) + a, [T(B)]),
    ],
    "composite": [
        ("softmax", lambda a: a.softmax(-1), [T(B, 2, 4)]),
        ("log_softmax", lambda a: a.log_softmax(0), [T(B, 2, 4)]),
        ("layer_norm", lambda a, w: torch.nn.functional.layer_norm(a, [4], w), [T(B, 2, 4), T(B, 4)]),
        ("addmm", lambda a, b, c: torch.addmm(a, b, c, alpha=2), [T(B, 5), T(B, 2, 4), T(B, 4, 5)]),
        ("max dim", lambda a: tuple(a.max(1)), [T(B, 2, 4)]),
        ("var", lambda a: aten.var.correction(a, [1]), [T(B, 2, 4)]),
        ("tril", lambda a: a.tril(), [T(B, 4, 4)]),
        ("stack", lambda a, b: torch.stack([a, b], -1), [T(B, 4), T(B, 4)]),
        ("cross_entropy", torch.nn.functional.cross_entropy, [T(B, 4, 3), T(B, 4, dtype=I)]),
    ],
    "extern": [
        ("cat", lambda a, b: torch.cat([a, b], -1), [T(B, 2, 4), T(B, 2, 1)]),
        ("index", lambda a, i: a[i], [T(B, 4, 2), T(B, 5, dtype=I)]),
        ("index middle", lambda a, i: a[:, i], [T(B, 2, 4, 5), T(B, 3, dtype=I)]),
        ("index two", lambda a, i, j: a[:, i, j], [T(B, 2, 4, 5), T(B, 3, dtype=I), T(B, 2, 1, dtype=I)]),
        ("index apart", lambda a, i, j: a[i, :, j], [T(B, 3, 4, 5), T(B, 3, dtype=I), T(B, 3, dtype=I)]),
        ("index_put", lambda a, i, v: a.index_put([i], v), [T(B, 4, 2), T(1, 2, dtype=I).expand(B, 2), T(B, 2, 2)]),
        (
            "index_put accumulate",
            lambda a, i, v: torch.index_put(a, [None, i], v, accumulate=True),
            [T(B, 2, 4), T(B, 5, dtype=I), T(B, 5)],
        ),
        (
            "index_put apart",
            lambda a, i, v: torch.index_put(a, [i, None, i], v, accumulate=True),
            [T(B, 3, 2, 4), T(B, 5, dtype=I), T(B, 5, 2)],
        ),
        ("cumsum", lambda a: a.cumsum(-1), [T(B, 2, 4)]),
        ("cumsum of scalars", lambda a: a.cumsum(0), [T(B)]),
        ("cumprod", lambda a: a.cumprod(0), [T(B, 2, 4)]),
        ("cummax", lambda a: tuple(a.cummax(1)), [T(B, 2, 4)]),
        ("cummin of scalars", lambda a: tuple(a.cummin(0)), [T(B)]),
        ("logcumsumexp", lambda a: a.logcumsumexp(0), [T(B, 2, 4)]),
        ("searchsorted", torch.searchsorted, [T(B, 6).sort()[0], T(B, 2, 4)]),
        ("searchsorted of a number", torch.searchsorted, [T(B, 6).sort()[0], T(B)]),
        (
            "searchsorted in lines",
            lambda s, a: torch.searchsorted(s, a, right=True),
            [T(B, 2, 6).sort()[0], T(B, 2, 4)],
        ),
        (
            "searchsorted by order",
            lambda s, a, o: torch.searchsorted(s, a, sorter=o),
            [T(B, 6), T(B, 4), T(B, 6).argsort()],
        ),
        ("bucketize", torch.bucketize, [T(B, 2, 4), T(B, 6).sort()[0]]),
        ("gamma's slope", aten._standard_gamma_grad.default, [T(B, 4, positive=True), T(B, 4, positive=True)]),
    ],
    "convolution": [
        ("1d", torch.nn.functional.conv1d, [T(B, 2, 4, 6), T(B, 3, 4, 2), T(B, 3)]),
        ("2d", lambda a, w, b: torch.conv2d(a, w, b, 2, 1), [T(B, 2, 4, 5, 5), T(B, 3, 4, 3, 2), T(B, 3)]),
        ("groups", lambda a, w: torch.conv2d(a, w, None, 1, "same", 1, 2), [T(B, 1, 4, 5, 5), T(B, 6, 2, 3, 3)]),
        (
            "transposed",
            lambda a, w, b: torch.conv_transpose2d(a, w, b, 2, 1, 1),
            [T(B, 2, 3, 4, 4), T(B, 3, 2, 3, 3), T(B, 2)],
        ),
        (
            "transposed groups",
            lambda a, w: torch.conv_transpose1d(a, w, None, 2, groups=2),
            [T(B, 2, 4, 5), T(B, 4, 3, 2)],
        ),
        (
            "backward",
            lambda g, a, w: aten.convolution_backward(g, a, w, [4], [2], [1], [1], False, [0], 1, [True] * 3),
            [T(B, 2, 4, 3), T(B, 2, 2, 5), T(B, 4, 2, 3)],
        ),
        (
            "backward of groups",
            lambda g, a, w: aten.convolution_backward(g, a, w, [4], [1], [0], [1], False, [0], 2, [True] * 3),
            [T(B, 2, 4, 4), T(B, 2, 2, 5), T(B, 4, 1, 2)],
        ),
        (
            "backward of transposed",
            lambda g, a, w: aten.convolution_backward(g, a, w, [3], [2], [0], [1], True, [0], 1, [True] * 3),
            [T(B, 2, 3, 10), T(B, 2, 2, 5), T(B, 2, 3, 2)],
        ),
    ],
}
TABLE = [pytest.param(fn, args, id=f"{kind}-{name}") for kind, cases in CASES.items() for name, fn, args in cases]


@pytest.fixture(autouse=True)
def no_operator_is_looped(request):
    """What the table has is done at once."""
    fallback.set_fallback_enabled("fn" not in request.fixturenames)
    yield
    fallback.set_fallback_enabled(True)


def loop(fn, args, dims):
    n = next(a.shape[d] for a, d in zip(args, dims) if d is not None)
    results = [fn(*(a if d is None else a.select(d, i) for a, d in zip(args, dims))) for i in range(n)]
    if isinstance(results[0], (tuple, list)):
        return [torch.stack(list(r)) for r in zip(*results)]
    return torch.stack(results)


def same(got, want):
    if isinstance(want, list):
        assert len(got) == len(want)
        for g, w in zip(got, want):
            same(g, w)
        return
    assert got.dtype is want.dtype and got.shape == want.shape, (got.shape, want.shape, got.dtype, want.dtype)
    if want.dtype.is_floating_point:
        assert torch.allclose(got, want, rtol=1e-5, atol=1e-6, equal_nan=True)
    else:
        assert (got == want).all()


def masks(n):
    for bits in range(1, 2**n):
        yield [0 if bits >> k & 1 else None for k in range(n)]


@pytest.mark.parametrize("fn, args", TABLE)
def test_against_loop(fn, args):
    for dims in masks(len(args)):
        given = [a if d == 0 else a[0] for a, d in zip(args, dims)]
        same(vmap(fn, tuple(dims))(*given), loop(fn, given, dims))


@pytest.mark.parametrize("fn, args", TABLE)
def test_batch_last(fn, args):
    given = [a.movedim(0, -1) for a in args]
    same(vmap(fn, in_dims=-1)(*given), loop(fn, args, [0] * len(args)))


@pytest.mark.parametrize("fn, args", TABLE)
def test_nested(fn, args):
    """Two levels: all arguments at the outer one, and each alone at the inner one too."""
    for inner in masks(len(args)):
        given = [torch.stack([a, a], 1) if d == 0 else a for a, d in zip(args, inner)]
        got = vmap(vmap(fn, tuple(inner)))(*given)
        want = [vmap(fn, tuple(inner))(*(g[i] for g in given)) for i in range(args[0].shape[0])]
        if isinstance(want[0], (tuple, list)):
            same(got, [torch.stack(list(w)) for w in zip(*want)])
        else:
            same(got, torch.stack(want))


def test_gradients_of_examples_lie_as_their_weight():
    """View works on them, inside and outside of vmap."""
    w, x = T(5, 4), T(B, 4)
    slopes = vmap(grad(lambda w, x: torch.nn.functional.linear(x[None], w).sin().sum()), (None, 0))(w, x)
    assert slopes.stride() == (20, 4, 1) and slopes.view(B, -1).shape == (B, 20)
    same(slopes, loop(grad(lambda w, x: (w @ x).sin().sum()), [w, x], [None, 0]))
    weights = T(B, 5, 4)
    rows = vmap(lambda w: torch.nn.functional.linear(x, w).view(-1))(weights)
    same(rows, loop(lambda w: (x @ w.T).view(-1), [weights], [0]))


def test_convolutions_of_no_examples():
    x, w = torch.zeros(0, 1, 2, 5, 5), T(3, 2, 3, 3)
    assert vmap(lambda x: torch.conv2d(x, w))(x).shape == (0, 1, 3, 3, 3)
    with pytest.raises(RuntimeError, match=r"expected input\[1, 3, 5, 5\] to have 2 channels, but got 3 channels"):
        vmap(lambda x: torch.conv2d(x, w))(T(B, 1, 3, 5, 5))


DIFFERENTIABLE = [p for p in TABLE if p.id not in {"extern-gamma's slope"}]


@pytest.mark.parametrize("fn, args", DIFFERENTIABLE)
def test_gradient_of_vmap(fn, args):
    """The gradient through vmap is that through the loop."""

    def differentiable(out):
        return [o for o in (out if isinstance(out, (tuple, list)) else [out]) if o.dtype.is_floating_point]

    for dims in masks(len(args)):
        given = [a if d == 0 else a[0] for a, d in zip(args, dims)]
        if not any(g.dtype.is_floating_point for g in given):
            continue
        grads = []
        for run in (lambda *xs, dims=dims: vmap(fn, tuple(dims))(*xs), lambda *xs, dims=dims: loop(fn, xs, dims)):
            leaves = [g.detach().requires_grad_() if g.dtype.is_floating_point else g for g in given]
            outs = [o for o in differentiable(run(*leaves)) if o.requires_grad]
            if not outs:
                grads.append([])
                continue
            total = sum((o * torch.arange(o.numel()).view(o.shape)).sum() for o in outs)
            total.backward()
            grads.append([x.grad for x in leaves if x.requires_grad])
        assert len(grads[0]) == len(grads[1])
        for g, w in zip(*grads):
            assert (g is None) == (w is None)
            if g is not None:
                assert torch.allclose(g, w, rtol=1e-4, atol=1e-5), (dims, g, w)


def test_pointwise_operator_declared_here():
    """A pointwise operator is batched with nothing but its declaration."""

    @pointwise("test_batching::smooth(Tensor self, Tensor other, float k) -> Tensor", promote="float", variants="")
    def smooth(s, self, other, k):
        return s.mul(s.tanh(s.mul(self, k)), other)

    a, b = T(B, 2, 4), T(B, 4)
    same(vmap(lambda x, y: smooth(x, y, 2.0))(a, b), loop(lambda x, y: smooth(x, y, 2.0), [a, b], [0, 0]))
    per_example = vmap(grad(lambda x, y: smooth(x, y, 2.0).sum()))(a, b)
    same(per_example, torch.stack([grad(lambda x, y: smooth(x, y, 2.0).sum())(a[i], b[i]) for i in range(B)]))


def test_extern_is_looped_with_one_line(caplog):
    @extern(
        "test_batching::reverse(Tensor self) -> Tensor",
        meta=lambda x: TensorMeta(tuple(x.shape), strides_of(x), x.dtype, x.device),
        variants="",
    )
    def reverse(a):
        return a[::-1].copy()

    root = logging.getLogger("flambeau")
    propagate, root.propagate = root.propagate, True
    try:
        with caplog.at_level(logging.WARNING):
            for _ in range(2):
                assert (vmap(reverse)(T(B, 4)) == T(B, 4)[:, [3, 2, 1, 0]]).all()
    finally:
        root.propagate = propagate
    assert [r.getMessage() for r in caplog.records] == [
        "vmap: test_batching::reverse (kind extern) has no batching rule and is run once an example; "
        "op.override('batch', fn) gives it one"
    ]
    with pytest.raises(RuntimeError, match="does not support vmap over dims of size 0"):
        vmap(reverse)(torch.ones(0, 4))
    fallback.set_warning_enabled(True)
    try:
        with pytest.warns(UserWarning, match="performance drop .* test_batching::reverse"):
            vmap(reverse)(T(B, 4))
    finally:
        fallback.set_warning_enabled(False)
    fallback.set_fallback_enabled(False)
    try:
        with pytest.raises(RuntimeError, match="test_batching::reverse has no batching rule, and the fallback"):
            vmap(reverse)(T(B, 4))
    finally:
        fallback.set_fallback_enabled(True)

    @reverse.override("batch")
    def rule(b, x):
        return aten.index(x, [None, torch.arange(x.shape[1] - 1, -1, -1)])

    assert (vmap(reverse)(T(B, 4)) == T(B, 4)[:, [3, 2, 1, 0]]).all()


def test_missing_rule_is_named():
    @extern("test_batching::spoil(Tensor(a!) self) -> Tensor(a!)", meta=lambda x: None, variants="")
    def spoil(a):
        return a

    with pytest.raises(
        MissingFacet, match=r"vmap requires operator test_batching::spoil \(kind extern\) to define batch"
    ):
        vmap(spoil)(T(B, 2))


def test_promotion_of_scalar_examples():
    """A zero-dimensional example weighs less in promotion than a vector, whatever its batch's shape is."""
    x, s = T(B, 4), T(B, dtype=torch.float64)
    assert vmap(lambda a, b: a * b)(x, s).dtype is torch.float32
    assert (
        vmap(lambda a, b: a.mul(b))(torch.ones(B, 2, dtype=torch.int64), torch.ones(B, dtype=torch.int32)).dtype
        is torch.int64
    )
    y = x.clone()
    vmap(lambda a, b: a.mul_(b))(y, s)
    assert torch.allclose(y, x * s.float()[:, None])


def test_inplace():
    x = T(B, 4)
    y = x.clone()
    out = vmap(lambda a, b: a.add_(b).mul_(2))(y, T(B, 4))
    assert torch.equal(y, (x + T(B, 4)) * 2) and torch.equal(out, y)
    with pytest.raises(
        RuntimeError,
        match=r"vmap: add_\(self, \*extra_args\) is not possible because there exists a Tensor `other` in extra_args "
        r"that has "
        "more elements than `self`",
    ):
        vmap(lambda a, b: a.add_(b), (None, 0))(T(4), x)
    with pytest.raises(RuntimeError, match="vmap: index_put_"):
        vmap(lambda a, b: a.index_put_([torch.tensor([0])], b), (None, 0))(T(4), T(B, 1))

    def through_views(a):
        a = a.clone()
        a[1:].zero_()
        a[0] = 5
        return a

    assert torch.equal(vmap(through_views)(x), torch.tensor([[5.0, 0, 0, 0]] * B))

    def into_zeros(a):
        z = torch.zeros_like(a)
        z.copy_(a * 2)
        return z

    assert torch.equal(vmap(into_zeros)(x), x * 2)
    z = T(4).clone()
    vmap(lambda a: z.add_(1) * a)(x)
    assert torch.equal(z, T(4) + 1)


def test_masks():
    x, m = T(B, 4), T(B, 4, dtype=BOOL)

    def zeroed(a, k):
        a = a.clone()
        a[k] = 7.0
        return a

    for dims in ([0, 0], [0, None]):
        given = [a if d == 0 else a[0] for a, d in zip((x, m), dims)]
        same(vmap(zeroed, tuple(dims))(*given), loop(zeroed, given, dims))
    same(vmap(lambda a: a[m[0]])(x), x[:, m[0]])
    with pytest.raises(RuntimeError, match="another shape for each example"):
        vmap(lambda a, k: a[k])(x, m)


def test_randomness():
    x = torch.zeros(B, 64)
    for fn in (
        lambda a: a + torch.rand(64),
        lambda a: torch.rand_like(a),
        lambda a: a.clone().normal_(),
        lambda a: torch.nn.functional.dropout(a + 1),
    ):
        with pytest.raises(RuntimeError, match="vmap: called random operation while in randomness error mode"):
            vmap(fn)(x)
        alike = vmap(fn, randomness="same")(x)
        assert torch.equal(alike[0], alike[1]) and not torch.equal(alike, x)
        different = vmap(fn, randomness="different")(x)
        assert not torch.equal(different[0], different[1])
    x = torch.zeros(B, 4)
    torch.manual_seed(0)
    got = vmap(lambda a: a + torch.rand(4), randomness="different")(x)
    torch.manual_seed(0)
    assert torch.equal(got, torch.rand(B, 4))
    with pytest.raises(RuntimeError, match="randomness error mode"):
        vmap(lambda a: torch.nn.functional.dropout(torch.ones(4)) * a)(x)
    p = torch.tensor([[1.0, 0, 0], [0, 0, 1.0]])
    assert vmap(lambda q: torch.multinomial(q, 1), randomness="different")(p).tolist() == [[0], [2]]
    for fn in (lambda q: torch.multinomial(q, 1), torch.bernoulli, lambda q: torch.zeros(3).bernoulli_(q)):
        with pytest.raises(RuntimeError, match="same randomness with a batched tensor|more elements than `self`"):
            vmap(fn, randomness="same")(p)
    # What is written over may differ from example to example: it isn't read.
    one = vmap(lambda a: a.bernoulli_(torch.tensor([0.5] * 64)), randomness="same")(torch.zeros(B, 64))
    assert torch.equal(one[0], one[1])
    with pytest.raises(RuntimeError, match="different inplace randomness on an unbatched tensor"):
        vmap(lambda a: torch.zeros(3).uniform_() + a, randomness="different")(torch.zeros(B, 3))
    # Two operands: one draw for the whole batch, as for one.
    mean, std = torch.zeros(B, 8), torch.ones(8)
    torch.manual_seed(1)
    got = vmap(torch.normal, (0, None), randomness="different")(mean, std)
    torch.manual_seed(1)
    assert torch.equal(got, torch.normal(mean, std.expand(B, 8)))


def test_data_dependence_is_an_error():
    x = T(B)
    for fn in (lambda a: a.item(), lambda a: a if a > 0 else -a, lambda a: float(a)):
        with pytest.raises(
            RuntimeError, match=r"vmap: It looks like you're either \(1\) calling .item\(\) on a Tensor"
        ):
            vmap(fn)(x)


def test_what_is_not_mapped_is_free():
    x = T(B, 4)
    same(vmap(lambda a: a * torch.tensor(3.0).item())(x), x * 3)
    same(vmap(lambda a: a + torch.ones(4, 4).softmax(0)[0])(x), x + 0.25)


def test_metadata_of_an_example():
    def fn(a):
        assert (
            a.shape == (4, 2)
            and a.stride() == (2, 1)
            and a.ndim == 2
            and a.is_contiguous()
            and a.dtype is torch.float32
        )
        assert not a.requires_grad and a.numel() == 8 and a.device.type == "cpu" and len(a) == 4
        assert repr(a).startswith("BatchedTensor(lvl=1, bdim=0, value=")
        with pytest.raises(RuntimeError, match="requires_grad_"):
            a.requires_grad_()
        return a

    vmap(fn)(T(B, 4, 2))
    vmap(lambda a: a if a.stride() == (1, 3) else None, in_dims=0)(T(2, 4, 3).transpose(1, 2))


def test_a_tensor_that_outlives_its_level_is_its_value():
    kept = []
    x = T(B, 2)
    vmap(lambda a: kept.append(a * 2) or a)(x)
    assert torch.equal(kept[0] + 1, x * 2 + 1)


def test_modes_see_batched_operators():
    from flambeau.core.modes import TorchDispatchMode

    seen = []

    class Log(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    with Log():
        vmap(lambda a, w: (a @ w).relu().sum(), (0, None))(T(B, 4), T(4, 2))
    assert "aten.mm.default" in seen and "aten.relu.default" in seen and "aten.sum.dim_IntList" in seen


def test_empty_vectors_of_a_join_keep_their_history():
    empty, x = torch.rand(0, requires_grad=True), torch.rand(5, 2)
    out = vmap(lambda e, a, b: torch.cat([e, a, b]), in_dims=(None, 0, 0))(empty, x, torch.rand(5, 0))
    assert out.requires_grad and torch.equal(out, x)
    out.sum().backward()
    assert empty.grad.shape == (0,)
    each = torch.rand(5, 0, requires_grad=True)
    vmap(lambda e, a: torch.cat([e, a]))(each, x).sum().backward()
    assert each.grad.shape == (5, 0)


def test_memory_with_strides_is_made_for_every_example():
    x = torch.randn(4, 3, 2)
    filled = vmap(lambda a: a.new_empty_strided((3, 2), (1, 3)).copy_(a))(x)
    assert torch.equal(filled, x) and filled.stride() == (6, 1, 3)
    twice = vmap(vmap(lambda a: a.new_empty_strided((2, 3), (0, 1))))(x)
    assert twice.shape == (4, 3, 2, 3) and twice.stride() == (9, 3, 0, 1)
    assert not torch.ones(2, requires_grad=True).new_empty_strided((2,), (1,)).requires_grad


def test_truths_of_assertions_are_those_of_all_examples():
    x = torch.arange(6).reshape(3, 2) > 0
    seen = []

    def told(a):
        every, some = torch.ops.aten._is_all_true(a), torch.ops.aten._is_any_true(a)
        seen.append((bool(every), bool(some)))
        return a

    vmap(told)(x)
    assert seen == [(False, True)]


@pytest.mark.filterwarnings("ignore:.*prototype")
def test_nested_tensors_are_mapped_over_their_tensors():
    x = torch.nested.nested_tensor([torch.ones(2, 3), torch.zeros(4, 3)])
    assert [tuple(t.shape) for t in vmap(lambda t: t + 1)(x).unbind()] == [(2, 3), (4, 3)]
    for dims in ({"in_dims": 2}, {"out_dims": 2}):
        with pytest.raises(RuntimeError, match="Nested tensors can only be vmapped over dim=0"):
            vmap(lambda t: t, **dims)(x)
    attention = torch.nn.MultiheadAttention(3, 1, batch_first=True).eval()
    with pytest.raises(AssertionError, match="MultiheadAttention does not support NestedTensor"):
        attention(x, x, x)
