"""torch.export.unflatten: the submodules of an exported program, run, replaced, written to a file; and the calls of modules that nodes belong to."""

import io

import pytest
from exported_programs import PROGRAMS, Stateful, same

import flambeau as torch
from flambeau import nn
from flambeau.export import FlatArgsAdapter, export, unflatten


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin, self.norm, self.drop = nn.Linear(4, 4), nn.LayerNorm(4), nn.Dropout(0.1)

    def forward(self, x):
        return self.drop(self.norm(torch.nn.functional.gelu(self.lin(x))))


class Blocks(nn.Module):
    """``a`` is called twice; a list of blocks; a buffer of its own."""

    def __init__(self):
        super().__init__()
        self.a, self.b = Block(), nn.ModuleList([Block(), Block()])
        self.register_buffer("shift", torch.ones(4))

    def forward(self, x):
        x = self.a(x)
        for b in self.b:
            x = b(x)
        return torch.softmax(self.a(x), -1).reshape(-1) + self.shift.sum()


class Structured(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3))
        self.register_buffer("n", torch.zeros(1))

    def forward(self, x, k=1, *, flag=None):
        self.n.add_(1)
        return {"a": x * self.w * k, "b": (x + 1, 3)}


class Sharing(nn.Module):
    """Calls with containers, called twice with other constants; a parameter of two modules; a region without gradients."""

    def __init__(self):
        super().__init__()
        self.i, self.j, self.seq = Structured(), Structured(), nn.Sequential(nn.Linear(3, 3), nn.ReLU())
        self.j.w = self.i.w

    def forward(self, x):
        o = self.i(x, 2)
        with torch.no_grad():
            q = self.seq(x)
        return self.i(o["a"], k=3)["b"][0] + self.j(o["b"][0], flag=True)["a"] + q


class Scaled(nn.Module):
    def __init__(self, by):
        super().__init__()
        self.by = by

    def forward(self, x, *rest, **more):
        return x * self.by


class Answer(nn.Module):
    def forward(self, x, k=1, *, flag=None):
        return {"a": x * 0 + k, "b": (x * 0 - k, 3)}


@pytest.mark.parametrize("decomposed", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name, decomposed):
    make, example, spec, others = PROGRAMS[name]
    torch.manual_seed(0)
    program = make()
    ep = export(program, example(), dynamic_shapes=spec)
    made = unflatten(ep.run_decompositions() if decomposed else ep)
    for args in (example(), *others()):
        assert same(program(*args), made(*args))


def calls(graph):
    return [n.target for n in graph.nodes if n.op == "call_module"]


def test_submodules_and_their_nodes():
    m, x = Blocks().eval(), torch.randn(2, 4)
    ep = export(m, (x,))
    stacks = [n.meta["nn_module_stack"] for n in ep.graph.nodes if n.op == "call_function"]
    assert [list(s)[-1] for s in stacks[:4]] == ["L__self__a.lin", "L__self__a", "L__self__a.norm", "L__self__a.drop"]
    assert stacks[0]["L__self__a"] == ("a", f"{__name__}.Block") and list(stacks[-1]) == ["L__self__"]
    assert list(stacks[12]) == ["L__self__", "L__self__a@1", "L__self__a.lin@1"]
    targets = [str(n.target) for n in ep.graph.nodes if n.op == "call_function"]
    assert targets[:4] == [
        "aten.linear.default",
        "aten.gelu.default",
        "aten.layer_norm.default",
        "aten.dropout.default",
    ]
    assert [e.fqn for e in ep.module_call_graph] == [name for name, _ in m.named_modules()]
    made = unflatten(ep)
    assert calls(made.graph) == ["a", "b.0", "b.1", "a"] and calls(made.a.graph) == ["lin", "norm", "drop"]
    assert [n for n, _ in made.named_modules()] == [n for n, _ in m.named_modules()]
    assert made.state_dict().keys() == m.state_dict().keys()
    assert torch.allclose(made(x), m(x), atol=1e-6)
    assert made.a.lin.weight is not m.a.lin.weight  # copies: training one leaves the other
    with pytest.raises(AssertionError, match="Guard failed"):
        made(torch.randn(3, 4))


