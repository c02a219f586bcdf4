"""GraphModules are Modules, tracers trace modules, passes run: the same program on both, beside PyTorch where it is installed, alone otherwise."""

import copy
import operator
import pickle

import pytest

import flambeau as ours

try:
    import torch as theirs
except ImportError:
    theirs = None


class Of:
    """The programs, over one of the two libraries."""

    def __init__(self, torch):
        self.torch = torch

        class Block(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.conv = torch.nn.Conv2d(2, 4, 3, padding=1)
                self.norm = torch.nn.BatchNorm2d(4)
                self.scale = torch.nn.Parameter(torch.ones(1, 4, 1, 1))
                self.register_buffer("shift", torch.zeros(1, 4, 1, 1))

            def forward(self, x):
                return torch.relu(self.norm(self.conv(x)) * self.scale + self.shift)

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.second = Block(), torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 3))

            def forward(self, x, factor=1.0):
                a, b = x.chunk(2, dim=1)
                a, b = a.contiguous() + b, b
                return self.second(self.first(torch.cat([a, b], 1)[:, :2])) * factor

        self.Block, self.Net = Block, Net

    def traced(self):
        self.torch.manual_seed(0)
        net = self.Net().eval()
        return net, self.torch.fx.symbolic_trace(net)

    def x(self):
        self.torch.manual_seed(1)
        return self.torch.randn(2, 4, 4, 4)


def names_of_nodes(of):
    _, gm = of.traced()
    return [(n.op, n.name, n.target if isinstance(n.target, str) else n.target.__name__) for n in gm.graph.nodes]


def stacks(of):
    _, gm = of.traced()
    return [(n.name, list(n.meta.get("nn_module_stack", ()))) for n in gm.graph.nodes]


def is_a_module(of):
    net, gm = of.traced()
    state = {k: tuple(v.shape) for k, v in gm.state_dict().items()}
    return (
        isinstance(gm, of.torch.nn.Module),
        type(gm).__name__,
        [n for n, _ in gm.named_modules()],
        [n for n, _ in gm.named_parameters()],
        [n for n, _ in gm.named_buffers()],
        state,
        gm.training,
        [n for n, _ in gm.named_children()],
        gm.get_parameter("first.scale") is net.first.scale,
        gm.get_submodule("second.1") is net.second[1],
    )


def behaves_as_a_module(of):
    net, gm = of.traced()
    calls = []
    gm.register_forward_hook(lambda m, a, out: calls.append(tuple(out.shape)))
    gm.get_submodule("second.1").register_forward_pre_hook(lambda m, a: calls.append("linear"))
    gm(of.x(), 2.0)
    doubled = copy.deepcopy(gm).double()
    out = doubled(of.x().double(), 2.0)
    gm.train()
    training = [m.training for m in gm.modules()]
    gm.eval().requires_grad_(False)
    again = type(net)()
    missing = again.load_state_dict(gm.state_dict())
    return (
        calls,
        str(out.dtype),
        str(gm.first.scale.dtype),
        training,
        list(missing.missing_keys),
        all(not p.requires_grad for p in gm.parameters()),
    )


def inside_a_module(of):
    net, gm = of.traced()
    outer = of.torch.nn.Sequential(of.torch.nn.Identity(), gm)
    return list(outer.state_dict()), sum(p.numel() for p in outer.parameters()), len(list(outer.modules()))


def constants(of):
    held = of.torch.arange(3.0)
    gm = of.torch.fx.symbolic_trace(lambda x: x + held)
    return (
        [n.target for n in gm.graph.nodes if n.op == "get_attr"],
        list(gm.state_dict()),
        gm(of.torch.ones(3)).tolist(),
    )


def editing(of):
    _, gm = of.traced()
    found = [gm.add_submodule("extra.inner", of.torch.nn.Linear(2, 2)), gm.delete_submodule("nothing.here")]
    before = [n for n, _ in gm.named_modules()]
    gm.delete_all_unused_submodules()
    for node in gm.graph.nodes:
        if node.target is of.torch.relu:
            node.target = of.torch.tanh
    gm.recompile()
    return found, before, [n for n, _ in gm.named_modules()], "tanh" in gm.code


class _Leaf:
    def __init__(self, of):
        outer = self

        class Tracer(of.torch.fx.Tracer):
            def is_leaf_module(self, m, name):
                return isinstance(m, of.Block) or super().is_leaf_module(m, name)

            def call_module(self, m, forward, args, kwargs):
                outer.seen.append(self.path_of_module(m))
                return super().call_module(m, forward, args, kwargs)

        self.seen, self.Tracer = [], Tracer


def own_tracer(of):
    leaf = _Leaf(of)
    net = of.Net().eval()
    graph = leaf.Tracer().trace(net)
    gm = of.torch.fx.GraphModule(net, graph, "Mine")
    return leaf.seen, [n.name for n in graph.nodes], type(gm).__name__, list(gm.state_dict())


def concrete_arguments(of):
    def f(x, flag=True):
        return x + 1 if flag else x - 1

    gm = of.torch.fx.symbolic_trace(f, concrete_args={"flag": False})
    try:
        gm(of.torch.ones(1), True)
    except AssertionError as e:
        return gm(of.torch.ones(1), False).item(), str(e), [n.name for n in gm.graph.nodes]


def starred(of):
    def f(x, *rest, scale, **more):
        return x + rest[0] * scale + more["k"]

    gm = of.torch.fx.symbolic_trace(f)
    return [(n.op, n.target if isinstance(n.target, str) else n.target.__name__, n.args[:0]) for n in gm.graph.nodes]


