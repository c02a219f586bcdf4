"""Functions of elements in eager calls have the bits of compiled code."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import flambeau as torch
from flambeau.base.elements import FUNCTIONS
from flambeau.core.body import TABLE

ROOT = Path(__file__).parents[2]
NAMED = {"trigamma": lambda x: torch.polygamma(1, x), "normal_cdf": torch.nn.functional.gelu}
SPECIAL = (0.0, -0.0, 1, -1, 0.5, -0.5, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 1e-310, 1e30, -1e30, 88.5, 89, -87, -104, 709.5, 710, -745,
           3e8, -3e8, 1e10, 2, 3, -2, -3, 0.1, 10, 100, 1000)  # fmt: skip


def public(name):
    return NAMED.get(name) or getattr(torch, name, None) or getattr(torch.special, name)


def numbers(dtype):
    rng = np.random.default_rng(1)
    wide = np.exp(rng.standard_normal(300) * 20) * rng.choice([-1, 1], 300)
    return np.concatenate([SPECIAL, rng.standard_normal(300), rng.random(200), wide]).astype(dtype)


def dtype_of(dtype, x):
    return np.dtype(dtype).type(x)


def same(a, b):
    return np.array_equal(a, b, equal_nan=True) and np.array_equal(np.signbit(a[a == 0]), np.signbit(b[b == 0]))


def operands(name, dtype):
    x = numbers(dtype)
    return [x] if TABLE[name].arity == 1 else [x, np.random.default_rng(2).permutation(x)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_bits_are_those_of_compiled_code(name, dtype):
    fn = public(name)
    args = [torch.from_numpy(a) for a in operands(name, dtype)]
    compiled = torch.compile(fn, fullgraph=True)(*args).numpy()
    assert same(fn(*args).numpy(), compiled)
    assert same(fn(*(a.flip(0) for a in args)).numpy(), compiled[::-1])


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_where_elements_lie_changes_no_bit(name):
    """Few elements, strides, results over operands: an element's result depends on it alone."""
    fn = TABLE[name].numpy
    fn = fn if isinstance(fn, np.ufunc) else fn.ufunc()
    with np.errstate(all="ignore"):
        for dtype in ("float32", "float64"):
            args = operands(name, dtype)
            whole = fn(*args)
            for n in (1, 2, 15, 16, 17, 33):
                assert same(fn(*(a[3 : 3 + n] for a in args)), whole[3 : 3 + n])
            apart = [np.repeat(a, 3)[::3] for a in args]
            assert same(fn(*apart), whole)
            out = np.zeros((len(whole), 2), dtype)
            fn(*args, out=out[:, 1])
            assert same(out[:, 1], whole) and not out[:, 0].any()
            over = [a.copy() for a in args]
            assert same(fn(*over, out=over[0]), whole)
            assert same(fn(args[0], *(a[5] for a in args[1:])), fn(args[0], *(np.full_like(a, a[5]) for a in args[1:])))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_quotients_are_exact(dtype):
    """Remainders are those of C's fmod, quotients NumPy's, whatever the operands."""
    rng = np.random.default_rng(0)
    x, y = (
        np.concatenate(
            [numbers(dtype), (np.exp(rng.standard_normal(20000) * w) * rng.choice([-1, 1], 20000)).astype(dtype)]
        )
        for w in (8, 6)
    )
    whole = rng.integers(-50, 50, 4000).astype(dtype)
    x, y = (
        np.concatenate([x, np.repeat(whole, 3) * dtype_of(dtype, 0.1)]),
        np.concatenate([rng.permutation(y), np.resize(dtype_of(dtype, 0.1) * whole[::-1], 12000)]),
    )
    with np.errstate(all="ignore"):
        for name, exact in (("fmod", np.fmod), ("remainder", np.remainder), ("floor_divide", np.floor_divide)):
            assert same(getattr(torch, name)(torch.from_numpy(x), torch.from_numpy(y)).numpy(), exact(x, y)), name


def all_bits() -> str:
    digest = hashlib.sha256()
    for name in sorted(FUNCTIONS):
        for dtype in ("float32", "float64"):
            out = public(name)(*map(torch.from_numpy, operands(name, dtype))).numpy()
            digest.update(np.where(np.isnan(out), np.nan, out).tobytes())
    return digest.hexdigest()


@pytest.mark.parametrize("level", ["avx2", "default"])
def test_lesser_processors_have_the_same_bits(level):
    code = "import sys; sys.path.insert(0, 'tests/eager'); import test_element_loops as t; print(t.all_bits())"
    lesser = {**os.environ, "FLAMBEAU_CPU": level}
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=lesser, check=True, capture_output=True, text=True
    )
    assert found.stdout.strip() == all_bits()


def test_the_c_file_is_what_the_expansions_give():
    done = subprocess.run([sys.executable, "tools/element_loops.py", "--check"], cwd=ROOT, check=False)
    assert not done.returncode, "python tools/element_loops.py writes csrc/kernels/element_loops.h"


def errors(fn, args):
    """The floating-point errors that NumPy tells of ``fn``: 'divide by zero', 'overflow', 'invalid value'."""
    told = set()
    with np.errstate(all="call", under="ignore", call=lambda error, flags: told.add(error)):
        fn(*args)
    return told


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_floating_point_errors(name):
    """NumPy's functions tell all that NumPy tells, or compiled programs would lose its warnings; SciPy's tell nothing."""
    fn = TABLE[name].numpy
    fn = fn if isinstance(fn, np.ufunc) else fn.ufunc()
    numpys = getattr(np, name, None) or getattr(np, "arc" + name.removeprefix("a"), None)
    with np.errstate(all="ignore"):
        cases = [(dtype, args) for dtype in ("float32", "float64") for args in zip(*operands(name, dtype))]
    for dtype, args in cases:
        args = [np.full(20, a, dtype) for a in args]
        found = errors(fn, args)
        assert found >= errors(numpys, args) if isinstance(numpys, np.ufunc) else not found, (name, args[0][0])
