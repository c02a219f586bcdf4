"""Elementary functions against higher precision, and their special values against NumPy."""

import math

import numpy as np
import pytest
from kernels import NUMPY, elementwise, padded
from references import EXPANDED, independent

import flambeau as torch
from flambeau.core.body import TABLE

ULP = {
    "tan": 2.5,
    "sinh": 2.5,
    "erf": 3.1,
    "erfc": 3.5,
    "erfinv": 3.1,
}  # default 2; erf in float64 is measured against SciPy's, which has its own error
SCIPYS = {"erf", "erfc", "erfinv", "lgamma"}
# Bounds in float64, in units of the last place of SciPy's result, which is as far off itself; where None, see below.
SPECIAL_ULP = {
    "i0": 6,
    "i0e": 4,
    "i1": 10,
    "i1e": 6,
    "trigamma": 10,
    "ndtri": 6,
    "digamma": None,
    "erfcx": None,
    "log_ndtr": None,
}
# A new expansion is among them by itself.
OPS = sorted(n for n in EXPANDED - set(SPECIAL_ULP) - {"normal_cdf"} if TABLE[n].arity == 1) + [
    "reciprocal",
    "rsqrt",
    "sqrt",
]
SPECIAL = [
    0.0,
    -0.0,
    np.inf,
    -np.inf,
    np.nan,
    1,
    -1,
    0.5,
    -0.5,
    2,
    88.7,
    88.73,
    89,
    -87.5,
    -103,
    -104,
    -110,
    709.7,
    710,
    -745,
    -746,
    -708.5,
    1e-40,
    1e-310,
    3e38,
    1e300,
    -1e300,
    1e9,
    1e15,
    0.625,
    4,
    6,
    9,
    20,
    64,
    1024,
]


def sample(t):
    rng = np.random.default_rng(0)
    spread = [rng.normal(size=4000) * s for s in (1e-8, 1e-3, 0.3, 1, 3, 10, 100, 1e4)]
    return padded(np.concatenate([*spread, SPECIAL]), NUMPY[t])


@pytest.mark.parametrize("t", ["f32", "f64"])
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("lanes", [1, 8])
def test_accuracy(op, t, lanes):
    if (op, t) in (("erfc", "f64"), ("lgamma", "f64")):
        return  # SciPy's are too far from the truth to measure the C library's by: see below
    x = sample(t)
    if op in ("log", "log2", "sqrt", "rsqrt"):
        x = np.concatenate([np.abs(x), padded([-1.0, -np.inf], x.dtype)])
    if op == "sigmoid":  # below, exp(-x) overflows and the result is 0 instead of a denormal number
        x = np.maximum(x, -87 if t == "f32" else -708)
    got = elementwise(op, [t], t, lanes)(x)
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64 if t == "f32" or op in SCIPYS else np.longdouble)
        reference = independent(op)(wide)
        rounded = reference.astype(x.dtype)
        finite = np.isfinite(rounded) & np.isfinite(got)
        error = np.abs(got[finite].astype(reference.dtype) - reference[finite]) / np.spacing(np.abs(rounded[finite]))
    assert error.max() <= ULP.get(op, 2.0), f"{float(error.max()):.2f} ulp at {x[finite][error.argmax()]!r}"
    np.testing.assert_array_equal(np.isnan(got), np.isnan(rounded))
    np.testing.assert_array_equal(got[np.isinf(rounded)], rounded[np.isinf(rounded)])
    zero = (rounded == 0) & (op != "erfinv")  # SciPy's loses the sign
    np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(rounded[zero]))


@pytest.mark.parametrize("t,bound", [("f32", 2.0**-23), ("f64", 2.0**-52)])
def test_normal_distribution(t, bound):
    """Within rounding of 1 everywhere, and of the tail where float32 has one: gelu multiplies by it."""
    x = padded(np.append(sample(t), np.linspace(-15, 15, 30001)), NUMPY[t])
    got, want = elementwise("normal_cdf", [t], t, 8)(x), independent("normal_cdf")(x.astype(np.float64))
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    there = ~np.isnan(want)
    assert np.abs(got - want)[there].max() <= bound
    assert (got[x == np.inf] == 1).all() and (got[x <= -15] == 0).all()
    if t == "f32":
        np.testing.assert_allclose(got[(x >= -4) & (x < 0)], want[(x >= -4) & (x < 0)], rtol=1e-4)


@pytest.mark.parametrize("t", ["f32", "f64"])
@pytest.mark.parametrize("op", ["exp", "exp2", "sigmoid"])
def test_wide_vectors_have_the_bits_of_narrow_ones(op, t):
    """With whole registers of AVX-512 the power of two is one instruction's: subnormal results and infinities too."""
    ends = [
        np.linspace(a, b, 5000)
        for a, b in (
            (-110, -80),
            (-152, -120),
            (88, 89.5),
            (127, 129),
            (-746, -700),
            (708, 711),
            (-1076, -1020),
            (1023, 1025),
        )
    ]
    x = padded(np.concatenate([sample(t), *ends]), NUMPY[t])
    narrow = elementwise(op, [t], t, 2)(x)
    for lanes in (8, 16, 32):
        np.testing.assert_array_equal(elementwise(op, [t], t, lanes)(x), narrow)


