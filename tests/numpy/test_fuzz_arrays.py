"""A few random NumPy programs at each run; `python tests/numpy/fuzz_arrays.py FIRST COUNT` runs many."""

import fuzz_arrays
import pytest


@pytest.mark.parametrize("seed", range(12))
def test_random_program(seed):
    fuzz_arrays.run(seed)


@pytest.mark.parametrize("seed", [37, 1044])
def test_what_differed_once(seed):
    """37: the least of an element and of an integer that varies. 1044: a native loop over an array written through its transpose."""
    fuzz_arrays.run(seed)
