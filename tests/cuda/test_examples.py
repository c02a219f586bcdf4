"""The specification's examples of NumPy code under a device run on the simulated one, where the checkout has them."""

import os
from pathlib import Path

import pytest
from tests.children import Parent

SHARED = Path(os.environ.get("FLAMBEAU_SHARED", Path(__file__).parents[2] / "shared"))
FILES = sorted((SHARED / "examples").glob("4[5-8]_*.py"))


@pytest.fixture(scope="module")
def parent():
    with Parent(FLAMBEAU_CUDA="simulated") as parent:
        yield parent


@pytest.mark.skipif(not FILES, reason="the examples lie in FLAMBEAU_SHARED, which isn't here")
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_example(path, parent, tmp_path):
    found = parent.run(path, cwd=tmp_path, folder=tmp_path)
    assert found.returncode == 0 and "FAIL" not in found.stdout, found.stdout + found.stderr
