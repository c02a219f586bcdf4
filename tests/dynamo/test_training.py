"""Optimizer steps and whole training steps in captured code."""

import pytest
from helpers import Graphs

import flambeau as torch
from flambeau.compiler import compile

X = torch.arange(4.0).reshape(2, 2)
OPTIMIZERS = [
    (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01}),
    (torch.optim.Adam, {"lr": 0.01}),
    (torch.optim.AdamW, {"lr": 0.01}),
    (torch.optim.RMSprop, {}),
    (torch.optim.Adagrad, {}),
]
BACKENDS = ("eager", "aot_eager", "inductor")


def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1))


def states(m):
    return [p.detach().clone() for p in m.parameters()] + [p.grad.clone() for p in m.parameters() if p.grad is not None]


def close(a, b):
    return all(torch.allclose(x, y, atol=1e-6) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("cls, options", OPTIMIZERS, ids=lambda v: getattr(v, "__name__", ""))
@pytest.mark.parametrize("backend", [None, *BACKENDS])
def test_a_training_step_is_one_graph(cls, options, backend):
    def trained(wrap):
        m = model()
        opt = cls(m.parameters(), **options)

        def step(x):
            opt.zero_grad()
            loss = (m(x) ** 2).mean()
            loss.backward()
            opt.step()
            return loss

        f = wrap(step)
        losses = [f(X) for _ in range(4)]
        assert all(loss.requires_grad for loss in losses)
        with pytest.raises(RuntimeError, match="second time"):
            losses[-1].backward()
        return [*(loss.detach() for loss in losses), *states(m)]

    g = Graphs()
    want = trained(lambda f: f)
    got = trained(lambda f: compile(f, backend=g if backend is None else backend, fullgraph=True))
    assert close(want, got)
    if backend is None:
        assert len(g.gms) == 1 + bool(options.get("momentum"))  # its first step makes the buffers


def test_a_compiled_step_follows_the_schedule():
    def trained(wrap):
        m = model()
        opt = torch.optim.SGD(m.parameters(), lr=0.1)
        f = wrap(lambda: opt.step())
        for i in range(4):
            opt.param_groups[0]["lr"] = 0.1 / (i + 1)
            opt.zero_grad()
            (m(X) ** 2).mean().backward()
            f()
        return states(m)

    assert close(trained(lambda f: f), trained(lambda f: compile(f, backend="eager", fullgraph=True)))


def accumulates(w, x):
    (w * x).sum().backward()
    (w * w).sum().backward()
    return w.grad * 1


def twice_over_one_tape(w, x):
    y = (w * x).sin().sum()
    y.backward(retain_graph=True)
    y.backward()
    return w.grad + 0


def with_a_gradient(w, x):
    (w * x).backward(x)
    w.grad *= 2
    return w.grad + 0


def by_autograd_grad(w, x):
    (g,) = torch.autograd.grad((w * x).exp().sum(), [w])
    with torch.no_grad():
        w -= 0.1 * g
    return g


@pytest.mark.parametrize("fn", [accumulates, twice_over_one_tape, with_a_gradient, by_autograd_grad])
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("before", [False, True])
def test_gradients_inside(fn, backend, before):
    def outcome(f):
        w = torch.tensor([1.0, 2.0], requires_grad=True)
        old = None
        if before:
            (w * 3).sum().backward()
            old = w.grad
        out = [f(w, torch.tensor([0.5, 1.5])) for _ in range(2)]
        if old is not None and w.grad is not None:
            assert w.grad is old  # accumulated in place
        return [*(o.detach() for o in out), w.detach(), *([] if w.grad is None else [w.grad])]

    assert close(outcome(fn), outcome(compile(fn, backend=backend, fullgraph=True)))


def test_hooks_on_leaves_run():
    w = torch.ones(2, requires_grad=True)
    seen = []

    def f(x):
        (w * x).sum().backward()

    c = compile(f, backend="eager")
    c(X[0])
    handle = w.register_hook(lambda g: seen.append(g.clone()))
    c(X[1])
    handle.remove()
    c(X[1])
    assert len(seen) == 1 and torch.equal(w.grad, X[0] + X[1] * 2)


def test_tensors_as_keys():
    def f(x, y):
        z = x + y
        d = {x: 1, z: 2}
        s = {x, y, z, x}
        return d[x] + d[z], len(s), y in s, (x * 1) in s, z * d.get(y, 7)

    got, want = compile(f, backend="eager", fullgraph=True)(X, X + 1), f(X, X + 1)
    assert got[:4] == want[:4] and torch.equal(got[4], want[4])


def test_operators_on_lists_are_single_nodes():
    g = Graphs()

    def f(a, b):
        scaled = torch._foreach_mul(torch._foreach_add([*a], [*b]), 2)
        torch._foreach_add_(scaled, 1)
        return torch._foreach_sqrt(scaled)[1:], len(scaled)

    a, b = ([torch.rand(3) + k for k in range(5)] for _ in range(2))
    want, got = f(a, b), compile(f, backend=g, fullgraph=True)(a, b)
    assert close(want[0], got[0]) and want[1] == got[1]
    assert [n.name for n in g.gms[0].graph.nodes if n.op == "call_function"][:4] == [
        "_foreach_add", "_foreach_mul", "_foreach_add_", "_foreach_sqrt",
    ]  # fmt: skip


@pytest.mark.parametrize("cls, options", OPTIMIZERS, ids=lambda v: getattr(v, "__name__", ""))
def test_the_first_step_is_captured_like_all_others(cls, options):
    def trained(wrap):
        ps = [torch.nn.Parameter(torch.arange(3.0) + k) for k in range(40)]
        opt = cls(ps, **options)
        step = wrap(opt.step)
        for k in range(3):
            for p in ps[: 39 if k == 0 else 40]:
                p.grad = p.detach() * 0.1 + k
            step()
        return [p.detach() for p in ps] + [
            torch.as_tensor(v) for s in opt.state.values() for v in s.values() if v is not None
        ]

    before = dict(torch._dynamo.utils.counters["recompiles"])
    assert close(trained(lambda f: f), trained(compile))
    again = torch._dynamo.utils.counters["recompiles"]["total"] - before.get("total", 0)
    assert again <= 1 + bool(options.get("momentum"))  # the last parameter has no gradient at first


def test_an_optimizer_of_other_sizes_is_captured():
    def trained(wrap, n):
        ps = [torch.nn.Parameter(torch.ones(n, n)) for _ in range(70)]
        opt = torch.optim.Adam(ps, lr=0.1)
        for p in ps:
            p.grad = torch.full((n, n), 0.5)
        step = wrap(opt.step)
        step()
        return [p.detach() for p in ps], step  # which keeps what was captured

    alive = []
    for n in (3, 2):
        want, got = trained(lambda f: f, n)[0], trained(lambda f: compile(f, backend="eager"), n)
        alive.append(got[1])
        assert close(want, got[0])


def test_more_sizes_than_fit_at_once_are_guarded():
    f = compile(lambda xs: sum(x.sum() for x in xs), backend="eager", dynamic=True)
    for n in (3, 4):
        xs = [torch.ones(n + k % 5, n) for k in range(70)]
        assert f(xs) == sum(x.numel() for x in xs)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize(
    "keep", [{}, {"retain_graph": True}, {"create_graph": True}], ids=["freed", "kept", "recorded"]
)
def test_a_gradient_taken_inside_frees_what_lies_on_its_way(keep, backend):
    """What ``autograd.grad`` needed is gone after a break too, and no more than that."""

    def f(x, y):
        a, b = x.exp(), y.exp()
        product = (a * b).sum()
        (g,) = torch.autograd.grad(product, [x], **keep)
        torch._dynamo.graph_break()
        return a, b, product, g

    def check(f):
        x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
        a, b, product, g = f(x, y)
        b.sum().backward(retain_graph=True)
        seen = [y.grad.clone(), g.detach()]
        for end in (a.sum(), product):
            if keep:
                end.backward(retain_graph=True)
                seen += [x.grad.clone(), y.grad.clone()]
            else:
                with pytest.raises(RuntimeError, match="second time"):
                    end.backward()
        return seen

    assert close(check(f), check(compile(f, backend=backend)))


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_scaled_step_leaves_out_what_is_not_finite(backend):
    def trained(wrap):
        m = model()
        opt, scaler = (
            torch.optim.SGD(m.parameters(), 0.1),
            torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2),
        )

        def step(x):
            opt.zero_grad()
            loss = (m(x) ** 2).mean()
            scaler.scale(loss).backward()
            scaler.unscale_(opt)
            norm = torch.nn.utils.clip_grad_norm_(m.parameters(), 1.0)
            scaler.step(opt)
            scaler.update()
            return loss, norm

        f = wrap(step)
        seen = []
        for x in (X, X, X * float("inf"), X):
            seen += [
                *(v.detach() for v in f(x)),
                torch.tensor(scaler.get_scale()),
                *(p.detach().clone() for p in m.parameters()),
            ]
        return seen

    want, got = trained(lambda f: f), trained(lambda f: compile(f, backend=backend))
    assert all(torch.allclose(a, b, atol=1e-6, equal_nan=True) for a, b in zip(want, got, strict=True))


def test_arguments_of_a_graph_have_names_of_their_own():
    """Two inputs whose sources read alike: entries of an optimizer's state, which are kept by parameter."""
    texts = []

    def backend(gm, _):
        texts.append(gm.code)
        return gm.forward

    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)

    def step(x):
        optimizer.zero_grad()
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        return loss.detach()

    compiled = torch.compile(step, backend=backend)
    for _ in range(2):
        compiled(torch.ones(4, 3))
    for text in texts:
        names = [a.split(":")[0].strip() for a in text.split("def forward(")[1].split(")")[0].split(",")]
        assert len(names) == len(set(names))
