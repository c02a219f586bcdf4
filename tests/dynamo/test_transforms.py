"""Function transforms in captured code: one graph, right values, and guards on what the transformed function reads."""

import pytest
from helpers import Graphs

import flambeau as torch
from flambeau.compiler import compile
from flambeau.dynamo import exc

F = torch.func
X = torch.tensor([0.5, -1.0, 2.0])
FACTOR = 3


def with_aux(x):
    return F.grad_and_value(lambda y: ((y.sin() * FACTOR).sum(), y * 2), has_aux=True)(x)


def vjp(x):
    out, pull = F.vjp(torch.sin, x)
    return out, pull(torch.ones_like(out))[0]


def closes_over_graph_values(x):
    total, k = x.sum(), 2
    return F.vmap(lambda r: r * total + k)(x)


def nested(x):
    return F.grad(lambda y: F.grad(lambda z: (z**3).sum())(y).sum())(x)


CASES = [
    with_aux,
    vjp,
    closes_over_graph_values,
    nested,
    lambda x: F.grad(lambda a, b: (a * b).sum(), argnums=1)(x, x + 1),
    lambda x: F.jvp(torch.sin, (x,), (torch.ones_like(x),))[1],
    lambda x: F.jacrev(torch.sin)(x),
    lambda x: F.jacfwd(torch.sin)(x),
    lambda x: F.hessian(lambda y: (y**3).sum())(x),
    lambda x: F.vmap(lambda a, b: {"p": a * b, "q": (a,)}, in_dims=(0, None))(x, x)["p"],
]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("i", range(len(CASES)))
def test_one_graph(i, backend):
    fn = CASES[i]
    want, got = fn(X), compile(fn, backend=backend, fullgraph=True)(X)
    for a, b in zip(torch.utils._pytree.tree_leaves(want), torch.utils._pytree.tree_leaves(got)):
        assert torch.allclose(a, b)


def test_globals_of_the_function_are_guarded():
    global FACTOR
    g = Graphs()
    c = compile(with_aux, backend=g, fullgraph=True)
    assert torch.allclose(c(X)[0], X.cos() * 3)
    FACTOR = 5
    try:
        assert torch.allclose(c(X)[0], X.cos() * 5) and len(g.gms) == 2
    finally:
        FACTOR = 3


def compiled(fn, *args, backends=("eager", "aot_eager", "inductor")):
    """Plain result, and that of each backend in one graph, must agree; gradients of arguments and parameters too."""

    def outcome(f):
        given = [a.detach().requires_grad_(a.requires_grad) if isinstance(a, torch.Tensor) else a for a in args]
        for p in getattr(fn, "parameters", lambda: ())():
            p.grad = None
        out = f(*given)
        leaves = [t for t in tree_leaves(out) if isinstance(t, torch.Tensor)]
        total = sum(t.sum() for t in leaves if t.requires_grad)
        if isinstance(total, torch.Tensor):
            total.backward()
        owners = [*given, *getattr(fn, "parameters", lambda: ())()]
        return tree_leaves(out), [getattr(o, "grad", None) for o in owners]

    want = outcome(fn)
    for backend in backends:
        torch._dynamo.reset()
        got = outcome(compile(fn, backend=backend, fullgraph=True))
        for a, b in zip([*want[0], *want[1]], [*got[0], *got[1]], strict=True):
            assert torch.allclose(a, b, atol=1e-5) if isinstance(a, torch.Tensor) else a == b, (backend, a, b)


tree_leaves = torch.utils._pytree.tree_leaves
W = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.full((3,), 3.0))
        self.lin = torch.nn.Linear(3, 2)
        self.scale = 2

    def one(self, a):
        return self.lin(a * self.w) * self.scale

    def forward(self, x):
        return F.vmap(self.one)(x), F.vmap(self.lin)(x), F.vmap(F.grad(lambda r: self.one(r).sum()))(x)


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k):
        ctx.save_for_backward(x)
        ctx.k, ctx.t = k, x * 3
        return x * k, x.sin()

    @staticmethod
    def backward(ctx, g, h):
        (x,) = ctx.saved_tensors
        return g * ctx.k + h * x.cos() + ctx.t, None


class TwoParts(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x, y):
        return x * y

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs, output)

    @staticmethod
    def backward(ctx, g):
        x, y, out = ctx.saved_tensors
        return g * y * 10 + out * 0, g * x * 10


class Inplace(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, g):
        return g * 2


