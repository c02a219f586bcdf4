"""A few random programs at each run; `python tests/dynamo/fuzz_programs.py SEED COUNT` runs many. A failure prints its seed and source."""

import fuzz_programs
import pytest


@pytest.mark.parametrize("seed", range(60))
def test_random_program(seed):
    fuzz_programs.run(seed)
