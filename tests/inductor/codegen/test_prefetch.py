"""What is asked for ahead: a loop that only sums one operand asks for nothing where the processor foresees it, and gives the same bits;
and one whose buffers lie in the third-level cache, where the processor follows it."""

import numpy as np
import pytest

import flambeau as torch
from flambeau.inductor.codegen import prefetch
from flambeau.inductor.settings import config
from flambeau.inductor.utils import run_and_get_code


@pytest.mark.parametrize(
    ("f", "only"),
    [
        (lambda x, y: x.sum(-1), True),
        (lambda x, y: x.abs().sum(), True),
        (lambda x, y: (x * y).sum(-1), False),
        (lambda x, y: x.relu(), False),
        (lambda x, y: x.softmax(-1), False),
    ],
    ids=["sum of rows", "sum of all", "two operands", "no sum", "two loops"],
)
def test_sums(monkeypatch, f, only):
    x, y = (torch.from_numpy(np.random.default_rng(i).normal(size=(128, 2048)).astype("f4")) for i in (0, 1))
    made, asked = [], []
    fetch = prefetch.fetch
    monkeypatch.setattr(prefetch, "fetch", lambda *how: (asked.append(how), fetch(*how)))
    monkeypatch.setattr(prefetch, "follows_runs", lambda: False)
    counts = []
    for foreseen in (False, True):
        monkeypatch.setattr(prefetch, "foresees_sums", lambda foreseen=foreseen: foreseen)
        torch.compiler.reset()
        asked.clear()
        with config.patch(force_disable_caches=True):
            made.append(torch.compile(f)(x, y))
        counts.append(len(asked))
    assert torch.equal(*made)
    assert counts[0] > 0
    assert counts[1] == (0 if only else counts[0])


def sums(x):
    return x.sum(-1)


def copies(x):
    return x.relu()


def halves(x):
    """Its lines don't lie one behind the other."""
    return x[:, : x.shape[1] // 2].sum(-1)


@pytest.mark.parametrize(
    ("f", "rows", "follows", "there"),
    [
        (sums, 1024, False, True),
        (sums, 64, False, False),
        (sums, 1024, True, False),
        (sums, 4097, True, False),
        (sums, 8192, True, True),
        (copies, 2048, True, False),
        (copies, 4096, True, True),
        (halves, 1024, True, True),
    ],
)
def test_runs(monkeypatch, f, rows, follows, there):
    monkeypatch.setattr(prefetch, "foresees_sums", lambda: False)
    monkeypatch.setattr(prefetch, "follows_runs", lambda: follows)
    torch.compiler.reset()
    with config.patch(force_disable_caches=True):
        _, codes = run_and_get_code(torch.compile(f), torch.zeros(rows, 1024))
    assert any("@llvm.prefetch" in code for code in codes) is there
