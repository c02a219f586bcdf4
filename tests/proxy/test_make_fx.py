"""make_fx records what runs; what it returns computes the same, at other values and (symbolic) other sizes."""

import math

import pytest

import flambeau as torch
from flambeau.aot import control_flow
from flambeau.proxy import make_fx


def targets(gm):
    return [str(n.target) for n in gm.graph.nodes if n.op == "call_function"]


def test_same_tensor_is_the_same_node_and_factories_are_recorded():
    gm = make_fx(lambda p: torch.sin(p) * p + torch.ones(3))(torch.randn(3))
    assert targets(gm) == ["aten.sin.default", "aten.mul.Tensor", "aten.ones.default", "aten.add.Tensor"]
    p = gm.graph.find_nodes(op="placeholder")
    mul = gm.graph.find_nodes(op="call_function", target=torch.ops.aten.mul.Tensor)[0]
    assert len(p) == 1 and p[0].name == "p_1" and mul.args[1] is p[0] and mul.name == "mul"
    gm.graph.lint()


def nested(d, pair):
    return {"sum": d["a"] + pair[0], "list": [pair[1], 3]}


@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
@pytest.mark.parametrize(
    ("f", "args"),
    [
        (lambda x: x * 2 + 1, (torch.arange(6.0),)),
        (lambda x, y: (x @ y, x.sum()), (torch.ones(2, 3), torch.ones(3, 4))),
        (lambda x: x.t().contiguous(), (torch.arange(6.0).reshape(2, 3),)),
        (lambda x: torch.relu(x).neg(), (torch.arange(4.0) - 2,)),
        (nested, ({"a": torch.ones(3)}, (torch.ones(3), torch.zeros(3)))),
    ],
)
def test_traced_equals_plain(mode, f, args):
    gm = make_fx(f, tracing_mode=mode)(*args)
    gm.graph.lint()
    got, expected = gm(*args), f(*args)
    from flambeau.base import pytree

    a, b = pytree.tree_leaves(got), pytree.tree_leaves(expected)
    assert pytree.tree_structure(got) == pytree.tree_structure(expected)
    assert all(torch.equal(x, y) if isinstance(x, torch.Tensor) else x == y for x, y in zip(a, b))
    for n in gm.graph.nodes:
        if n.op == "call_function":
            assert "val" in n.meta, n


def test_constants_are_lifted():
    c = torch.tensor([1.0, 2.0])
    gm = make_fx(lambda x: x + c)(torch.ones(2))
    (node,) = gm.graph.find_nodes(op="get_attr")
    assert getattr(gm, node.target) is c
    assert torch.equal(gm(torch.zeros(2)), c)


def test_in_place_operators_rename_what_they_write():
    def f(x):
        y = x.clone()
        y.add_(1)
        return y * 2

    gm = make_fx(f)(torch.ones(2))
    assert targets(gm) == ["aten.clone.default", "aten.add_.Tensor", "aten.mul.Tensor"]
    mul = [n for n in gm.graph.nodes if "mul" in n.name][0]
    assert mul.args[0].name == "add_"
    assert torch.equal(gm(torch.zeros(2)), torch.full((2,), 2.0))


def test_decompositions_replace_operators():
    table = {torch.ops.aten.neg.default: lambda x: x * -1}
    gm = make_fx(lambda x: -x, decomposition_table=table)(torch.ones(2))
    assert targets(gm) == ["aten.mul.Tensor"]


def test_backward_is_recorded():
    def f(x, y):
        loss = (x * y).sum()
        return torch.autograd.grad(loss, [x])[0]

    x, y = torch.ones(3, requires_grad=True), torch.arange(3.0)
    gm = make_fx(f, tracing_mode="fake")(x, y)
    assert torch.equal(gm(x.detach(), y), y)


@pytest.mark.parametrize("mode", ["real", "fake"])
def test_values_of_traced_tensors_are_refused(mode):
    with pytest.raises(RuntimeError, match="value"):
        make_fx(lambda x: x * (2 if x.sum().item() > 0 else 3), tracing_mode=mode)(torch.ones(2))


