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


def test_shapes_that_are_kept_are_those_of_the_arguments():
    """Composites of known sizes are asked once for each description of their arguments, whatever is equal to one by value."""
    from flambeau.fake.meta import known_once, meta_of

    seen = []

    def rule(x, *rest):
        seen.append((x, *rest))
        return meta_of(x), len(seen)

    kept = known_once(rule)
    x, y = torch.empty(3, 4), torch.empty(4, 3).t()
    for args in [(x, 1), (x, True), (x, 1.0), (y, 1), (x.double(), 1), (x, None), (x, [1]), (x, (1,)), (x, [True])]:
        before = len(seen)
        first = kept(*args)
        assert len(seen) == before + 1 and kept(*args) == first and len(seen) == before + 1, args
    before = len(seen)
    torch.set_default_dtype(torch.float64)
    try:
        kept(x, 1)
    finally:
        torch.set_default_dtype(torch.float32)
    kept(x, object()), kept(x, object())
    assert len(seen) == before + 3


def test_kept_shapes_of_a_network_are_those_of_eager_calls():
    norm = torch.nn.BatchNorm2d(3)
    for shape in [(2, 3, 4, 4), (2, 3, 4, 4), (5, 3, 2, 2)]:
        for dtype in (torch.float32, torch.float64):
            norm.to(dtype)
            x = torch.randn(*shape, dtype=dtype)
            with FakeTensorMode() as mode:
                fake = mode.from_tensor(x)
                weights = [mode.from_tensor(t) for t in (norm.weight, norm.bias, norm.running_mean, norm.running_var)]
                got = torch.ops.aten._native_batch_norm_legit_functional(fake, *weights, True, 0.1, 1e-5)
            wanted = torch.ops.aten._native_batch_norm_legit_functional(
                x, norm.weight.detach(), norm.bias.detach(), norm.running_mean, norm.running_var, True, 0.1, 1e-5
            )
            for a, b in zip(got, wanted):
                assert (a.shape, a.stride(), a.dtype) == (b.shape, b.stride(), b.dtype)
