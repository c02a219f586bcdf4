"""Derivatives of derivatives where the first one takes a shortcut."""

import pytest

import flambeau as torch


def test_eigh_reads_a_half_and_gives_a_hermitian_gradient():
    a = torch.tensor([[1.0, 5.0], [0.5, 3.0]], dtype=torch.float64, requires_grad=True)
    values, vectors = torch.linalg.eigh(a)
    g = torch.autograd.grad((vectors.abs() * torch.arange(4.0).reshape(2, 2)).sum() + values[0], a)[0]
    torch.testing.assert_close(g, g.mH)


def test_cumprod_is_differentiated_twice_beyond_zeros():
    x = torch.tensor([2.0, 0.0, 3.0, 0.0, 1.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda x: x.cumprod(0), (x,))


def test_bessel_functions_are_differentiated_twice_at_zero():
    x = torch.tensor([0.0, 0.5], dtype=torch.float64, requires_grad=True)
    for fn in (torch.special.i1, torch.special.i1e):
        g = torch.autograd.grad(fn(x).sum(), x, create_graph=True)[0]
        second = torch.autograd.grad(g.sum(), x)[0]
        assert second[0] == 0 and second.isfinite().all()


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", ["scatter", "index"])
@pytest.mark.parametrize(
    "values",
    [[0.0, 0.0, 1.0, 0.0, 2.0], [0.0, 2.0, 0.0, 0.0, 0.0], [1.0, 2.0, 3.0, 0.0, 0.0], [2.0, 0.0, 0.0, 1.0, 1.0]],
)
@pytest.mark.parametrize("own", [[1.0, 2.0], [0.0, 2.0]])
def test_products_with_zeros_at_one_place(values, own, reduce, include_self):
    """A product of two zeros and more has a second derivative."""
    x = torch.tensor(own, dtype=torch.float64, requires_grad=True)
    y = torch.tensor(values, dtype=torch.float64, requires_grad=True)
    index = torch.tensor([0, 0, 1, 1, 1])
    fn = torch.scatter_reduce if reduce == "scatter" else torch.index_reduce

    def product(x, y):
        return fn(x, 0, index, y, "prod", include_self=include_self)

    assert torch.autograd.gradcheck(product, (x, y)) and torch.autograd.gradgradcheck(product, (x, y))
