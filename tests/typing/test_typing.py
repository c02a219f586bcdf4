"""What type checkers say of the package: the stubs are current, and code as users write it has no errors."""

import importlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TYPICAL = Path(__file__).with_name("typical.py")


def run(*command, cwd=None):
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=300)


def test_typical_code_runs(capsys):
    spec = importlib.util.spec_from_file_location("typical", TYPICAL)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    module.main()
    assert len(capsys.readouterr().out.splitlines()) == 5


def test_stubs_are_current():
    """The stubs beside the package are what tools/stubs.py writes."""
    done = run(sys.executable, str(ROOT / "tools/stubs.py"), "--check")
    assert done.returncode == 0, done.stdout + done.stderr


WRONG = """\
import flambeau as torch
from flambeau import nn

x = torch.zeros(2, 3)
{}
"""
# What a checker has to refuse, for the types to mean anything: (line, text of the error).
MISTAKES = [
    ("torch.zeroes(2)", "zeroes"),
    ("x.sqeeze()", "sqeeze"),
    ("x.sum().item_()", "item_"),
    ("torch.cat(x, x, x)", "cat|argument|overload"),
    ("nn.Linear('a')", "out_features|Linear"),
    ("torch.sort(x).vals", "vals"),
    ("n: str = x.shape", "str"),
    ("k: int = torch.softmax(x, 0)", "int"),
]


@pytest.mark.parametrize("checker", ["pyright", "mypy"])
def test_checkers_accept_the_typical_file_and_refuse_mistakes(checker, tmp_path):
    """One run of each checker on the typical file, one on a file of mistakes."""
    if shutil.which(checker) is None:
        pytest.skip(f"{checker} isn't installed: it is in the extra dev")
    right, wrong = tmp_path / "typical.py", tmp_path / "mistakes.py"
    right.write_text(TYPICAL.read_text())
    wrong.write_text(WRONG.format("\n".join(line for line, _ in MISTAKES)))
    environment = (["--pythonpath"] if checker == "pyright" else ["--python-executable"]) + [sys.executable]
    accepted = run(checker, *environment, str(right), cwd=tmp_path)
    assert accepted.returncode == 0, accepted.stdout + accepted.stderr
    refused = run(checker, *environment, str(wrong), cwd=tmp_path).stdout
    first = len(WRONG.splitlines())
    for number, (line, text) in enumerate(MISTAKES, first):
        said = [row for row in refused.splitlines() if re.search(rf"mistakes\.py:{number}:", row)]
        assert any(re.search(text, row) for row in said), f"{line}: {said}\n{refused}"
