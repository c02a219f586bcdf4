"""A sweep of ``tools/wrong_arguments.py`` beside PyTorch: calls with changed arguments are refused or taken as PyTorch does."""

import pathlib
import re
import subprocess
import sys

import pytest

try:
    import torch
except ImportError:
    torch = None

TOOL = pathlib.Path(__file__).parents[2] / "tools" / "wrong_arguments.py"
# Calls that stay different, by seed.
KNOWN = {
    910423: "two things are wrong, another one is told first",
    920238: "linspace of bools is refused with one step, too",
    920268: "linalg.solve_triangular takes operands of two dtypes without promotion there",
    930035: "native_batch_norm reads as many weights as there are channels there, and says nothing of those left",
    930202: "what a shape rule says of a dtype",
    930206: "fractional_max_pool3d takes a kernel of -1 there",
    930399: "batch_norm's vectors have one dimension",
}
SEEDS = [910_000, 920_000, 930_000, 940_000]


@pytest.mark.parity
@pytest.mark.slow
@pytest.mark.skipif(torch is None, reason="PyTorch is not installed")
@pytest.mark.parametrize("first", SEEDS)
def test_no_call_differs_without_a_rule(first):
    run = subprocess.run([sys.executable, TOOL, str(first), "500"], capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, run.stderr
    *lines, last = run.stdout.splitlines()
    calls = re.fullmatch(r"(\d+) calls, \d+ differ, \d+ more by known rules", last)
    assert calls and int(calls[1]) > 450
    told = [line for line in lines if not line.startswith("known")]
    assert [line for line in told if int(line.partition(":")[0]) not in KNOWN] == []
