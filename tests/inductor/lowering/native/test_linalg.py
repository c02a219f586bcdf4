"""Linear algebra in compiled graphs: native steps on LAPACK, beside eager: results, strides, errors, and no Python between kernels."""

import pytest

import flambeau as torch

L = torch.linalg
BITWISE = {
    "cholesky": lambda s: L.cholesky(s),
    "upper cholesky": lambda s: L.cholesky(s, upper=True),
    "cholesky_ex": lambda s: L.cholesky_ex(-s),
    "cholesky_inverse": lambda s: torch.cholesky_inverse(L.cholesky(s)),
    "cholesky_solve": lambda s: torch.cholesky_solve(s[..., :2], L.cholesky(s)),
    "inv": lambda s: L.inv(s),
    "inv of the transposed": lambda s: L.inv(s.mT),
    "inv_ex": lambda s: L.inv_ex(s[..., 1:, 1:] * 0),
    "solve": lambda s: L.solve(s, s[..., :2]),
    "solve a vector": lambda s: L.solve(s, s[..., 0]),
    "solve from the right": lambda s: L.solve(s, s[..., :2, :], left=False),
    "triangular": lambda s: L.solve_triangular(s, s[..., :3], upper=True),
    "triangular, unit": lambda s: L.solve_triangular(s.mT, s[..., :3], upper=False, unitriangular=True),
    "triangular from the right": lambda s: L.solve_triangular(s, s[..., :3, :], upper=False, left=False),
    "lu": lambda s: L.lu(s[..., :3]),
    "lu_factor": lambda s: L.lu_factor(s[..., :3, :]),
    "lu_solve": lambda s: torch.lu_solve(s[..., :2], *L.lu_factor(s)),
    "qr": lambda s: L.qr(s[..., :3]),
    "complete qr": lambda s: L.qr(s[..., :3], "complete"),
    "r": lambda s: L.qr(s[..., :3, :], "r"),
    "geqrf": lambda s: torch.geqrf(s[..., :3]),
    "geqrf of a wide one": lambda s: torch.geqrf(s[..., :3, :]),
    "householder_product": lambda s: L.householder_product(s[..., :3], s[..., :2, 0]),
    "svd": lambda s: L.svd(s[..., :3]),
    "thin svd": lambda s: L.svd(s[..., :3, :], full_matrices=False),
    "svdvals": lambda s: L.svdvals(s),
    "eigh": lambda s: L.eigh(s),
    "eigvalsh": lambda s: L.eigvalsh(s, UPLO="U"),
}
CLOSE = {
    "det": lambda s: (L.det(s), L.det(s[..., 1:, 1:] * -0.1)),
    "det of a singular one": lambda s: L.det(s * 0),
    "slogdet": lambda s: (L.slogdet(s), L.slogdet(-s), L.slogdet(s * 0)),
    "logdet": lambda s: torch.logdet(s),
    "pinv": lambda s: L.pinv(s[..., :3]),
    "cond": lambda s: L.cond(s),
    "nuclear": lambda s: L.matrix_norm(s, "nuc"),
}


def matrices(batch, dtype, n=5):
    a = torch.randn(*batch, n, n, dtype=dtype, generator=torch.Generator().manual_seed(n + len(batch)))
    return a @ a.mH + 2 * torch.eye(n, dtype=dtype)


def flat(x):
    return [t for y in x for t in flat(y)] if isinstance(x, (tuple, list)) else [x]


