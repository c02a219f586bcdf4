"""Functions that write their arguments, second derivatives through writes to views, and checkpoints: gradients against those without."""

import warnings

import pytest

import flambeau as torch
from flambeau.autograd import Function
from flambeau.autograd import forward_ad as fw
from flambeau.utils.checkpoint import checkpoint, set_checkpoint_early_stop


class AddInto(Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.mark_dirty(x)
        return x.add_(y)

    @staticmethod
    def backward(ctx, grad):
        return grad, grad * 3


class Twice(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        x.mul_(2)
        return x, x.clone()

    @staticmethod
    def backward(ctx, a, b):
        return 2 * (a + b)


def columns(root, b):
    x = root.clone()
    AddInto.apply(x.narrow(1, 2, 2).narrow(0, 1, 2), b)
    AddInto.apply(x.narrow(1, 0, 2).narrow(0, 1, 2), b)
    return x.sin()


def without_history(root, b):
    x = root.detach().clone()
    AddInto.apply(x[1:3, 1:3], b)
    return x * 2


def row_twice(root, b):
    x = root.clone()
    y = AddInto.apply(x[1:3].t()[:2], b)
    return y.sum() + (x * x).sum()


PROGRAMS = [columns, without_history, row_twice]


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_function_that_writes_a_view_is_in_its_roots_history(program):
    root = torch.randn(4, 4, dtype=torch.float64, requires_grad=True)
    b = torch.randn(2, 2, dtype=torch.float64, requires_grad=True)
    got = torch.autograd.grad(program(root, b).sum(), (root, b), allow_unused=True)
    AddInto.backward, kept = staticmethod(lambda ctx, grad: (grad, grad)), AddInto.backward
    try:
        asked = (root, b) if got[0] is not None else (b,)
        rest = (lambda b: program(root, b)) if got[0] is None else program
        assert torch.autograd.gradcheck(rest, asked) and torch.autograd.gradgradcheck(rest, asked)
        plain = torch.autograd.grad(program(root, b).sum(), (root, b), allow_unused=True)
    finally:
        AddInto.backward = staticmethod(kept)
    # The backward that is written is the one that runs: it triples the gradient of ``b``.
    assert torch.allclose(got[1], plain[1] * 3)


def test_what_a_function_may_not_write():
    leaf = torch.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable"):
        AddInto.apply(leaf[:2], torch.ones(2))
    with pytest.raises(RuntimeError, match="cannot return more than one Tensor"):
        Twice.apply(leaf.clone()[:2])


def test_second_derivative_through_a_write_to_a_view():
    x = torch.tensor([1.0, -1.0, 2.0], dtype=torch.float64, requires_grad=True)

    def program(x):
        t = (x * 3).view(3)
        return t.relu_().pow(3)

    (g,) = torch.autograd.grad(program(x).sum(), x, create_graph=True)
    (gg,) = torch.autograd.grad(g.sum(), x)
    assert torch.allclose(gg, torch.tensor([162.0, 0.0, 324.0], dtype=torch.float64))


class Doubled(Function):
    how = "in place"

    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def jvp(ctx, tangent):
        return {
            "in place": tangent.mul_,
            "beside": tangent.mul,
            "not at all": lambda n: tangent,
        }[Doubled.how](2)


class Part(Function):
    how = "view"

    @staticmethod
    def forward(ctx, x):
        return x[:2]

    @staticmethod
    def jvp(ctx, tangent):
        return {"view": lambda: tangent[:2], "copy": lambda: tangent[:2].clone(), "other": lambda: tangent.clone()[:2]}[
            Part.how
        ]()


@pytest.mark.parametrize(
    "cls, how, message",
    [
        (Doubled, "in place", None),
        (Doubled, "beside", "modify the corresponding gradient inplace"),
        (Doubled, "not at all", "modify the corresponding gradient inplace"),
        (Part, "view", None),
        (Part, "copy", "jvp is not returning a view"),
        (Part, "other", "of the given grad input"),
    ],
)
def test_what_a_jvp_gives_for_writes_and_views(cls, how, message, monkeypatch):
    monkeypatch.setattr(cls, "how", how)
    x, tangent = torch.ones(3), torch.tensor([1.0, 2.0, 3.0])
    with fw.dual_level():
        dual = fw.make_dual(x, tangent.clone())
        if message is None:
            got = fw.unpack_dual(cls.apply(dual)).tangent
            assert torch.equal(got, (tangent * 2) if cls is Doubled else tangent[:2])
        else:
            with pytest.raises(RuntimeError, match=message):
                cls.apply(dual)


def test_results_without_a_gradient_can_stay_missing():
    seen = []

    class Two(Function):
        @staticmethod
        def forward(ctx, x):
            a, b = x.clone(), x.clone()
            ctx.mark_non_differentiable(b)
            ctx._materialize_non_diff_grads = False
            return a, b

        @staticmethod
        def backward(ctx, a, b):
            seen.append(b)
            return a

    Two.apply(torch.ones(2, requires_grad=True))[0].sum().backward()
    assert seen == [None]


def test_a_decorated_class_is_warned_of():
    with pytest.warns(FutureWarning, match="Decorating classes is deprecated"):

        @torch.no_grad()
        class Made:
            def __init__(self):
                self.recording = torch.is_grad_enabled()

            def ask(self):
                return torch.is_grad_enabled()

    made = Made()
    assert not made.recording and made.ask()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert isinstance(made, Made)


@pytest.mark.parametrize("early_stop, runs", [(True, 1), (False, 2)])
def test_a_checkpoint_keeps_the_switch_that_it_was_made_under(early_stop, runs):
    count = [0]

    def last(x):
        count[0] += 1
        return x.clone()

    x = torch.ones(2, requires_grad=True)
    with set_checkpoint_early_stop(early_stop):
        out = checkpoint(lambda x: last(x.sin().cos()), x, use_reentrant=False)
    out.sum().backward()
    assert count == [runs]


def test_a_checkpoint_tells_the_operators_of_both_runs():
    runs = []

    def other(x):
        runs.append(1)
        return x.sin() * torch.ones(2) if len(runs) == 2 else x.sin().exp()

    out = checkpoint(other, torch.ones(1, requires_grad=True), use_reentrant=False, debug=True)
    with pytest.raises(RuntimeError, match="(?s)`debug=True`.*aten.exp.default.*aten.mul.Tensor.*different metadata"):
        out.sum().backward()


def test_hooks_as_an_attribute():
    x, leaf = torch.ones(2), torch.ones(2, requires_grad=True)
    x._backward_hooks = {"a": print}
    assert x._backward_hooks == {"a": print} and leaf._backward_hooks is None
    leaf.register_hook(lambda g: g * 2)
    assert len(leaf._backward_hooks) == 1
    leaf._backward_hooks = {}
    leaf.sum().backward()
    assert leaf.grad.tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="not allowed"):
        del leaf._backward_hooks


@pytest.mark.parametrize("write", [lambda v: v.add_(2), lambda v: v.transpose_(0, 1)])
@pytest.mark.parametrize("mode, words", [(torch.no_grad, "no_grad"), (torch.inference_mode, "inference")])
def test_views_say_in_which_mode_they_were_made(mode, words, write):
    x = torch.ones(2, 3, requires_grad=True).clone()
    with mode():
        view = x.view_as(x)
    with pytest.raises(RuntimeError, match=f"A view was created in {words} mode and is being modified inplace"):
        write(view)
    with pytest.raises(RuntimeError, match=f"A view was created in {words} mode and is being modified inplace"):
        write(view.view(2, 3))
    with mode():
        write(view)
