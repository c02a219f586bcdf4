"""Every row of the scalar table, every dtype it has code for: the LLVM handler against the NumPy handler."""

import numpy as np
import pytest
from kernels import NUMPY, elementwise, padded
from references import EXPANDED, independent

import flambeau as torch
from flambeau.core.body import TABLE
from flambeau.inductor.codegen.expansions import EXPANSIONS

FLOATS = [0.0, -0.0, 1.5, -1.5, 2.5, -2.5, 0.5, 3.0, -3.0, 7.0, np.inf, -np.inf, np.nan, 1e-3]
INTS = [0, 1, -1, 2, -2, 3, -3, 7, 100, -100, 127, -128]
SERIES = frozenset("i0 i0e i1 i1e digamma trigamma erfcx ndtri log_ndtr".split())  # their own tests bound them closer
INEXACT = EXPANDED - {"fmod", "normal_cdf"} | {"rsqrt"}


def _cases():
    for name, row in TABLE.items():
        if row.kind in ("cast",):
            continue
        for t in ("f32", "f64", "i8", "i32", "i64", "u8", "bool"):
            key = "b" if t == "bool" else t[0]
            if key in row.llvm or "*" in row.llvm or (key == "u" and "i" in row.llvm and name not in ("neg",)):
                yield pytest.param(name, t, id=f"{name}-{t}")


def test_each_expansion_belongs_to_a_row():
    of_rows = {text[1:] for row in TABLE.values() for text in row.llvm.values() if text.startswith("@")}
    assert of_rows - {"cast"} == set(EXPANSIONS)


def _operands(t, n):
    base = [False, True] if t == "bool" else FLOATS if t[0] == "f" else INTS
    base = [abs(v) for v in base] if t == "u8" else base
    grids = np.meshgrid(*[base] * n)
    return [padded(np.array(g).ravel(), NUMPY[t]) for g in grids]


@pytest.mark.parametrize("name,t", list(_cases()))
@pytest.mark.parametrize("lanes", [1, 4])
def test_row(name, t, lanes):
    row = TABLE[name]
    types = [t] * row.arity
    args = _operands(t, row.arity if row.kind != "select" else 2)
    if row.kind == "select":
        types = ["bool", t, t]
        args = [np.arange(len(args[0])) % 2 == 0, *args]
    if t[0] in "iu" and name in ("floordiv", "truncdiv", "remainder", "fmod", "pow"):
        ok = (args[1] != 0) & (args[1] > 0 if name == "pow" else True)
        if t[0] == "i":
            ok &= ~((args[0] == np.iinfo(NUMPY[t]).min) & (args[1] == -1))  # NumPy's own result differs by platform
        args = [np.where(ok, a, 1).astype(a.dtype) for a in args]
    with np.errstate(all="ignore"):
        want = np.asarray(independent(name)(*args))
    out = "bool" if want.dtype == bool else t
    got = elementwise(name, types, out, lanes)(*args)
    if name == "normal_cdf":  # exact beside 1, not beside its tail
        np.testing.assert_allclose(got, want, rtol=0, atol=2.0**-23 if t == "f32" else 2.0**-52)
    elif name in INEXACT and t[0] == "f":
        tolerance = 5e-7 if t == "f32" else 1e-12 if name in SERIES else 1e-15
        np.testing.assert_allclose(got, want, rtol=tolerance)
    else:
        np.testing.assert_array_equal(got, want.astype(NUMPY[out]))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("number", [0.0, -0.0, 1.5, -1.5, float("inf"), float("-inf"), float("nan")])
def test_extremes_with_a_number(dtype, number):
    """A number that is known takes fewer instructions, and gives the bits that one of a tensor gives."""
    x = torch.from_numpy(np.resize(np.array(FLOATS), 70).astype(dtype))
    same = torch.full((), number, dtype=x.dtype)
    for f in (torch.maximum, torch.minimum):
        for order in (lambda f, x, y: f(x, y), lambda f, x, y: f(y, x)):
            known = torch.compile(lambda x: order(f, x, torch.full((), number, dtype=x.dtype)))(x).numpy()
            given = torch.compile(lambda x, y: order(f, x, y))(x, same).numpy()
            np.testing.assert_array_equal(np.isnan(known), np.isnan(given))
            bits = np.where(np.isnan(known), 0, known).view("u1"), np.where(np.isnan(given), 0, given).view("u1")
            np.testing.assert_array_equal(*bits)
