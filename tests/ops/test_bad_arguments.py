"""What PyTorch refuses is refused, with the same class of error and the gist of its words: plainly, captured and compiled.

A table is a file of bad_arguments/ with rows ``expression !! Class: words of the message``, recorded from PyTorch 2.13 (CPU). Behind a
second ``!!`` stands where it isn't so: ``not compiled`` (as in PyTorch, compiled code doesn't look at these values, or the compiler's own
error names the cause) or ``plainly``, in neither."""

import builtins
import pathlib
import re

import numpy as np
import pytest

import flambeau as torch

TABLES = pathlib.Path(__file__).with_name("bad_arguments")
ROWS = [tuple(row.split(" !! ")) for path in sorted(TABLES.glob("*.txt")) for row in path.read_text().splitlines()]
BACKENDS = {"plain": None, "captured": "eager", "compiled": "inductor"}
LEFT_OUT = {"not compiled": ("compiled",), "plainly": ("captured", "compiled")}
NAMES = {
    "torch": torch,
    "nn": torch.nn,
    "F": torch.nn.functional,
    "T": torch.tensor,
    "np": np,
    "x": torch.arange(12.0).view(3, 4),
    "i": torch.tensor([0, 2, 1]),
    "nan": float("nan"),
    "inf": float("inf"),
}


def cases():
    for expression, error, *where in ROWS:
        for way in BACKENDS:
            if not where or way not in LEFT_OUT[where[0]]:
                yield pytest.param(way, expression, error, id=f"{way}-{expression}")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way,expression,error", list(cases()))
def test_refused(way, expression, error):
    name, _, words = error.partition(":")
    kind = torch.linalg.LinAlgError if name == "LinAlgError" else getattr(builtins, name)
    names = {k: v.clone() if isinstance(v, torch.Tensor) else v for k, v in NAMES.items()}
    fn = eval(f"lambda x, i: ({expression})", names)
    if way != "plain":
        fn = torch.compile(fn, backend=BACKENDS[way])
    with pytest.raises(kind, match=re.escape(words.strip())):
        fn(names["x"], names["i"])
    assert torch.is_grad_enabled()
    assert all(torch.equal(names[k], NAMES[k]) for k in ("x", "i")), "an argument was changed before the error"
