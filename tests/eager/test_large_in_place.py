"""In-place operators on many elements: written natively over the argument, or by a compiled kernel and a copy; the values are those of the functional form."""

import pytest

import flambeau as torch

N = 1 << 16  # from here on an operator may run a compiled kernel

OPERATORS = {
    "add": lambda x, y: x.add_(y),
    "add alpha": lambda x, y: x.add_(y, alpha=0.5),
    "add number": lambda x, y: x.add_(1),
    "add itself": lambda x, y: x.add_(x),
    "mul": lambda x, y: x.mul_(y),
    "div": lambda x, y: x.div_(y),
    "sub of a row": lambda x, y: x.view(256, -1).sub_(y.view(256, -1)[0]).view(-1),
    "sqrt": lambda x, y: x.sqrt_(),
    "exp": lambda x, y: x.exp_(),
    "sigmoid": lambda x, y: x.sigmoid_(),
    "clamp": lambda x, y: x.clamp_(0.25, 0.75),
    "lerp": lambda x, y: x.lerp_(y, 0.1),
    "addcmul": lambda x, y: x.addcmul_(y, y, value=2),
    "fill": lambda x, y: x.fill_(3),
    "zero": lambda x, y: x.zero_(),
    "every other one": lambda x, y: x[::2].mul_(y[::2]),
    "another dtype": lambda x, y: x.add_(y.to(torch.float64)),
    "out=": lambda x, y: torch.mul(x, y, out=x),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_many_elements_are_written_as_few_are(name):
    x, y = torch.rand(2 * N), torch.rand(2 * N) + 1
    few = x.clone()
    for at in range(0, 2 * N, N // 4) if name != "sub of a row" else ():
        OPERATORS[name](few[at : at + N // 4], y[at : at + N // 4])
    if name == "sub of a row":
        few = (x.view(256, -1) - y.view(256, -1)[0]).view(-1)
    for _ in range(3):  # a compiled kernel serves from the second call
        many = x.clone()
        version = many._version
        OPERATORS[name](many, y)
        torch.testing.assert_close(many, few, rtol=1e-6, atol=1e-6)
        assert many._version == version + 1


def test_memory_that_is_read_and_written_elsewhere_is_refused():
    x = torch.rand(2 * N)
    with pytest.raises(RuntimeError, match="single memory location|overlap"):
        x[1:].add_(x[:-1])
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch.ones(2 * N, dtype=torch.long).add_(0.5)
    with pytest.raises(RuntimeError, match="leaf"):
        torch.rand(2 * N, requires_grad=True).mul_(2)
