"""CPython's own tests pass with every function captured (see cpython.py): seven modules here, the others with ``-m slow``."""

import importlib.util
import os
import re
import subprocess
import sys

import cpython
import pytest

QUICK = ("test_with", "test_scope", "test_listcomps", "test_raise", "test_super", "test_property", "test_dictcomps")


def agrees(name: str) -> None:
    if importlib.util.find_spec("test") is None or importlib.util.find_spec(f"test.{name}") is None:
        pytest.skip(f"this installation of Python comes without its tests (test.{name})")
    env = {**os.environ, "PYTHONWARNINGS": "ignore"}
    r = subprocess.run([sys.executable, cpython.__file__, name], capture_output=True, text=True, env=env)
    last = r.stdout.strip().rpartition("\n")[2]
    counts = re.fullmatch(rf"{name}: (\d+) pass plainly, (\d+) of them fail captured", last)
    assert r.returncode == 0 and counts, f"exit {r.returncode}\n{r.stdout[-3000:]}\n{r.stderr[-3000:]}"
    assert int(counts[1]) > 0 and int(counts[2]) == 0, r.stdout


@pytest.mark.parametrize("name", QUICK)
def test_agrees(name):
    agrees(name)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", [m for m in cpython.MODULES if m not in QUICK])
def test_agrees_for_long(name):
    agrees(name)
