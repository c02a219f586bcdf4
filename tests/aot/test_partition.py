"""The minimum cut, and the two partitions of hand-made joint graphs (operators here are stand-ins with a kind)."""

import itertools
import random
from types import SimpleNamespace

import pytest

import flambeau as torch
from flambeau import fx
from flambeau.aot.graph_passes import common_subexpressions
from flambeau.aot.maxflow import INFINITE, FlowNetwork
from flambeau.aot.partitioners import default_partition, min_cut_rematerialization_partition


@pytest.mark.parametrize("seed", range(20))
def test_minimum_cut_against_enumeration(seed):
    rng = random.Random(seed)
    n = 7
    edges = [(u, v, rng.randint(1, 9)) for u, v in itertools.permutations(range(n), 2) if rng.random() < 0.4]
    net = FlowNetwork(n)
    for e in edges:
        net.add_edge(*e)
    value, side = net.minimum_cut(0, n - 1)

    def cut(t):
        return sum(c for u, v, c in edges if u not in t and v in t)

    subsets = ({n - 1, *s} for k in range(n - 1) for s in itertools.combinations(range(1, n - 1), k))
    assert value == min(map(cut, subsets)) == cut(side)


def test_minimum_cut_against_scipy():
    scipy_sparse = pytest.importorskip("scipy.sparse")
    from scipy.sparse.csgraph import maximum_flow

    rng = random.Random(1)
    n = 200
    dense = [[0] * n for _ in range(n)]
    net = FlowNetwork(n)
    for u in range(n):
        for v in rng.sample(range(u, n), min(4, n - u)):
            if u != v:
                dense[u][v] = rng.randint(1, 1000)
                net.add_edge(u, v, dense[u][v])
    expected = maximum_flow(scipy_sparse.csr_array(dense, dtype="int32"), 0, n - 1).flow_value
    assert net.maximum_flow(0, n - 1) == expected


def test_unbounded_flow_is_an_error():
    net = FlowNetwork(2)
    net.add_edge(0, 1, INFINITE)
    with pytest.raises(ValueError, match="unbounded"):
        net.minimum_cut(0, 1)


class Op:
    def __init__(self, name, kind, fn):
        self.__name__ = self.name = name
        self.kind, self.fn, self.tags = kind, fn, ()

    def __call__(self, *args):
        return self.fn(*args)


mul = Op("mul", "pointwise", lambda a, b: a * b)
double = Op("double", "pointwise", lambda a: a * 2)
contract = Op("contract", "contraction", lambda a, b: a * b + 1)
rand = Op("rand", "random", lambda a: a)
pair = Op("pair", "extern", lambda a: (a, a + 1))


def value(n=4):
    return SimpleNamespace(dtype=SimpleNamespace(itemsize=4), shape=(n,))


def joint(build, tangents=1):
    """``build(call, primal, tangent)`` gives the forward's outputs and the gradients."""
    g = fx.Graph()

    def call(op, *args, val=None):
        node = g.call_function(op, args)
        node.meta["val"] = value() if val is None else val
        return node

    p = g.placeholder("primals_1")
    t = g.placeholder("tangents_1")
    p.meta["val"] = t.meta["val"] = value()
    outs, grads = build(call, p, t)
    g.output((*outs, *grads))
    g.lint()
    return fx.GraphModule({}, g), len(outs)


def chain(call, p, t):
    a = call(double, p)
    b = call(double, a)
    return [call(double, b)], [call(mul, call(mul, t, a), b)]


def matmul(call, p, t):
    a = call(contract, p, p)
    b = call(double, a)
    return [b], [call(mul, t, b)]


def random_draw(call, p, t):
    r = call(rand, p)
    return [call(mul, p, r)], [call(mul, t, call(double, r))]


def several_outputs(call, p, t):
    whole = call(pair, p, val=[value(), value()])
    first, second = (call(__import__("operator").getitem, whole, i) for i in range(2))
    return [first], [call(mul, t, second)]


def constant_gradient(call, p, t):
    return [call(double, p)], [None, call(double, p)]


@pytest.mark.parametrize(
    ("build", "default", "min_cut"),
    [
        (chain, {"double", "double_1"}, {"primals_1"}),
        (matmul, {"double"}, {"double"}),  # the product is not computed again; what is read is an output anyway
        (random_draw, {"double"}, {"rand"}),
        (several_outputs, {"getitem_1"}, {"getitem_1"}),
        (constant_gradient, {"double_1"}, {"primals_1"}),
    ],
)
def test_partitions(build, default, min_cut):
    for partition, expected in ((default_partition, default), (min_cut_rematerialization_partition, min_cut)):
        gm, n = joint(build)
        fw, bw = partition(gm, None, num_fwd_outputs=n)
        fw.graph.lint()
        bw.graph.lint()
        outs = fw.graph.output_node().args[0]
        assert {o.name for o in outs[n:]} == expected
        assert [x.name for x in bw.graph.nodes if x.op == "placeholder"] == [*(o.name for o in outs[n:]), "tangents_1"]
        # Together the two graphs compute what the joint graph does.
        whole = gm(3.0, 5.0)
        forward = fw(3.0)
        assert (*forward[:n], *bw(*forward[n:], 5.0)) == whole


def test_common_subexpressions():
    g = fx.Graph()
    a = g.placeholder("a")
    nodes = [g.call_function(mul, (a, x)) for x in (1, 1.0, 1, -0.0, 0.0)]
    draws = [g.call_function(rand, (a,)) for _ in range(2)]
    g.output((*nodes, *draws))
    for n in nodes:
        n.target._schema = SimpleNamespace(is_mutable=False)
    common_subexpressions(g)
    del mul._schema
    g.lint()
    out = g.output_node().args[0]
    assert out[0] is out[2] and len({*out}) == 6


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize(
    "body",
    [
        "torch.cat([x, x]).view(2, 2)[1], torch.cat([x, x]).view(2, 2).t()[0]",
        "torch.cat([x, x]), torch.cat([x, x])",
        "torch.cat([x, x]).as_strided((2,), (2,), 1), torch.cat([x, x]).chunk(2)[0]",
        "x * 2, (x * 2)[:1]",
        "(x * 2)[:1], x * 2",
        "torch.topk(x, 1)[0], torch.topk(x, 1)[0], torch.topk(x, 1)[1][:], torch.topk(x, 1)[1][:]",
        "torch.ones(3)[0], torch.ones(3)[1:]",
    ],
)
def test_results_of_equal_calls_have_memory_of_their_own(body, requires_grad, backend):
    """One was a view of the other: a caller who wrote to one result changed the other (found by fuzz_objects.py, seed 8100027)."""
    f = torch.compile(eval(f"lambda x: ({body})"), backend=backend)
    results = f(torch.tensor([1.0, 2.0], requires_grad=requires_grad))
    for k, written in enumerate(results):
        others = [t.tolist() for i, t in enumerate(results) if i != k]
        written.detach().zero_()
        assert [t.tolist() for i, t in enumerate(results) if i != k] == others


@pytest.mark.parametrize("size", [3, 64, 128])
def test_batched_product_of_a_matrix_and_itself(size):
    def f(x):
        y = x * 0.1
        return torch.bmm(y, y)

    x = torch.rand(2, size, size, requires_grad=True)
    (expected,) = torch.autograd.grad(f(x).sum(), x)
    (gradient,) = torch.autograd.grad(torch.compile(f)(x).sum(), x)
    torch.testing.assert_close(gradient, expected)
