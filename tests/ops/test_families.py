"""Families that load when they are used, complex numbers, linear algebra's errors, names that aren't built."""

import subprocess
import sys

import numpy as np
import pytest

import flambeau as torch
from flambeau.testing.samples import every_operator


def test_the_kept_index_is_current():
    done = subprocess.run(
        [sys.executable, "-m", "flambeau.testing.families", "--check"], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, "run: python -m flambeau.testing.families" + done.stderr


def test_families_load_when_used():
    code = (
        "import sys, flambeau as torch; assert 'flambeau.ops.linear_algebra.determinants' not in sys.modules and 'scipy' not in sys.modules\n"
        "torch.ones(2, 2).det; torch.linalg.solve; assert 'flambeau.ops.linear_algebra.determinants' not in sys.modules\n"
        "torch.eye(2).det(); assert 'flambeau.ops.linear_algebra.determinants' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_a_name_that_is_not_built_says_so_when_called():
    op = torch.ops.aten.quantized_gru_cell
    with pytest.raises(NotImplementedError, match="aten::quantized_gru_cell"):
        op(torch.ones(2))
    with pytest.raises(AttributeError):
        torch.ops.aten.no_such_operator  # noqa: B018
    assert not any("quantized_gru_cell" in str(op) for op in every_operator())


def test_complex_gradients_are_conjugate():
    z = torch.tensor([1 + 2j, -0.5 + 1j], dtype=torch.complex128, requires_grad=True)
    assert torch.autograd.gradcheck(lambda z: z * z.conj() + torch.exp(z) / z, z)
    assert torch.autograd.gradcheck(lambda z: (z.abs(), torch.angle(z), torch.sgn(z), z.real, z.imag), z)
    a = torch.tensor([2.0, 3.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda a, z: (a * z, torch.polar(a, a), torch.complex(a, a * a)), (a, z))


def test_the_parts_are_views():
    z = torch.zeros(3, dtype=torch.complex64)
    z.real[1] = 4
    z.imag = torch.ones(3)
    assert z.tolist() == [1j, 4 + 1j, 1j]
    x = torch.view_as_real(z)
    x[0, 0] = 7
    assert z[0].item() == 7 + 1j and torch.view_as_complex(x)._storage is z._storage


@pytest.mark.parametrize("of_matrix", ["cholesky", "inv", "det", "qr", "svd", "eigh", "slogdet", "matrix_exp", "pinv"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_derivatives_of_linear_algebra(of_matrix, dtype):
    torch.manual_seed(0)
    a = torch.testing.make_tensor(3, 3, dtype=dtype, low=-1, high=1)
    a = (a @ a.mH + 3 * torch.eye(3, dtype=dtype)).requires_grad_()
    hermitian = of_matrix in ("cholesky", "eigh")

    def fn(a):
        a = (a + a.mH) / 2 if hermitian else a
        out = getattr(torch.linalg, of_matrix)(a)
        if of_matrix == "eigh":
            return out[0], out[1].abs()
        if of_matrix == "svd":
            return out[1], out[0].abs(), out[2].abs()
        return out

    assert torch.autograd.gradcheck(fn, a)
    assert torch.autograd.gradgradcheck(fn, a)


def test_errors_are_of_linear_algebras_own_kind():
    with pytest.raises(torch.linalg.LinAlgError, match="singular"):
        torch.linalg.inv(torch.zeros(2, 2))
    with pytest.raises(torch.linalg.LinAlgError, match="singular"):
        torch.linalg.solve(torch.zeros(2, 2), torch.ones(2))
    with pytest.raises(torch.linalg.LinAlgError, match="leading minor of order 1"):
        torch.linalg.cholesky(-torch.eye(2))
    with pytest.raises(torch.linalg.LinAlgError, match="Batch element 1"):
        torch.linalg.inv(torch.stack([torch.eye(2), torch.zeros(2, 2)]))
    with pytest.raises(RuntimeError, match="batches of square matrices"):
        torch.linalg.det(torch.ones(2, 3))
    _, info = torch.linalg.cholesky_ex(-torch.eye(2))
    assert info.item() == 1
    with pytest.raises(torch.linalg.LinAlgError):
        torch.linalg.eigh(torch.full((2, 2), float("nan")))


def test_a_singular_matrix_has_a_gradient_of_its_determinant():
    a = torch.tensor([[1.0, 2.0], [2.0, 4.0]], dtype=torch.float64, requires_grad=True)
    torch.linalg.det(a).backward()
    np.testing.assert_allclose(a.grad.numpy(), [[4, -2], [-2, 1]], atol=1e-6)


def test_transforms_of_every_norm_are_inverted():
    x = torch.tensor(np.random.default_rng(0).standard_normal((3, 5)))
    for norm in (None, "ortho", "forward"):
        torch.testing.assert_close(torch.fft.irfft(torch.fft.rfft(x, norm=norm), 5, norm=norm), x)
        torch.testing.assert_close(torch.fft.ifft2(torch.fft.fft2(x, norm=norm), norm=norm).real, x)
    with pytest.raises(RuntimeError, match="Invalid normalization mode"):
        torch.fft.fft(x, norm="both")
    window = torch.hann_window(4, dtype=torch.float64)
    y = torch.istft(
        torch.stft(x, 4, window=window, return_complex=True, pad_mode="constant"), 4, window=window, length=5
    )
    torch.testing.assert_close(y, x)


def test_compiled_code_calls_them():
    a = torch.eye(3) * 2
    fn = torch.compile(lambda a: torch.linalg.inv(a) + torch.fft.fft(a).real + torch.special.ndtr(a))
    torch.testing.assert_close(fn(a), torch.linalg.inv(a) + torch.fft.fft(a).real + torch.special.ndtr(a))


def test_operators_on_lists():
    a, b = [torch.ones(2), torch.ones(3)], [torch.full((2,), 2.0), torch.full((3,), 3.0)]
    assert [t.tolist() for t in torch._foreach_add(a, b, alpha=2)] == [[5, 5], [7, 7, 7]]
    torch._foreach_mul_(a, 3.0)
    torch._foreach_addcmul_(a, b, b, 0.5)
    assert [t.tolist() for t in a] == [[5, 5], [7.5, 7.5, 7.5]]
    with pytest.raises(RuntimeError, match="same number of tensors"):
        torch._foreach_add(a, b[:1])


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("uniform_", (2, 1)),
        ("exponential_", (0,)),
        ("geometric_", (1.5,)),
        ("cauchy_", (0, 0)),
        ("log_normal_", (0, 0)),
    ],
)
def test_draws_refuse_parameters_outside_their_range(name, arguments):
    with pytest.raises(RuntimeError, match=name):
        getattr(torch.empty(3), name)(*arguments)


def test_factories_write_into_out():
    out = torch.empty(0)
    assert torch.linspace(0, 1, 3, out=out) is out and out.tolist() == [0, 0.5, 1]


def test_in_place_names_load_their_family():
    code = "import flambeau as torch; torch.ops.aten.selu_; torch.ones(2).clamp_(max=0.5); torch.selu_(torch.ones(2))"
    subprocess.run([sys.executable, "-c", code], check=True)
