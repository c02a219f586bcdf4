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
@pytest.mark.parametrize(
    "file, every, backend",
    [
        ("_core/test_shape_base", 6, "eager"),
        ("lib/test_histograms", 8, "inductor"),
        *(
            pytest.param(file, every, "inductor", marks=[pytest.mark.slow, pytest.mark.timeout(900)])
            for file, every in [
                ("_core/test_umath", 12), ("_core/test_casting_floatingpoint_errors", 1), ("_core/test_errstate", 1), ("_core/test_shape_base", 1), ("_core/test_function_base", 1), ("lib/test_arraypad", 6),
                ("lib/test_histograms", 1), ("linalg/test_linalg", 6), ("fft/test_pocketfft", 3), ("random/test_random", 3),
            ]
        ),
    ],
)  # fmt: skip
def test_some(file, every, backend, tmp_path):
    out = tmp_path / "out.json"
    done = subprocess.run(
        [sys.executable, str(TOOL), "--file", file, "--every", str(every), "--backend", backend, "--out", str(out)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(out.read_text())[file]
    assert found["captured"] == found["plain"] > 5 and found["graphs"] > 0
