"""float16 compiled for processors that have no conversions of it: all numbers there and back, and the roundings of both wider types."""

import os
import subprocess
import sys

import numpy as np
import pytest

import flambeau as torch

SCRIPT = """
import sys
import numpy as np
import flambeau as torch

given = np.load(sys.argv[1])
there = torch.compile(lambda x: x.float() * 1)(torch.from_numpy(given["half"])).numpy()
single = torch.compile(lambda x: (x * 1).half())(torch.from_numpy(given["single"])).numpy()
double = torch.compile(lambda x: (x * 1).half())(torch.from_numpy(given["double"])).numpy()
np.savez(sys.argv[2], there=there, single=single, double=double)
"""


@pytest.mark.parametrize("size", [1, 3, 165])
def test_one_number_computed_in_float64(size):
    """What is left of the vectors is converted one by one; LLVM does that in one step, by a function that a process needn't have."""
    x = torch.linspace(0.1, 4, size).half()
    for f in (lambda x: torch.atan2(x.digamma(), x), lambda x: torch.atan2(x.lgamma(), x)):
        torch.testing.assert_close(torch.compile(f)(x), f(x))


def test_conversions(tmp_path):
    half = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    rng = np.random.default_rng(0)
    with np.errstate(over="ignore", invalid="ignore"):
        single = rng.integers(0, 1 << 32, 100_000, dtype=np.uint32).view(np.float32)
        # Halfway between two neighbours, and a little beside that.
        steps = half[:-1].astype(np.float64) / 2 + half[1:].astype(np.float64) / 2
        double = np.concatenate(
            [steps, steps * (1 + 2e-16), steps * (1 - 2e-16), single.astype(np.float64), half.astype(np.float64)]
        )
        single = np.concatenate([single, steps.astype(np.float32), half.astype(np.float32)])
        expected = {
            "there": half.astype(np.float32),
            "single": single.astype(np.float16),
            "double": double.astype(np.float32).astype(np.float16),
        }
    np.savez(tmp_path / "given.npz", half=half, single=single, double=double)
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "given.npz"), str(tmp_path / "made.npz")]
    subprocess.run(command, check=True, timeout=100, env={**os.environ, "FLAMBEAU_CPU": "default"})
    made = np.load(tmp_path / "made.npz")
    for name, want in expected.items():
        np.testing.assert_array_equal(made[name], want, err_msg=name)
        np.testing.assert_array_equal(np.signbit(made[name]), np.signbit(want), err_msg=name)