@pytest.mark.parametrize("t", ["f32", "f64"])
def test_pow(t):
    values = [0.0, -0.0, 1, -1, 2, -2, 0.5, -0.5, 3, -3, 2.5, np.inf, -np.inf, np.nan, 100, 1e-3]
    x, y = (padded(a.ravel(), NUMPY[t]) for a in np.meshgrid(values, values))
    got = elementwise("pow", [t, t], t, 8)(x, y)
    with np.errstate(all="ignore"):
        want = np.power(x, y)
    np.testing.assert_allclose(got, want, rtol=3e-7 if t == "f32" else 4e-16)
    np.testing.assert_array_equal(np.signbit(got[~np.isnan(want)]), np.signbit(want[~np.isnan(want)]))


@pytest.mark.parametrize("op", ["erfc", "lgamma"])
def test_doubles_of_the_c_library(op):
    x = np.concatenate([np.linspace(-6, 26, 4000), [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, 2.0, 300.0]])
    got = elementwise(op, ["f64"], "f64", 8)(x)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(got, independent(op)(x), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("t", ["f32", "f64"])
@pytest.mark.parametrize("op", SPECIAL_ULP)
def test_special_functions(op, t):
    rng = np.random.default_rng(0)
    x = np.concatenate(
        [*(rng.normal(size=2000) * s for s in (1e-8, 1e-3, 0.3, 1, 3, 10, 30)), SPECIAL, np.linspace(-9, 9, 37)]
    )
    if op == "ndtri":
        x = np.concatenate(
            [
                rng.random(8000),
                rng.random(4000) ** 8 * 1e-10,
                1 - rng.random(1000) * 1e-12,
                [0, 1, -1, 2, np.nan, 1e-300],
            ]
        )
    x = padded(x, NUMPY[t])
    got = elementwise(op, [t], t, 8)(x)
    with np.errstate(all="ignore"):
        exact = independent(op)(x.astype(np.float64))
        want = exact.astype(x.dtype)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_array_equal(np.isinf(got), np.isinf(want))
    finite = np.isfinite(want) & np.isfinite(x)
    x, got, want, exact = x[finite], got[finite], want[finite], exact[finite]
    if t == "f32" or SPECIAL_ULP[op] is not None:
        error = np.abs(got.astype(np.float64) - exact) / np.spacing(np.abs(want))
        assert error.max() <= (0.51 if t == "f32" else SPECIAL_ULP[op])
        return
    if op == "digamma":  # near its poles and its root the argument's last bit decides
        pole = np.abs(x - np.rint(x)) + (x > 0)
        tolerance = 1e-14 * (1 + np.abs(want)) + 1e-14 / np.maximum(pole, 1e-300) ** 2 * np.maximum(1, np.abs(x))
    else:  # exponentials of squares
        tolerance = (4e-15 + 2e-15 * np.minimum(np.abs(x), 1e3) ** 2) * np.abs(want) + 1e-300
    assert (np.abs(got - want) <= tolerance).all()


@pytest.mark.parametrize("t", ["f32", "f64"])
def test_neighbours(t):
    values = [0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e-45, 1e-310, 3e38, 1.5]
    x, y = (padded(a.ravel(), NUMPY[t]) for a in np.meshgrid(values, values))
    got, want = elementwise("nextafter", [t, t], t, 8)(x, y), np.nextafter(x, y)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(want) | (np.isnan(want) & np.signbit(got)))


@pytest.mark.parametrize("t", ["i8", "i16", "i32", "i64", "u8"])
def test_divisors(t):
    limits = np.iinfo(NUMPY[t])
    few = [0, 1, 2, 6, 12, limits.min, limits.max, limits.max - 1]
    values = np.concatenate([few, np.random.default_rng(0).integers(limits.min, limits.max, 60)]).astype(NUMPY[t])
    x, y = (padded(a.ravel(), NUMPY[t]) for a in np.meshgrid(values, values))
    for op, reference in (("gcd", np.gcd), ("lcm", np.lcm)):
        np.testing.assert_array_equal(elementwise(op, [t, t], t, 8)(x, y), reference(x, y))


@pytest.mark.parametrize("name", ["fmod", "remainder", "floordiv"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_whole_number_divided_by_a_constant_nan(name, dtype):
    """LLVM knows that such a dividend is finite and that such a divisor isn't 0; that it isn't NaN doesn't follow."""
    fn = {"fmod": torch.fmod, "remainder": torch.remainder, "floordiv": torch.floor_divide}[name]
    got = torch.compile(lambda i: fn(i.to(dtype), math.nan), fullgraph=True)(torch.arange(-3, 14))
    assert got.dtype is dtype and got.isnan().all()
