"""SciPy's functions inside captured functions, and their derivatives beside finite differences."""

import numpy as np
import pytest
import scipy.linalg as sl
import scipy.signal as ss
import scipy.special as sp
from agree import difference

import flambeau as torch

func = torch.func
RNG = np.random.default_rng(4)
X = RNG.random(5) + 0.2
M = RNG.random((4, 4)) + 2 * np.eye(4)
VECTORS = {
    "logsumexp": lambda x: sp.logsumexp(x) * 2,
    "erf": lambda x: np.sum(sp.erf(x) * x + sp.erfc(x)),
    "gammaln": lambda x: np.sum(sp.gammaln(x) * sp.psi(x)),
    "expit": lambda x: np.sum(sp.expit(x) ** 2) + sp.logit(x / 2).sum(),
    "softmax": lambda x: np.sum(sp.softmax(x) ** 2) + np.sum(sp.log_softmax(x, axis=0) * x),
    "xlogy": lambda x: np.sum(sp.xlogy(x, x)),
    "ndtr": lambda x: np.sum(sp.ndtr(x) + sp.entr(x)),
    "bessel": lambda x: np.sum(sp.i0(x) + np.i0(x) + sp.i1e(x)),
}
MATRICES = {
    "solve": lambda m: np.sum(sl.solve(m, np.arange(4.0))),
    "cholesky": lambda m: np.sum(sl.cholesky(m @ m.T) ** 3) + np.sum(sl.cholesky(m @ m.T, lower=True)),
    "expm": lambda m: np.sum(sl.expm(m / 3)),
    "inv": lambda m: np.sum(sl.inv(m) ** 2) + sl.det(m),
    "svdvals": lambda m: np.sum(sl.svdvals(m) ** 3),
    "eigvalsh": lambda m: np.sum(sl.eigvalsh(m + m.T) ** 2),
    "triangular": lambda m: np.sum(sl.solve_triangular(np.tril(m), np.arange(4.0), lower=True)),
    "transposed": lambda m: np.sum(sl.solve_triangular(np.triu(m), np.arange(4.0), trans="T") ** 2),
    "adjoint": lambda m: np.sum(sl.solve_triangular(np.tril(m), m[:, :2], trans=2, lower=True) ** 2),
    "fft2": lambda m: np.sum(np.abs(np.fft.fft2(m)) ** 2) + np.sum(np.cov(m) ** 2),
}
BOTH = {**VECTORS, **MATRICES}


@pytest.mark.parametrize("name", BOTH)
def test_value_and_gradient(name):
    f, x = BOTH[name], X if name in VECTORS else M
    torch._dynamo.reset()
    np.testing.assert_allclose(torch.compile(f, fullgraph=True, backend="eager")(x), f(x), rtol=1e-14)
    got, want = func.grad(f)(x), np.zeros_like(x)
    for k in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[k] += 1e-6
        down[k] -= 1e-6
        want[k] = (f(up) - f(down)) / 2e-6
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)


def filtered(x):
    y = ss.convolve(x, x, mode="same") + ss.lfilter([1.0, 0.5], [1.0, 0.2], x)
    return y, ss.detrend(y), sp.jv(1, y), sp.comb(5, 2)


def test_what_has_no_operator_is_called():
    assert not difference(filtered, (X,))
    with pytest.raises(NotImplementedError, match="scipy.special.j[nv] has no derivative"):
        func.grad(lambda x: np.sum(sp.jv(1, x)))(X)


def caught(m):
    try:
        return sl.inv(m)
    except sl.LinAlgError as e:
        return str(e)


def test_errors_are_scipys():
    assert not difference(caught, (np.zeros((2, 2)),))