def test_replacing_a_submodule():
    m, x = Blocks().eval(), torch.randn(2, 4)
    made = unflatten(export(m, (x,)))
    made.a = m.a = Scaled(2.0)
    m.b[1] = Scaled(0.5)
    made.set_submodule("b.1", m.b[1])
    assert torch.allclose(made(x), m(x), atol=1e-6)
    made = unflatten(export(Blocks().train(), (x,)))
    made(x).sum().backward()
    assert made.a.lin.weight.grad is not None and made.get_submodule("b.0").norm.bias.grad is not None


@pytest.mark.parametrize("saved", [False, True])
def test_signatures_that_are_kept(saved):
    torch.manual_seed(0)
    m, x = Sharing(), torch.randn(4, 3)
    ep = export(m, (x,), preserve_module_call_signature=("i", "j"))
    if saved:
        file = io.BytesIO()
        torch.export.save(ep, file)
        ep = torch.export.load(io.BytesIO(file.getvalue()))
    entries = {e.fqn: e.signature for e in ep.module_call_graph}
    assert list(entries) == ["", "i", "j", "seq", "seq.0", "seq.1", "i@1"] and entries["seq"] is None
    assert [getattr(a, "value", None) for a in entries["i"].inputs] == [None, 2]
    assert entries["i@1"].in_spec.parts[1].keys == ("k",) and entries["i"].forward_arg_names == ["x", "k"]
    made = unflatten(ep)
    assert torch.allclose(made(x), m(x))
    assert made.i.n.tolist() == [2] and made.j.n.tolist() == [1] and made.i.w is made.j.w
    made(x).sum().backward()
    assert made.get_submodule("seq.0").weight.grad is None and made.i.w.grad is not None
    made.i = m.i = Answer()
    assert torch.allclose(made(x), m(x))
    with torch.no_grad():
        assert torch.allclose(made(x), m(x))


def test_one_module_under_several_names():
    class Alias(nn.Module):
        def __init__(self):
            super().__init__()
            self.l = nn.Linear(3, 3)
            self.m, self.k = self.l, nn.ModuleList([self.l, nn.Linear(3, 3)])

        def forward(self, x):
            return self.m(self.l(x)) + self.k[0](x) + self.k[1](x)

    m, x = Alias(), torch.randn(4, 3)
    made = unflatten(export(m, (x,)))
    assert made.m is made.l is made.get_submodule("k.0") and made.m.weight is made.l.weight
    assert torch.allclose(made(x), m(x))


def test_writes_of_submodules():
    m, twin = Stateful(), Stateful()
    twin.load_state_dict(m.state_dict())
    batch = nn.Sequential(nn.BatchNorm1d(4), nn.ReLU(inplace=True))
    for program, args, read in (
        (m, (torch.ones(5, 4),), lambda m: [m.count]),
        (batch, (torch.randn(5, 4),), lambda m: list(m.get_submodule("0").buffers())),
    ):
        ep = export(program, args)
        for made in (unflatten(ep), unflatten(ep.run_decompositions())):
            before = [t.clone() for t in read(program)]
            assert same(program(*args), made(*args))
            assert same(read(program), read(made))
            for t, b in zip(read(program), before):
                t.copy_(b)


def test_compiled():
    m, x = Blocks().eval(), torch.randn(2, 4)
    made = unflatten(export(m, (x,)))
    assert torch.allclose(torch.compile(made, fullgraph=True)(x), m(x), atol=1e-6)


def test_arguments_of_another_structure():
    class FromDict(FlatArgsAdapter):
        def adapt(self, target_spec, input_spec, input_args, metadata=None, obj=None):
            return [input_args[input_spec.parts[0].parts[0].keys.index(k)] for k in ("x", "y")]

    ep = export(lambda x, y: x - y, (torch.ones(2), torch.zeros(2)))
    made = unflatten(ep, FromDict())
    assert made({"y": torch.ones(2), "x": torch.zeros(2)}).tolist() == [-1, -1] and made.adapted
    with pytest.raises(ValueError, match="input tree spec"):
        unflatten(ep)({"y": torch.ones(2), "x": torch.zeros(2)})


def test_what_is_refused():
    x = torch.ones(2, 4)
    with pytest.raises(TypeError, match="ExportedProgram"):
        unflatten(Block())
    with pytest.raises(ValueError, match="no submodule 'c'"):
        export(Blocks(), (x,), preserve_module_call_signature=("c",))
