"""Gradients of singular values, eigenvalues and norms of them where some are repeated or zero: those of the vectors, which nobody asked for, are infinite."""

import pytest

import flambeau as torch

L = torch.linalg
EYE = torch.eye(3, dtype=torch.float64)
SINGULAR = torch.tensor([[4.0, 0, 0], [0, 2, 0], [0, 0, 0]], dtype=torch.float64)
CASES = [
    (lambda a: L.svdvals(a).pow(2), 3 * EYE, 6 * EYE),
    (lambda a: L.svd(a)[1], 3 * EYE, EYE),
    (lambda a: L.eigvalsh(a).pow(2), 3 * EYE, 6 * EYE),
    (lambda a: L.eigh(a)[0].pow(2), 3 * EYE, 6 * EYE),
    (lambda a: L.eigvals(a).abs(), 3 * EYE, EYE),
    (lambda a: L.matrix_norm(a, "nuc"), 3 * EYE, EYE),
    (lambda a: torch.norm(a, "nuc"), 3 * EYE, EYE),
    (lambda a: L.matrix_norm(a, 2), 3 * EYE, EYE / 3),
    (lambda a: L.matrix_norm(a, -2), 3 * EYE, EYE / 3),
    (lambda a: L.cond(a, "nuc"), 3 * EYE, 0 * EYE),
    (lambda a: L.svdvals(a).pow(2), SINGULAR, 2 * SINGULAR),
    (lambda a: L.matrix_norm(a, 2), SINGULAR, torch.diag(torch.tensor([1.0, 0, 0], dtype=torch.float64))),
    (lambda a: L.svdvals(a).pow(2), SINGULAR[:, :2] * 0 + 1, 2 * torch.ones(3, 2, dtype=torch.float64)),
    (lambda a: L.svdvals(a).pow(2), SINGULAR[:2] * 0 + 1, 2 * torch.ones(2, 3, dtype=torch.float64)),
]


@pytest.mark.parametrize("case", range(len(CASES)))
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_gradients(case, dtype):
    f, a, want = CASES[case]
    x = a.to(dtype).clone().requires_grad_()
    f(x).sum().backward()
    assert torch.allclose(x.grad, want.to(dtype), atol=1e-12)


def test_rows_with_nan_are_all_distinct():
    x = torch.tensor([float("nan"), 0, 0, float("nan"), 1])
    for values in (x, torch.stack([x, x], 1)):
        found, places, counts = torch.unique(values, dim=0, return_inverse=True, return_counts=True)
        assert len(found) == 4 and counts.tolist() == [2, 1, 1, 1] and places.tolist() == [2, 0, 0, 3, 1]
        torch.testing.assert_close(found[places], values, equal_nan=True)
