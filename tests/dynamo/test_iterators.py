"""What consumers of iterators take, leave and see: bodies in ``iterator_programs.txt``, between lines of dashes; and a few random ones."""

from pathlib import Path

import fuzz_iterators
import pytest
from iterator_programs import agree

BODIES = (Path(__file__).parent / "iterator_programs.txt").read_text().split("---\n")


@pytest.mark.parametrize("number", range(len(BODIES)))
def test_agrees(number):
    agree(BODIES[number], f"/iterator_programs/{number}.py")


@pytest.mark.parametrize("seed", range(60))
def test_random_program(seed):
    fuzz_iterators.run(seed, ("eager", "aot_eager", "inductor")[seed % 3])