def aux_of_all_sorts(x):
    g, (v, aux) = F.grad_and_value(lambda y: ((y * W).sum(), {"n": 3, "t": [y * 2], "s": "text"}), has_aux=True)(x)
    return g, v, aux["t"][0], aux["n"], aux["s"]


def lists_are_written(x):
    log = []

    def inner(r):
        log.append(len(log) + 5)
        return r * log[0]

    return F.vmap(inner)(x), log


def in_chunks(x):
    log = []

    def inner(r):
        log.append("part")
        return r * W.sum()

    return F.vmap(inner, chunk_size=2)(x), log


def structured(x):
    return F.vmap(lambda d, k: {"p": d["a"] * k, "q": (d["b"][0],)}, in_dims=({"a": 0, "b": [None]}, None))(
        {"a": x, "b": [x]}, 3
    )["p"]


LIN = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2, track_running_stats=True))


def per_sample(p, b, x):
    def loss(p, row):
        return (F.functional_call(LIN[0], p, (row[None],)) ** 2).sum()

    first = {k[2:]: v for k, v in p.items() if k.startswith("0.")}
    return F.vmap(F.grad(loss), in_dims=(None, 0))(first, x), F.functional_call(LIN, [p, b], x)


BODIES = [
    (
        per_sample,
        {k: v.detach() for k, v in LIN.named_parameters()},
        {k: v.detach() for k, v in LIN.named_buffers()},
        torch.ones(4, 3),
    ),
    (aux_of_all_sorts, X),
    (lists_are_written, X),
    (in_chunks, X),
    (structured, X),
    (lambda x: F.vmap(lambda r: F.vmap(lambda s: s * W)(r.expand(2, 3)))(x), torch.ones(2, 3, requires_grad=True)),
    (lambda x: Double.apply(x, 4)[0] + Double.apply(x, 2)[1], X.clone().requires_grad_()),
    (lambda x: TwoParts.apply(x, W) * 2, X.clone().requires_grad_()),
    (lambda x: F.vmap(lambda a: TwoParts.apply(a, a * 2))(x), X.clone().requires_grad_()),
    (lambda x: Inplace.apply(x * 1) + 1, X.clone().requires_grad_()),
    (lambda x: F.jacrev(lambda y: y * y * W)(x), X),
    (lambda x: F.hessian(lambda y: (y**3 * W).sum())(x), X),
    (lambda x: F.vjp(lambda y: (y * W, y.sum()), x)[1]((x, x.sum()))[0], X),
    (lambda x: F.jvp(lambda y: y * W.detach(), (x,), (x,))[1], X),
    (Model(), torch.ones(4, 3)),
]


@pytest.mark.parametrize("i", range(len(BODIES)))
def test_bodies_are_traced(i):
    fn, *args = BODIES[i]
    compiled(fn, *args)


def test_what_a_body_reads_is_guarded():
    table = {"k": 2}

    def f(x):
        return F.vmap(lambda r: r * table["k"])(x)

    c = compile(f, backend="eager", fullgraph=True)
    assert torch.equal(c(X), X * 2)
    table["k"] = 3
    assert torch.equal(c(X), X * 3)


def test_a_tensor_that_escapes_is_not_captured():
    def f(x):
        kept = []

        def inner(r):
            kept.append(r * 2)
            return r

        return F.vmap(inner)(x), len(kept)

    assert compile(f, backend="eager")(X)[1] == 1

    def g(x):
        kept = []
        F.vmap(lambda r: (kept.append(r * 2), r)[1])(x)
        return kept[0] + 1

    with pytest.raises(exc.Unsupported, match="leaves it other than as its result"):
        compile(g, backend="eager", fullgraph=True)(X)


