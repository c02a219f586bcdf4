"""Compiled ahead of time (with compilers that run the graphs as they are), functions and modules give eager's values
and gradients.
"""

import pytest
from flambeau.fx.experimental.proxy_tensor import make_fx

import flambeau as torch
from flambeau.aot import (
    aot_eager,
    aot_function,
    aot_module_simplified,
    default_partition,
    min_cut_rematerialization_partition,
    nop,
)
from flambeau.base import pytree
from flambeau.fx import symbolic_trace


class Spy:
    """A compiler that keeps the graphs."""

    def __init__(self):
        self.graphs = []

    def __call__(self, gm, example_inputs):
        gm.graph.lint()
        assert len(example_inputs) == len(gm.graph.find_nodes(op="placeholder"))
        for n in gm.graph.nodes:
            assert n.op in ("placeholder", "call_function", "get_attr", "output")
            if n.op == "call_function" and hasattr(n.target, "_schema"):
                assert not n.target._schema.is_mutable, n
                assert "val" in n.meta
        self.graphs.append(gm)
        return gm.forward

    def targets(self, i=0):
        return [str(n.target) for n in self.graphs[i].graph.nodes if n.op == "call_function"]


def tensor(*shape, seed=0, grad=True):
    g = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=g).requires_grad_(grad)


def check(f, *args, partition=min_cut_rematerialization_partition, **kw):
    """Values, gradients and mutations of ``f`` compiled and plain. Returns the spies on forward and backward."""
    fw, bw = Spy(), Spy()
    compiled = aot_function(f, fw, bw, partition_fn=partition)

    def run(fn):
        xs = [a.detach().clone().requires_grad_(a.requires_grad) if isinstance(a, torch.Tensor) else a for a in args]
        ins = [x * 1 if isinstance(x, torch.Tensor) and x.requires_grad and kw.get("non_leaf") else x for x in xs]
        out = fn(*ins)
        leaves = [o for o in pytree.tree_leaves(out) if isinstance(o, torch.Tensor)]
        total = sum((o * (i + 1)).sum() for i, o in enumerate(leaves) if o.requires_grad)
        if isinstance(total, torch.Tensor):
            total.backward()
        return (
            out,
            [x.grad for x in xs if isinstance(x, torch.Tensor)],
            [x.detach() for x in ins if isinstance(x, torch.Tensor)],
        )

    (o1, g1, i1), (o2, g2, i2) = run(f), run(compiled)
    assert pytree.tree_structure(o1) == pytree.tree_structure(o2)
    for a, b in zip(pytree.tree_leaves((o1, g1, i1)), pytree.tree_leaves((o2, g2, i2)), strict=True):
        if isinstance(a, torch.Tensor):
            assert a.requires_grad == b.requires_grad
            same = torch.allclose(a.detach(), b.detach(), atol=1e-5) if a.is_floating_point() else torch.equal(a, b)
            assert same, (a, b)
        else:
            assert a == b
    return fw, bw


def mlp(x, w1, b1, w2):
    h = torch.nn.functional.gelu(torch.addmm(b1, x, w1))
    return (h @ w2).sum()


CASES = [
    (lambda x: x.sin().cos(), (tensor(3),)),
    (lambda x, y: x * y + x, (tensor(2, 3), tensor(3, seed=1))),
    (lambda x, y: {"a": x @ y, "b": [x.sum(), 3]}, (tensor(2, 3), tensor(3, 4, seed=1))),
    (lambda x: (x.detach() * 2, x * 3), (tensor(3),)),
    (lambda x, y: (x * 2, (y > 0)), (tensor(3), tensor(3, seed=2, grad=False))),
    (lambda x: (x + 1).t().reshape(-1), (tensor(2, 3),)),
    (lambda x: (x, x.view(-1), x * 2), (tensor(2, 3),)),
    (lambda x: torch.softmax(x, -1) * torch.sigmoid(x), (tensor(2, 3),)),
    (mlp, (tensor(4, 3, grad=False), tensor(3, 5, seed=1), tensor(5, seed=2), tensor(5, 2, seed=3))),
]


@pytest.mark.parametrize("partition", [default_partition, min_cut_rematerialization_partition])
@pytest.mark.parametrize(("f", "args"), CASES)
def test_same_as_eager(f, args, partition):
    check(f, *args, partition=partition)
    check(f, *[a.detach() for a in args])


def in_place_on_intermediate(x):
    y = x * 2
    y.add_(1)
    y[0].mul_(3)
    return y


def writes_buffer(x, buffer):
    buffer.mul_(0.9).add_(x.detach().sum() * 0.1)
    return x * buffer