@pytest.mark.parametrize(
    ("f", "shape", "other"),
    [
        (lambda p: p + p, (5,), (7,)),
        (lambda p: p.reshape(p.shape[1], p.shape[0]), (2, 3), (5, 4)),
        (lambda p: p * torch.ones(p.shape[0] + 1)[1:], (3,), (8,)),
        (lambda p: p.reshape(p.shape[0] * p.shape[1]), (2, 3), (5, 4)),
        (lambda p: p / p.shape[0], (4,), (9,)),
        (lambda p: p / p.shape[0] ** 0.5, (4,), (9,)),
        (lambda p: p * (3 / p.shape[0]), (4,), (9,)),
        (lambda p: p.mean() + p.shape[0], (4,), (9,)),
        (lambda p: p * torch.tensor([1.0, 2.0]).mul(3).shape[0], (3, 2), (5, 4)),  # a constant's sizes are its own
    ],
)
def test_symbolic_graphs_hold_at_other_sizes(f, shape, other):
    gm = make_fx(f, tracing_mode="symbolic")(torch.ones(*shape))
    x = torch.arange(float(torch.ones(*other).numel())).reshape(other)
    assert torch.allclose(gm(x), f(x), rtol=1e-7)


@pytest.mark.parametrize(
    ("f", "guard"),
    [
        (lambda p: p + 1 if p.shape[0] > 100 else p - 1, "s0 <= 100"),
        (lambda p: p + torch.ones(3), "s0 == 3"),
        (lambda p: p * math.sin(p.shape[0]), "s0 == 3"),
        (lambda p: torch.stack([p + i for i in range(min(p.shape[0], 5))]), "s0 <= 5"),
        (lambda p: p.view(3, -1), "(s0 % 3) == 0"),
    ],
)
def test_symbolic_tracing_never_specialises_silently(f, guard):
    gm = make_fx(f, tracing_mode="symbolic")(torch.ones(3))
    first = gm.shape_env.guards[0]
    assert str(first.relation) == guard and "test_make_fx.py" in first.line.file


def test_sizes_are_nodes_when_they_are_used():
    gm = make_fx(lambda x, n: x.expand(n, *x.shape) * x.shape[0], tracing_mode="symbolic")(torch.ones(4, 6), 3)
    assert [str(n.target) for n in gm.graph.nodes if n.op == "call_function"] == [
        "aten.sym_size.int",
        "aten.sym_size.int",
        "aten.expand.default",
        "aten.mul.Tensor",
    ]
    assert gm(torch.ones(2, 3), 5).shape == (5, 2, 3) and gm(torch.ones(2, 3), 5)[0, 0, 0] == 2
    plain = make_fx(lambda x: x * 2, tracing_mode="symbolic")(torch.ones(4, 6))
    assert len(plain.graph.nodes) == 3 and str(plain.graph.find_nodes(op="placeholder")[0].meta["val"].shape[0]) == "s0"


def _first_of(x):
    n = x.sum().int().item()
    torch._check(n >= 2)
    torch._check(n <= x.shape[0])
    return x[:n], x[x > 0] * 2, x.nonzero().sum(0), torch.repeat_interleave(x.long(), x.long()).sum()


def test_sizes_that_depend_on_data():
    gm = make_fx(_first_of, tracing_mode="symbolic")(torch.ones(4))
    x = torch.tensor([1.0, 0, 2, 0, 1])
    assert all(torch.equal(a, b) for a, b in zip(gm(x), _first_of(x)))
    with pytest.raises(RuntimeError, match="u0 >= 2"):
        gm(x - 2)


def test_a_question_about_data_names_the_line_and_the_check():
    def f(x):
        return x + 1 if x.sum().long().item() > 3 else x

    with pytest.raises(RuntimeError, match=r"(?s)u0 >= 4.*test_make_fx.py.*torch._check\(u0 >= 4\)"):
        make_fx(f, tracing_mode="symbolic")(torch.ones(3))


def mapped_gradients(xs, y):
    out = control_flow.map(lambda x, y: x * y, xs, y)
    return torch.autograd.grad(out, (xs, y), torch.ones_like(out))


