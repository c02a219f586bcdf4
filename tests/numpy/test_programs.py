"""The programs of benchmarks/numpy_suite, compiled, beside NumPy: results, types, and what they write into their arguments."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

import flambeau as torch

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def _programs():
    sys.path.insert(0, str(BENCHMARKS))
    try:
        return importlib.import_module("numpy_suite").PROGRAMS
    finally:
        sys.path.remove(str(BENCHMARKS))


PROGRAMS = _programs()


def _same(got, want):
    if isinstance(want, tuple):
        assert isinstance(got, tuple) and len(got) == len(want)
        for g, w in zip(got, want):
            _same(g, w)
    elif want is None:
        assert got is None
    else:
        assert np.asarray(got).dtype == np.asarray(want).dtype
        np.testing.assert_allclose(got, want, rtol=1e-9 if np.asarray(want).dtype != np.float32 else 1e-4, atol=1e-9)


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_agrees_with_numpy(name):
    program = PROGRAMS[name]
    compiled = torch.compile(program.function)
    for seed in (0, 1):  # the second call finds the variant of the first
        plain, other = (program.arguments(np.random.default_rng(seed), program.small) for _ in range(2))
        with np.errstate(all="ignore"):
            _same(compiled(*other), program.function(*plain))
        for a, b in zip(plain, other):
            if isinstance(a, np.ndarray):
                _same(b, a)
