"""``nested_compile_region``: equal calls share a body that is traced, differentiated and compiled once; what can't be a body is inlined."""

import pytest

import flambeau as torch
from flambeau.aot.regions import invoke_subgraph

BACKENDS = ("eager", "aot_eager", "inductor")
region = torch.compiler.nested_compile_region


def captured(f, *args):
    """The graph of one call, and its result."""
    graphs = []

    def backend(gm, inputs):
        graphs.append(gm)
        return gm.forward

    torch._dynamo.reset()
    out = torch.compile(f, backend=backend, fullgraph=True)(*args)
    return graphs[0], out


def calls(gm):
    return [n for n in gm.graph.nodes if n.target is invoke_subgraph]


def agree(f, *args):
    """Values and gradients of ``f``, plainly and compiled by each backend, twice each."""
    leaves = [a for a in args if isinstance(a, torch.Tensor) and a.requires_grad]

    def run(g):
        torch.manual_seed(3)
        out = g(*[a.clone() if isinstance(a, torch.Tensor) and not a.requires_grad else a for a in args])
        outs = [o for o in torch.utils._pytree.tree_leaves(out) if isinstance(o, torch.Tensor)]
        total = sum(o.sum() for o in outs if o.requires_grad)
        grads = (
            torch.autograd.grad(total, leaves, allow_unused=True) if leaves and isinstance(total, torch.Tensor) else ()
        )
        return [*outs, *grads]

    want = run(f)
    for backend in BACKENDS:
        torch._dynamo.reset()
        compiled = torch.compile(f, backend=backend, fullgraph=True)
        for _ in range(2):
            got = run(compiled)
            assert len(got) == len(want)
            for a, b in zip(got, want):
                assert (a is None) == (b is None)
                if a is not None:
                    torch.testing.assert_close(a, b)


def matrix(grad=False, seed=0):
    torch.manual_seed(seed)
    return torch.randn(4, 4, requires_grad=grad)


@region
def layer(x, w):
    """A matrix product and a slope."""
    return torch.relu(x @ w)


def stacked(x, w):
    for _ in range(4):
        x = layer(x, w)
    return x.sum()


def test_equal_calls_share_a_body():
    gm, _ = captured(stacked, matrix(), matrix(True, 1))
    names = [n.args[1] for n in calls(gm)]
    assert len(names) == 4 and len(set(names)) == 2  # the first call's operand asks for no gradient
    assert len({id(getattr(gm, n)) for n in names}) == 2
    assert not any(n.target in (torch.relu, torch.matmul) for n in gm.graph.nodes)


def test_other_shapes_and_constants_are_other_bodies():
    scaled = region(lambda x, k: x * k + 1)

    def f(x, y):
        return (
            scaled(x, 2.0),
            scaled(x, 2.0),
            scaled(x, 2),
            scaled(x, 3.0),
            scaled(x, -0.0),
            scaled(x, 0.0),
            scaled(y, 2.0),
        )

    gm, out = captured(f, matrix(), torch.ones(2))
    names = [n.args[1] for n in calls(gm)]
    assert names[0] == names[1] and len(set(names)) == 6
    assert [o.tolist() for o in out] == [o.tolist() for o in f(matrix(), torch.ones(2))]


def two_results(x, w):
    a, b = region(lambda x, w: (x @ w, {"s": torch.sin(x), "n": 3}))(x, w)
    return a * b["s"] * b["n"]


def modules(x, w):
    lin = LINEAR
    return region(lambda v: lin(v).tanh())(region(lambda v: lin(v).tanh())(x)) @ w


LINEAR = torch.nn.Linear(4, 4)


def nested(x, w):
    inner = region(lambda v: torch.sin(v) + 1)
    outer = region(lambda v, u: inner(v) @ inner(u))
    return outer(outer(x, w), w)


def views_of_results(x, w):
    f = region(lambda v, u: ((v @ u).t(), (v + u)[1:, :2]))
    a, b = f(x, w)
    c, d = f(a, w)
    return c, d, b


def same_memory(x, w):
    def body(v):
        y = torch.exp(v)
        return y, y.t()

    a, b = region(body)(x @ w)
    return a * b