def returns_view_of_written(x, buffer):
    buffer.add_(1)
    return x * 2, buffer, buffer[0]


@pytest.mark.parametrize(
    ("f", "args"),
    [
        (in_place_on_intermediate, (tensor(2, 3),)),
        (writes_buffer, (tensor(3), tensor(3, seed=1, grad=False))),
        (returns_view_of_written, (tensor(3), tensor(2, 3, seed=1, grad=False))),
    ],
)
def test_mutation(f, args):
    check(f, *args)
    check(f, *[a.detach() for a in args])


def test_write_to_an_input_that_carries_a_gradient():
    def f(x):
        x.mul_(2)
        return x.sin()

    check(f, tensor(3), non_leaf=True)


def test_views_of_inputs_share_their_memory():
    compiled = aot_function(lambda x: (x, x[1], x + 1), nop)
    x = tensor(2, 3, grad=False)
    same, view, fresh = compiled(x)
    assert same is x
    view.zero_()
    assert x[1].sum().item() == 0 and torch.equal(fresh[0], x[0] + 1)


def test_one_node_in_the_autograd_graph():
    x = tensor(3)
    out = aot_function(lambda x: x.sin().cos() * 2, nop)(x)
    assert type(out.grad_fn).__name__ == "CompiledFunctionBackward"


def test_same_tensor_passed_twice():
    x = tensor(3)
    compiled = aot_function(lambda a, b: (a * b).sum(), nop)
    compiled(x, x).backward()
    assert torch.allclose(x.grad, 2 * x.detach())
    y = tensor(3, seed=1)
    x.grad = None
    compiled(x, y).backward()
    assert torch.allclose(x.grad, y.detach())


def test_second_derivative():
    def f(x, y):
        return (x.sin() * y).sum()

    for fn in (f, aot_function(f, nop)):
        x, y = tensor(3), tensor(3, seed=1)
        (g,) = torch.autograd.grad(fn(x, y), [x], create_graph=True)
        (gx, gy) = torch.autograd.grad(g.sum(), [x, y])
        assert torch.allclose(gx, -(x.sin() * y).detach(), atol=1e-6)
        assert torch.allclose(gy, x.cos().detach(), atol=1e-6)


def test_forward_without_gradients_is_not_joint():
    fw, bw = Spy(), Spy()
    compiled = aot_function(lambda x: x * 2, fw, bw)
    with torch.no_grad():
        assert not compiled(tensor(3)).requires_grad
    assert len(fw.graphs) == 1 and not bw.graphs


def test_compiled_graph_without_epilogue_is_called_directly():
    gm = symbolic_trace(lambda x: (x * 2,))
    made = []

    def compiler(graph, inputs):
        made.append(graph.forward)
        return made[0]

    assert aot_module_simplified(gm, [torch.ones(2)], fw_compiler=compiler) is made[0]


def test_explicit_composites_stay_whole():
    fw, bw = check(
        lambda x, w, b: torch.nn.functional.layer_norm(x, (4,), w, b).sum(), tensor(3, 4), tensor(4), tensor(4)
    )
    assert "aten.native_layer_norm.default" in fw.targets()
    assert "aten.native_layer_norm_backward.default" in bw.targets()


def test_what_only_normalises_is_its_parts():
    """The normalised tensor is made again in the backward, from what is small beside it."""
    fw, _ = check(lambda x: torch.nn.functional.layer_norm(x, (4,)).sum(), tensor(3, 4))
    assert "aten.rsqrt.default" in fw.targets() and "aten.native_layer_norm.default" not in fw.targets()


def test_recompiles_for_other_shapes():
    fw = Spy()
    compiled = aot_function(lambda x: x + 1, fw)
    compiled(torch.ones(2))
    compiled(torch.zeros(2))
    compiled(torch.ones(3))
    assert len(fw.graphs) == 2


def test_captured_module_with_parameters():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a = torch.nn.Linear(3, 4)
            self.b = torch.nn.Linear(4, 2)

        def forward(self, x):
            return (self.b(torch.relu(self.a(x))),)

    torch.manual_seed(0)
    net = Net()
    x = tensor(5, 3, grad=False)
    compiled = aot_eager(symbolic_trace(net), [x])
    (out,) = compiled(x)
    assert torch.allclose(out, net(x)[0])
    out.sum().backward()
    grads = [p.grad for p in net.parameters()]
    for p in net.parameters():
        p.grad = None
    net(x)[0].sum().backward()
    assert all(torch.allclose(g, p.grad) for g, p in zip(grads, net.parameters()))


