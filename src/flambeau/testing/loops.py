"""Functions over NumPy arrays beside themselves compiled: results, types, effects and errors."""

from __future__ import annotations

import numpy as np

import flambeau as torch
from flambeau.dynamo.utils import counters

__all__ = ["check", "run", "same"]


def run(f, *args):
    """What a call gives: its result, or the type and text of its error."""
    try:
        with np.errstate(all="ignore"):
            return f(*args)
    except Exception as e:
        return type(e), str(e)


def same(got, want):
    """Assert equal types and values, float64 to 1e-12, float32 to 1e-5."""
    assert type(got) is type(want), (got, want)
    if isinstance(want, dict):
        same(list(got), list(want))
        same(list(got.values()), list(want.values()))
    elif isinstance(want, tuple | list):
        assert len(got) == len(want)
        for g, w in zip(got, want):
            same(g, w)
    elif isinstance(want, np.ndarray | np.generic):
        assert got.dtype == want.dtype
        rough = want.dtype.itemsize < 8 and want.dtype.kind == "f"
        np.testing.assert_allclose(got, want, rtol=1e-5 if rough else 1e-12, atol=1e-6 if rough else 1e-13)
    else:
        assert got == want or (got != got and want != want), (got, want)


def check(f, *args, native=True):
    """f plain and compiled, twice: results and what is written into the arguments. ``native``: whether a loop must (not) become native."""
    torch._dynamo.reset()
    before = counters["stats"]["native_loops"]
    compiled = torch.compile(f)
    for _ in range(2):
        copies = [[np.array(a, order="K") if isinstance(a, np.ndarray) else a for a in args] for _ in range(2)]
        same(run(compiled, *copies[0]), run(f, *copies[1]))
        for a, b in zip(*copies):
            same(a, b)
    assert native is None or (counters["stats"]["native_loops"] > before) == native
