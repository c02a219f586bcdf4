"""Extreme eigenpairs by iteration, beside those of the whole decomposition."""

import pytest

import flambeau as torch
from flambeau.autograd import gradcheck

N = 40


def _matrix(dtype=torch.float64):
    """Symmetric positive definite, with eigenvalues that are apart."""
    places = torch.arange(N, dtype=torch.float64)
    rotation = torch.linalg.qr(torch.cos(places.unsqueeze(-1) * (places + 0.5) * 0.37) + torch.eye(N))[0]
    return ((rotation * (1 + places)) @ rotation.mT).to(dtype)


A = _matrix()
B = torch.diag(1 + torch.arange(N, dtype=torch.float64) / N)
SEVERAL = torch.stack([A, 3 * A, A + 5 * torch.eye(N)]).reshape(1, 3, N, N)
STARTS = torch.eye(N, 4, dtype=torch.float64) + 0.1
# (arguments, the eigenvalues wanted)
CASES = {
    "largest": (lambda: torch.lobpcg(A, 3), [40.0, 39, 38]),
    "one": (lambda: torch.lobpcg(A), [40.0]),
    "smallest": (lambda: torch.lobpcg(A, 3, largest=False), [1.0, 2, 3]),
    "more columns than wanted": (lambda: torch.lobpcg(A, 2, n=5), [40.0, 39]),
    "a start": (lambda: torch.lobpcg(A, X=STARTS), [40.0, 39, 38, 37]),
    "preconditioned": (lambda: torch.lobpcg(A, 2, largest=False, iK=torch.linalg.inv(A)), [1.0, 2]),
    "method": (lambda: torch.lobpcg(A, 2, method="basic"), [40.0, 39]),
    "sparse": (lambda: torch.lobpcg(A.to_sparse(), 2), [40.0, 39]),
    "Hermitian": (lambda: torch.lobpcg(A.to(torch.complex128), 2), [40.0, 39]),
}


@pytest.mark.parametrize("name", CASES)
def test_eigenpairs(name):
    torch.manual_seed(0)
    fn, want = CASES[name]
    values, vectors = fn()
    assert torch.allclose(values.real, torch.tensor(want, dtype=torch.float64), rtol=1e-9)
    assert vectors.shape == (N, len(want))
    assert torch.allclose(A.to(vectors.dtype) @ vectors, vectors * values, atol=1e-3)


def test_generalized_and_batched():
    torch.manual_seed(0)
    values, vectors = torch.lobpcg(A, 3, B=B)
    assert torch.allclose(A @ vectors, B @ vectors * values, atol=1e-3)
    assert torch.allclose(vectors.mT @ B @ vectors, torch.eye(3, dtype=torch.float64), atol=1e-9)
    values, vectors = torch.lobpcg(SEVERAL, 2)
    assert values.shape == (1, 3, 2) and vectors.shape == (1, 3, N, 2)
    assert torch.allclose(values[0], torch.tensor([[40.0, 39], [120, 117], [45, 44]], dtype=torch.float64))


def test_single_precision():
    torch.manual_seed(0)
    values, _ = torch.lobpcg(_matrix(torch.float32), 3)
    assert values.dtype is torch.float32
    assert torch.allclose(values, torch.tensor([40.0, 39, 38]), rtol=1e-4)


def test_the_tracker_sees_each_step_and_may_stop():
    torch.manual_seed(0)
    seen = []

    def tracker(state):
        seen.append((state.ivars["istep"], state.tvars["rerr"].max().item()))
        state.bvars["force_stop"] = len(seen) == 4

    torch.lobpcg(A, 2, tracker=tracker)
    assert [step for step, _ in seen] == [1, 2, 3, 4]
    assert seen[-1][1] < seen[0][1]
    seen.clear()
    torch.lobpcg(A, 2, niter=2, tracker=tracker)
    assert len(seen) == 2


def test_gradients():
    def fn(a):
        values, vectors = torch.lobpcg(a, 3, X=STARTS[:9, :3], niter=-1, tol=1e-13)
        return values, vectors * vectors.detach()[0].sign()

    assert gradcheck(fn, [A[:9, :9].clone().requires_grad_()], atol=1e-4)


REFUSED = {
    "3 x the number": (lambda: torch.lobpcg(torch.eye(9), k=4), ValueError),
    "must be square": (lambda: torch.lobpcg(torch.ones(4, 5)), AssertionError),
    "must be positive": (lambda: torch.lobpcg(A, k=5, n=2), ValueError),
    "dense real": (lambda: torch.lobpcg(A.to(torch.complex128).requires_grad_()), ValueError),
    "B != I": (lambda: torch.lobpcg(A.clone().requires_grad_(), B=B), ValueError),
}


@pytest.mark.parametrize("words", REFUSED)
def test_refused(words):
    fn, error = REFUSED[words]
    with pytest.raises(error, match=words):
        fn()