def check(fn, s, python_calls, tolerance=0.0):
    torch.compiler.reset()
    for got, want in zip(flat(torch.compile(fn, fullgraph=True)(s)), flat(fn(s)), strict=True):
        assert (got.dtype, got.shape, got.stride()) == (want.dtype, want.shape, want.stride())
        torch.testing.assert_close(got, want, rtol=tolerance, atol=tolerance, equal_nan=True)
    assert not python_calls


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", [*BITWISE, *CLOSE])
def test_as_eager(name, dtype, python_calls):
    """The same routine of the same matrices; products and sums over a diagonal are made in another order."""
    tolerance = 0.0 if name in BITWISE else 1e-5 if dtype is torch.float32 else 1e-13
    for batch in [(), (3,), (2, 2)]:
        check((BITWISE | CLOSE)[name], matrices(batch, dtype), python_calls, tolerance)
    check((BITWISE | CLOSE)[name], matrices((2,), dtype).mT, python_calls, tolerance)


@pytest.mark.parametrize(
    "name", ["cholesky", "inv", "solve", "triangular", "qr", "geqrf", "householder_product", "svd", "eigh"]
)
def test_complex(name, python_calls):
    check(BITWISE[name], matrices((2,), torch.complex64), python_calls)


def test_batches_that_broadcast(python_calls):
    s = matrices((), torch.float32)
    check(lambda s: L.solve_triangular(s, torch.ones(3, 5, 2), upper=True), s, python_calls)
    check(lambda s: L.solve_triangular(s.expand(4, 1, 5, 5), torch.ones(3, 5, 2), upper=True), s, python_calls)


REFUSED = {
    "inv": lambda a: L.inv(a),
    "cholesky": lambda a: L.cholesky(a),
    "checked cholesky": lambda a: L.cholesky_ex(a, check_errors=True),
    "lu_factor": lambda a: L.lu_factor(a),
    "checked inv": lambda a: L.inv_ex(a, check_errors=True),
    "solve": lambda a: L.solve(a, a),
    "svd": lambda a: L.svd(a / 0),
    "eigh": lambda a: L.eigh(a / 0),
    "pivots": lambda a: torch.lu_unpack(a, torch.zeros(a.shape[:-1], dtype=torch.int32)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_errors(name):
    """A matrix of zeros, alone and as the second of two, in eager's words."""
    for a in (torch.zeros(3, 3), torch.stack([torch.eye(3), torch.zeros(3, 3)])):
        torch.compiler.reset()
        with pytest.raises(RuntimeError) as want:
            REFUSED[name](a)
        with pytest.raises(RuntimeError) as got:
            torch.compile(REFUSED[name], fullgraph=True)(a)
        assert (got.type, str(got.value)) == (want.type, str(want.value))


def test_empty():
    for shape in [(0, 0), (0, 3, 3)]:
        for name in ("inv", "qr", "det", "svd"):
            torch.compiler.reset()
            a = torch.zeros(shape)
            fn = getattr(L, name)
            for got, want in zip(flat(torch.compile(fn)(a)), flat(fn(a)), strict=True):
                assert got.shape == want.shape and torch.equal(got, want)


def test_gradients():
    def loss(s):
        return L.solve(s, s[:, :2]).sum() + L.slogdet(s)[1] + L.eigh(s)[0].max() + L.cholesky(s).trace()

    a, b = (matrices((), torch.float64).requires_grad_() for _ in range(2))
    torch.compile(loss, fullgraph=True)(a).backward()
    loss(b).backward()
    torch.testing.assert_close(a.grad, b.grad, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", [*BITWISE, *CLOSE])
def test_symbolic_sizes(name):
    """One graph for matrices and batches of all sizes (a Cholesky factor of unknown size didn't compile)."""
    fn, tolerance = (BITWISE | CLOSE)[name], 0.0 if name in BITWISE else 1e-5
    torch.compiler.reset()
    run = torch.compile(fn, dynamic=True)
    for n, batch in ((5, 2), (7, 3), (4, 5)):
        s = matrices((batch,), torch.float32, n)
        for got, want in zip(flat(run(s)), flat(fn(s)), strict=True):
            assert (got.dtype, got.shape, got.stride()) == (want.dtype, want.shape, want.stride())
            torch.testing.assert_close(got, want, rtol=tolerance, atol=tolerance, equal_nan=True)
