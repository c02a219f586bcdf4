"""What linear algebra, Fourier transforms and sizes refuse: the type of the error and the gist of its text, as PyTorch has them."""

import numpy as np
import pytest

import flambeau as torch

LinAlgError = torch.linalg.LinAlgError
nan, inf, eye, ones, zeros = float("nan"), float("inf"), torch.eye, torch.ones, torch.zeros
linalg, fft = torch.linalg, torch.fft


def one_singular():
    return torch.stack([eye(3), zeros(3, 3)])


def pivots(*values):
    return torch.tensor(values, dtype=torch.int32)


SINGULAR = {
    "inv": (lambda: linalg.inv(zeros(3, 3)), "diagonal element 1 is zero"),
    "inv of a batch": (lambda: linalg.inv(one_singular()), r"\(Batch element 1\): The diagonal element 1"),
    "inv_ex": (lambda: linalg.inv_ex(zeros(3, 3), check_errors=True), "is singular"),
    "inverse power": (lambda: linalg.matrix_power(zeros(3, 3), -1), "is singular"),
    "solve": (lambda: linalg.solve(zeros(3, 3), ones(3)), "solver failed because the input matrix is singular"),
    "solve of a batch": (
        lambda: linalg.solve(one_singular(), ones(2, 3, 1)),
        r"\(Batch element 1\): The solver failed",
    ),
    "solve from the right": (lambda: linalg.solve(zeros(3, 3), ones(1, 3), left=False), "is singular"),
    "tensorinv": (lambda: linalg.tensorinv(zeros(4, 4), ind=1), "is singular"),
    "cholesky": (lambda: linalg.cholesky(-eye(3)), "leading minor of order 1 is not positive-definite"),
    "cholesky of a batch": (lambda: linalg.cholesky(torch.stack([eye(3), -eye(3)])), r"\(Batch element 1\)"),
    "cholesky of nan": (lambda: linalg.cholesky(torch.full((3, 3), nan)), "order 1 is not positive-definite"),
    "cholesky of inf": (lambda: linalg.cholesky(torch.full((3, 3), inf)), "not positive-definite"),
    "cholesky where only the end is bad": (lambda: linalg.cholesky(torch.diag(torch.tensor([1.0, nan]))), "order 2"),
    "cholesky_inverse": (lambda: torch.cholesky_inverse(zeros(3, 3)), "diagonal element 1 is zero"),
    "svd of nan": (lambda: linalg.svd(torch.full((3, 3), nan)), "non-finite values"),
    "svdvals of nan in a batch": (lambda: linalg.svdvals(torch.stack([eye(3), eye(3) * nan])), r"\(Batch element 1\)"),
    "eigh of nan": (lambda: linalg.eigh(torch.full((5, 5), nan)), "failed to converge"),
    "pinv of nan": (lambda: linalg.pinv(torch.full((3, 3), nan)), "failed to converge"),
    "lstsq of a lower rank": (lambda: linalg.lstsq(zeros(3, 2), ones(3, 1), driver="gels"), "does not have full rank"),
    "lstsq of nan": (lambda: linalg.lstsq(torch.full((3, 3), nan), ones(3, 1)), "lstsq"),
    "lu_factor": (lambda: linalg.lu_factor(zeros(3, 3)), r"U\[1,1\] is zero"),
    "ldl_factor": (lambda: linalg.ldl_factor(zeros(3, 3)), "ldl_factor"),
}


@pytest.mark.parametrize("name", SINGULAR)
def test_a_matrix_that_has_no_answer(name):
    call, text = SINGULAR[name]
    with pytest.raises(LinAlgError, match=text):
        call()


def test_codes_in_place_of_errors():
    assert linalg.cholesky_ex(torch.diag(torch.tensor([1.0, 1.0, nan]))).info == 3
    assert linalg.inv_ex(one_singular()).info.tolist() == [0, 1]
    assert linalg.solve_ex(zeros(3, 3), ones(3, 1)).info == 1
    factors, rows = torch.lu(zeros(3, 3))  # which PyTorch gives without a word
    assert factors.shape == (3, 3) and rows.dtype is torch.int32
    assert linalg.slogdet(torch.full((2, 2), nan))[0] == 0 and linalg.slogdet(zeros(2, 2))[1] == -inf
    assert linalg.cond(zeros(3, 3), p=1) == inf


