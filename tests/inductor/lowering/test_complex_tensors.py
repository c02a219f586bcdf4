"""Complex numbers in compiled kernels: values, strides and dtypes beside eager, at the edges too; what kernels don't compute is left to eager."""

import itertools
import math
import warnings

import numpy as np
import pytest
from rows import thinned

import flambeau as torch
from flambeau.inductor.lowering.complex_functions import FUNCTIONS

PAIRS = [(torch.complex64, torch.float32), (torch.complex128, torch.float64)]


def _compiled(f, *args):
    """(result, eager kernels that it used)."""
    torch._dynamo.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = torch.compile(f, fullgraph=True)
        return compiled(*args)


def _same(got, want, tol):
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    assert got.stride() == want.stride() or not got.numel()
    got, want = got.numpy(), want.numpy()
    for a, b in ((got.real, want.real), (got.imag, want.imag)):
        np.testing.assert_allclose(a, b, rtol=tol, atol=tol)


ROWS = {
    "arithmetic": lambda x, y, r: (x * y + x / (y + 2j) - r * x, -x, x.reciprocal(), 1 / y, x**2, x**3, x - 1j),
    "parts": lambda x, y, r: (
        x.real + y.imag,
        torch.view_as_real(x * y),
        torch.conj(x).resolve_conj(),
        x.abs(),
        torch.complex(r, -r),
    ),
    "exp": lambda x, y, r: (torch.exp(x), torch.exp(1j * x) * r),
    "comparisons": lambda x, y, r: (x == y, x != x.clone(), torch.isnan(x / 0), torch.where(r > 0, x, y)),
    "views": lambda x, y, r: (
        (x * 2)[1:3],
        (x * y).t().contiguous(),
        x.t() * y.t(),
        x.reshape(-1).flip(0),
        (x + y).expand(2, *x.shape).contiguous(),
    ),
    "joining": lambda x, y, r: (
        torch.cat([x, y * 2]),
        torch.stack([x, x * y], -1),
        x[[0, 2, 1]],
        torch.full_like(x, 3j) + x,
    ),
    "sums": lambda x, y, r: (x.sum(), (x * y).sum(0), x.sum(1, keepdim=True)),
    "casts": lambda x, y, r: (r.to(x.dtype) * x, (x * y).to(torch.complex128), (x * y).to(torch.complex64)),
    "means": lambda x, y, r: (x.mean(), (x * y).mean(0), x.var(0), x.any(1), x.all()),
    "powers": lambda x, y, r: (x**y, x**0.5, x**-2, x**5, 2.0**x, x**r, torch.float_power(x, 2)),
    "polar": lambda x, y, r: (
        torch.polar(r.abs(), r),
        torch.angle(r),
        torch.linalg.vecdot(x, y),
        torch.linalg.vecdot(r, r),
    ),
    "left to eager": lambda x, y, r: (torch.asin(x * y), x @ y.t(), (x * y).cumsum(0), x.prod()),
}


@pytest.mark.parametrize("name, dtypes", thinned(ROWS, PAIRS, PAIRS[0]), ids=str)
def test_agrees_with_eager(name, dtypes):
    dtype, real = dtypes
    torch.manual_seed(0)
    f = ROWS[name]
    for shape in ((4, 5), (37, 65), (3, 0)):
        x, y = torch.randn(shape, dtype=dtype), torch.randn(shape, dtype=dtype)
        r = torch.randn(shape, dtype=real)
        if 0 in shape and name in ("joining",):
            continue  # reading from an empty tensor
        for variant in (
            (x, y, r),
            (x.t().contiguous().t(), y, r),
            (torch.randn((shape[0], 2 * shape[1]), dtype=dtype)[:, ::2], y, r),
        ):
            for got, want in zip(_compiled(f, *variant), f(*variant), strict=True):
                _same(got, want, 3e-5 if real is torch.float32 else 1e-12)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_edges(dtype):
    ends = [0.0, -0.0, 1.0, -2.5, 1e-10, 1e10, float("inf"), -float("inf"), float("nan"), 89.0, 710.0, -800.0]
    x = torch.tensor([complex(a, b) for a, b in itertools.product(ends, ends)], dtype=dtype)
    a, b = x[:, None], x[None, :]
    with np.errstate(all="ignore"):
        for f in (lambda a, b: a * b, lambda a, b: a / b, lambda a, b: a + b, lambda a, b: a == b):
            got, want = _compiled(f, a, b).numpy(), f(a, b).numpy()
            # NumPy may multiply and add at once, so that what should cancel leaves a rest in proportion to the terms.
            scale = np.nan_to_num(np.abs(want) + np.abs(a.numpy()) * np.abs(b.numpy()), nan=0, posinf=0) * 1e-6
            for p, q in ((got.real, want.real), (got.imag, want.imag)):
                np.testing.assert_array_equal(np.isnan(p), np.isnan(q))
                np.testing.assert_array_equal(np.isinf(p), np.isinf(q))
                off = np.abs(np.where(np.isfinite(q), p * 1.0 - q * 1.0, 0.0))
                assert (off <= scale + 1e-30).all()
        for f in (torch.abs, lambda x: x * 2.0, torch.conj_physical):
            _same(_compiled(f, x), f(x), 1e-6)
        finite = x[torch.isfinite(x.imag) | (x.real == -float("inf"))]
        finite = finite[(finite.real < (80 if dtype is torch.complex64 else 700)) | (finite.imag == 0)]
        finite = finite[finite.imag.abs() < 1e20]
        _same(_compiled(torch.exp, finite), torch.exp(finite), 1e-6)


