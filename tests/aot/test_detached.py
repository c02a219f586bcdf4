"""Second derivatives of compiled functions that leave the tape: what is detached, or computed without grad mode, is a constant to them."""

import flambeau._dynamo
import pytest

import flambeau as torch

F = torch.nn.functional


class Sine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x.detach().cos()


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x * x * 3


class Exponential(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y


class Rounded(torch.autograd.Function):
    """A straight-through estimator."""

    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, g):
        return g


def without_grad(x):
    with torch.no_grad():
        y = x.sin()
        z = y.cos().view(2)
    return (z * x.exp()).sum() + (y * x * x).sum()


def shifted_without_grad(x):
    y = x * 2
    with torch.no_grad():
        y.add_(1)
    return (y * y).sin().sum()


def shifted_by_an_overload(x):
    y = x * 2
    with torch.no_grad():
        torch.ops.aten.sub_.Scalar(y, 1)
        y.subtract_(0.5)
    return (y * y).sin().sum()


def of_a_copy(x):
    y = x.detach().clone()
    y.mul_(3)
    return (y * x.sin()).sum()


@torch.no_grad()
def helper(x):
    return x.cos()


PROGRAMS = {
    "nothing": lambda x: (x * x).sin().sum(),
    "detach": lambda x: (x * x.detach()).sin().sum(),
    "data": lambda x: (x * x.data).sin().sum(),
    "view of data": lambda x: (x.data.view(2) * x).exp().sum(),
    "result": lambda x: (x.sin().detach() * x.exp()).sum(),
    "both": lambda x: (lambda y: (y * y.detach()).exp().sum() + (y.detach() * x**2).sum())(x.sin()),
    "no_grad": without_grad,
    "decorated": lambda x: (helper(x) * x * x).sum(),
    "shift": shifted_without_grad,
    "shift by an overload": shifted_by_an_overload,
    "copy": of_a_copy,
    "softmax": lambda x: (lambda s: (s * s.detach().log()).sum())(x.softmax(0)),
    "straight through": lambda x: ((x.round() - x).detach() + x).pow(3).sum(),
    "condition": lambda x: torch.where(x.detach() > 0.5, x.sin(), x.exp()).sum(),
    "parts": lambda x: (torch.cat([*x.detach().chunk(2)][::-1]) * x).sin().sum(),
    "norm": lambda x: F.layer_norm(x * x.detach().exp() + x**2, (2,)).pow(3).sum(),
    "backward detaches": lambda x: (Sine.apply(x) + x**4).sum(),
    "backward of an argument": lambda x: Cube.apply(x).sum() + (x * x.detach()).sum(),
    "what a Function computed": lambda x: (Exponential.apply(x) * x).sum(),
    "with a derivative of its own": lambda x: (Rounded.apply(x * 3) * x).sum(),
    "written": lambda x: (lambda y: (y.mul_(x.detach()), (y * y).sum())[1])(x.sin()),
}


def derivatives(fn):
    x = torch.tensor([0.3, 0.7], dtype=torch.float64, requires_grad=True)
    (first,) = torch.autograd.grad(fn(x), x, create_graph=True)
    (second,) = torch.autograd.grad(first.pow(2).sum(), x, create_graph=True)
    (third,) = torch.autograd.grad(second.sum(), x)
    return first, second, third


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_of_compiled_functions_are_those_of_the_tape(name, backend):
    want = derivatives(PROGRAMS[name])
    for _ in range(2):  # traced, and from disk
        torch._dynamo.reset()
        got = derivatives(torch.compile(PROGRAMS[name], backend=backend))
        torch.testing.assert_close(got, want)


def through_data(x):
    y = x.clone()
    y.data.mul_(2)
    return (y * y).sin().sum()


def under_no_grad(x):
    y = x * 2
    with torch.no_grad():
        y.mul_(x.detach())
    return y.sin().sum()


REFUSED = [
    (through_data, "writes to a tensor with a history"),
    (under_no_grad, "writes to a tensor with a history"),
]


@pytest.mark.parametrize("fn,words", REFUSED)
def test_what_is_no_part_of_the_graph_is_refused_in_a_second_derivative(fn, words):
    x = torch.tensor([0.3, 0.7], requires_grad=True)
    want = torch.autograd.grad(fn(x), x)[0]
    for _ in range(2):
        torch._dynamo.reset()
        compiled = torch.compile(fn, backend="aot_eager")
        torch.testing.assert_close(torch.autograd.grad(compiled(x), x)[0], want)
        with pytest.raises(RuntimeError, match=words):
            torch.autograd.grad(compiled(x), x, create_graph=True)
