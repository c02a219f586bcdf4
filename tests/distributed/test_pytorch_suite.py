"""PyTorch's own tests of collectives and DistributedDataParallel, through tools/distributed_suite.py: those of the list pass. They need an
interpreter with PyTorch, in whose wheel they lie, and the helpers of the suites' folder; minutes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TORCH = os.environ.get("FLAMBEAU_TORCH")
SUITES = Path(os.environ.get("FLAMBEAU_SHARED", ROOT / "../shared")) / "suites"


@pytest.mark.parity
@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.skipif(not TORCH, reason="FLAMBEAU_TORCH names no interpreter with PyTorch")
@pytest.mark.skipif(not SUITES.is_dir(), reason="the suites' folder is not there")
def test_those_that_pass():
    pytest.importorskip("mpi4py", reason="process groups of several processes need the extra `distributed`")
    command = [sys.executable, str(ROOT / "tools/distributed_suite.py"), "--torch", TORCH]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_most_pass():
    """The list says why the others don't."""
    rows = (ROOT / "tests/distributed_suite.txt").read_text().splitlines()
    assert sum("#" not in row for row in rows) >= 0.95 * len(rows)
