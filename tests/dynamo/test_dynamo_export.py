"""``torch._dynamo.export``: a graph that is called as the function is, checked against the function."""

import dataclasses

import pytest

import flambeau as torch
from flambeau.base.shape_env import ConstraintViolationError


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


def same_first(a, b):
    return a.cos() if a.shape[0] == b.shape[0] else b.cos()


def above(n):
    return lambda x: x.sin() if x.shape[0] > n else x.cos()


DIM, OTHER, LARGE = torch.export.Dim("dim"), torch.export.Dim("other"), torch.export.Dim("large", min=2)
# name: (function, arguments, specification, part of the error or None)
SHAPES = {
    "a dimension that the function leaves alone": (lambda x: x.cos(), 1, ({0: DIM},), None),
    "one that it makes a constant": (lambda x: x.sin() if x.shape[0] == 3 else x, 1, ({0: DIM},), "dim = 3"),
    "one that isn't named": (lambda x: x.sin() if x.shape[1] == 3 else x, 1, ({0: DIM},), None),
    "one below a bound": (above(5), 1, ({0: DIM},), "Constraints violated"),
    "one within its range": (above(2), 1, ({0: torch.export.Dim("d", min=3)},), None),
    "one outside of its range": (above(2), 1, ({0: torch.export.Dim("d", min=4)},), "not in range"),
    "two that are equal": (same_first, 2, ({0: DIM}, {0: OTHER}), "must always be equal"),
    "two of one name": (same_first, 2, ({0: DIM}, {0: DIM}), None),
    "one equal to one that isn't named": (same_first, 2, ({0: DIM}, {1: OTHER}), "Not all values"),
    "one equal to a constant": (same_first, 2, ({0: DIM}, None), "dim = 3"),
    "a constant": (lambda x: x.sin() if x.shape[0] == 3 else x, 1, ({0: 3},), None),
    "another constant": (lambda x: x, 1, ({0: 4},), "Static shape constraint of 4"),
    "a multiple": (lambda x, y: x.sin() + y.sum(), 2, ({0: LARGE}, {1: 2 * LARGE - 3}), None),
    "a hint that the function makes a constant": (above(2), 1, ({0: torch.export.Dim.AUTO},), None),
}


@pytest.mark.parametrize("name", SHAPES)
def test_dynamic_shapes(name):
    fn, count, spec, error = SHAPES[name]
    args = [torch.ones(3, 3) for _ in range(count)]
    if error is not None:
        with pytest.raises(ConstraintViolationError, match=error):
            torch._dynamo.export(fn, dynamic_shapes=spec)(*args)
        return
    marks = [dict(a.__dict__) for a in args]
    module = torch._dynamo.export(fn, dynamic_shapes=spec)(*args).graph_module
    assert torch.equal(module(*args), fn(*args))
    assert [a.__dict__ for a in args] == marks


def test_violations_may_be_left_alone():
    fn, _, spec, _ = SHAPES["one below a bound"]
    torch._dynamo.export(fn, dynamic_shapes=spec, disable_constraint_solver=True)(torch.ones(3, 3))
    with pytest.raises(NotImplementedError, match="prefer_deferred"):
        torch._dynamo.export(fn, prefer_deferred_runtime_asserts_over_guards=True)


@torch._dynamo.assume_constant_result
def decided(x, scale=1):
    return {"any": bool((x * scale > 0).any()), "x": x, "where": [torch.nonzero(x)]}


class Holder:
    factor = 2

    @torch._dynamo.assume_constant_result
    def scaled(self, x):
        return x * self.factor


HOLDER = Holder()


def uses_constants(x, y):
    x = x.add_(1)  # what a constant is computed from isn't written to
    found = decided(x * 2, scale=3)
    return (x.sin() if found["any"] else x.cos()) + found["where"][0].sum() + HOLDER.scaled(y)


class Constants(torch.nn.Module):
    @torch._dynamo.assume_constant_result
    def given(self, x):
        return x

    def forward(self, x, y):
        return x * self.given(y)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_constants_of_tensors(backend):
    args = torch.tensor([1.0, -1.0, 3.0]), torch.tensor([2.0, 3.0, 4.0])
    want = Constants()(*args)
    compiled = torch.compile(Constants(), backend=backend, fullgraph=True)
    assert torch.equal(compiled(*args), want)
    assert torch.equal(compiled(args[0], args[1] * 5), want)  # assumed to be what it was


def test_constants_of_what_is_computed():
    x, y = torch.tensor([1.0, -1.0, 3.0]), torch.ones(3)
    want, given = uses_constants(x.clone(), y), x.clone()
    assert torch.equal(torch.compile(uses_constants, backend="eager", fullgraph=True)(given, y), want)
    assert torch.equal(given, x + 1)
    with pytest.raises(torch._dynamo.exc.Unsupported, match="made while tracing"):
        torch.compile(lambda x: Holder().scaled(x), backend="eager", fullgraph=True)(x)


@dataclasses.dataclass
class Both:
    x: torch.Tensor
    y: torch.Tensor


def test_classes_that_are_no_containers():
    pair = Both(torch.ones(2), torch.ones(2))
    with pytest.raises(torch._dynamo.exc.UserError, match="one of the inputs with type .*Both"):
        torch._dynamo.export(lambda t: t.x + t.y)(pair)
    with pytest.raises(torch._dynamo.exc.UserError, match="one of the outputs with type .*Both"):
        torch._dynamo.export(lambda x: Both(x.sin(), x))(torch.ones(2))
