"""CPython's own tests pass with every function captured (see cpython.py): seven modules here, the others with ``-m slow``."""

import importlib.util
import os
import re
import subprocess
import sys

import cpython
import pytest

QUICK = ("test_with", "test_scope", "test_listcomps", "test_raise", "test_super", "test_property", "test_dictcomps")


def agree(*names: str) -> None:
    """In one process."""
    if importlib.util.find_spec("test") is None or not all(importlib.util.find_spec(f"test.{name}") for name in names):
        pytest.skip(f"this installation of Python comes without its tests (test.{names[0]})")
    env = {**os.environ, "PYTHONWARNINGS": "ignore"}
    r = subprocess.run([sys.executable, cpython.__file__, *names], capture_output=True, text=True, env=env)
    told = f"exit {r.returncode}\n{r.stdout[-3000:]}\n{r.stderr[-3000:]}"
    for name in names:
        counts = re.search(rf"^{name}: (\d+) pass plainly, (\d+) of them fail captured$", r.stdout, re.MULTILINE)
        assert r.returncode == 0 and counts, told
        assert int(counts[1]) > 0 and int(counts[2]) == 0, r.stdout


def test_quick_ones_agree():
    agree(*QUICK)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", [m for m in cpython.MODULES if m not in QUICK])
def test_agrees_for_long(name):
    agree(name)
