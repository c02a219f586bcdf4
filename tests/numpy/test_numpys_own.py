"""Some of the tests that NumPy installs with itself, each test function captured. The whole: ``python tools/numpy_tests.py``."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "numpy_tests.py"


@pytest.mark.skipif(
    importlib.util.find_spec("numpy._core.tests") is None, reason="NumPy was installed without its tests"
)
@pytest.mark.parametrize("file, every", [("_core/test_shape_base", 6), ("lib/test_histograms", 8)])
def test_some(file, every, tmp_path):
    out = tmp_path / "out.json"
    done = subprocess.run(
        [sys.executable, str(TOOL), "--file", file, "--every", str(every), "--out", str(out)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(out.read_text())[file]
    assert found["captured"] == found["plain"] > 5 and found["graphs"] > 0
