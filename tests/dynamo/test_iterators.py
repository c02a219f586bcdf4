"""What consumers of iterators take, leave and see: bodies in ``iterator_programs.txt``, between lines of dashes; and a few random ones."""

from pathlib import Path

import fuzz_iterators
import pytest
from iterator_programs import agree

import flambeau as torch

BODIES = (Path(__file__).parent / "iterator_programs.txt").read_text().split("---\n")


@pytest.mark.parametrize("number", range(len(BODIES)))
def test_agrees(number):
    agree(BODIES[number], f"/iterator_programs/{number}.py")


@pytest.mark.parametrize("seed", range(60))
def test_random_program(seed):
    fuzz_iterators.run(seed, ("eager", "aot_eager", "inductor")[seed % 3])


def test_an_iterator_taken_from_outside_of_loops_breaks_no_graph():
    def f(x):
        it = iter(tuple(range(10)))
        x = x + next(it)
        torch._dynamo.graph_break()
        x = x + next(it)
        x = x + next(it)
        torch._dynamo.graph_break()
        return x + next(it), it

    graphs = []
    run = torch.compile(f, backend=lambda gm, ex: graphs.append(gm) or gm)
    for _ in range(2):
        (got, rest), (want, left) = run(torch.ones(2)), f(torch.ones(2))
        assert torch.equal(got, want) and list(rest) == list(left)
    assert len(graphs) == 3
