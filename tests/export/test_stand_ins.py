"""Programs without data are exported and captured: fake tensors, under their mode and outside of it, and tensors of the meta device."""

import pytest

import flambeau as torch
from flambeau.export import Dim
from flambeau.fake import FakeTensor, FakeTensorMode


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(2, 3)
        self.register_buffer("b", torch.ones(3))

    def forward(self, x):
        return self.linear(x).relu() + self.b


def last(gm):
    return [n.meta["val"] for n in gm.graph.nodes if n.op == "call_function"][-1]


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("dynamic", [True, False])
def test_export_of_fakes(strict, inside, dynamic):
    mode = FakeTensorMode()
    options = {"strict": strict, "dynamic_shapes": ({0: Dim("n")},) if dynamic else None}
    with mode:
        model, x = Model(), torch.randn(5, 2)
        held = model.linear.weight
        if inside:
            program = torch.export.export(model, (x,), **options)
    if not inside:
        program = torch.export.export(model, (x,), **options)
    assert model.linear.weight is held and program.state_dict["linear.weight"] is held
    assert program.example_inputs[0][0] is x
    assert all(type(t) is FakeTensor for t in program.state_dict.values())
    assert tuple(map(str, last(program.graph_module).shape)) == ("s0" if dynamic else "5", "3")


def test_memory_is_not_touched():
    import resource

    with FakeTensorMode():
        model = torch.nn.Linear(1 << 14, 1 << 14)  # 1 GiB
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        program = torch.export.export(model, (torch.randn(2, 1 << 14),))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 19
    assert last(program.graph_module).shape == (2, 1 << 14)


@pytest.mark.parametrize("aten_graph", [True, False])
@pytest.mark.parametrize("meta", [True, False])
def test_dynamo_export(meta, aten_graph):
    with torch.device("meta") if meta else FakeTensorMode():
        model, x = Model(), torch.randn(5, 2)
        gm = torch._dynamo.export(model, aten_graph=aten_graph)(x).graph_module
        held = [*gm.parameters()]
        assert len(held) == 2 and all(any(p is q for q in model.parameters()) for p in held)
        assert gm(x).shape == (5, 3) and gm(x).device == model(x).device


@pytest.mark.parametrize("strict", [True, False])
def test_export_of_meta_tensors(strict):
    with torch.device("meta"):
        model, x = Model(), torch.randn(5, 2)
    program = torch.export.export(model, (x,), strict=strict)
    assert program.module()(x).device.type == "meta"


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_compiled_meta_tensors(backend):
    with torch.device("meta"):
        model, x = Model(), torch.randn(5, 2)
    out = torch.compile(model, backend=backend, fullgraph=True)(x)
    assert out.device.type == "meta" and out.shape == (5, 3)
    out.sum().backward()
    assert model.linear.weight.grad.device.type == "meta"


def test_inputs_are_the_caller_s_own():
    def f(x):
        x.append(x[0] + 1)
        return x[-1]

    given = [torch.ones(2)]
    torch._dynamo.export(f)(given)
    assert len(given) == 2
