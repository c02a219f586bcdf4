"""A Function's own ``jvp`` in captured code: a subgraph as its forward and backward are. That of these isn't the derivative, so that it shows."""

import pytest

import flambeau as torch
from flambeau.dynamo.exc import Unsupported

X = torch.tensor([0.3, 0.4])
F = torch.func


class WithContext(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k):
        y = x.sin()
        ctx.save_for_backward(x)
        ctx.save_for_forward(x, y)
        ctx.k = k
        return y * k

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x.cos() * ctx.k, None

    @staticmethod
    def jvp(ctx, t, _):
        x, y = ctx.saved_tensors
        return t * x.cos() * ctx.k * 10 + 0 * y


class TwoResults(torch.autograd.Function):
    @staticmethod
    def forward(x, w):
        return x * w, x + w

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_forward(*inputs)
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g, h):
        x, w = ctx.saved_tensors
        return g * w + h, g * x + h

    @staticmethod
    def jvp(ctx, a, b):
        x, w = ctx.saved_for_forward
        return 3 * (a * w + b * x), a + b


def one(v):
    return WithContext.apply(v, 3.0)


PROGRAMS = {
    "jvp": (lambda x: F.jvp(one, (x,), (torch.ones_like(x),))[1], 3 * 10 * X.cos()),
    "jacfwd": (lambda x: F.jacfwd(one)(x), torch.diag(30 * X.cos())),
    "two results": (lambda x: F.jvp(lambda v: TwoResults.apply(v, v * 2), (x,), (x,))[1][0], 12 * X * X),
    "one is constant": (lambda x: F.jvp(lambda v: TwoResults.apply(v, x)[0].sin(), (x,), (x,))[1], 3 * X * X * (X * X).cos()),
    # The gradient that is taken inside is by the backward, and is what is pushed.
    "jvp of grad, value": (lambda x: F.jvp(F.grad(lambda v: one(v).sum()), (x,), (x,))[0], 3 * X.cos()),
    "jvp of grad": (lambda x: F.jvp(F.grad(lambda v: one(v).sum()), (x,), (x,))[1], -3 * X.sin() * X),
    "grad of jvp": (
        lambda x: F.grad(lambda u: F.jvp(one, (u,), (X,))[1].sum())(x),
        -30 * X.sin() * X,
    ),
    "jvp of jvp": (lambda x: F.jvp(lambda u: F.jvp(one, (u,), (X,))[1], (x,), (x,))[1], -30 * X.sin() * X * X),
}  # fmt: skip


@pytest.mark.parametrize("backend", [None, "eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_it_says_the_tangents(name, backend):
    fn, want = PROGRAMS[name]
    f = torch.compile(fn, backend=backend, fullgraph=True) if backend else fn
    for _ in range(2):
        assert torch.allclose(f(X.clone()), want, atol=1e-6)


class Noted(TwoResults):
    seen: list = []

    @staticmethod
    def jvp(ctx, a, b):
        Noted.seen.append(1)
        return a, b


class TooMany(TwoResults):
    @staticmethod
    def jvp(ctx, a, b):
        return a, b, a


class Mapped(TwoResults):
    generate_vmap_rule = True


def of(cls):
    return lambda x: F.jvp(lambda v: cls.apply(v, v), (x,), (x,))[1][0]


BREAKS = {
    "side effects": (of(Noted), "the jvp of Noted has side effects"),
    "too many": (of(TooMany), "jvp returned 3 tangents for 2 outputs of forward"),
    "a generated vmap rule": (
        lambda x: F.vmap(of(Mapped))(x[None]),
        "Mapped.apply in forward mode with a generated vmap rule",
    ),
}


@pytest.mark.parametrize("name", BREAKS)
def test_what_is_not_traced_breaks_the_graph(name):
    fn, words = BREAKS[name]
    with pytest.raises(Unsupported, match=words):
        torch.compile(fn, backend="eager", fullgraph=True)(X)
    outcomes = []
    for f in (fn, torch.compile(fn, backend="eager")):
        try:
            outcomes.append(f(X).tolist())
        except RuntimeError as e:
            outcomes.append(str(e))
    assert outcomes[0] == outcomes[1]
