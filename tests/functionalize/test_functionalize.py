"""Programs with in-place writes through views give the same results when run functionally, and leave no mutation in a
trace.
"""

import pytest

import flambeau as torch
from flambeau import func
from flambeau.functionalize import functionalize
from flambeau.proxy import make_fx


def through_view(x):
    y = x.clone()
    y.view(-1).add_(1)
    return y


def through_slice(x):
    y = x * 1
    y[0].mul_(3)
    y[:, 1:].add_(10)
    return y


def through_step(x):
    y = x.clone()
    y[:, ::2].zero_()
    return y


def through_transpose(x):
    y = x.clone()
    y.t()[1].fill_(7)
    return y, y.t()


def view_sees_later_write(x):
    y = x.clone()
    v = y[1]
    y.add_(1)
    w = v * 2
    v.mul_(2)
    return y, v, w


def chain(x):
    y = x.clone()
    y.unsqueeze(0).permute(2, 1, 0)[1].squeeze(-1).sub_(5)
    return y


def setitem(x):
    y = x.clone()
    y[1] = 5.0
    y[0, :2] = x[1, :2]
    return y


def writes_input(x):
    x.add_(1)
    x[0].mul_(2)
    return x.sum()


def returns_written_input(x):
    x.t().add_(1)
    return x


PROGRAMS = [
    through_view,
    through_slice,
    through_step,
    through_transpose,
    view_sees_later_write,
    chain,
    setitem,
    writes_input,
    returns_written_input,
]


def leaves(x):
    return list(x) if isinstance(x, tuple) else [x]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_same_as_eager(program):
    x = torch.arange(6.0).reshape(2, 3)
    a, b = x.clone(), x.clone()
    expected, got = program(a), functionalize(program)(b)
    assert torch.equal(a, b)
    for e, g in zip(leaves(expected), leaves(got), strict=True):
        assert torch.equal(e, g)
    if program is returns_written_input:
        assert got is b


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_trace_has_no_mutation_but_the_last_copy(program):
    x = torch.arange(6.0).reshape(2, 3)
    gm = make_fx(functionalize(program))(x.clone())
    mutable = [n for n in gm.graph.nodes if n.op == "call_function" and n.is_impure()]
    assert all(str(n.target) == "aten.copy_.default" and n.args[0].op == "placeholder" for n in mutable), gm.code
    a, b = x.clone(), x.clone()
    expected, got = program(a), gm(b)
    assert torch.equal(a, b) and all(torch.equal(e, g) for e, g in zip(leaves(expected), leaves(got), strict=True))


def test_write_to_expanded_memory_is_an_error():
    def f(x):
        x.clone().expand(3, 2).add_(1)

    with pytest.raises(RuntimeError, match="single memory location"):
        functionalize(f)(torch.ones(2))


@pytest.mark.parametrize("view", [lambda x: x, lambda x: x.t(), lambda x: x[:, 1:], lambda x: x[0].expand(4, 3)])
def test_clone_never_shares_memory(view):
    """What keeps a value across a write is a clone."""
    x = torch.arange(6.0).reshape(2, 3)
    copy = view(x).clone()
    before = copy.tolist()
    x.zero_()
    assert copy.tolist() == before


@pytest.mark.parametrize("args", [(0, 1, 2, 1), (1, 0, 3, 2), (-1, -2, None, 1), (1, None, 1, 1), (0, 1, 1, 1)])
def test_slice_scatter(args):
    x = torch.arange(6.0).reshape(2, 3).requires_grad_(True)
    src = (-torch.ops.aten.slice.Tensor(x, *args).detach() - 1).requires_grad_(True)
    expected = x.detach().clone()
    torch.ops.aten.slice.Tensor(expected, *args).copy_(src.detach())
    out = torch.slice_scatter(x, src, *args)
    assert torch.equal(out.detach(), expected)
    (out * out).sum().backward()
    assert torch.equal(src.grad, 2 * src.detach())
    assert torch.equal(x.grad, 2 * x.detach() * (x.detach() == expected))


def of_its_own(x):
    """What a program makes itself is functional too."""
    y = torch.zeros(2, 3)
    y[0].add_(x[0])
    z = torch.ones(3)
    y[1] = z
    return y.t(), y


def in_a_loop(x):
    return torch.ops.higher_order.while_loop(lambda y: (y.sum() < 40,), lambda y: (y.clone().add_(1),), (x,), ())[0]


