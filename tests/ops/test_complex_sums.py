"""Logarithms of sums of complex numbers: beside the definition, which is determined up to whole turns."""

import numpy as np
import pytest

import flambeau as torch

X = np.random.default_rng(0).standard_normal((3, 4, 2)) @ np.array([1.0, 3.0j])


@pytest.mark.parametrize("dim", [0, 1])
def test_logsumexp(dim):
    got = torch.logsumexp(torch.from_numpy(X), dim)
    np.testing.assert_allclose(got.exp().numpy(), np.exp(X).sum(dim), rtol=1e-12)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_logcumsumexp(dim):
    got = torch.logcumsumexp(torch.from_numpy(X), dim)
    np.testing.assert_allclose(got.exp().numpy(), np.exp(X).cumsum(dim), rtol=1e-12)
    assert got.is_contiguous()


def test_values():
    """The larger real part leads; recorded from PyTorch."""
    x = torch.tensor([8.9j, 3 + 0j, -8 + 7.9j, 1 - 5j])
    want = [0 + 8.9j, 2.9563 + 0.0261j, 2.9563 + 0.0261j, 3.0072 + 0.1542j]
    np.testing.assert_allclose(torch.logcumsumexp(x, 0).numpy(), want, atol=1e-4)


def test_gradients():
    x = torch.from_numpy(X[:2]).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: torch.logcumsumexp(x, 1).exp(), x)
    assert torch.autograd.gradcheck(lambda x: torch.logsumexp(x, 1).exp(), x)


def test_how_they_print():
    assert str(torch.tensor([1j, 2 - 3.5j, complex("nan")])) == "tensor([0.+1.0000j, 2.-3.5000j, nan+0.0000j])"
    assert str(torch.tensor(1 + 2j)) == "tensor(1.+2.j)"