def test_min_cut_saves_less_than_default():
    def saved(partition):
        fw, _ = check(lambda w: w.sin().cos().exp().tanh().sum(), tensor(16, 16), partition=partition)
        return len(fw.graphs[0].graph.output_node().args[0]) - 1

    assert saved(min_cut_rematerialization_partition) == 1 < saved(default_partition)


def test_shared_memory_of_a_written_input_is_refused():
    base = torch.zeros(2, 2)
    with pytest.raises(RuntimeError, match="shares its memory"):
        aot_function(lambda a, b: a.add_(1) + b, nop)(base[0], base)


def test_operators_that_draw_carry_the_tag():
    """Merging equal nodes and recomputing rely on it."""
    aten = torch.ops.aten
    ops = [o for name in dir(aten) for o in getattr(aten, name)._overloads.values()]
    random = {o._opname for o in ops if o.kind == "random"} | {"rand_like", "randn_like", "bernoulli"}
    for o in ops:
        if o.kind == "composite" and not o.definition.implicit and random & set(o.definition.fn.__code__.co_names):
            assert "nondeterministic_seeded" in o.tags, o


def test_random_draws_are_not_merged_and_not_repeated():
    def f(x):
        return torch.nn.functional.dropout(x, 0.5), torch.nn.functional.dropout(x, 0.5)

    fw, bw = Spy(), Spy()
    x = torch.ones(1000, requires_grad=True)
    torch.manual_seed(0)
    expected = f(x)
    torch.manual_seed(0)
    a, b = aot_function(f, fw, bw, partition_fn=min_cut_rematerialization_partition)(x)
    assert torch.equal(a, expected[0]) and torch.equal(b, expected[1]) and not torch.equal(a, b)
    (a.sum() + b.sum()).backward()
    assert torch.equal(x.grad, (a + b).detach())
    assert not any("drop" in t or "rand" in t for t in bw.targets())


def test_second_derivative_of_random_draws_is_refused():
    x = torch.ones(4, requires_grad=True)
    out = aot_function(lambda x: torch.nn.functional.dropout(x * x, 0.5).sum(), nop)(x)
    with pytest.raises(RuntimeError, match="random"):
        torch.autograd.grad(out, [x], create_graph=True)


def test_hooks_inside_are_part_of_the_graph():
    def f(x):
        z = x * 2
        z.register_hook(lambda g: g * 10)
        return z.sum()

    x = tensor(3)
    aot_function(f, nop)(x).backward()
    assert torch.equal(x.grad, torch.full((3,), 20.0))


def test_autograd_function_inside():
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * 3 * x

    x = tensor(3)
    aot_function(lambda x: Square.apply(x).sum(), nop)(x).backward()
    assert torch.allclose(x.grad, 3 * x.detach())


def test_saved_input_changed_before_backward_is_an_error():
    x, w = tensor(3), tensor(3, seed=1, grad=False)
    out = aot_function(lambda x, w: (x * w).sum(), nop)(x, w)
    w.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()


def test_backward_twice_is_an_error_without_retain_graph():
    x = tensor(3)
    out = aot_function(lambda x: x.sin().sum(), nop)(x)
    out.backward(retain_graph=True)
    out.backward()
    assert torch.allclose(x.grad, 2 * x.cos().detach())
    with pytest.raises(RuntimeError, match="second time"):
        out.backward()