@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
def test_gradients_of_what_map_reads_beside_its_slices(mode):
    def example(n):
        return (torch.arange(2.0 * n).reshape(n, 2) + 1).requires_grad_(), torch.tensor([3.0, 5.0], requires_grad=True)

    gm = make_fx(mapped_gradients, tracing_mode=mode)(*example(3))
    n = 4 if mode == "symbolic" else 3
    for got, expected in zip(gm(*example(n)), mapped_gradients(*example(n)), strict=True):
        assert torch.equal(got, expected)


def test_pre_dispatch_keeps_composites_and_grad_modes():
    def f(a, b):
        c = torch.matmul(a, b)
        with torch.no_grad():
            d = c.sin()
        return c + d

    a, b = torch.ones(2, 3, requires_grad=True), torch.ones(3, 2)
    gm = make_fx(f, pre_dispatch=True)(a, b)
    names = [n.target.__name__ for n in gm.graph.nodes if n.op == "call_function"]
    assert names == ["matmul.default", "_set_grad_enabled", "sin.default", "_set_grad_enabled", "add.Tensor"]
    x, y = torch.ones(2, 3, requires_grad=True), torch.ones(2, 3, requires_grad=True)
    f(x, b).sum().backward()
    gm(y, b).sum().backward()
    assert torch.equal(x.grad, y.grad) and torch.is_grad_enabled()


def written_constant():
    x = torch.tensor(1.0)
    x.add_(2)
    return torch.full((2,), x)


def drawn_constant():
    x = torch.tensor([2.0])
    x.normal_()
    return bool(x.item() == 2.1)


@pytest.mark.parametrize("mode", ["real", "fake"])
def test_numbers_of_constants(mode):
    assert make_fx(written_constant, tracing_mode=mode)()().tolist() == [3.0, 3.0]
    part = make_fx(lambda: torch.unbind(torch.tensor([2]), 0)[0].item(), tracing_mode=mode)()
    assert part() == 2
    with pytest.raises(RuntimeError, match="data-dependent"):
        make_fx(drawn_constant, tracing_mode=mode)()


def test_numbers_of_inputs_are_kept_where_that_is_asked_for():
    f = lambda x: x * x.item()  # noqa: E731
    with pytest.raises(RuntimeError, match="data-dependent"):
        make_fx(f)(torch.tensor(3.0))
    gm = make_fx(f, _error_on_data_dependent_ops=False)(torch.tensor(3.0))
    assert gm(torch.tensor(2.0)).item() == 6.0


def test_a_trace_within_a_trace_is_its_own():
    inner = []

    def f(x):
        inner.append(make_fx(lambda y: y.sin())(x))
        return x.cos()

    outer = make_fx(f)(torch.ones(2))
    assert [n.target.__name__ for n in outer.graph.nodes if n.op == "call_function"] == ["cos.default"]
    assert [n.target.__name__ for n in inner[0].graph.nodes if n.op == "call_function"] == ["sin.default"]


@pytest.mark.parametrize("mode", ["fake", "symbolic"])
def test_allclose_depends_on_data(mode):
    with pytest.raises(torch._subclasses.fake_tensor.DataDependentOutputException, match="aten.allclose.default"):
        make_fx(lambda a, b: torch.allclose(a, b), tracing_mode=mode)(torch.zeros(3), torch.zeros(3))


def test_sizes_are_operands_of_functions():
    graph = make_fx(lambda x, n: torch.add(x.size(0), n), tracing_mode="symbolic")(torch.rand(3, 2), 2.0).graph
    assert torch.ops.aten.add.Tensor in [n.target for n in graph.nodes]


@pytest.mark.parametrize("mode", ["symbolic", "fake"])
@pytest.mark.parametrize(
    "change", [lambda t: t.resize_(20), lambda t: t.resize_as_(torch.ones(20)), lambda t: t.set_(t.new_ones(20))]
)
def test_tensors_with_data_keep_their_shape_in_a_trace(mode, change):
    """A method that is no operator would be done once, and the graph would not do it."""
    held = torch.ones(4, 5)

    def f(x):
        change(held)
        return x.sum() + held.sum(0).sum()

    with pytest.raises(AssertionError, match="metadata mutating ops on non-Fake"):
        make_fx(f, tracing_mode=mode, _allow_non_fake_inputs=True)(torch.ones(2))
    assert held.shape == (4, 5)
