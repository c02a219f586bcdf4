"""What an autograd.Function puts on its ctx, in captured code: tensors in lists and dicts, and ``__dict__``."""

import pytest

import flambeau as torch


class InADict(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k):
        ctx.kept = {"k": k}
        ctx.kept["of"] = {"sin": x.sin(), "both": [x, (x.cos(),)]}
        return x * k

    @staticmethod
    def backward(ctx, g):
        of = ctx.kept["of"]
        return g * ctx.kept["k"] * of["sin"] + of["both"][0] * of["both"][1][0] * g.sum(), None


class ByItsNamespace(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.__dict__["three"] = 3
        ctx.__dict__.update(y=x.exp())
        ctx.deep = {"a": {"b": 7}}
        ctx.gone = x
        del ctx.gone
        return x * 2

    @staticmethod
    def backward(ctx, g):
        assert "gone" not in ctx.__dict__ and not hasattr(ctx, "gone")
        return g * ctx.three * ctx.__dict__["y"] * ctx.deep["a"]["b"]


class BySetup(torch.autograd.Function):
    @staticmethod
    def forward(x, k):
        return x * k, x.sin()

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, k = inputs
        ctx.kept = dict(k=k, x=x, out=output[1])
        ctx.save_for_backward(x)

    @staticmethod
    def backward(ctx, g, h):
        (x,) = ctx.saved_tensors
        return g * ctx.kept["k"] + h * ctx.kept["x"].cos() + x * ctx.kept["out"] * g, None


PROGRAMS = {
    "in a dict": lambda x: InADict.apply(x, 3.0),
    "by its namespace": lambda x: ByItsNamespace.apply(x),
    "by setup_context": lambda x: sum(BySetup.apply(x, 2)),
    "twice": lambda x: InADict.apply(ByItsNamespace.apply(x), 2.0) * InADict.apply(x, 4.0),
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_are_those_of_plain_code(name, backend):
    fn, found = PROGRAMS[name], []
    compiled = torch.compile(fn, backend=backend, fullgraph=True)
    for f in (fn, compiled, compiled):
        x = torch.linspace(0.1, 0.9, 5, dtype=torch.float64).requires_grad_()
        out = f(x)
        found.append((out.detach(), *torch.autograd.grad(out.square().sum(), x)))
    for got in found[1:]:
        torch.testing.assert_close(got, found[0])


class TooFew(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k):
        return x * k

    @staticmethod
    def backward(ctx, g):
        return g


class TooMany(TooFew):
    @staticmethod
    def backward(ctx, g):
        return g, None, g


class NoneToSpare(TooFew):
    @staticmethod
    def backward(ctx, g):
        return g, None, None


@pytest.mark.parametrize("function, n", [(TooFew, 1), (TooMany, 3)])
def test_a_wrong_number_of_gradients_is_told_by_the_backward(function, n):
    x = torch.ones(2, requires_grad=True)
    y = torch.compile(lambda x: function.apply(x, 3.0), backend="eager", fullgraph=True)(x)
    assert torch.equal(y, x * 3)
    with pytest.raises(RuntimeError, match=rf"{function.__name__}Backward.* \(expected 2, got {n}\)"):
        y.sum().backward()
    with pytest.raises(RuntimeError, match=rf"{function.__name__}Backward.* \(expected 2, got {n}\)"):
        torch.compile(lambda x: function.apply(x, 3.0), backend="aot_eager")(x).sum().backward()


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_gradients_of_none_may_follow(backend):
    x = torch.ones(2, requires_grad=True)
    torch.compile(lambda x: NoneToSpare.apply(x, 3.0), backend=backend, fullgraph=True)(x).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]
