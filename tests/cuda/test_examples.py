"""The specification's examples of NumPy code under a device run on the simulated one, where the checkout has them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SHARED = Path(os.environ.get("FLAMBEAU_SHARED", Path(__file__).parents[2] / "shared"))
FILES = sorted((SHARED / "examples").glob("4[5-8]_*.py"))


@pytest.mark.skipif(not FILES, reason="the examples lie in FLAMBEAU_SHARED, which isn't here")
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_example(path, tmp_path):
    env = {**os.environ, "FLAMBEAU_CUDA": "simulated"}
    found = subprocess.run([sys.executable, path], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert found.returncode == 0 and "FAIL" not in found.stdout, found.stdout + found.stderr
