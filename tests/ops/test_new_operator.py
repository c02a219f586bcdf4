"""An operator written in one place works everywhere: eagerly, on fake tensors, differentiated twice, in place, under vmap, compiled."""

import numpy as np
import pytest

import flambeau as torch
from flambeau.autograd import gradcheck, gradgradcheck
from flambeau.core.declare import pointwise
from flambeau.fake import FakeTensorMode


@pytest.fixture(scope="module")
def op():
    @pointwise(
        "flambeau_test::bump(Tensor self, Tensor scale, *, float width=1.0) -> Tensor", promote="float", variants=""
    )
    def bump(s, self, scale, width):
        return s.mul(scale, s.exp(s.neg(s.div(s.mul(self, self), width))))

    return bump


def reference(x, scale, width=1.0):
    return scale * np.exp(-x * x / width)


@pytest.fixture
def x():
    return torch.linspace(-1, 1, 6, dtype=torch.float64).view(2, 3)


@pytest.fixture
def scale():
    return torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)


def test_eager(op, x, scale):
    np.testing.assert_allclose(op(x, scale, width=2.0).numpy(), reference(x.numpy(), scale.numpy(), 2.0))
    assert op(torch.arange(3), torch.arange(3)).dtype is torch.float32


def test_found_by_name(op):
    assert torch.ops.flambeau_test.bump.default is op


def test_gradients(op, x, scale):
    args = (x.requires_grad_(), scale.requires_grad_())
    assert gradcheck(lambda a, b: op(a, b, width=2.0), args)
    assert gradgradcheck(lambda a, b: op(a, b, width=2.0), args)


def test_fake(op, x, scale):
    mode = FakeTensorMode()
    arguments = mode.from_tensor(x.t()), mode.from_tensor(scale[:2])
    with mode:
        out = op(*arguments)
    real = op(x.t(), scale[:2])
    assert (out.shape, out.stride(), out.dtype) == (real.shape, real.stride(), real.dtype)


def test_in_place_and_out(op, x, scale):
    want = op(x, scale)
    out = torch.empty(2, 3, dtype=torch.float64)
    assert torch.ops.flambeau_test.bump.out(x, scale, out=out) is out
    assert torch.ops.flambeau_test.bump_(x, scale) is x
    assert torch.equal(out, want) and torch.equal(x, want)


def test_vmap(op, x, scale):
    got = torch.func.vmap(lambda row: op(row, scale))(x)
    assert torch.equal(got, op(x, scale))


def test_compiled(op, x, scale):
    fn = torch.compile(lambda a, b: op(a, b, width=2.0) + 1, fullgraph=True)
    np.testing.assert_allclose(fn(x, scale).numpy(), reference(x.numpy(), scale.numpy(), 2.0) + 1, rtol=1e-12)
