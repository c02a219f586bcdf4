"""Short programs print what PyTorch prints: values, shapes, containers, the layout of the text and the class of errors."""

from __future__ import annotations

from pathlib import Path

import pytest

import flambeau as torch

from .snippets import blocks, printed

FILES = sorted(Path(__file__).parent.glob("*.txt"))
CASES = [pytest.param(code, text, id=f"{f.stem}-{i}") for f in FILES for i, (code, text) in enumerate(blocks(f))]


@pytest.mark.parametrize(("code", "text"), CASES)
def test_prints_what_pytorch_prints(code, text):
    assert printed(torch, code).replace("flambeau", "torch") == text
