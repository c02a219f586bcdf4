"""``graph`` of what ``torch.jit`` traces: its text, and what programs ask of its nodes and values."""

import collections
import io

import pytest

import flambeau as torch

nn = torch.nn
X = torch.ones(2, 3)

ARITHMETIC = """\
graph(%a : Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu),
      %b : Float(2, 3, strides=[3, 1], requires_grad=1, device=cpu)):
  %2 : Double(requires_grad=0, device=cpu) = prim::Constant[value={2.5}]()
  %3 : Float(2, 3, strides=[3, 1], device=cpu) = aten::mul(%b, %2)
  %4 : int = prim::Constant[value=1]()
  %5 : Float(2, 3, strides=[3, 1], device=cpu) = aten::add(%a, %3, %4)
  %6 : int = prim::Constant[value=0]()
  %7 : int[] = prim::ListConstruct(%6)
  %8 : bool = prim::Constant[value=1]()
  %9 : NoneType = prim::Constant()
  %10 : Float(1, 3, strides=[3, 1], device=cpu) = aten::sum(%a, %7, %8, %9)
  %11 : (Float(2, 3, strides=[3, 1], device=cpu), Float(1, 3, strides=[3, 1], device=cpu)) = prim::TupleConstruct(%5, %10)
  return (%11)
"""


def test_the_text_of_arithmetic():
    t = torch.jit.trace(lambda a, b: (a + b * 2.5, a.sum(dim=0, keepdim=True)), (X, X.clone().requires_grad_()))
    assert str(t.graph) == ARITHMETIC == t.inlined_graph.str()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU())
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.body(x).mean((2, 3)))


@pytest.fixture
def graph():
    return torch.jit.trace(Net().eval(), torch.ones(1, 3, 5, 5)).graph


def test_operators_are_counted(graph):
    kinds = collections.Counter(n.kind() for n in graph.nodes() if n.kind().startswith("aten::"))
    assert kinds == dict.fromkeys(["aten::conv2d", "aten::batch_norm", "aten::relu", "aten::mean", "aten::linear"], 1)
    conv = graph.findNode("aten::conv2d")
    x, weight = conv.inputsAt(0), conv.namedInput("weight")
    assert x.debugName() == "x" and x.node().kind() == "prim::Param" and x.isCompleteTensor()
    assert (weight.node().kind(), weight.node().s("name")) == ("prim::GetAttr", "weight")
    stride = [v.toIValue() for v in conv.namedInput("stride").node().inputs()]
    assert stride == [1, 1] and str(conv.namedInput("stride").type()) == "List[int]"
    assert conv.output().type().sizes() == [1, 4, 5, 5]
    assert conv.schema().startswith("aten::conv2d(Tensor input, Tensor weight, Tensor? bias=None")


def test_scopes_are_the_calls_of_modules(graph):
    scopes = {n.kind(): n.scopeName() for n in graph.nodes() if n.kind().startswith("aten::")}
    assert scopes["aten::batch_norm"] == "__module.body/__module.body.1"
    assert (scopes["aten::mean"], scopes["aten::linear"]) == ("", "__module.head")
    assert [v.type().name() for v in graph.inputs()][0] == "Net"


def test_types_of_tensors(graph):
    kind = graph.findNode("aten::linear").output().type()
    assert (kind.kind(), kind.scalarType(), kind.dtype(), kind.dim()) == ("TensorType", "Float", torch.float32, 2)
    assert (kind.strides(), kind.device(), str(kind)) == ([2, 1], torch.device("cpu"), "Tensor")
    assert kind.isSubtypeOf(graph.findNode("prim::GetAttr").output().type()) is False
    assert graph.findNode("prim::ListConstruct").output().type().getElementType().kind() == "IntType"
    with pytest.raises(RuntimeError, match=r"sizes\(\) is asked of a List\[int\], which is no tensor's type"):
        graph.findNode("prim::ListConstruct").output().type().sizes()


def test_attributes(graph):
    eps = next(n for n in graph.findAllNodes("prim::Constant") if n.kindOf("value") == "f" and n.f("value") < 1e-3)
    assert (eps.output().toIValue(), eps.attributeNames(), eps.hasAttribute("value")) == (1e-5, ["value"], True)
    assert [u.user.kind() for u in eps.output().uses()] == ["aten::batch_norm"] and eps.hasUses()
    with pytest.raises(RuntimeError, match="required keyword attribute 'value' has the wrong type"):
        eps.i("value")
    with pytest.raises(RuntimeError, match="required keyword attribute 'name' is undefined"):
        eps.s("name")
    with pytest.raises(RuntimeError, match="single input on node 'aten::batch_norm' which has 9 inputs"):
        graph.findNode("aten::batch_norm").input()
    assert graph.findNode("aten::softmax") is None and graph.findAllNodes("aten::softmax") == []


def test_several_results_and_nested_arguments():
    t = torch.jit.trace(lambda p, d: (p[0].split(1), p[1].topk(2)[1] + d["k"]), ((X, X), {"k": torch.ones(2)}))
    graph = t.graph
    assert [v.debugName() for v in graph.inputs()] == ["p_0", "p_1", "d_0"]
    split, topk = graph.findNode("aten::split"), graph.findNode("aten::topk")
    assert split.output().uses()[0].user.outputsSize() == 2 and str(split.output().type()) == "List[Tensor]"
    assert [v.type().scalarType() for v in topk.outputs()] == ["Float", "Long"]
    out = next(graph.outputs())
    assert out.node().kind() == "prim::TupleConstruct" and out.uses()[0].user is graph.return_node()


def test_a_loaded_trace_knows_its_operators():
    t, file = torch.jit.trace(Net().eval(), torch.ones(1, 3, 5, 5)), io.BytesIO()
    torch.jit.save(t, file)
    file.seek(0)
    loaded = torch.jit.load(file).graph
    assert [n.kind() for n in loaded.nodes()] == [n.kind() for n in t.graph.nodes()]
    assert loaded.findNode("aten::conv2d").output().type().sizes() is None
    assert torch.jit.export_opnames(t) == [
        "aten::batch_norm", "aten::conv2d", "aten::linear", "aten::mean.dim", "aten::relu"
    ]  # fmt: skip


def test_parameters_are_inputs_of_a_trace_graph():
    m = nn.Linear(3, 2)
    graph, out, given = torch.jit._get_trace_graph(m, X, return_inputs=True)
    x, weight, bias = graph.inputs()
    assert list(graph.findNode("aten::linear").inputs()) == [x, weight, bias]
    assert (weight.debugName(), weight.type().sizes(), weight.requires_grad()) == ("1", [2, 3], True)
    assert given[0] is X and torch.equal(out, m(X)) and not x.requires_grad()


def test_composites_of_a_trace_run_as_the_program():
    torch.manual_seed(0)
    m = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4))
    x = torch.randn(2, 3, 5, 5)
    t = torch.jit.trace(m, x)
    before = m[1].running_mean.clone()
    t(x).square().sum().backward()
    assert m[0].weight.grad is not None and not torch.equal(before, m[1].running_mean)
    assert m[1].num_batches_tracked.item() == 2


def test_a_trace_keeps_the_grad_mode_of_its_caller():
    t = torch.jit.trace(lambda x: torch.enable_grad()(lambda y: y * 2)(x), X)
    assert torch.is_grad_enabled() and t(X.clone().requires_grad_()).requires_grad and torch.is_grad_enabled()
    assert [n.kind() for n in t.graph.nodes()] == ["prim::Constant", "aten::mul"]
