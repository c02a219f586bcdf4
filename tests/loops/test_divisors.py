"""Arrays divided by a number in loops: NumPy's bits, warnings and derivatives, without divisions."""

import warnings

import numpy as np
import pytest

import flambeau as torch
from flambeau.inductor.machine.divisors import CALLED, functions
from flambeau.testing.loops import check

R = np.random.RandomState(29)
STRANGE = [
    0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -5e-324, 2.2e-308, np.finfo(float).max, -np.finfo(float).max, 1e-300, 1e300, 1.0, -1.0, 3.0,
    2.0**-400, 2.0**400, 2.0**-401, np.nextafter(2.0**400, np.inf),
]  # fmt: skip


def by_turns(x, d, out):
    for k in range(d.shape[0]):
        out[k] = x / d[k]


def over(x, d, out):
    for k in range(d.shape[0]):
        x /= d[k]
        out[k] = x


def by_constants(x, d, out):
    for k in range(d.shape[0]):
        out[k] = (x - d[k]) / 255.0 + x / 4.0 - x / -7


def by_differences(x, d, out):
    for k in range(1, d.shape[0]):
        out[k] += (x - d[k]) / (d[k] - d[k - 1]) * out[k - 1]


def columns(x, d, out):
    for k in range(d.shape[0]):
        out[k, ::2] = x[::2] / d[k]


PROGRAMS = [by_turns, over, by_constants, by_differences, columns]


def numbers(n, kind):
    x = R.standard_normal(n)
    if kind == "any bits":
        return R.randint(0, 2**63, n, dtype=np.uint64).view(np.float64) * R.choice([-1.0, 1.0], n)
    if kind == "any size":
        return x * 2.0 ** R.randint(-1070, 1020, n)
    if kind == "strange":
        return np.where(R.rand(n) < 0.3, R.choice(STRANGE, n), x)
    if kind == "near powers of two":
        return np.nextafter(R.choice([0.5, 1.0, 2.0, 4.0], n), R.choice([0.0, 9.0], n))
    if kind == "largest significands":
        return (2.0**53 - 1 - R.randint(0, 60, n)) * R.choice([1.0, -1.0], n)
    return x


KINDS = ["usual", "any bits", "any size", "strange", "near powers of two", "largest significands"]


def same_bits(a, b):
    """NaNs are alike whatever their signs are: which operand's NaN is taken isn't NumPy's to say."""
    return np.array_equal(np.where(np.isnan(a), 1.5, a).view(np.int64), np.where(np.isnan(b), 1.5, b).view(np.int64))


@pytest.mark.parametrize("n", [1, 3, 7, 8, 9, 33, 1000])
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
@np.errstate(all="ignore")
def test_bits(f, n):
    compiled = torch.compile(f)
    for kind in KINDS:
        for other in KINDS:
            x, d, out = numbers(n, kind), numbers(17, other), np.ones((17, n))
            given = [a.copy() for a in (x, d, out)]
            f(x, d, out)
            compiled(*given)
            assert all(map(same_bits, given, (x, d, out))), (kind, other)


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_they_do_not_divide(f, texts):
    check(f, R.rand(300), R.rand(40) + 0.5, np.ones((40, 300)))
    assert all(CALLED + "(" in t for t in texts) and texts


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.complex128, np.int64])
def test_other_dtypes(dtype, texts):
    x, d = R.randint(1, 9, 50).astype(dtype), R.randint(1, 9, 5).astype(dtype)
    check(by_turns, x, d, np.ones((5, 50), (x / d[0]).dtype), native=None)
    assert not any(CALLED + "(" in t for t in texts) or dtype is np.int64


def test_warnings():
    """Those of the divisions, and no others."""

    def f(x, d, out):
        with np.errstate(all="raise", under="ignore"):
            pass
        for k in range(d.shape[0]):
            out[k] = x / d[k]

    def told(g, *args):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            g(*args)
        return sorted({str(w.message) for w in found})

    usual = R.rand(64)
    for strange in ([], [np.inf], [np.nan], [0.0], [1e308], [5e-324]):
        for divisor in (2.5, 0.0, np.inf, 1e-310, 1e-5, 1e300):
            x = usual.copy()
            x[3 : 3 + len(strange)] = strange
            args = x, np.array([3.0, divisor]), np.zeros((2, 64))
            assert told(torch.compile(by_turns), *args) == told(by_turns, *args), (strange, divisor)


def test_derivatives(texts):
    def f(x, d):
        y = x * 1.0
        for k in range(d.shape[0]):
            y = y / d[k] + x
        return y.sum()

    x, d = torch.rand(20, dtype=torch.float64, requires_grad=True), torch.rand(4, dtype=torch.float64) + 0.5
    f(x, d).backward()
    want, x.grad = x.grad.clone(), None
    torch.compile(f)(x, d).backward()
    assert torch.allclose(x.grad, want)


def test_text_without_fused_operations():
    assert "fdiv" in functions(False) and "fma" not in functions(False)
    assert functions(True).count("define") == 5
