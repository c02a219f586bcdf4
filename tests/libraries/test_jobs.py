"""Unmodified libraries on flambeau: each job's numbers beside those that PyTorch gave (``recorded/``). Run by ``pytest -m libraries``.

``FLAMBEAU_LIBRARIES`` names the interpreter that has the libraries (``tests/libraries/run.sh`` makes one); each library runs once, in a process of its own.
"""

import functools
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import flambeau

HERE = Path(__file__).parent
SOURCE = Path(flambeau.__file__).parents[1]
PYTHON = os.environ.get("FLAMBEAU_LIBRARIES", sys.executable)

_spec = importlib.util.spec_from_file_location("libraries_harness", HERE / "harness.py")
harness = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(harness)

RECORDED = {path.stem: json.loads(path.read_text()) for path in sorted((HERE / "recorded").glob("*.json"))}


@functools.cache
def results(library: str) -> dict:
    env = {**os.environ, "PYTHONPATH": str(SOURCE)}
    command = [PYTHON, "-m", "flambeau.cli", "run", "harness.py", library]
    done = subprocess.run(command, cwd=HERE, env=env, capture_output=True, text=True, timeout=1500)
    for line in done.stdout.splitlines():
        if line.startswith("RESULTS "):
            return json.loads(line[8:])
    raise AssertionError(f"the jobs of {library} didn't end: {done.stderr[-3000:]}")


@pytest.mark.libraries
@pytest.mark.timeout(1600)
@pytest.mark.parametrize("library, job", [(lib, job) for lib, jobs in RECORDED.items() for job in jobs])
def test_job(library, job):
    got = results(library)[job]
    assert "error" not in got, got["error"]
    problem = harness.difference(RECORDED[library][job], got["result"])
    assert problem is None, problem


def test_every_job_is_recorded():
    """The functions of the jobs' files, told without importing the libraries."""
    import ast

    for path in sorted((HERE / "jobs").glob("*.py")):
        functions = [
            n.name for n in ast.parse(path.read_text()).body if isinstance(n, ast.FunctionDef) and n.name[0] != "_"
        ]
        assert sorted(functions) == sorted(RECORDED[path.stem]), path.name


def test_differences_are_seen():
    same = {"out": [4.0, 0.5, 1.0, 2.0, 0.25]}
    assert harness.difference(same, {"out": [4.0, 0.5, 1.0, 2.0, 0.2501]}) is None
    assert harness.difference(same, {"out": [4.0, 0.5, 1.0, 2.0, 0.27]}) is not None
    assert harness.difference(same, {"out": [4.0, 0.5, 1.0, 2.0]}) is not None
    assert harness.difference(same, {}) is not None