REFUSED = {
    "not square": (lambda: linalg.inv(ones(2, 3)), RuntimeError, "batches of square matrices, but they are 2 by 3"),
    "a vector": (lambda: linalg.det(ones(3)), RuntimeError, "at least 2 dimensions"),
    "integers": (lambda: linalg.inv(ones(3, 3, dtype=torch.int64)), RuntimeError, "floating point or complex"),
    "bools": (lambda: linalg.qr(ones(3, 3, dtype=torch.bool)), RuntimeError, "floating point or complex"),
    "half": (lambda: linalg.inv(ones(3, 3).half()), RuntimeError, "Low precision dtypes not supported. Got Half"),
    "half of cholesky": (lambda: linalg.cholesky(eye(3).half()), NotImplementedError, "cholesky_cpu.*'Half'"),
    "integers of eigh": (lambda: linalg.eigh(eye(3).long()), NotImplementedError, "linalg_eigh_cpu.*'Long'"),
    "eight bits": (lambda: linalg.inv(eye(3).to(torch.float8_e4m3fn)), RuntimeError, "Low precision"),
    "two dtypes": (lambda: linalg.solve(eye(3), ones(3).double()), RuntimeError, "same dtype"),
    "two batches": (lambda: linalg.solve(ones(2, 3, 3), ones(5, 3, 2)), RuntimeError, "size of tensor a .* must match"),
    "batches of triangles": (
        lambda: linalg.solve_triangular(ones(2, 3, 3), ones(5, 3, 2), upper=True),
        RuntimeError,
        "must match the size of tensor b",
    ),
    "batches of least squares": (
        lambda: linalg.lstsq(ones(2, 3, 3), ones(5, 3, 2)),
        RuntimeError,
        "must match the size",
    ),
    "rows": (lambda: linalg.solve(eye(3), ones(2, 2)), RuntimeError, "Incompatible shapes of A and B"),
    "pivot 0": (lambda: linalg.lu_solve(eye(3), pivots(0, 0, 0), eye(3)), RuntimeError, "[Pp]ivots .* lu_factor"),
    "pivot beyond": (lambda: linalg.lu_solve(eye(3), pivots(9, 9, 9), eye(3)), RuntimeError, "[Pp]ivots .* lu_factor"),
    "few pivots": (lambda: linalg.lu_solve(eye(3), pivots(1, 2), eye(3)), RuntimeError, "Number of pivots per batch"),
    "pivots of another batch": (
        lambda: linalg.lu_solve(one_singular(), pivots(1, 2, 3), ones(2, 3, 1)),
        RuntimeError,
        "LU.shape.*pivots.shape to be the same",
    ),
    "unpacked pivot 0": (lambda: torch.lu_unpack(eye(3), pivots(0, 1, 2)), RuntimeError, "between 1 and LU.size"),
    "unpacked pivot beyond": (lambda: torch.lu_unpack(eye(3), pivots(1, 2, 9)), RuntimeError, "between 1 and LU.size"),
    "ldl pivot beyond": (lambda: linalg.ldl_solve(eye(3), pivots(1, -9, 3), eye(3)), RuntimeError, "<= LD.size"),
    "ldl pivot 0": (lambda: linalg.ldl_solve(eye(3), pivots(1, 0, 3), eye(3)), RuntimeError, ">= 1"),
    "ldl rows": (
        lambda: linalg.ldl_solve(eye(3), pivots(1, 2, 3), ones(2, 2)),
        RuntimeError,
        "Incompatible matrix sizes",
    ),
    "reflections": (
        lambda: torch.ormqr(ones(3, 2), ones(3, 2), ones(3, 2)),
        RuntimeError,
        "tau to have one dimension less",
    ),
    "complex tolerance": (lambda: linalg.pinv(eye(3), rtol=ones(3) + 0j), RuntimeError, "rtol tensor of complex type"),
    "complex tol": (lambda: linalg.matrix_rank(eye(3), tol=ones(3) + 0j), RuntimeError, "complex type"),
    "norm of nothing": (lambda: linalg.vector_norm(ones(0), ord=-1), RuntimeError, "does not have an identity"),
    "a chain of none": (lambda: torch.chain_matmul(), RuntimeError, "Expected one or more matrices"),
    "gels on another": (lambda: linalg.lstsq(eye(3), eye(3), driver="x"), RuntimeError, "driver"),
    "eig of nan": (lambda: linalg.eig(torch.full((2, 2), nan)), RuntimeError, "should not contain infs or NaNs"),
    "no points": (lambda: fft.fft(ones(4), n=0), RuntimeError, "Invalid number of data points"),
    "half of fft": (lambda: fft.fft(ones(4).half()), RuntimeError, "Unsupported dtype Half"),
    "complex of rfft": (lambda: fft.rfft(ones(4) + 0j), RuntimeError, "expects a real input tensor"),
    "dims twice": (lambda: fft.fftn(ones(4, 4), dim=(0, 0)), RuntimeError, "dims must be unique"),
    "more sizes than dims": (lambda: fft.fftn(ones(4), s=(2, 2)), RuntimeError, "only has 1 dimensions"),
    "an unknown norm": (lambda: fft.fft(ones(4), norm="x"), RuntimeError, "Invalid normalization mode"),
    "no axis": (lambda: fft.rfftn(ones(4), dim=()), RuntimeError, "at least one axis"),
    "too many points": (lambda: fft.fft(ones(3), n=2**60), RuntimeError, "overflow|can't allocate"),
    "a size below zero": (lambda: torch.empty(2, -3), RuntimeError, r"negative dimension -3: \[2, -3\]"),
    "zeros of a size below zero": (lambda: torch.zeros(-1), RuntimeError, r"negative dimension -1: \[-1\]"),
    "draws of a size below zero": (lambda: torch.randn(4, -2), RuntimeError, r"negative dimension -2: \[4, -2\]"),
    "new zeros of a size below zero": (
        lambda: torch.ones(1).new_zeros((3, -2)),
        RuntimeError,
        r"negative dimension -2: \[3, -2\]",
    ),
    "many elements": (lambda: torch.empty(2**62, 4), RuntimeError, "Storage size calculation overflowed"),
    "many zeros": (lambda: torch.zeros(2**62), RuntimeError, "Storage size calculation overflowed"),
    "a long range": (lambda: torch.arange(0, 1e30), RuntimeError, "overflow"),
    "a large resize": (lambda: ones(3).resize_(2**62), RuntimeError, "Storage size calculation overflowed"),
    "a large stack": (lambda: torch.stack([ones(1).expand(2**61)] * 4), RuntimeError, "overflow"),
    "more than there is": (lambda: torch.ones(2**50), RuntimeError, "can't allocate memory"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    call, error, text = REFUSED[name]
    with pytest.raises(error, match=text):
        call()


def test_nothing_in_gives_nothing_out():
    none, batch = ones(0, 0), ones(0, 3, 3)
    assert linalg.inv(none).shape == (0, 0) and linalg.det(none) == 1 and linalg.det(batch).shape == (0,)
    assert linalg.cholesky(batch).shape == (0, 3, 3) and linalg.eigh(none)[0].shape == (0,)
    assert [t.shape for t in linalg.svd(ones(3, 0))] == [(3, 3), (0,), (0, 0)]
    assert [t.shape for t in linalg.qr(ones(3, 0), mode="complete")] == [(3, 3), (3, 0)]
    assert linalg.svdvals(batch).shape == (0, 3) and linalg.solve(none, ones(0, 2)).shape == (0, 2)
    assert linalg.lstsq(eye(3), ones(3, 0)).solution.shape == (3, 0)
    assert fft.fft2(ones(2, 2), dim=()).dtype is fft.fftn(torch.tensor(1.0)).dtype is torch.complex64


@pytest.mark.parametrize("compiled", [False, True], ids=["plain", "compiled"])
def test_inverses_are_refused_by_the_factors_of_the_matrix_itself(compiled):
    """Not by those of its transpose, of which another element is zero, or none."""
    rows = np.random.RandomState(3).randint(-2, 3, (40, 3, 3)).astype("float64")
    rows[:, 2] = rows[:, 0]
    rows[::2] = rows[::2].swapaxes(1, 2)
    a = torch.tensor(rows)
    found = torch.compile(linalg.inv_ex)(a) if compiled else linalg.inv_ex(a)
    known = linalg.lu_factor_ex(a).info
    assert found.info.tolist() == known.tolist() == [linalg.inv_ex(m).info.item() for m in a]
    assert known.any() and known.tolist() != linalg.lu_factor_ex(a.mT).info.tolist()
    assert found.inverse.stride() == (9, 1, 3)
    with pytest.raises(torch.linalg.LinAlgError, match="The diagonal element 1 is zero"):
        linalg.inv(torch.tensor([[0.0, 1.0], [0.0, 0.0]]))