@pytest.mark.parametrize("remove", ["mutations", "mutations_and_views"])
@pytest.mark.parametrize("program", [*PROGRAMS, of_its_own], ids=lambda f: f.__name__)
def test_what_is_removed(program, remove):
    x = torch.arange(6.0).reshape(2, 3)
    gm = make_fx(functionalize(program, remove=remove))(x.clone())
    a, b = x.clone(), x.clone()
    expected, got = program(a), gm(b)
    assert torch.equal(a, b) and all(torch.equal(e, g) for e, g in zip(leaves(expected), leaves(got), strict=True))
    operators = [n.target for n in gm.graph.nodes if n.op == "call_function" and hasattr(n.target, "_schema")]
    written = [op for op in operators if op._schema.is_mutable]
    assert all(op is torch.ops.aten.copy_.default for op in written)
    if remove == "mutations_and_views":
        assert not any(op._schema.is_view for op in operators), gm.code


def test_another_word_for_what_is_removed_is_an_error():
    with pytest.raises(RuntimeError, match="Valid options"):
        functionalize(through_view, remove="views")


def test_bodies_of_loops_are_functional():
    x = torch.arange(6.0)
    gm = make_fx(functionalize(in_a_loop))(x)
    assert torch.equal(gm(x), in_a_loop(x)) and torch.equal(functionalize(in_a_loop)(x), in_a_loop(x))
    bodies = [m for m in gm.children()]
    assert bodies and not any(n.is_impure() for m in bodies for n in m.graph.nodes if n.op == "call_function")


@pytest.fixture
def real():
    """A tensor made before functionalization was switched on."""
    made = torch.ones(5)
    torch._enable_functionalization(reapply_views=True)
    yield made
    torch._disable_functionalization()


def test_functional_tensors(real):
    t = torch._to_functional_tensor(real)
    assert torch._is_functional_tensor(t) and not torch._is_functional_tensor(real)
    assert torch._from_functional_tensor(t) is real
    first, second = t[:2], t[:2]
    first.add_(1)
    for x in (t, first, second):
        torch._sync(x)
    held = [torch._from_functional_tensor(x) for x in (t, first, second)]
    assert [h.tolist() for h in held] == [[2, 2, 1, 1, 1], [2, 2], [2, 2]] and real.tolist() == [1] * 5
    assert len({h.untyped_storage()._cdata for h in held}) == 1  # aliases of one memory stay aliases
    assert torch._is_functional_tensor(torch.zeros(2))
    torch._freeze_functional_tensor(t)
    with pytest.raises(RuntimeError, match="frozen"):
        second.mul_(2)
    with pytest.raises(RuntimeError, match="nesting is not currently supported"):
        torch._enable_functionalization()


def cubes_in_place(x):
    y = x * 1
    y.mul_(x * x)
    y.view(-1)[1:].add_(x.reshape(-1)[1:])
    return y.sum()


def copied_into_zeros(x):
    y = torch.zeros_like(x)
    y.copy_(x * x * x)
    y[0].neg_()
    return y.sin().sum()


@pytest.mark.parametrize("program", [cubes_in_place, copied_into_zeros, lambda x: (x * x * x).sum()])
@pytest.mark.parametrize(
    "transformed",
    [
        lambda f, wrap: func.grad(wrap(f)),
        lambda f, wrap: wrap(func.grad(f)),
        lambda f, wrap: func.grad(lambda x: wrap(func.grad(f))(x).sum()),
        lambda f, wrap: func.hessian(wrap(f)),
        lambda f, wrap: func.vmap(func.grad(wrap(f))),
        lambda f, wrap: lambda x: func.jvp(wrap(f), (x,), (x,))[1],
    ],
)
@pytest.mark.parametrize("remove", ["mutations", "mutations_and_views"])
def test_derivatives_through_functionalization(program, transformed, remove):
    x = torch.tensor([[0.3, -1.2, 0.7], [1.5, 0.2, -0.4]], dtype=torch.float64)
    expected = transformed(program, lambda f: f)(x)
    assert torch.allclose(transformed(program, lambda f: functionalize(f, remove=remove))(x), expected)
    assert expected.abs().sum() > 0


def test_functionalization_keeps_the_history_of_arguments_and_of_what_is_captured():
    a, w = torch.ones(3, requires_grad=True), torch.full((3,), 2.0, requires_grad=True)
    functionalize(lambda x: (x * w).mul_(x).sum())(a).backward()
    assert a.grad.tolist() == [4.0] * 3 and w.grad.tolist() == [1.0] * 3


def test_the_backward_of_a_function_is_not_lost_in_functionalization():
    class Reversed(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return -g

    def f(x):
        return Reversed.apply(x).sum()

    assert functionalize(f)(torch.ones(2)).item() == 4
    assert functionalize(func.grad(f))(torch.ones(2)).tolist() == [-1.0, -1.0]
    with pytest.raises(RuntimeError, match="no rule for the custom autograd.Function Reversed"):
        func.grad(functionalize(f))(torch.ones(2))
