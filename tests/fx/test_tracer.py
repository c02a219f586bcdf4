"""What a Tracer makes of a program, and notes of nodes that go from one graph to the next."""

import collections
import copy
import dataclasses
import operator
import pickle

import pytest

import flambeau as torch
from flambeau import fx
from flambeau.fx import traceback as fx_traceback
from flambeau.fx.annotate import annotate
from flambeau.fx.tracer import PH, PHWithMeta

Pair = collections.namedtuple("Pair", "x y")


@dataclasses.dataclass
class Results:
    x: object
    y: object


class Held(metaclass=fx.ProxyableClassMeta):
    def __init__(self, value):
        self.value = value


class Given:
    def __init__(self, value):
        self.value = value

    def __fx_create_arg__(self, tracer):
        return tracer.create_node("call_function", Given, (tracer.create_arg(self.value),), {})


class Two(torch.nn.Module):
    def forward(self, x):
        return x + 1

    def other(self, x):
        return x - 1


X = torch.arange(3.0)
TRACED = {
    "operators": lambda x: torch.ops.aten.add.Tensor(torch.ops.aten.sigmoid(x), x),
    "a packet with a list": lambda x: torch.ops.aten.cat([x, x]),
    "a dataclass": lambda x: Results(x + 1, [x]).__dict__["x"],
    "named tuples": lambda x: Pair(x + 1, x).x,
}


@pytest.mark.parametrize("name", TRACED)
def test_traced(name):
    gm = fx.symbolic_trace(TRACED[name])
    gm.graph.lint()
    assert torch.equal(gm(X), TRACED[name](X))


def test_results_and_arguments_of_classes():
    assert fx.symbolic_trace(lambda x: Results(x + 1, x))(X).y is X
    held = Held(2)
    assert fx.symbolic_trace(lambda x: (x * 2, held))(X)[1] is held
    assert fx.symbolic_trace(lambda x: Given(x))(X).value is X
    with pytest.raises(RuntimeError, match="cannot contain a Node"):
        fx.symbolic_trace(lambda x: {x: 1})


def test_other_methods():
    tracer = fx.Tracer()
    tracer.traced_func_name = "other"
    assert torch.equal(fx.GraphModule(Two(), tracer.trace(Two()))(X), X - 1)
    tracer.traced_func_name = "nix"
    with pytest.raises(AssertionError, match="doesn't exist in Two"):
        tracer.trace(Two())


CONCRETE = {
    "a list": (lambda x: sum(x), {"x": [PH, PH, PH]}),
    "a dict with a number": (lambda x: x["a"] * x["n"], {"x": {"a": PH, "n": 2}}),
    "nested": (lambda x: [v + 1 for v in x["a"]] + [x["b"]], {"x": {"a": (PH, PH), "b": PH}}),
    "no container": (lambda x: x + 1, {"x": PH}),
}


@pytest.mark.parametrize("name", CONCRETE)
def test_concrete_arguments(name):
    fn, concrete = CONCRETE[name]
    value = torch.utils._pytree.tree_map(lambda p: torch.rand(2) if p is PH else p, concrete["x"])
    for traced in (gm := fx.symbolic_trace(fn, concrete), pickle.loads(pickle.dumps(gm)), copy.deepcopy(gm)):
        torch.testing.assert_close(traced(value), fn(value))
    torch.testing.assert_close(fx.symbolic_trace(gm)(value), fn(value))


def test_concrete_arguments_in_order():
    gm = fx.symbolic_trace(lambda *args: args[0] - args[1], (PH, PHWithMeta("second")))
    assert torch.equal(gm(X, X + 1), torch.full((3,), -1.0))
    assert [getattr(n, "ph_key", None) for n in gm.graph.nodes if n.op == "placeholder"] == [None, "second"]
    with pytest.raises(RuntimeError, match="expected 1 arguments but got 2"):
        fx.symbolic_trace(lambda x: x, (PH, PH))
    with pytest.raises(AssertionError, match="specialized to have value 3"):
        fx.symbolic_trace(lambda x, n: x * n, {"n": 3})(X, 4)


