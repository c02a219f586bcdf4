"""einsum called again with equations and shapes that are known: other tensors, the same operands twice, gradients, capture, vmap, errors."""

import numpy as np
import pytest

import flambeau as torch

CASES = {
    "ij,jk->ik": [(3, 4), (4, 5)],
    "ij,jk": [(3, 4), (4, 5)],
    "bij,bjk->bik": [(2, 3, 4), (2, 4, 5)],
    "ii->i": [(4, 4)],
    "ii": [(4, 4)],
    "ij->ji": [(3, 4)],
    "ij->ij": [(3, 4)],
    "ij,jk,ik->": [(3, 4), (4, 5), (3, 5)],
    "...ij,...jk->...ik": [(2, 3, 4), (2, 4, 5)],
    "i,j->ij": [(3,), (5,)],
    "ij,ij->i": [(3, 4), (3, 4)],
    "bij,jk->bk": [(2, 3, 4), (4, 5)],
    "bii,bjj->b": [(2, 3, 3), (2, 4, 4)],
}


@pytest.mark.parametrize("equation", CASES)
def test_again(equation):
    torch.manual_seed(0)
    for k in range(4):
        operands = [torch.rand(*n, dtype=torch.float64) for n in CASES[equation]]
        expected = np.einsum(equation, *[t.numpy() for t in operands])
        np.testing.assert_allclose(torch.einsum(equation, *operands).numpy(), expected, rtol=1e-12)
        if k % 2:  # a layout that wasn't met
            turned = [t.transpose(0, -1).contiguous().transpose(0, -1) for t in operands]
            np.testing.assert_allclose(torch.einsum(equation, turned).numpy(), expected, rtol=1e-12)


# Beside PyTorch 2.13, without opt_einsum: the equation, sizes, strides of the result.
STRIDES = [
    ("ijk,kl->lij", [(2, 3, 4), (4, 5)], (6, 3, 1)),
    ("ab,bc->ca", [(2, 3), (3, 4)], (2, 1)),
    ("bij,bjk->bki", [(2, 3, 4), (2, 4, 5)], (15, 3, 1)),
    ("bij,bjk->kbi", [(2, 3, 4), (2, 4, 5)], (3, 15, 1)),
    ("abc,abd->dca", [(2, 3, 4), (2, 3, 5)], (4, 1, 20)),
    ("abs,scd->acbd", [(2, 3, 6), (6, 4, 5)], (60, 5, 20, 1)),
    ("abs,scd->cdba", [(2, 3, 6), (6, 4, 5)], (30, 6, 2, 1)),
    ("dea,dcba->cbe", [(2, 3, 2), (2, 2, 3, 2)], (9, 3, 1)),
    ("ijk->ki", [(2, 3, 4)], (2, 1)),
    ("cab->ba", [(1, 4, 5)], (4, 1)),
    ("acb,cb->bc", [(1, 3, 2), (3, 2)], (1, 2)),
    ("Bed,cAd->cBe", [(2, 3, 3), (2, 3, 3)], (1, 6, 2)),
]


@pytest.mark.parametrize("equation, sizes, strides", STRIDES)
def test_the_memory_of_the_result(equation, sizes, strides):
    operands = [torch.rand(*n, dtype=torch.float64) for n in sizes]
    for _ in range(2):
        y = torch.einsum(equation, *operands)
        assert y.stride() == strides
        np.testing.assert_allclose(y.numpy(), np.einsum(equation, *[t.numpy() for t in operands]), rtol=1e-12)


def test_same_operands_are_not_others():
    x, y = torch.rand(4, 4), torch.rand(4, 4)
    for a, b in ((x, x), (x, y), (y, x), (y, y), (x, y)):
        assert torch.allclose(torch.einsum("ij,jk->ik", a, b), a @ b)
        assert torch.allclose(torch.einsum("ij,jk,kl->il", a, b, a), a @ b @ a, rtol=1e-4)


def test_gradients_views_transforms_and_capture():
    x, y = torch.rand(3, 4), torch.rand(4, 5)
    view = [torch.einsum("ij->ij", x) for _ in range(3)]
    assert all(v is not x and v._base is x for v in view)
    for _ in range(3):
        a = x.clone().requires_grad_()
        torch.einsum("ij,jk->ik", a, y).sum().backward()
        assert torch.allclose(a.grad, y.sum(1).expand(3, 4))
        assert torch.allclose(torch.func.vmap(lambda p: torch.einsum("j,jk->k", p, y))(x), x @ y)
    f = torch.compile(lambda p, q: torch.einsum("ij,jk->ik", p, q), fullgraph=True)
    for n in (3, 6, 7):
        assert torch.allclose(f(torch.ones(n, 4), y), torch.ones(n, 4) @ y)


def test_errors_again():
    for _ in range(3):
        with pytest.raises(RuntimeError, match="does not broadcast"):
            torch.einsum("ij,jk->ik", torch.rand(3, 4), torch.rand(3, 4))
        with pytest.raises(RuntimeError, match="fewer|more"):
            torch.einsum("ij,jk->ik", torch.rand(3, 4))
