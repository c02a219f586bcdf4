"""Installed packages are known wherever they lie."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

SCRIPT = """
import numpy as np
assert np.__file__.startswith({folder!r}), np.__file__
import flambeau as torch
f = torch.compile(lambda m: np.hamming(m), backend="aot_eager", fullgraph=True)
assert f(5).tolist() == np.hamming(5).tolist()
"""


@pytest.mark.parametrize("name", ["site-packages", "dist-packages"])
def test_numpy_from_another_place_than_the_environment(tmp_path, name):
    """As with --system-site-packages: capture doesn't trace through NumPy's own code there."""
    folder = tmp_path / "lib" / name
    folder.mkdir(parents=True)
    installed = pathlib.Path(np.__file__).parent.parent
    for part in installed.glob("numpy*"):
        (folder / part.name).symlink_to(part)
    path = os.pathsep.join([str(folder), *(p for p in sys.path if p)])
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(folder=str(folder))],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
