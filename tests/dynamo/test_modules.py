"""Modules under capture: parameters by source, containers, hooks, attributes, what compile() returns."""

import copy
import functools

import pytest
from helpers import Graphs, check

import flambeau as torch
from flambeau.compiler import OptimizedModule, compile, graph_break

nn = torch.nn
F = nn.functional
X = torch.tensor([[1.0, -2.0, 3.0], [0.5, 4.0, -1.5]])


class Block(nn.Module):
    def __init__(self, width, scale=1.0):
        super().__init__()
        self.lin = nn.Linear(width, width)
        self.scale = scale
        self.register_buffer("steps", torch.zeros(1))

    def forward(self, x, *, twice=False):
        y = F.relu(self.lin(x)) * self.scale
        return (y, y * 2) if twice else (y, None)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(3), Block(3, 0.5)])
        self.tail = nn.Sequential(nn.Linear(3, 4), nn.GELU(), nn.LayerNorm(4))
        self.drop = nn.Dropout(0.5)
        self.by_name = nn.ModuleDict({"a": nn.Linear(4, 4)})
        self.bias = nn.Parameter(torch.ones(4))
        self.depth = 2

    def forward(self, x, flag=None):
        extra = []
        for i, block in enumerate(self.blocks):
            x, more = block(x, twice=i == 1)
            if more is not None:
                extra.append(more)
        x = self.drop(self.tail(x))
        for name, layer in self.by_name.items():
            if name in self.by_name:
                x = layer(x)
        return {
            "out": x + self.bias * self.depth + self.blocks[-1].steps,
            "extra": extra,
            "n": len(self.blocks),
            "training": self.training,
        }


def net():
    torch.manual_seed(0)
    return Net().eval()


def test_one_graph():
    g = check(net(), X, fullgraph=True, graphs=1)
    placeholders = [n.name for n in g.gms[0].graph.nodes if n.op == "placeholder"]
    assert any("lin" in p and "weight" in p for p in placeholders) and len(placeholders) == len(set(placeholders))


def test_gradients():
    m = net()
    m2 = copy.deepcopy(m)
    m(X)["out"].sum().backward()
    compile(m2, backend="aot_eager", fullgraph=True)(X)["out"].sum().backward()
    for (n, p), q in zip(m.named_parameters(), m2.parameters()):
        assert torch.allclose(p.grad, q.grad), n


def test_changes_are_noticed():
    m, g = net(), Graphs()
    c = compile(m, backend=g)

    def agree(n):
        assert torch.allclose(c(X)["out"], m(X)["out"]) and len(g.gms) == n

    agree(1)
    with torch.no_grad():
        m.bias.add_(1)
    agree(1)
    m.depth = 3
    agree(2)
    m.blocks[0].scale = 2.0
    agree(3)
    m.tail[0] = nn.Linear(3, 4)
    agree(3)
    m.blocks.append(Block(3))
    assert c(X)["n"] == 3
    m.by_name["b"] = nn.Linear(4, 4)
    agree(5)
    handle = m.blocks[0].register_forward_hook(lambda mod, args, out: (out[0] + 1, out[1]))
    agree(6)
    handle.remove()
    agree(6)
    m.tail[1].forward = lambda x: x * 3
    agree(7)
    m.double()
    assert c(X.double())["out"].dtype == torch.float64 and len(g.gms) == 8


def test_what_compile_returns():
    m = net()
    c = compile(m, backend="eager")
    assert isinstance(c, OptimizedModule) and isinstance(c, nn.Module)
    assert [n for n, _ in c.named_parameters()] == ["_orig_mod." + n for n, _ in m.named_parameters()]
    assert all(a is b for a, b in zip(c.parameters(), m.parameters()))
    assert c.depth == 2 and c.blocks is m.blocks
    c.depth = 5
    assert m.depth == 5
    c.train()
    assert m.training
    c.eval()
    assert not m.training
    c.load_state_dict(c.state_dict())


def test_attributes_written_while_traced():
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.calls = 0
            self.seen = []
            self.register_buffer("total", torch.zeros(3))

        def forward(self, x):
            self.calls += 1
            self.seen.append(self.calls)
            self.total = self.total + x
            return x * self.calls + self.total

    a, b = Counter(), Counter()
    g = Graphs()
    c = compile(b, backend=g, fullgraph=True)
    for _ in range(3):
        assert torch.equal(a(X[0]), c(X[0]))
    assert (a.calls, a.seen) == (b.calls, b.seen) == (3, [1, 2, 3]) and torch.equal(a.total, b.total)
    assert "total" in dict(b.named_buffers())


def test_graph_break_in_forward():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)

        def helper(self, x):
            graph_break()
            return super().__repr__() and self.b(x)

        def forward(self, x):
            y = self.a(x)
            graph_break()
            z = super().extra_repr()
            return self.helper(y) + 1, z

    check(M(), X)


def test_module_in_function_and_partial():
    m = net()
    check(lambda x: m(x)["out"].sum() + sum(p.sum() for p in m.parameters()), X, fullgraph=True, graphs=1)
    check(functools.partial(lambda k, x: F.linear(x, k), torch.ones(2, 3)), X, fullgraph=True)
    check(m.blocks[0].forward, X, fullgraph=True, graphs=1)


def test_lazy_parameters():
    """Modules whose shapes the first input tells: compiled themselves, as a part, and called by a compiled function."""
    for make in (lambda: nn.LazyLinear(2), lambda: nn.Sequential(nn.LazyLinear(4), nn.ReLU(), nn.LazyLinear(2))):
        graphs = Graphs()
        model = make()
        called = compile(model, backend=graphs, fullgraph=True)
        assert called(X).shape == (2, 2) and not graphs.gms
        assert torch.equal(called(X), model(X)) and len(graphs.gms) == 1
        model = make()
        called = compile(lambda x, m: m(x) * 2, backend="eager")
        assert called(X, model).shape == (2, 2) and torch.equal(called(X, model), model(X) * 2)


def test_tied_weights():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)
            self.b.weight = self.a.weight

        def forward(self, x):
            return self.b(self.a(x))

    m, g = Tied(), Graphs()
    c = compile(m, backend=g)
    assert torch.equal(c(X), m(X)) and len(g.gms) == 1
    assert sum("weight" in n.name for n in g.gms[0].graph.nodes if n.op == "placeholder") == 1
    m.b.weight = nn.Parameter(torch.zeros(3, 3))
    assert torch.equal(c(X), m(X)) and len(g.gms) == 2


def test_wrong_shape_is_the_users_error():
    with pytest.raises(RuntimeError, match="shape|size|mat"):
        compile(net(), backend="eager")(torch.ones(2, 7))
