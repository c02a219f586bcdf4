"""Programs in the form of PyTorch's public tutorials and examples run under ``flambeau run``, unchanged, and print what they print on PyTorch.

``recorded.json`` has PyTorch 2.13's output: ``python test_tutorials.py`` writes it with an interpreter that has PyTorch.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.children import Parent

HERE = Path(__file__).parent
# Program -> the command lines it is run with.
PROGRAMS = {
    "mnist": ["", "--batch-size 24 --epochs 1 --no-accel"],
    "classifier": [""],
    "dcgan": [""],
    "seq2seq": [""],
    "word_language_model": ["", "--model GRU", "--model RNN_TANH --tied", "--model Transformer --epochs 1"],
    "transfer_learning": [""],
    "vae": [""],
    "time_sequence": [""],
    "char_rnn": [""],
    "reinforce": [""],
    "super_resolution": [""],
    "siamese": [""],
    "actor_critic": [""],
    "graph_attention": ["", "--model gat"],
    "neural_style": [""],
    "nano_gpt": ["", "--compile", "--dtype bfloat16"],  # compiled, it prints what it prints plain
    "cifar_resnet": [""],
}
RUNS = [f"{name} {options}".strip() for name, lines in PROGRAMS.items() for options in lines]
_NUMBER = re.compile(r"-?\d+\.\d+(?:e[-+]?\d+)?")


def output(command, run) -> str:
    name, *options = run.split()
    done = subprocess.run([*command, f"{name}.py", *options], cwd=HERE, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def parent():
    with Parent() as parent:
        yield parent


# The first program has a process of its own from the beginning.
@pytest.mark.timeout(300)
@pytest.mark.parametrize("run", RUNS)
def test_program(run, request, tmp_path):
    want = json.loads((HERE / "recorded.json").read_text())[run]
    if run == RUNS[0]:
        got = output([sys.executable, "-m", "flambeau.cli", "run"], run)
    else:
        name, *options = run.split()
        parent = request.getfixturevalue("parent")
        done = parent.run("-m", "flambeau.cli", "run", f"{name}.py", *options, cwd=HERE, folder=tmp_path)
        assert done.returncode == 0, done.stderr[-3000:]
        got = done.stdout
    assert _NUMBER.sub("#", got) == _NUMBER.sub("#", want)
    for a, b in zip(_NUMBER.findall(want), _NUMBER.findall(got)):
        assert float(b) == pytest.approx(float(a), rel=2e-2, abs=2e-3), f"{want}\n{got}"


if __name__ == "__main__":
    os.environ.pop("PYTHONPATH", None)
    (HERE / "recorded.json").write_text(
        json.dumps({run: output([sys.executable], run) for run in RUNS}, indent=1) + "\n"
    )
