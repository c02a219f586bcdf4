"""The flambeau command: what it refuses, and a small demo from beginning to end."""

import json
import re
import sys
from pathlib import Path

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


SMALL = [
    "--n-layer",
    "1",
    "--n-embd",
    "16",
    "--n-head",
    "2",
    "--block-size",
    "8",
    "--batch-size",
    "2",
    "--sample",
    "20",
]


@pytest.mark.parametrize("extra", [["--no-compile"], []], ids=["eager", "compiled"])
def test_small_demo(tmp_path, capsys, extra):
    text = tmp_path / "text.txt"
    text.write_text("to be or not to be, that is the question\n" * 20)
    assert main(["demo", "--steps", "6", "--text", str(text), "--out", str(tmp_path), *SMALL, *extra]) == 0
    out = capsys.readouterr().out
    assert "first compiled call" in out and "equal to 10 digits" in out and "-> one kernel" in out.replace("  ", " ")
    for line in ("first compiled step", "one more token", "the loss curves      agree", "launches"):
        assert (line in out) == (not extra), line
    assert (
        "(medians of" in out
        and "pairs, half of them between" in out
        and "6 steps: loss" in out
        and "words occur in the text" in out
    )
    assert (tmp_path / "flambeau_demo.png").read_bytes().startswith(b"\x89PNG")


def test_the_demo_as_json(tmp_path, capsys):
    text = tmp_path / "text.txt"
    text.write_text("to be or not to be, that is the question\n" * 20)
    assert main(["demo", "--json", "--steps", "6", "--text", str(text), "--out", str(tmp_path), *SMALL]) == 0
    out, err = capsys.readouterr()
    data = json.loads(out)
    for part in (data["function"], data["gpt"]["step"], data["gpt"]["token"]):
        assert part["speed_up"] == part["plain_seconds"] / part["compiled_seconds"] > 0
    assert data["gpt"]["agree"] and data["training"]["steps"] == 6 and Path(data["picture"]).exists()
    assert "first compiled call" in err


def test_peers_are_told_one_by_one(monkeypatch):
    from flambeau.demo import peers
    from flambeau.demo.training import Options

    monkeypatch.setattr(peers, "_programs", lambda options: [
        ("quick", "numpy", "timed(lambda: X + 1, 3)"),
        ("wrong", "numpy", "1 / 0"),
        ("slow", "numpy", "time.sleep(60)"),
        ("absent", "no_such_package", ""),
    ])  # fmt: skip
    monkeypatch.setattr(peers, "PATIENCE", 2)
    quick, wrong, slow, absent = peers.run(Options())
    assert 0 < quick.middle <= quick.first and "ms" in str(quick)
    assert (wrong.why, slow.why, absent.why) == (
        "failed: ZeroDivisionError: division by zero",
        "not done after 2 s",
        "not installed",
    )


def test_help_tells_only_defaults_that_say_something(capsys):
    assert main(["demo", "--help"]) == 0
    out = capsys.readouterr().out
    assert "(default: 900)" in out and "default: None" not in out and "default: False" not in out


def test_the_text_is_english():
    from flambeau.demo.text import Corpus, standard_library_text

    corpus = Corpus(standard_library_text(limit=60_000), 64)
    assert (
        set(corpus.chars) <= set("abcdefghijklmnopqrstuvwxyz ,.'\n") and {"the", "function", "returns"} <= corpus.words
    )


def test_in_turn():
    from flambeau.demo.timing import in_turn

    order = []
    pairs = in_turn(lambda: order.append("a"), lambda: order.append("b"), 4)
    assert (
        order == ["a", "b", "b", "a"] * 2
        and len(pairs.ratios) == 4
        and pairs.speed_up == pairs.medians[0] / pairs.medians[1]
    )


@pytest.mark.parametrize("package", ["rich", "matplotlib"])
def test_demo_without_its_extra(package, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, package, None)
    assert main(["demo"]) == 2
    assert capsys.readouterr().err == (
        f"flambeau demo: error: flambeau demo needs the package '{package}', which is not installed: "
        "pip install 'flambeau[demo]'\n"
    )


def test_a_busy_machine_is_told():
    from flambeau.demo.run import busy

    assert busy(0.7, 1) == [] and busy(1.9, 2) == []
    (line,) = busy(5.2, 2)
    assert line.startswith("The machine is busy: 5 programs run on 2 processors")
