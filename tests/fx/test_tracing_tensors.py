"""symbolic_trace and what is built on it, on tensor programs and modules."""

import pickle

import pytest

import flambeau as torch
from flambeau import fx, nn

CONSTANT = torch.tensor([1.0, 2.0, 3.0])


@fx.wrap
def opaque(x, times):
    return x * times if len(x.shape) else x


@pytest.mark.parametrize(
    ("f", "shapes", "printed"),
    [
        (lambda x, y: torch.add(x, y, alpha=2), [(2, 3), (3,)], "torch.add(x, y, alpha = 2)"),
        (lambda x: x.view(x.shape[0], -1), [(2, 3, 4)], "x.view("),
        (lambda x: torch.softmax(x, -1)[:, 1:], [(2, 3)], "softmax[(slice(None, None, None), slice(1, None, None))]"),
        (lambda x: x + CONSTANT, [(2, 3)], "self._tensor_constant0"),
        (lambda x: x.to(torch.float64), [(2, 3)], "torch.float64"),
        (lambda x: nn.functional.gelu(x), [(2, 3)], "gelu("),
        (lambda x: opaque(x, 3), [(2, 3)], "opaque(x, 3)"),
        (lambda x: 1 / (1 + (-x).exp()), [(2, 3)], "1 / add"),
        (lambda x: torch.cat([x, x], 1), [(2, 3)], "torch.cat([x, x], 1)"),
    ],
)
def test_traced_function(f, shapes, printed):
    args = [torch.randn(*s) for s in shapes]
    gm = fx.symbolic_trace(f)
    gm.graph.lint()
    assert printed in gm.code
    expected = f(*args)
    for module in (gm, fx.Interpreter(gm).run, fx.Transformer(gm).transform()):
        assert torch.allclose(module(*args), expected)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
        self.scale = nn.Parameter(torch.ones(4))

    def forward(self, x):
        return self.body(x) * self.scale


def test_traced_module():
    net, x = Net(), torch.randn(2, 3)
    gm = fx.symbolic_trace(net)
    assert [n.target for n in gm.graph.nodes if n.op == "call_module"] == ["body.0", "body.1"]
    assert torch.equal(gm(x), net(x))
    assert {id(p) for p in gm.parameters()} == {id(p) for p in net.parameters()}
    gm(x).sum().backward()
    assert net.scale.grad is not None
    other = pickle.loads(pickle.dumps(gm))
    assert torch.equal(other(x), net(x))


def test_replace_pattern_on_tensors():
    gm = fx.symbolic_trace(lambda x: torch.relu(x * 2 + 1) - 1)
    assert len(fx.replace_pattern(gm, lambda x: torch.relu(x), lambda x: torch.tanh(x))) == 1
    x = torch.randn(3)
    assert torch.allclose(gm(x), torch.tanh(x * 2 + 1) - 1)
