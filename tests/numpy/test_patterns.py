"""Patterns of NumPy programs that were unrolled, broken off or left to NumPy once: each is one graph of few operators, its loops are native."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

import flambeau as torch

PATTERNS = {
    "a dot of a flipped slice": ("durbin", 1),
    "sums of a column and a row by add.outer, and minima": ("shortest_paths_by_outer_sums", 1),
    "a truth value of a computed number, and linear systems": ("contour_integral", 1),
    "boolean compaction": ("mandelbrot_by_compaction", 1),
    "histograms": ("azimuthal_integration", 0),
    "a histogram and a search over its sums": ("otsu_threshold", 1),
    "a checksum of 16 bits": ("crc16", 1),
    "a stencil in three dimensions with where": ("horizontal_diffusion", 0),
    "sweeps along the third dimension": ("vertical_advection", 2),
    "a stepper of flow in two dimensions": ("cavity_flow", 1),
    "Cholesky's factors by products": ("cholesky_by_columns", 1),
    "correlations by rows": ("correlation_by_rows", 1),
    "the sum of a product of broadcast arrays": ("sum_of_outer_products", 0),
}
MOST = 40  # operators
# Its first and last levels, loops of one turn over whole arrays, are written out.
MORE = {"vertical_advection": 80}


def _program(name):
    sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
    try:
        return importlib.import_module("numpy_suite").PROGRAMS[name]
    finally:
        sys.path.pop(0)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_pattern_is_one_graph(pattern):
    name, loops = PATTERNS[pattern]
    program = _program(name)
    torch._dynamo.reset()
    found = torch._dynamo.explain(program.function)(*program.arguments(np.random.default_rng(0), program.large))
    assert (found.graph_count, found.graph_break_count) == (1, 0), found.break_reasons
    assert found.op_count <= MORE.get(name, MOST)
    assert len(found.loops) == loops and all(": native" in line for line in found.loops), found.loops
