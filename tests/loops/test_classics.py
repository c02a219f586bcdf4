"""The programs of classics.py compiled: results, what they write, what they draw, and that they are native."""

import copy

import numpy as np
import pytest
from classics import PROGRAMS

import flambeau as torch
from flambeau.dynamo.utils import counters
from flambeau.testing.loops import same

# What stayed Python once, or broke.
MENDED = "dijkstra_heap kd_build_query n_queens sudoku runge_kutta_fehlberg gillespie flood_fill hough".split()
UNROLLED = "power_method".split()  # a few turns of products of matrices


@pytest.mark.parametrize(
    "f", [pytest.param(f, id=f.__name__, marks=[] if f.__name__ in MENDED else [pytest.mark.slow]) for f in PROGRAMS]
)
def test_program(f):
    arguments, small, _ = PROGRAMS[f]
    torch._dynamo.reset()
    before = counters["stats"]["native_loops"]
    compiled = torch.compile(f)
    for _ in range(2):
        ours, plain = arguments(small), copy.deepcopy(arguments(small))
        with np.errstate(all="ignore"):
            same(compiled(*ours), f(*plain))
        for a, b in zip(ours, plain):
            if isinstance(a, np.random.Generator):
                assert a.bit_generator.state == b.bit_generator.state
            else:
                same(a, b)
    assert (counters["stats"]["native_loops"] > before) == (f.__name__ not in UNROLLED)
