"""Small whole programs compiled and plain: values, dtypes, effects, what they print and draw, and errors with the lines that they come from."""

import contextlib
import io
import traceback
import warnings

import numpy as np
import programs_faulty
import programs_numbers
import programs_recursive
import pytest

import flambeau as torch
from flambeau.dynamo.utils import counters
from flambeau.testing.loops import same

ROWS = [*programs_recursive.PROGRAMS, *programs_faulty.PROGRAMS, *programs_numbers.PROGRAMS]
# One of each kind; the others take two minutes more.
OFTEN = "merge_sort permutations dict_fib oob zdiv custom_raise parallel_raise caught lru julia horner monte balanced gauss_seidel".split()
LOOPS = {  # programs that become native, as a whole
    *"merge_sort inversions queens permutations hanoi ackermann components bfs memo_fib quadrature binomials quickselect powmods first_over".split(),
    *"oob zdiv custom_raise parallel_raise histogram julia metropolis ising fisher_yates walk2 lev balanced gauss_seidel floordivs intmix".split(),
}  # fmt: skip


def told(f, args):
    """What a call gives, or its error with the lines of the program that it went through; what it prints."""
    out = io.StringIO()
    np.random.seed(3)
    with contextlib.redirect_stdout(out), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            made, error = f(*args), None
        except Exception as e:
            lines = [
                x.lineno for x in traceback.extract_tb(e.__traceback__) if x.filename.endswith("programs_faulty.py")
            ]
            made, error = None, (type(e), str(e), e.args, lines)
    return made, error, out.getvalue(), repr(np.random.get_state())


@pytest.mark.parametrize(
    "f, arguments",
    [
        pytest.param(f, a, id=f"{k}-{f.__name__}", marks=[] if f.__name__ in OFTEN else [pytest.mark.slow])
        for k, (f, a) in enumerate(ROWS)
    ],
)
def test_program(f, arguments):
    torch._dynamo.reset()
    before = counters["stats"]["native_loops"]
    compiled = torch.compile(f)
    for _ in range(2):
        ours, plain = arguments(), arguments()
        got, want = told(compiled, ours), told(f, plain)
        same(got[0], want[0])
        assert got[1:] == want[1:]
        for a, b in zip(ours, plain):
            if isinstance(a, np.random.Generator):
                assert a.bit_generator.state == b.bit_generator.state
            else:
                same(a, b)
    if f.__name__ in LOOPS:
        assert counters["stats"]["native_loops"] > before