def returns_an_operand(x, w):
    y = region(lambda v, u: (v, v * u))(x, w)
    return y[0] + y[1]


def writes_its_own(x, w):
    def body(v, u):
        y = v @ u
        y.add_(1)
        return y

    return region(body)(region(body)(x, w), w)


def writes_an_operand(x, w):
    def body(v):
        v.mul_(2)
        return v + 1

    y = x * 1
    return region(body)(y) + y + w


def draws(x, w):
    body = region(lambda v: torch.nn.functional.dropout(v, 0.5))
    return body(x) @ w + body(x)


def no_tensors(x, w):
    return x * region(lambda k: k + 1)(2) + w


def under_no_grad(x, w):
    with torch.no_grad():
        y = layer(x, w)
    return y * layer(x, w)


def switches_gradients(x, w):
    def body(v, u):
        with torch.no_grad():
            k = v @ u
        return k * u

    return region(body)(x, w)


def changes_a_list(x, w):
    seen = []

    def body(v):
        y = v * 2
        seen.append(y)
        return y + 1

    return region(body)(x) + seen[0] + w


def raises_and_goes_on(x, w):
    y = x * 1

    def body(v):
        v.add_(1)
        raise KeyError("k")

    try:
        region(body)(y)
    except KeyError:
        y = y * 3
    return y + w


def some_unused(x, w):
    f = region(lambda a, b, c: (a * b, c.detach()))
    p, q = f(x, w, w)
    return p + q


@pytest.mark.parametrize(
    "program",
    [
        stacked, two_results, modules, nested, views_of_results, same_memory, returns_an_operand, writes_its_own, writes_an_operand, draws,
        no_tensors, under_no_grad, switches_gradients, changes_a_list, raises_and_goes_on, some_unused,
    ],
    ids=lambda f: f.__name__,
)  # fmt: skip
@pytest.mark.parametrize("grads", [(False, False), (False, True), (True, True)], ids=["none", "one", "both"])
def test_agrees(program, grads):
    agree(program, matrix(grads[0]), matrix(grads[1], 1))


def test_a_training_step():
    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.lin = torch.nn.LayerNorm(4), torch.nn.Linear(4, 4)

        @torch.compiler.nested_compile_region
        def forward(self, x):
            return x + torch.nn.functional.gelu(self.lin(self.norm(x)))

    torch.manual_seed(0)
    net = torch.nn.Sequential(*[Block() for _ in range(3)])
    state = {k: v.clone() for k, v in net.state_dict().items()}
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    x = torch.randn(2, 4)

    def step():
        loss = net(x).square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    want = [float(step()) for _ in range(3)]
    for backend in BACKENDS:
        torch._dynamo.reset()
        net.load_state_dict(state)
        compiled = torch.compile(step, backend=backend)
        assert [float(compiled()) for _ in range(3)] == pytest.approx(want, rel=1e-5)


def test_bodies_are_compiled_once():
    compiled = []

    def compiler(gm, inputs):
        compiled.append([len(calls(gm)), len(gm._modules)])
        return gm.forward

    backend = torch._dynamo.backends.common.aot_autograd(fw_compiler=compiler, bw_compiler=compiler)
    torch._dynamo.reset()
    w = matrix(True, 1)
    torch.compile(stacked, backend=backend)(matrix(True), w).backward()
    assert compiled == [[4, 1], [4, 1]]


def test_recompiled_for_other_sizes():
    compiled = torch.compile(stacked, backend="inductor")
    for n in (4, 6, 7):
        x = torch.ones(n, 4)
        torch.testing.assert_close(compiled(x, matrix(True)), stacked(x, matrix(True)))


def test_derivatives_of_compiled_regions():
    f = torch.compile(stacked, backend="aot_eager")
    x, w = matrix(True), matrix(True, 1)
    want = torch.func.vmap(lambda v: stacked(v, w.detach()))(torch.stack([x.detach()] * 3))
    got = torch.compile(lambda v: torch.func.vmap(lambda u: stacked(u, w.detach()))(v), backend="aot_eager")(
        torch.stack([x.detach()] * 3)
    )
    torch.testing.assert_close(got, want)
    (first,) = torch.autograd.grad(f(x, w), w)
    assert first.shape == w.shape
