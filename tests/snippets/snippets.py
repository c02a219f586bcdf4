"""Short programs with the text that PyTorch prints for them.

A file holds blocks ``code``, ``=>``, ``text``, separated by lines ``---``. The text of an exception is its first built-in class only.
``python tests/snippets/snippets.py FILE...`` under PyTorch writes the texts anew.
"""

from __future__ import annotations

import contextlib
import io
import sys
import warnings
from pathlib import Path

import numpy as np


def blocks(path: Path) -> list[tuple[str, str]]:
    pairs = []
    for block in path.read_text().split("\n---\n"):
        code, _, text = f"{block.strip()}\n".partition("\n=>\n")
        pairs.append((code, text.strip("\n")))
    return pairs


def printed(torch, code: str) -> str:
    """What ``code`` prints, with a line for the exception that ends it."""
    names = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional, "np": np, "__name__": "snippet"}
    torch.manual_seed(0)
    out = io.StringIO()
    torch.set_printoptions(profile="default")
    with warnings.catch_warnings(), contextlib.redirect_stdout(out):
        warnings.simplefilter("ignore")
        try:
            exec(code, names)
        except Exception as e:
            print(next(c.__name__ for c in type(e).__mro__ if c.__module__ == "builtins"))
        finally:
            torch.set_printoptions(profile="default")
    return out.getvalue().strip("\n")


def record(path: Path) -> None:
    import torch

    done = [f"{code}\n=>\n{printed(torch, code)}" for code, _ in blocks(path)]
    path.write_text("\n---\n".join(done) + "\n")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        record(Path(name))
