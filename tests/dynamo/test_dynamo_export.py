"""``torch._dynamo.export``: a graph that is called as the function is, checked against the function."""

import pytest

import flambeau as torch


class Linear(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 2)
        self.register_buffer("shift", torch.ones(2))

    def forward(self, x, scale=2):
        return {"y": self.layer(x) * scale + self.shift, "rows": x.shape[0], "x": x, "none": None}


def swapped(pair, *rest, factor):
    a, b = pair
    return [b * factor, (a, sum(r.sum() for r in rest))]


def constant(x):
    return 3, x


CASES = {
    "module": (Linear(), (torch.ones(4, 3),), {}),
    "module with a number": (Linear(), (torch.ones(4, 3), 5), {}),
    "containers": (swapped, ([torch.ones(2), torch.zeros(3)], torch.ones(2), torch.ones(4)), {"factor": 3.0}),
    "no operation": (constant, (torch.ones(2),), {}),
    "control flow by shape": (lambda x: x + 1 if x.shape[0] > 2 else x - 1, (torch.ones(5),), {}),
    "one tensor twice": (lambda x, y: (x * y, y), (torch.ones(2), torch.full((2,), 3.0)), {}),
}


def flat(value):
    return torch.utils._pytree.tree_flatten(value)


@pytest.mark.parametrize("aten_graph", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_is_called_as_the_function(name, aten_graph):
    fn, args, kwargs = CASES[name]
    module, guards = torch._dynamo.export(fn, aten_graph=aten_graph)(*args, **kwargs)
    want, got = flat(fn(*args, **kwargs)), flat(module(*args, **kwargs))
    assert want[1] == got[1]
    for a, b in zip(want[0], got[0]):
        assert torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b
    assert isinstance(guards, set)
    if aten_graph:
        targets = [n.target for n in module.graph.nodes if n.op == "call_function"]
        assert all(hasattr(t, "_schema") or t.__module__ == "_operator" for t in targets)


def test_attributes_keep_their_names():
    model = Linear()
    module = torch._dynamo.export(model)(torch.ones(4, 3)).graph_module
    names = {n.target for n in module.graph.nodes if n.op == "get_attr"}
    assert {"layer.weight", "layer.bias", "shift"} <= names
    assert module.layer.weight is model.layer.weight
    assert "def forward(self, x):" in module.code


def test_errors():
    with pytest.raises(AssertionError, match="illegal without setting aten_graph"):
        torch._dynamo.export(constant, decomposition_table={})
    with pytest.raises(TypeError, match="structure"):
        torch._dynamo.export(constant)(torch.ones(2)).graph_module([torch.ones(2)])
    with pytest.warns(FutureWarning, match="deprecated"):
        torch._dynamo.export(constant, torch.ones(2))
    with pytest.raises(torch._dynamo.exc.Unsupported):
        torch._dynamo.export(lambda x: x + 1 if x.sum() > 0 else x)(torch.ones(2))


def test_wrap_is_a_node():
    from flambeau._higher_order_ops.wrap import wrap

    shift = torch.ones(3)
    graphs = []

    def f(x, n):
        return wrap(lambda a: {"s": (a + shift).sin(), "n": a * n}, x)["s"] + 1

    compiled = torch.compile(f, backend=lambda gm, inputs: graphs.append(gm) or gm, fullgraph=True)
    assert torch.equal(compiled(torch.ones(3), 2), f(torch.ones(3), 2))
    node = next(n for n in graphs[0].graph.nodes if n.target is wrap)
    assert len(node.args) == 3 and node.args[0].target == "wrap_body_0"
