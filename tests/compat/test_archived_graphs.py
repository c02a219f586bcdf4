"""``graph`` of modules of TorchScript archives: well formed for each archive, and of a method with branches in whole."""

import pytest
from test_script_archives import FOLDER, NAMES

import flambeau as torch

STATE = """\
graph(%self : __torch__.State,
      %x : Tensor):
  %ready : bool = prim::GetAttr[name="ready"](%self)
  %_0.1 : Tensor = prim::If(%ready)
    block0():
      %weight : Tensor = prim::GetAttr[name="weight"](%self)
      %_0 : Tensor = aten::mul(%x, %weight)
      -> (%_0)
    block1():
      -> (%x)
  return (%_0.1)
"""


def loaded(name):
    return torch.jit.load(FOLDER / f"{name}.pt")


def check(block, seen: set) -> None:
    """Values are known before they are used, names are their own, and blocks return what they can see."""
    seen = seen | set(block.inputs())
    for node in block.nodes():
        assert set(node.inputs()) <= seen, node
        for i, value in enumerate(node.inputs()):
            assert (node, i) in value.uses()
        for inner in node.blocks():
            check(inner, seen)
        seen |= set(node.outputs())
    assert set(block.outputs()) <= seen


def values(block):
    yield from block.inputs()
    for node in block.nodes():
        yield from node.outputs()
        for inner in node.blocks():
            yield from values(inner)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("which", ["graph", "inlined_graph"])
def test_graphs_are_well_formed(name, which):
    graph = getattr(loaded(name), which)
    check(graph, set())
    names = [v.debugName() for v in values(graph)]
    assert len(set(names)) == len(names) and str(graph).startswith("graph(%")
    if which == "inlined_graph":
        classes = {next(n.inputs()).type().qualified_name() for n in graph.findAllNodes("prim::CallMethod")}
        assert all("grad_mode" in c or ".classes." in c for c in classes)
        assert graph.findNode("prim::CallFunction") is None


def test_a_branch():
    assert str(loaded("state").graph) == STATE


def test_graphs_of_methods():
    m = loaded("language")
    assert [v.debugName() for v in m.early.graph.inputs()] == ["self", "x", "n"]
    assert str(m.forward.graph) == str(m.graph) and "prim::If" in str(m.early.inlined_graph)


def test_loops_have_blocks():
    graph = loaded("language").graph
    loops = graph.findAllNodes("prim::Loop")
    counted = [n for n in loops if n.inputsAt(0).toIValue() != 2**63 - 1]
    assert counted and len(counted) < len(loops)  # for, and while
    for node in loops:
        (body,) = node.blocks()
        carried = node.outputsSize()
        assert node.inputsSize() == len(list(body.inputs())) + 1 == len(list(body.outputs())) + 1 == carried + 2
        assert next(body.inputs()).type().kind() == "IntType" and next(body.outputs()).type().kind() == "BoolType"
    (fork,) = graph.findAllNodes("prim::fork")
    assert fork.output().type().kind() == "FutureType" and fork.findNode("prim::CallFunction").outputsSize() == 1


def test_defaults_of_operators_are_constants():
    graph = loaded("kinds").graph
    to = graph.findNode("aten::to")
    assert [v.toIValue() for v in to.inputs()][1:] == [7, False, False, None]
    assert to.schema().startswith("aten::to.dtype(Tensor(a) self, ScalarType dtype")
    conv = loaded("conv_frozen").graph.findNode("aten::conv2d")
    assert conv.namedInput("dilation").toIValue() == [1, 1] and conv.inputsAt(1).node().kindOf("value") == "t"


def test_calls_of_submodules():
    m = loaded("mlp_scripted")
    calls = m.graph.findAllNodes("prim::CallMethod")
    assert [n.s("name") for n in calls] == ["forward"] * 5
    assert [next(n.inputs()).node().s("name") for n in calls] == list("01234")
    inlined = [n.kind() for n in m.inlined_graph.nodes()]
    assert inlined.count("aten::linear") == 2 and "aten::layer_norm" in inlined
    assert [n.kind() for n in getattr(m, "0").graph.nodes()][-1] == "aten::linear"
