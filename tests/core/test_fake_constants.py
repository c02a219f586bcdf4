"""Numbers that a program writes into tensors under a FakeTensorMode keep their value until something unknown is written."""

import pytest
from flambeau._subclasses import FakeTensorMode

import flambeau as torch
from flambeau.proxy import make_fx


def test_values_that_are_known():
    with FakeTensorMode():
        x = torch.tensor(4.0)
        assert x.item() == 4.0 and (x * 2 + 1).item() == 9.0
        y = x.add_(1)
        assert x.item() == y.item() == 5.0
        z = torch.tensor([1.0])
        assert z[:].constant is not None
        z[:].add_(torch.rand(1))
        assert z.constant is None
        with pytest.raises(RuntimeError, match="has none"):
            z.item()


def test_lists_become_fake_tensors():
    with FakeTensorMode():
        x = torch.tensor([1, 2, 3])
        assert isinstance(x, torch._subclasses.FakeTensor) and x.shape == (3,)
        assert torch.tensor([[1.0]]).dtype is torch.float32
        w = torch.tensor([1])
        wide = w.expand(4)
        wide[0] = 1
        assert w.constant is None


def test_real_tensors_are_kept_when_asked_for():
    with torch._functorch.config.patch(fake_tensor_propagate_real_tensors=True):
        mode = FakeTensorMode()
    real = torch.arange(3.0)
    with mode:
        fake = mode.from_tensor(real)
        out = (fake * 2).sum()
        assert out.item() == 6.0
    assert torch.equal(fake.real_tensor, real)
    with FakeTensorMode() as plain:
        assert plain.from_tensor(real).real_tensor is None


def written(x):
    t = torch.tensor(3)
    t.add_(1)
    return x * t


def classes(x):
    return x, torch.nn.functional.one_hot(torch.tensor([2]))


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("f", [written, classes], ids=lambda f: f.__name__)
def test_constants_of_compiled_code(f, backend):
    """An operator in place leaves what the graph starts from alone, and a number may be read out of a constant."""
    x = torch.ones(2)
    g = torch.compile(f, backend=backend)
    for _ in range(2):
        torch.testing.assert_close(g(x), f(x))


def test_a_drawn_constant_is_forgotten():
    """What ``random_`` writes is another at each run: a number read out of it would be part of the graph."""

    def f(x):
        t = torch.tensor([2.0])
        t.random_()
        return x * t.item()

    with pytest.raises(RuntimeError, match="get value out of a tracing tensor"):
        make_fx(f)(torch.ones(1))
