"""Programs that import torch, as they are, in two processes. They are jobs of many seconds."""

import importlib.util
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mpi4py", reason="process groups of several processes need the extra `distributed`")
pytestmark = pytest.mark.slow

PROGRAMS = Path(__file__).with_name("programs")
LIMIT = 200


def run(*args):
    env = {
        k: v
        for k, v in os.environ.items()
        if not k.startswith(("PMI", "MASTER_", "TORCHELASTIC")) and k not in ("RANK", "WORLD_SIZE", "LOCAL_RANK")
    }
    command = [sys.executable, "-m", "flambeau.cli", *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout


def needs(package):
    missing = importlib.util.find_spec(package) is None
    return pytest.mark.skipif(missing, reason=f"{package} is not installed")


@pytest.mark.parametrize("compiled", [[], ["compile"]], ids=["eager", "compiled"])
def test_training_script(compiled, tmp_path):
    """Two ranks train as one process does, and go on from a checkpoint."""
    torchrun = ["run", "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2", "--no-prefix"]
    program, norms = PROGRAMS / "gpt_training.py", []
    for name, way in (("one", ["run"]), ("two", torchrun)):
        folder = tmp_path / name
        folder.mkdir()
        norms.append([run(*way, program, folder, steps, *compiled) for steps in (3, 5)])
    assert norms[0] == norms[1]
    assert [re.findall(r"step (\d)", text) for text in norms[1]] == [["0", "1", "2"], ["3", "4"]]


def test_spawned(tmp_path):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    assert run("run", PROGRAMS / "spawned.py", port, tmp_path).count("done") == 2


@needs("accelerate")
def test_accelerate(tmp_path):
    assert run("launch", "--torch", "-n", 2, PROGRAMS / "with_accelerate.py", tmp_path).count("done") == 1


@needs("lightning")
@pytest.mark.parametrize("strategy", ["ddp", "ddp_spawn"])
def test_lightning(strategy, tmp_path):
    """Lightning asks mpi4py for its ranks first, which starts MPI in each process alone."""
    assert "done" in run("run", PROGRAMS / "with_lightning.py", strategy, tmp_path)