@pytest.mark.parametrize("name", [*FUNCTIONS, "reciprocal", "isfinite", "isinf"])
@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_functions(name, dtype):
    """Values over many sizes, and what annex G of the C standard says of infinities, nans and signs of zero (those that it leaves open aside)."""
    ends = [0.0, -0.0, 1.0, -1.0, 0.3, -2.5, 20.0, -30.0, 100.0, -800.0, np.inf, -np.inf, np.nan, 1e-30, 1e30, -1e30]
    rng = np.random.default_rng(0)
    spread = np.exp(rng.uniform(-12, 5, (2, 500))) * rng.choice([-1, 1], (2, 500))
    z = np.concatenate([[complex(a, b) for a, b in itertools.product(ends, ends)], spread[0] + 1j * spread[1]])
    f, x = getattr(torch, name), torch.from_numpy(z).to(dtype)
    with np.errstate(all="ignore"):
        got, want = _compiled(f, x).numpy(), f(x).numpy()
        open_sign = ~np.isfinite(x.real.numpy()) | ~np.isfinite(x.imag.numpy())
        for part in (np.real, np.imag):
            a, b = part(got), part(want)
            np.testing.assert_array_equal((np.signbit(a) != np.signbit(b)) & (a == b) & ~open_sign, False)
            a, b = np.where(open_sign, np.abs(a), a), np.where(open_sign, np.abs(b), b)
            # each part to the precision of the whole, as far as rounding of the argument lets it
            whole = np.where(np.isfinite(want), np.abs(want), np.where(np.isfinite(b), np.abs(b), 0))
            scale = whole * (4e-6 if dtype is torch.complex64 else 1e-13)
            assert_within(a, b, scale + (1e-7 if dtype is torch.complex64 else 1e-15))


def assert_within(a, b, bound):
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    off = np.abs(np.where(same, 0, a) - np.where(same, 0, b))
    assert (off <= bound).all(), (a[~(off <= bound)], b[~(off <= bound)])


def test_no_eager_kernels(caplog):
    x, r = torch.randn(3, 4, dtype=torch.complex64), torch.randn(3, 4)
    for name in FUNCTIONS:
        _compiled(getattr(torch, name), x)
    for name in ("means", "powers", "polar"):
        _compiled(ROWS[name], x, x, r)
    assert "an eager kernel" not in caplog.text
    _compiled(torch.asin, x)
    assert "an eager kernel" in caplog.text


def test_gradients():
    torch.manual_seed(0)
    x, y = (torch.randn(30, dtype=torch.complex128, requires_grad=True) for _ in range(2))

    def f(x, y):
        return ((x * y / (x + 3)).exp() - y).abs().sum()

    want = torch.autograd.grad(f(x, y), (x, y))
    got = torch.autograd.grad(torch.compile(f)(x, y), (x, y))
    for a, b in zip(got, want, strict=True):
        _same(a, b, 1e-12)


def test_numpy_functions():
    rng = np.random.default_rng(0)
    z = rng.standard_normal((20, 30)) + 1j * rng.standard_normal((20, 30))

    def f(z, w):
        out = np.abs(z * w) + z.real - w.imag
        w = w * np.exp(-2j * np.pi * z / 7)
        w.real[0] = 5.0
        return out, np.conj(w), np.vstack([z, w.conjugate()]), np.real(w), np.imag(out)

    for _ in range(2):
        for got, want in zip(torch.compile(f)(z, z[::-1]), f(z, z[::-1]), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-13)
            assert got.dtype == want.dtype


def test_changing_sizes():
    f = torch.compile(lambda x: (x * x + 1).sum(0) / x.abs().sum(), dynamic=True)
    for n in (3, 8, 21):
        x = torch.randn((n, 5), dtype=torch.complex64)
        _same(f(x), (x * x + 1).sum(0) / x.abs().sum(), 1e-5)


@pytest.mark.parametrize("dtypes", PAIRS, ids=str)
def test_parts_of_a_concatenation(dtypes):
    """Pairs of stores that fill one buffer together, of different extents."""
    x = torch.randn(2, 3, dtype=dtypes[0])

    def f(x):
        return (
            torch.cat([x.conj() * 2, torch.zeros(2, 4, dtype=x.dtype), x], 1),
            torch.nn.functional.pad(x * 2, (1, 2)),
        )

    for got, want in zip(_compiled(f, x), f(x)):
        _same(got, want, 1e-6)


def test_log1p_near_zero():
    """What |1 + z| rounds away: half of x (x + 2) + y**2, here exact to a few bits."""
    z = torch.tensor([-5e-9 + 1e-4j, 1e-8j, 1e-20 + 1e-20j, 0.25 - 0.3j], dtype=torch.complex128)
    want = [1.25e-17, 5e-17, 1e-20, math.log(1.25**2 + 0.3**2) / 2]
    for fn in (torch.log1p, torch.compile(torch.log1p)):
        assert fn(z).real.tolist() == pytest.approx(want, rel=1e-6, abs=0)
        assert fn(z)[0].imag.item() == pytest.approx(1e-4, rel=1e-7)
        odd = fn(torch.tensor([complex(math.inf, math.nan), -1 - 0.0j], dtype=torch.complex128)).tolist()
        assert odd[0].real == math.inf and odd[1].real == -math.inf