def test_modes_of_the_caller_see_the_run_and_not_the_trace():
    from flambeau.core.modes import TorchDispatchMode

    class Log(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.seen = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.seen.append(str(func))
            return func(*args, **(kwargs or {}))

    compiled, x = aot_function(lambda x: x.sin() + 1, nop), torch.ones(2)
    with Log() as log:
        compiled(x)
    assert log.seen == ["aten.sin.default", "aten.add.Tensor"]


def test_gradients_taken_inside():
    def f(x):
        return torch.autograd.grad((x * x).sum(), [x])[0]

    x = tensor(3)
    out = aot_function(f, nop)(x)
    assert torch.allclose(out, 2 * x.detach()) and not out.requires_grad


def test_write_to_a_leaf_that_requires_grad_is_an_error():
    x = tensor(3)
    with pytest.raises(RuntimeError, match="leaf Variable"):
        aot_function(lambda x: x.add_(1).sum(), nop)(x)


def test_optimizer_step_writes_parameters():
    def step(p, g):
        with torch.no_grad():
            p.sub_(g * 0.1)
        return p.sum()

    p, g = tensor(3), tensor(3, seed=1, grad=False)
    expected = p.detach() - g * 0.1
    out = aot_function(step, nop)(p, g)
    assert p.requires_grad and p.is_leaf and torch.allclose(p.detach(), expected)
    out.backward()
    assert torch.equal(p.grad, torch.ones(3))


def test_joint_graph_called_without_grad():
    gm = symbolic_trace(lambda x: (x.sin() * 2,))
    x = tensor(3)
    compiled = aot_eager(gm, [x])
    with torch.no_grad():
        out = compiled(x)
    assert isinstance(out, tuple) and len(out) == 1 and not out[0].requires_grad
    assert compiled(x)[0].requires_grad


@pytest.mark.parametrize(
    "f",
    [
        lambda x: (lambda y: (y, y.t(), y[0]))(x * 2),
        lambda x: (lambda y: (y[0][1:], y.view(-1), y))(x * 2),
        lambda x: (lambda y: (y.detach(), y))(x * 2),
        lambda x: (lambda y: (y, y.view(-1).add_(1)))(x * 2),
    ],
)
@pytest.mark.parametrize("grad", [True, False])
def test_outputs_that_share_memory(f, grad):
    check(f, tensor(2, 3, grad=grad))
    compiled, x = aot_function(f, nop), tensor(2, 3, grad=False)
    expected, got = f(x), compiled(x)
    for outs in (expected, got):
        outs[0].zero_()
    assert all(torch.equal(a, b) for a, b in zip(expected, got, strict=True))


def test_view_made_without_grad_carries_none():
    def f(x):
        y = x * 2
        with torch.no_grad():
            return y, y[0], x[1]

    x = tensor(2, 3)
    assert [o.requires_grad for o in aot_function(f, nop)(x)] == [o.requires_grad for o in f(x)] == [True, False, False]


def test_gradient_of_a_transposed_output():
    check(lambda x: (x.sin() * 2).t(), tensor(2, 3))
    seen = []

    def backward(gm, inputs):
        seen.append(inputs[-1])
        return gm.forward

    x = tensor(2, 3)
    out = aot_function(lambda x: (x.sin() * 2).t() * 1, nop, backward)(x)
    (out * torch.arange(6.0).reshape(3, 2)).sum().backward()
    assert seen[0].is_contiguous() and torch.allclose(
        x.grad, 2 * x.cos().detach() * torch.arange(6.0).reshape(3, 2).t()
    )


def test_view_returned_after_its_base_was_written():
    def f(x):
        y = x * 1
        v = y.reshape(-1)
        y[0].mul_(2)
        return v

    check(f, tensor(2, 3))
    x = tensor(2, 3)
    (g,) = torch.autograd.grad(f(x), x, torch.ones(6))
    assert g.tolist() == [[2.0] * 3, [1.0] * 3]


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_a_result_given_by_out_is_a_view_of_the_input(backend):
    def f(a, b):
        return torch.mul(a, b, out=b.detach()), torch.sort(a, out=(a.view(3), torch.zeros(3, dtype=torch.int64)))

    a, b = torch.tensor([3.0, 1, 2]), torch.ones(3) * 3
    product, (ordered, _) = torch.compile(f, backend=backend)(a, b)
    assert b.tolist() == [9, 3, 6] and a.tolist() == [1, 2, 3]
    product.zero_()
    ordered.zero_()
    assert not b.any() and not a.any()


def test_a_masked_scatter_is_differentiated_in_a_graph():
    def f(x, source):
        return torch.masked_scatter(x, x > 2, source).mul(torch.arange(6.0).view(2, 3)).sum()

    x, source = torch.arange(6.0).view(2, 3).requires_grad_(), torch.ones(8, requires_grad=True)
    got = torch.autograd.grad(torch.compile(f, backend="aot_eager", fullgraph=True)(x, source), (x, source))
    assert got[0].tolist() == [[0, 1, 2], [0, 0, 0]] and got[1].tolist() == [3, 4, 5, 0, 0, 0, 0, 0]


def made_of_a_list(x):
    c = torch.tensor([1, 2, 3])
    return c, x + c, torch.tensor([[4, 5]])[0]


@pytest.mark.parametrize("how", ["aot_eager", "inductor", "make_fx", "export"])
def test_tensors_made_of_lists_are_new_at_each_call(how):
    class Module(torch.nn.Module):
        def forward(self, x):
            return made_of_a_list(x)

    x = torch.ones(3)
    if how == "make_fx":
        f = make_fx(made_of_a_list)(x)
    elif how == "export":
        f = torch.export.export(Module(), (x,)).module()
    else:
        f = torch.compile(made_of_a_list, backend=how)
    for _ in range(3):
        out = f(x)
        assert [t.tolist() for t in out] == [[1, 2, 3], [2, 3, 4], [4, 5]]
        for t in out:
            t.fill_(7)
