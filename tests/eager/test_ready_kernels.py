"""Calls of one description that go to a kernel without its shape rule (linear algebra), or to a template (Fourier transforms): values, layouts, gradients and errors are those of the first call."""

import numpy as np
import pytest

import flambeau as torch

L, fft = torch.linalg, torch.fft

CALLS = {
    "solve": lambda a: L.solve(a, a.mT),
    "solve of a vector": lambda a: L.solve(a, a[..., 0]),
    "solve from the right": lambda a: L.solve(a, a.mT, left=False),
    "inv": L.inv,
    "det": L.det,
    "slogdet": L.slogdet,
    "lu_factor": L.lu_factor,
    "lu": L.lu,
    "cholesky": lambda a: L.cholesky(a @ a.mT),
    "cholesky_ex": lambda a: L.cholesky_ex(a @ a.mT, upper=True),
    "qr": L.qr,
    "eigh": lambda a: L.eigh(a + a.mT),
    "eigvals": lambda a: L.eigvals(a).abs().sort(-1)[0],
    "svd": lambda a: L.svd(a[..., :3, :], full_matrices=False),
    "svdvals": L.svdvals,
    "lstsq": lambda a: L.lstsq(a, a.mT).solution,
    "solve_triangular": lambda a: L.solve_triangular(a, a.mT, upper=True),
    "matrix_exp": L.matrix_exp,
    "fft": fft.fft,
    "fft2": fft.fft2,
    "rfft": lambda a: fft.rfft(a, norm="ortho"),
    "irfft2": lambda a: fft.irfft2(fft.rfft2(a), s=a.shape[-2:]),
    "fft of a length for SciPy": lambda a: fft.fft(a, n=17),
}


def parts(x):
    return [y for y in x if isinstance(y, torch.Tensor)] if isinstance(x, (tuple, list)) else [x]


@pytest.mark.parametrize("shape", [(5, 5), (1, 1), (3, 4, 4), (0, 3, 3)], ids=str)
@pytest.mark.parametrize("name", CALLS)
def test_calls_are_like_the_first(name, shape):
    if 0 in shape and "fft" in name:
        shape = (0, 4, 4)
    rng = np.random.default_rng(0)
    call = CALLS[name]
    for seed in range(4):
        a = rng.standard_normal(shape) + 4 * np.eye(shape[-1])
        x = torch.tensor(a, requires_grad=seed == 3)
        found = call(x)
        fresh = call(torch.tensor(a[None])[0])  # another description: a view, in the layout of its base
        assert type(found) is type(fresh)
        for got, want in zip(parts(found), parts(fresh), strict=True):
            assert got.shape == want.shape and got.stride() == want.stride() and got.dtype == want.dtype
            torch.testing.assert_close(got.detach(), want)
        first = parts(found)[0]
        if seed == 3 and first.is_floating_point() and first.requires_grad and x.numel():
            first.sum().backward()
            assert x.grad.shape == x.shape


@pytest.mark.parametrize("call", [L.inv, lambda a: L.solve(a, a), L.cholesky])
def test_errors_after_good_calls(call):
    for _ in range(4):
        call(torch.eye(6))
    with pytest.raises(L.LinAlgError):
        call(torch.zeros(6, 6))
    call(torch.eye(6))
    with pytest.raises(RuntimeError, match="must be batches of square matrices"):
        call(torch.ones(6, 5))
    for _ in range(4):
        with pytest.raises(L.LinAlgError):
            call(torch.zeros(6, 6))


def test_numpys_warnings_stay_off():
    a = torch.eye(6)
    for bad in (1.0, 2.0, 3.0, float("inf"), float("nan")):
        a[2, 3] = bad
        L.det(a), L.slogdet(a), L.qr(a), L.inv_ex(a), L.lu_factor_ex(a), fft.fft(a)
