"""torch.export: one graph gives what the program gives, for every size the specification allows; what it says about the program."""

import collections

import pytest
from exported_programs import PROGRAMS, Stateful, same

import flambeau as torch
from flambeau import nn
from flambeau.export import Dim, export
from flambeau.export.graph_signature import InputKind, OutputKind

B = Dim("b")


@pytest.mark.parametrize("strict", [False, True], ids=["traced", "captured first"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name, strict):
    make, example, spec, others = PROGRAMS[name]
    torch.manual_seed(0)
    program = make()
    ep = export(program, example(), dynamic_shapes=spec, strict=strict)
    ep.validate()
    for e in (ep, ep.run_decompositions()):
        run = e.module()
        for args in (example(), *others()):
            assert same(program(*args), run(*args))


def test_signature():
    m = Stateful()
    args = (torch.ones(5, 4), {"a": torch.ones(5, 3)})
    ep = export(m, args, {"k": 3}, dynamic_shapes={"x": {0: Dim("b", max=64)}, "y": {"a": {0: Dim.AUTO}}, "k": None})
    assert [o.kind for o in ep.graph_signature.output_specs] == [
        OutputKind.USER_OUTPUT
    ] * 3  # the graph writes the buffer
    s = ep.run_decompositions().graph_signature
    assert s.parameters == ("l.weight", "l.bias") and s.buffers == ("count", "scale")
    assert s.non_persistent_buffers == {"scale"} and s.lifted_tensor_constants == ("c",)
    assert s.inputs_to_parameters == {"p_l_weight": "l.weight", "p_l_bias": "l.bias"}
    assert list(s.buffers_to_mutate.values()) == ["count"] and s.user_inputs == ("x", "y_a", 3)
    assert [i.kind for i in s.input_specs].count(InputKind.USER_INPUT) == 3
    assert [o.kind for o in s.output_specs] == [OutputKind.BUFFER_MUTATION] + [OutputKind.USER_OUTPUT] * 3
    (r,) = ep.range_constraints.values()
    assert (r.lower, r.upper) == (0, 64)
    assert list(ep.state_dict) == ["l.weight", "l.bias", "count"] and set(ep.constants) == {"scale", "c"}
    run = ep.module()
    out = run(torch.ones(7, 4), {"a": torch.zeros(7, 3)}, k=3)
    assert list(out) == ["z", "x", "n"] and out["n"] == 7
    assert m.count.tolist() == [1, 1, 1]  # the export wrote nothing, the call of its module did


def test_gradients_reach_the_parameters():
    m = nn.Linear(4, 3)
    run = export(m, (torch.ones(5, 4),), dynamic_shapes=({0: B},)).module()
    run(torch.ones(2, 4)).sum().backward()
    assert run.weight is m.weight and m.weight.grad.tolist() == [[2.0] * 4] * 3


def test_inputs_that_are_written():
    ep = export(lambda x, y: (x.add_(y), x * 2)[1], (torch.ones(3), torch.ones(3)), dynamic_shapes=({0: B}, {0: B}))
    functional = ep.run_decompositions()
    assert not ep.graph_signature.user_inputs_to_mutate
    assert list(functional.graph_signature.user_inputs_to_mutate.values()) == ["x"]
    for e in (ep, functional):
        x = torch.zeros(2)
        assert e.module()(x, torch.ones(2)).tolist() == [2, 2] and x.tolist() == [1, 1]
    assert ep.module()(x, x).tolist() == [4, 4]
    with pytest.raises(ValueError, match="shares its memory"):
        functional.module()(x, x)


def test_a_compiled_module_of_a_program():
    run = export(nn.Linear(4, 3), (torch.ones(5, 4),), dynamic_shapes=({0: Dim("b", max=8)},)).module()
    f = torch.compile(run, fullgraph=True)
    for n in (2, 5, 7):
        assert torch.allclose(f(torch.ones(n, 4)), run(torch.ones(n, 4)), atol=1e-6)
    with pytest.raises((AssertionError, torch._dynamo.exc.Unsupported), match="Guard failed"):
        f(torch.ones(9, 4))


def test_decompositions():
    ep = export(lambda x: torch.nn.functional.gelu(x), (torch.ones(3, 4),), dynamic_shapes=({0: B},))
    aten = torch.ops.aten
    made = ep.run_decompositions({aten.gelu.default: lambda x, approximate="none": x * torch.sigmoid(1.702 * x)})
    assert not any(n.target is aten.gelu.default for n in made.graph.nodes)
    assert any(n.target is aten.gelu.default for n in ep.graph.nodes)
    x = torch.randn(6, 4)
    assert torch.allclose(made.module()(x), x * torch.sigmoid(1.702 * x))


def test_is_exporting():
    seen = []

    def f(x):
        seen.append((torch.compiler.is_exporting(), torch.compiler.is_compiling()))
        return x + 1

    export(f, (torch.ones(2),))
    assert seen == [(True, True)] and not torch.compiler.is_exporting()


def test_structures():
    Point = collections.namedtuple("Point", "x y")
    p = Point(torch.ones(2), torch.zeros(2))
    ep = export(lambda p, d: Point(p.y, d["b"] * 2), (p, {"b": torch.ones(2), "a": 1}))
    out = ep.module()(p, {"a": 1, "b": torch.ones(2)})
    assert type(out) is Point and out.y.tolist() == [2, 2]
    with pytest.raises(ValueError, match="exported input tree spec"):
        ep.module()(tuple(p), {"b": torch.ones(2), "a": 1})


def test_what_an_export_refuses():
    x = torch.ones(3)
    with pytest.raises(torch._dynamo.exc.UserError, match="to be a tuple"):
        export(lambda x: x, x)
    with pytest.raises(torch._dynamo.exc.UserError, match="returns tensors"):
        export(lambda x: object(), (x,))
    with pytest.raises(torch._dynamo.exc.Unsupported, match="graph_break"):
        export(lambda x: (torch._dynamo.graph_break(), x + 1)[1], (x,), strict=True)
    with pytest.raises(NotImplementedError):
        torch.export.draft_export(lambda x: x, (x,))


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(
    ("program", "expression"),
    [
        (lambda x: x + 1 if x.sum().item() > 0 else x, "zuf0 > 0"),
        (lambda x: x + 1 if x.nonzero().shape[0] > 3 else x, "u0 >= 4"),
        (lambda x: torch.zeros(3) if x.any().item() else x, "u0"),
    ],
)
def test_decisions_on_data_name_expression_line_and_check(program, expression, strict):
    with pytest.raises(RuntimeError) as e:
        export(program, (torch.ones(6),), strict=strict)
    text = str(e.value)
    assert expression in text and "test_export.py" in text and "torch._check(" in text


def test_composites_that_a_table_keeps():
    aten = torch.ops.aten
    m, x = (
        nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.BatchNorm1d(4), nn.Flatten(), nn.Dropout(0.5)),
        torch.randn(3, 4),
    )
    ep = export(m, (x,))
    asked = [
        aten.linear.default,
        aten.layer_norm.default,
        aten.batch_norm.default,
        aten.flatten.using_ints,
        aten.dropout.default,
    ]

    def found(program):
        return [op for op in asked if any(n.target is op for n in program.graph.nodes)]

    assert found(ep) == asked and found(ep.run_decompositions()) == []
    # One that may write or give back what it is given can't stay in a graph without writes.
    kept = [aten.linear.default, aten.layer_norm.default, aten.dropout.default]
    assert found(ep.run_decompositions({})) == kept
    table = torch.export.default_decompositions()
    del table[aten.linear.default]
    assert found(ep.run_decompositions(table)) == kept[:1]
    m.eval()
    m[2].reset_running_stats()
    stays = export(m, (x,)).run_decompositions({}).module()
    assert torch.allclose(stays(x), m(x), atol=1e-6)


def test_gradients_stop_where_the_program_stops_them():
    class Partly(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)

        def forward(self, x):
            with torch.no_grad():
                y = self.a(x)
            return self.b(x) + y

    m, x = Partly(), torch.randn(2, 3)
    ep = export(m, (x,))
    for e in (ep, ep.run_decompositions()):
        run = e.module()
        run(x).sum().backward()
        assert run.a.weight.grad is None and run.b.weight.grad is not None
        with torch.no_grad():
            assert not run(x).requires_grad
