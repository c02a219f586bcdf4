"""The flambeau command: what it refuses, and a small demo from beginning to end."""

import re
import sys

import pytest

from flambeau.cli import main

REFUSED = [
    (["demo", "--steps", "0"], "argument --steps: must be at least 1, got 0"),
    (["demo", "--steps", "many"], "argument --steps: expected a whole number, got 'many'"),
    (["demo", "--lr", "-1"], "argument --lr: must be a positive number"),
    (["demo", "--text", "/no/such/file"], "--text: no such file or folder: /no/such/file"),
    (["demo", "--n-embd", "10", "--n-head", "4"], "--n-embd (10) must be a multiple of --n-head (4)"),
    (["nothing"], "invalid choice: 'nothing'"),
]


@pytest.mark.parametrize("arguments, text", REFUSED, ids=lambda v: v if isinstance(v, str) else "")
def test_refuses(arguments, text, capsys):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2 and text in capsys.readouterr().err


def test_text_too_short(tmp_path, capsys):
    (tmp_path / "t.txt").write_text("abc")
    assert main(["demo", "--text", str(tmp_path / "t.txt"), "--out", str(tmp_path)]) == 2
    assert "has 3 usable characters, but a block needs 66" in capsys.readouterr().err


def test_version(capsys):
    assert main(["--version"]) == 0
    assert re.fullmatch(r"flambeau \d+\.\d+\.\d+\n", capsys.readouterr().out)


SMALL = ["--n-layer", "1", "--n-embd", "16", "--n-head", "2", "--block-size", "8", "--batch-size", "2", "--sample", "5"]


@pytest.mark.parametrize("extra", [["--no-compile"], []], ids=["eager", "compiled"])
def test_small_demo(tmp_path, capsys, extra):
    text = tmp_path / "text.txt"
    text.write_text("to be or not to be, that is the question\n" * 20)
    assert main(["demo", "--steps", "3", "--text", str(text), "--out", str(tmp_path), *SMALL, *extra]) == 0
    out = capsys.readouterr().out
    assert "eager: loss" in out
    assert ("the loss curves agree" in out) == (not extra)
    assert (tmp_path / "flambeau_demo_loss.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("package", ["rich", "matplotlib"])
def test_demo_without_its_extra(package, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, package, None)
    assert main(["demo"]) == 2
    assert capsys.readouterr().err == (
        f"flambeau demo: error: flambeau demo needs the package '{package}', which is not installed: "
        "pip install 'flambeau[demo]'\n"
    )
