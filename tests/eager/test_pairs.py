"""Functions of two operands that csrc/kernels/pairs.c computes: SciPy's values, PyTorch's answers at the ends, whatever the layout."""

import numpy as np
import pytest
import scipy.special

import flambeau as torch
from flambeau.base.elements import pair_function

ENDS = [0.0, -0.0, 1e-300, 1e-30, 1e-8, 0.1, 0.3, 0.4999, 0.5, 0.5001, 0.9, 1, 1.0999, 1.1, 1.1001, 1.2, 1.4999, 1.5, 1.51, 2, 5, 19, 21, 50,
        1e5, np.inf, -1, -0.5, -2, -np.inf, np.nan]  # fmt: skip
INF, NAN = np.inf, np.nan


def operands(dtype):
    rng = np.random.default_rng(0)
    a, x = (g.ravel() for g in np.meshgrid(ENDS, ENDS))
    a = np.concatenate([a, rng.random(3000) * 1.6, np.exp(rng.standard_normal(3000) * 3)])
    return a.astype(dtype), np.concatenate([x, rng.random(3000) * 1.2, np.exp(rng.standard_normal(3000) * 3)]).astype(
        dtype
    )


@pytest.mark.parametrize("dtype,bound", [("float32", 2e-7), ("float64", 2e-13)])
@pytest.mark.parametrize("name", ["gammainc", "gammaincc"])
def test_incomplete_gamma_functions(name, dtype, bound):
    a, x = operands(dtype)
    want = getattr(scipy.special, name)(a.astype(float), x.astype(float))
    fn = getattr(torch.special, name)
    for run in (fn, torch.compile(fn, fullgraph=True)):
        np.testing.assert_allclose(run(torch.from_numpy(a), torch.from_numpy(x)).numpy(), want, rtol=bound, atol=1e-44)


@pytest.mark.parametrize("name", ["gammainc", "gammaincc", "zeta", "complex"])
def test_an_element_depends_on_its_operands_alone(name):
    for dtype in ("float32", "float64"):
        a, x = operands(dtype)
        fn = pair_function(name)
        whole = fn(a, x)
        apart = np.repeat(a, 3)[::3], np.repeat(x, 2)[::2]
        out = np.zeros((len(a), 2), whole.dtype)
        fn(*apart, out=out[:, 1])
        np.testing.assert_array_equal(out[:, 1], whole)
        for n in (1, 2, 15, 17, 255, 257):
            np.testing.assert_array_equal(fn(a[5 : 5 + n], x[5 : 5 + n]), whole[5 : 5 + n])
        np.testing.assert_array_equal(fn(a, x[40]), fn(a, np.full_like(x, x[40])))


def test_no_flags_of_floating_point_arithmetic():
    with np.errstate(all="raise"):
        for name in ("gammainc", "gammaincc", "zeta"):
            pair_function(name)(*operands("float64"))


@pytest.mark.parametrize("x,q,want", [
    (2, 1, np.pi**2 / 6), (1, 2, INF), (0.5, 2, NAN), (2, 0, INF), (2, -3, INF), (2.5, -0.5, NAN), (2, NAN, NAN), (NAN, 2, NAN),
])  # fmt: skip
def test_zeta(x, q, want):
    for dtype in (torch.float32, torch.float64):
        args = torch.tensor([x] * 20, dtype=dtype), torch.tensor([q] * 20, dtype=dtype)
        for run in (torch.special.zeta, torch.compile(torch.special.zeta, fullgraph=True)):
            np.testing.assert_allclose(run(*args).numpy(), [want] * 20, rtol=1e-6)


def test_polar_is_planned():
    x, y = torch.rand(3, 5), torch.rand(3, 5)
    want = x.numpy() * np.exp(1j * y.numpy())
    for _ in range(5):
        np.testing.assert_allclose(torch.polar(x, y).numpy(), want, rtol=1e-6)
        np.testing.assert_array_equal(torch.complex(x.t(), y.t()).numpy(), x.numpy().T + 1j * y.numpy().T)