def test_a_backward_with_side_effects_runs_at_each_backward():
    calls = []

    class Counts(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            calls.append(1)
            return g * 2

    c = compile(lambda x: Counts.apply(x) + 1, backend="aot_eager")
    x = torch.ones(2, requires_grad=True)
    for _ in range(3):
        c(x).sum().backward()
    assert len(calls) == 3


def test_an_output_that_is_not_used_gives_no_gradient():
    for backend in ("eager", "aot_eager", "inductor"):
        x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
        a, _ = compile(lambda x, y: (x * 2, y * 3), backend=backend)(x, y)
        a.sum().backward()
        assert y.grad is None and torch.equal(x.grad, torch.full((2,), 2.0))
        torch._dynamo.reset()


UNDER = {
    "vmap": lambda f: torch.func.vmap(f)(ROWS),
    "grad": lambda f: torch.func.grad(lambda x: f(x).sum())(ROWS),
    "vmap of grad": lambda f: torch.func.vmap(torch.func.grad(lambda x: f(x).sum()))(ROWS),
    "jacrev": lambda f: torch.func.jacrev(f)(ROWS[0]),
    "jacrev of jacrev": lambda f: torch.func.jacrev(torch.func.jacrev(f))(ROWS[0]),
    "hessian": lambda f: torch.func.hessian(lambda x: f(x).sum())(ROWS[0]),
    "jvp": lambda f: torch.func.jvp(f, (ROWS,), (ROWS,)),
    "nested vmap": lambda f: torch.func.vmap(torch.func.vmap(f))(ROWS),
}
ROWS = torch.arange(6.0).reshape(2, 3)


def breaks_in_between(x):
    y = x * 2
    torch._dynamo.graph_break()
    return torch.sin(y) + x


@pytest.mark.parametrize("name", UNDER)
@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("fn", [lambda x: torch.sin(x) * 2 + x.sum(), breaks_in_between], ids=["whole", "breaks"])
def test_compiled_function_under_a_transform(name, backend, fn):
    compiled = torch.compile(fn, backend=backend)
    for got, want in zip(*(torch.utils._pytree.tree_leaves(UNDER[name](f)) for f in (compiled, fn))):
        assert torch.allclose(got, want)
    assert torch.allclose(compiled(ROWS), fn(ROWS))


def test_it_is_captured_under_vmap():
    graphs = []

    def backend(gm, inputs):
        graphs.append(gm)
        return gm.forward

    w = torch.ones(3, requires_grad=True)
    f = torch.compile(lambda x: (x * w).sum(), backend=backend)
    torch.func.vmap(f)(ROWS).sum().backward()
    assert len(graphs) == 1
    assert w.grad.tolist() == ROWS.sum(0).tolist()
    f(ROWS[0])
    torch.func.vmap(f)(ROWS)
    assert len(graphs) == 2


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("reentrant", [True, False])
def test_a_checkpoint_is_computed_again_for_each_backward(backend, reentrant):
    def f(a, w):
        return torch.utils.checkpoint.checkpoint(lambda a: (a * a).sum() * w.sum(), a, use_reentrant=reentrant) * w

    def gradients(fn):
        a, w = (torch.arange(6.0) + 1).requires_grad_(), torch.arange(6.0).requires_grad_()
        out = fn(a, w)
        first = torch.autograd.grad(out.sum(), [a, w], retain_graph=True) if not reentrant else ()
        out.sum().backward()
        return [out.detach(), *first, a.grad, w.grad]

    for got, want in zip(gradients(torch.compile(f, backend=backend)), gradients(f)):
        torch.testing.assert_close(got, want)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_a_checkpoint_draws_the_same_numbers_again(backend):
    def f(x):
        return torch.utils.checkpoint.checkpoint(
            lambda x: torch.nn.functional.dropout(x.sin(), 0.5).exp(), x, use_reentrant=False
        )

    def gradient(fn):
        torch.manual_seed(3)
        x = torch.arange(8.0).requires_grad_()
        return torch.autograd.grad(fn(x).sum(), x)[0], torch.rand(2)

    for got, want in zip(gradient(torch.compile(f, backend=backend)), gradient(f)):
        torch.testing.assert_close(got, want)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_segments_of_a_checkpoint(backend):
    m = torch.nn.Sequential(*(torch.nn.Linear(3, 3) for _ in range(3)))
    x = torch.ones(2, 3)

    def f(x):
        return torch.utils.checkpoint.checkpoint_sequential(m, 2, x, use_reentrant=False)

    got, want = (torch.autograd.grad(g(x).sum(), list(m.parameters())) for g in (torch.compile(f, backend=backend), f))
    torch.testing.assert_close(got, want)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_hooks_on_saved_tensors_see_what_the_call_saves(backend):
    log = []
    f = torch.compile(lambda x: (x.sin() * x).exp(), backend=backend)
    x = torch.ones(3, requires_grad=True)
    for _ in range(2):
        with torch.autograd.graph.saved_tensors_hooks(
            lambda t: (log.append(type(t).__name__), t * 1)[1], lambda t: (log.append("back"), t)[1]
        ):
            y = f(x)
        y.sum().backward()
    assert log == log[: len(log) // 2] * 2 and set(log) == {"Tensor", "back"}
    torch.testing.assert_close(x.grad, torch.autograd.grad((x.sin() * x).exp().sum() * 2, x)[0])
