"""Elementary functions of single numbers in native loops: within 2 units in the last place, as compiled expressions on arrays are."""

import numpy as np
import pytest

import flambeau as torch

FUNCTIONS = [np.exp, np.exp2, np.expm1, np.log, np.log2, np.log1p, np.tanh]
R = np.random.default_rng(4)
SPECIAL = [
    0.0,
    -0.0,
    np.inf,
    -np.inf,
    np.nan,
    1,
    -1,
    88.7,
    89,
    -104,
    709.7,
    710,
    -708.5,
    -745,
    -746,
    1e-40,
    1e-310,
    -0.5,
    1e9,
]


def numbers(function, dtype):
    x = R.standard_normal(4000) * 10.0 ** R.integers(-6, 3, 4000)
    if function in (np.log, np.log2, np.log1p):
        x = np.abs(x)
    with np.errstate(all="ignore"):
        return np.concatenate([x, SPECIAL]).astype(dtype)


def one_by_one(function):
    """A loop whose turns wait for one another."""

    def f(x, out):
        n = 0
        for _ in range(len(x)):
            y = function(x[n])
            out[n] = y
            if y < 0.25:
                out[n] = y * 1.0
            n += 1

    return f


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_accuracy(function, dtype):
    x = numbers(function, dtype)
    out = np.zeros_like(x)
    with np.errstate(all="ignore"):
        torch.compile(one_by_one(function))(x, out)
        want = function(x.astype(np.longdouble if dtype is np.float64 else np.float64))
        rounded = want.astype(dtype)
        finite = np.isfinite(rounded)
        np.testing.assert_array_equal(out[~finite & ~np.isnan(rounded)], rounded[~finite & ~np.isnan(rounded)])
        assert np.isnan(out[np.isnan(rounded)]).all()
        error = np.abs(out[finite] - want[finite]) / np.spacing(np.abs(rounded[finite]))
    assert error.max() <= 2, (float(error.max()), x[finite][error.argmax()])