def shapes(of):
    from importlib import import_module

    _, gm = of.traced()
    prop = import_module(f"{of.torch.__name__}.fx.passes.shape_prop").ShapeProp
    prop(gm).propagate(of.x(), 2.0)
    return [
        (n.name, tuple(m.shape), str(m.dtype), tuple(m.stride), m.requires_grad, m.is_quantized)
        for n in gm.graph.nodes
        if hasattr(m := n.meta.get("tensor_meta"), "shape")
    ]


def fakes(of):
    from importlib import import_module

    _, gm = of.traced()
    prop = import_module(f"{of.torch.__name__}.fx.passes.fake_tensor_prop").FakeTensorProp
    mode = import_module(f"{of.torch.__name__}._subclasses").FakeTensorMode(allow_non_fake_inputs=True)
    out = prop(gm, mode).propagate(of.x(), 2.0)
    return tuple(out.shape), [
        (n.name, tuple(n.meta["val"].shape)) for n in gm.graph.nodes if hasattr(n.meta.get("val"), "shape")
    ]


def _split(of, part, **options):
    from importlib import import_module

    split = import_module(f"{of.torch.__name__}.fx.passes.split_module").split_module
    net, gm = of.traced()
    names, where = {}, iter(range(100))
    parts = split(gm, net, lambda n: part(next(where), n), qualname_map=names, **options)
    same = of.torch.allclose(parts(of.x(), 2.0), gm(of.x(), 2.0))
    return (
        same,
        names,
        [(n.op, n.name, [str(a) for a in n.args]) for n in parts.graph.nodes],
        {k: [(n.op, n.name) for n in m.graph.nodes] for k, m in parts.named_children() if hasattr(m, "graph")},
        sorted(parts.state_dict()),
    )


def split_in_two(of):
    return _split(of, lambda i, n: i // 6)


def split_in_order(of):
    return _split(
        of,
        lambda i, n: i // 3,
        keep_original_order=True,
        keep_original_node_name=True,
        partition_affix="p",
        tuple_return=True,
    )


def cycles(of):
    try:
        return _split(of, lambda i, n: i % 2)
    except RuntimeError as e:
        return str(e)


def _passes(of):
    from importlib import import_module

    base = import_module(f"{of.torch.__name__}.fx.passes.infra.pass_base")
    manager = import_module(f"{of.torch.__name__}.fx.passes.infra.pass_manager")

    class Swap(base.PassBase):
        def __init__(self, old, new):
            self.old, self.new, self.log = old, new, []

        def requires(self, gm):
            self.log.append("before")

        def ensures(self, gm):
            self.log.append("after")

        def call(self, gm):
            hits = [n for n in gm.graph.nodes if n.target is self.old]
            for n in hits:
                n.target = self.new
            return base.PassResult(gm, bool(hits))

    return base, manager, Swap


def passes(of):
    torch = of.torch
    _, manager, Swap = _passes(of)
    gm = torch.fx.symbolic_trace(lambda x: torch.sin(x) + 1)
    a, b = Swap(torch.sin, torch.cos), Swap(torch.cos, torch.tanh)
    rule = manager.this_before_that_pass_constraint(a, b)
    run = manager.PassManager([b, a], [rule], steps=3)
    first = run(gm)
    second = run(first.graph_module)
    bad = manager.PassManager([lambda m: 3])
    try:
        bad(gm)
    except Exception as e:  # PyTorch puts its TypeError into a bare Exception
        error = "should be type PassResult" in f"{e} {e.__cause__}"
    return (
        first.modified,
        second.modified,
        a.log,
        [getattr(n.target, "__name__", n.target) for n in gm.graph.nodes],
        error,
    )


PROGRAMS = [
    names_of_nodes,
    stacks,
    is_a_module,
    behaves_as_a_module,
    inside_a_module,
    constants,
    editing,
    own_tracer,
    concrete_arguments,
]
PROGRAMS += [starred, shapes, fakes, split_in_two, split_in_order, cycles, passes]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_as_pytorch(program):
    got = program(Of(ours))
    if theirs is not None:
        assert got == program(Of(theirs))
    assert got


def test_graph_modules_are_pickled():
    _, gm = Of(ours).traced()
    held = ours.arange(3.0)
    small = ours.fx.symbolic_trace(_Add(held))
    for again in (copy.copy(small), copy.deepcopy(small), pickle.loads(pickle.dumps(small))):
        assert again(ours.ones(3)).tolist() == [1, 2, 3] and isinstance(again, ours.fx.GraphModule)
        assert list(again.state_dict()) == list(small.state_dict())
    again = copy.deepcopy(small)
    again.held.add_(1)
    assert small(ours.ones(3)).tolist() == [1, 2, 3] and again(ours.ones(3)).tolist() == [2, 3, 4]
    assert type(again) is not type(small)
    again.graph.output_node().args = (next(iter(again.graph.nodes)),)
    again.recompile()
    assert again(7) == 7 and small(ours.ones(3)).tolist() == [1, 2, 3]


class _Add(ours.nn.Module):
    def __init__(self, held):
        super().__init__()
        self.register_buffer("held", held)

    def forward(self, x):
        return operator.add(x, self.held)


def test_proxies_that_cannot_be_recorded():
    for f in (lambda x: [y for y in x], lambda x: max(*x), lambda x: 1 if x else 2):
        with pytest.raises(ours.fx.proxy.TraceError):
            ours.fx.symbolic_trace(f)
