"""Patterns found and replaced, and partitions by source."""

import copy
import os
import subprocess
import sys

import pytest

import flambeau as torch
from flambeau import fx
from flambeau.fx.passes.utils.matcher_utils import SubgraphMatcher
from flambeau.fx.passes.utils.matcher_with_name_node_map_utils import SubgraphMatcherWithNameNodeMap
from flambeau.fx.passes.utils.source_matcher_utils import check_subgraphs_connected, get_source_partitions
from flambeau.fx.subgraph_rewriter import replace_pattern_with_filters

aten = torch.ops.aten


class Tanh(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.tanh, self.shift = torch.nn.Tanh(), torch.nn.Parameter(torch.ones(3))

    def forward(self, x):
        return self.tanh(x) + self.shift


# name: (function, pattern, replacement, matches, what it is afterwards)
REWRITES = {
    "two results": (
        lambda x: x.sin() + x.cos(), lambda x: (x.sin(), x.cos()), lambda x: (x.exp(), x.abs()), 1, lambda x: x.exp() + x.abs(),
    ),
    "a result that is used inside too": (
        lambda x: (x - 1).sin() + (x - 1).cos(), lambda x: (x - 1).sin(), lambda x: x.neg(), 1, lambda x: x.neg() + (x - 1).cos(),
    ),
    "a value that is used outside": (
        lambda x: (lambda y: y.sin() * y)(x + 1), lambda x: (x + 1).sin(), lambda x: x, 0, lambda x: (x + 1).sin() * (x + 1),
    ),
    "nothing in its place": (lambda x: x.neg().neg().neg().neg(), lambda x: x.neg().neg(), lambda x: x, 2, lambda x: x),
    "keyword arguments": (
        lambda x: torch.sum(x, dim=0), lambda x, d: torch.sum(x, dim=d), lambda x, d: torch.amax(x, dim=d), 1, lambda x: x.amax(0),
    ),
    "an operator with defaults": (
        lambda x: aten.max_pool2d_with_indices.default(x, [2, 2], stride=[2, 2])[0],
        lambda x, k, s: aten.max_pool2d_with_indices.default(x, k, s, padding=[0, 0])[0],
        lambda x, k, s: aten.avg_pool2d.default(x, k, s), 1, lambda x: torch.nn.functional.avg_pool2d(x, 2),
    ),
    "a module": (lambda x: x.sin() * 2, lambda x: x.sin(), Tanh(), 1, lambda x: (x.tanh() + 1) * 2),
}  # fmt: skip


@pytest.mark.parametrize("name", REWRITES)
def test_replace(name):
    fn, pattern, new, count, after = REWRITES[name]
    x = torch.rand(1, 1, 4, 4) if "operator" in name else torch.rand(2, 3)
    gm = fx.symbolic_trace(fn)
    assert len(fx.replace_pattern(gm, pattern, new)) == count
    gm.graph.lint()
    torch.testing.assert_close(gm(x), after(x))
    torch.testing.assert_close(copy.deepcopy(gm)(x), after(x))


def test_filters_and_callbacks():
    gm = fx.symbolic_trace(lambda x, y: (x + 1).relu() * (x + y).relu())
    small = lambda match, graph, pattern: not isinstance(match.placeholder_nodes[1], fx.Node)  # noqa: E731
    pattern = lambda a, b: (a + b).relu()  # noqa: E731
    made = lambda match, graph, pattern: fx.symbolic_trace(lambda a, b: a - b).graph  # noqa: E731
    (done,) = replace_pattern_with_filters(gm, pattern, match_filters=[small], replacement_callback=made)
    assert [n.name for n in done.replacements] == ["sub"]
    assert torch.equal(gm(torch.ones(2), torch.ones(2)), torch.zeros(2))
    with pytest.raises(ValueError, match="takes 2 inputs and the replacement 1"):
        replace_pattern_with_filters(gm, pattern, lambda a: a)
    with pytest.raises(ValueError, match="a replacement or a replacement_callback"):
        replace_pattern_with_filters(gm, pattern)


def test_matcher_options():
    graph = fx.symbolic_trace(lambda x: (x + 1).sin()).graph
    pattern = fx.symbolic_trace(lambda x: x + 2).graph
    assert not SubgraphMatcher(pattern).match(graph)
    assert not SubgraphMatcher(pattern, match_output=True, ignore_literals=True).match(graph)
    (found,) = SubgraphMatcher(pattern, ignore_literals=True).match(graph)
    assert [n.name for n in found.returning_nodes] == ["add"]
    two = fx.symbolic_trace(lambda x: x.sin().sin().sin()).graph
    overlapping = fx.symbolic_trace(lambda x: x.sin().sin()).graph
    assert len(SubgraphMatcher(overlapping).match(two)) == 1
    assert len(SubgraphMatcher(overlapping, remove_overlapping_matches=False).match(two)) == 2
    with pytest.raises(ValueError, match="no node"):
        SubgraphMatcher(fx.symbolic_trace(lambda x: 3).graph)


def test_names_of_a_pattern():
    def pattern(x):
        y = x.sin()
        return y.cos(), {"inner": y}

    (found,) = SubgraphMatcherWithNameNodeMap(fx.symbolic_trace(pattern)).match(
        fx.symbolic_trace(lambda x: (x + 1).sin().cos()).graph
    )
    assert found.name_node_map["inner"].target == "sin"


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(3, 3), torch.nn.Linear(3, 2)

    def forward(self, x):
        return self.second(torch.relu(self.first(self.first(x))))


@pytest.mark.parametrize("aten_graph", [False, True])
def test_source_partitions(aten_graph):
    graph = torch._dynamo.export(Net(), aten_graph=aten_graph)(torch.ones(2, 3)).graph_module.graph
    found = get_source_partitions(graph, [torch.nn.Linear, torch.relu])
    assert [len(found[s]) for s in (torch.nn.Linear, torch.relu)] == [3, 1]
    first, again, last = found[torch.nn.Linear]
    assert check_subgraphs_connected(first, again) and not check_subgraphs_connected(first, last)
    assert len(last.params) == 2 and len(last.output_nodes) == 1
    assert not get_source_partitions(graph, [torch.nn.Linear], filter_fn=lambda n: False)


@pytest.mark.parametrize(
    "path",
    [
        "experimental.proxy_tensor.make_fx",
        "experimental.symbolic_shapes.ShapeEnv",
        "passes.shape_prop",
        "replace_pattern",
    ],
)
def test_tools_are_found_as_attributes(path):
    """In a process that imported nothing but the package."""
    code = f"import flambeau as torch; print(torch.fx.{path}.__name__)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0 and done.stdout, done.stderr


def test_calls_in_bodies_have_the_operators_around_them():
    graphs = []

    def backend(gm, examples):
        graphs.append(gm)
        return gm.forward

    cond = torch.cond
    fn = lambda p, x: cond(p, lambda x: cond(p, lambda x: x.sin(), lambda x: x.cos(), (x,)), lambda x: x + 1, (x,))  # noqa: E731
    torch.compile(fn, backend=backend, fullgraph=True)(torch.tensor(True), torch.ones(2))
    stacks = {}
    for module in graphs[0].modules():
        for n in module.graph.nodes if isinstance(module, fx.GraphModule) else ():
            if n.op.startswith("call"):
                stacks[n.name] = [name for name, _ in n.meta["source_fn_stack"]]
    assert stacks["sin"] == ["cond", "cond", "sin"] and stacks["add"] == ["cond", "add"]


def test_topological_orders():
    from flambeau.fx.passes.tools_common import legalize_graph, stable_topological_sort

    for sort, want in (
        (legalize_graph, ["x", "y", "a", "b", "c", "output"]),
        (stable_topological_sort, ["x", "a", "y", "b", "c", "output"]),
    ):
        graph = fx.Graph()
        x = graph.placeholder("x")
        a = graph.create_node("call_function", torch.sin, (x,), name="a")
        y = graph.placeholder("y")
        b = graph.create_node("call_function", torch.cos, (y,), name="b")
        graph.output(graph.create_node("call_function", torch.add, (a, b), name="c"))
        b.append(a) if sort is legalize_graph else None
        gm = fx.GraphModule({}, graph)
        y.append(b)
        out = sort(gm)
        assert out is gm and [n.name for n in gm.graph.nodes] == want
        assert torch.equal(gm(torch.ones(1), torch.ones(1)), torch.ones(1).sin() + torch.ones(1).cos())
    graph = fx.Graph()
    a = graph.create_node("call_function", torch.sin, (), name="a")
    a.args = (graph.create_node("call_function", torch.sin, (a,), name="b"),)
    with pytest.raises(RuntimeError, match="cycles"):
        legalize_graph(fx.GraphModule({}, graph))