def test_writes_are_refused():
    class Careful(fx.Tracer):
        check_mutable_operations = True

    written = {
        "sin.out": lambda x: torch.sin(x, out=x),
        "relu_": lambda x: torch.relu_(x),
        "add_": lambda x: torch.ops.aten.add_(x, 1),
    }
    for name, fn in written.items():
        with pytest.raises(RuntimeError, match=f"mutable operation aten::{name}"):
            Careful().trace(fn)
    Careful().trace(torch.sin)


def test_in_place_operators():
    graph = fx.Graph()
    a, b = graph.placeholder("a"), graph.placeholder("b")
    graph.output((graph.call_function(operator.imul, (a, b)), a))
    gm = fx.GraphModule({}, graph)
    assert gm(2, 3) == (6, 6) and "a *= b" in gm.code


def test_names_and_lines():
    gm = fx.symbolic_trace(Two())
    assert "test_tracer.py" in gm.forward.__code__.co_filename
    tracer = fx.Tracer()
    tracer.record_stack_traces = True
    gm = fx.GraphModule(torch.nn.Module(), tracer.trace(lambda x: x.sin() + 1))
    new = fx.Transformer(gm).transform()
    for graph in (gm.graph, new.graph):
        assert all("test_tracer.py" in n.stack_trace for n in graph.nodes if n.op.startswith("call"))


def test_notes_go_along():
    gm = fx.symbolic_trace(lambda x: x.sin() + 1)
    for n in gm.graph.nodes:
        n.meta["custom"], n.meta["own"] = {"at": n.name}, 1
    with fx_traceback.preserve_node_meta(), fx_traceback.annotate({"pass": 2}):
        new = fx.experimental.proxy_tensor.make_fx(fx.Interpreter(gm).run)(X)
    notes = {n.name: n.meta.get("custom") for n in new.graph.nodes if n.op == "call_function"}
    assert notes == {"sin": {"at": "sin"}, "add": {"at": "add"}}
    assert not fx_traceback.has_preserved_node_meta() and not fx_traceback.get_current_meta()
    with fx_traceback.annotate({"pass": 2}):
        (node,) = [n for n in fx.symbolic_trace(lambda x: x.sin()).graph.nodes if n.op == "call_method"]
    assert node.meta["custom"] == {"pass": 2}


def test_absent_references_are_told():
    gm = fx.symbolic_trace(Two())
    with pytest.warns(UserWarning, match="no underlying reference in the owning GraphModule: 'nix'"):
        gm.graph.get_attr("nix")
    with pytest.warns(UserWarning, match="insert a call_module Node"):
        gm.graph.call_module("a.b")


def checked(x, limit=2):
    """assert x in the text stays"""
    assert x.shape[0] > limit, "too few"
    y: torch.Tensor = x.sin()
    return y


class Checked(torch.nn.Module):
    def __init__(self, inner=None):
        super().__init__()
        self.inner, self.limit = inner, 1

    def forward(self, x):
        assert x.dim() == self.limit
        return super().extra_repr() + "x" if self.inner is None else self.inner(x) * 2


class Plain(Checked):
    def forward(self, x):
        assert x.dtype == torch.float32, f"""got
{x}"""
        return x + 1


def test_sources_are_rewritten():
    tracer = fx.experimental.rewriter.RewritingTracer()
    gm = fx.GraphModule(torch.nn.Module(), tracer.trace(checked))
    assert torch.equal(gm(X), X.sin())
    assert [n.type for n in gm.graph.nodes if n.target == "sin"] == [torch.Tensor]
    with pytest.raises(AssertionError, match="too few"):
        gm(X[:1])

    model = Checked(Plain())
    tracer = fx.experimental.rewriter.RewritingTracer()
    gm = fx.GraphModule(model, tracer.trace(model))
    assert torch.equal(gm(X), model(X)) and sum(n.target is torch._assert for n in gm.graph.nodes) == 2
    with pytest.raises(AssertionError):
        gm(X[None])

    bound = 3

    def closes_over(x):
        assert x.numel() == bound
        return x

    assert fx.GraphModule(torch.nn.Module(), tracer.trace(closes_over))(X) is X
    with pytest.raises(RuntimeError, match="already had a type"):
        fx.symbolic_trace(lambda x: annotate(annotate(x, int), int))
