"""Singular values and eigenvalues by rotations (ops/linear_algebra/jacobi.py) beside LAPACK's."""

import pytest

import flambeau as torch
from flambeau.ops.linear_algebra import jacobi

D, S, Z, C = torch.float64, torch.float32, torch.complex128, torch.complex64


def drawn(*shape, dtype=D):
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(5))


MATRICES = {
    "tall": drawn(5, 3),
    "a batch, wide": drawn(2, 3, 6, dtype=S),
    "complex": drawn(4, 4, dtype=Z),
    "of rank 1": torch.ones(4, 3, dtype=D),
    "nothing but zeros": torch.zeros(2, 2, dtype=D),
    "one element": drawn(1, 1),
    "a column": drawn(3, 1, dtype=S),
    "a row": drawn(1, 5, dtype=C),
    "of low rank": drawn(7, 2, dtype=C) @ drawn(2, 7, dtype=C),
    "equal values": torch.eye(5, dtype=D),
    "ranks that differ": torch.stack([torch.eye(3, dtype=D), torch.ones(3, 3, dtype=D)]),
    "far apart": torch.diag(torch.tensor([1e-12, 1.0, 1e8], dtype=D)) @ drawn(3, 3),
    "no rows": torch.zeros(2, 0, 3, dtype=D),
    "no matrices": torch.zeros(0, 3, 2, dtype=D),
    "odd": drawn(33, 17),
}


def close(a, b, scale=1.0):
    bound = (1e-5 if b.dtype in (S, C) else 1e-12) * max(scale, 1.0)
    assert a.shape == b.shape and a.dtype is b.dtype
    assert a.numel() == 0 or (a - b).abs().max().item() <= bound


def units(q):
    close(q.mH @ q, torch.eye(q.shape[-1], dtype=q.dtype).expand(*q.shape[:-2], -1, -1))


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("name", MATRICES)
def test_singular_values(name, full):
    a = MATRICES[name]
    u, s, vh = jacobi.svd(a, full, True)
    expected = torch.linalg.svd(a, full_matrices=full)
    assert u.shape == expected[0].shape and vh.shape == expected[2].shape and u.stride() == expected[0].stride()
    scale = 0 if not s.numel() else s.max().item()
    close(s, expected[1], scale)
    k = s.shape[-1]
    close((u[..., :k] * s.unsqueeze(-2).to(u.dtype)) @ vh[..., :k, :], a, scale)
    units(u)
    units(vh.mH)
    close(jacobi.svd(a, full, False)[1], s, scale)


HERMITIAN = {
    "plain": drawn(4, 4),
    "a batch": drawn(2, 5, 5, dtype=S),
    "complex": drawn(3, 3, dtype=Z),
    "nothing but zeros": torch.zeros(3, 3, dtype=D),
    "equal sizes of both signs": torch.diag(torch.tensor([1.0, -1, 1, -1], dtype=D)),
    "one element": -torch.ones(1, 1, dtype=D),
    "no matrices": torch.zeros(0, 3, 3, dtype=D),
}


@pytest.mark.parametrize("half", "LU")
@pytest.mark.parametrize("name", HERMITIAN)
def test_eigenvalues(name, half):
    a = HERMITIAN[name]
    values, vectors = jacobi.eigh(a, half, True)
    close(values, torch.linalg.eigh(a, half)[0], 10)
    own = torch.diagonal(a, dim1=-2, dim2=-1)
    part = torch.tril(a, -1) if half == "L" else torch.triu(a, 1).mH
    whole = part + part.mH + torch.diag_embed(own.real.to(a.dtype) if a.is_complex() else own)
    close(whole @ vectors, vectors * values.unsqueeze(-2).to(a.dtype), 10)
    units(vectors)


@pytest.mark.parametrize("run", [lambda a: jacobi.svd(a, True, True), lambda a: jacobi.eigh(a, "L", True)])
def test_elements_that_are_not_finite(run):
    with pytest.raises(torch.linalg.LinAlgError, match="contained non-finite values"):
        run(torch.tensor([[1.0, float("nan")], [0.0, 1.0]]))


def test_an_unknown_driver():
    with pytest.raises(RuntimeError, match="unknown svd driver gesdd"):
        jacobi.svd(drawn(2, 2), True, True, "gesdd")
