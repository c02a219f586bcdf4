"""Strides of reductions are row-major, as in PyTorch and as the shape rule says; derivatives of cumulative products at zeros."""

import itertools

import pytest

import flambeau as torch
from flambeau.fake import FakeTensorMode

OPS = {
    "sum": lambda x, d, k: x.sum(d, keepdim=k),
    "amax": lambda x, d, k: x.amax(d, k),
    "mean": lambda x, d, k: x.mean(d, k),
    "argmin": lambda x, d, k: x.argmin(d, k),
    "any": lambda x, d, k: (x > 0).any(d, k),
}


@pytest.mark.parametrize("perm", list(itertools.permutations(range(3))))
@pytest.mark.parametrize("name", OPS)
def test_reductions_of_permuted_inputs(name, perm):
    x = torch.randn(4, 5, 6).permute(*perm)
    fake = FakeTensorMode().from_tensor(x)
    for d, keep in itertools.product(range(3), (False, True)):
        real, shape_only = OPS[name](x, d, keep), OPS[name](fake, d, keep)
        assert (real.shape, real.stride()) == (shape_only.shape, shape_only.stride())
        assert real.is_contiguous()


# Recorded from PyTorch 2.13: gradient of cumprod(x).sum().
@pytest.mark.parametrize(
    "x,expected",
    [
        ([2.0, 0.0, 3.0, 0.0, 1.0], [1.0, 8.0, 0.0, 0.0, 0.0]),
        ([2.0, 0.0, 3.0, 4.0, 1.0], [1.0, 56.0, 0.0, 0.0, 0.0]),
        ([0.0, 0.0, 1.0], [1.0, 0.0, 0.0]),
        ([1.0, 2.0, 0.0], [3.0, 1.0, 2.0]),
    ],
)
def test_cumprod_at_zeros(x, expected):
    x = torch.tensor(x, requires_grad=True)
    x.cumprod(0).sum().backward()
    assert x.grad.tolist() == expected


def test_second_derivative_of_cumprod():
    x = torch.tensor([2.0, 3.0, 4.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda t: t.cumprod(0), (x,))
    z = torch.tensor([2.0, 0.0, 4.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda t: t.cumprod(0), (z,))
