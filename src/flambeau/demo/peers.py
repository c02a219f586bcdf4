"""``--peers``: the NumPy function and the GPT step by other libraries, where they are installed. Each runs in a process of its own."""

from __future__ import annotations

import importlib.util
import inspect
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flambeau.demo.training import Options
from flambeau.examples import gpt

__all__ = ["Peer", "run"]

PATIENCE = 300  # seconds for each
TIMED = """
import json, time
from statistics import median
import numpy as np

X = np.random.default_rng(0).standard_normal((1024, 64))

def timed(fn, calls):
    begin = time.perf_counter()
    fn()
    first, times = time.perf_counter() - begin, []
    for _ in range(calls):
        begin = time.perf_counter()
        fn()
        times.append(time.perf_counter() - begin)
    print(json.dumps([first, median(times), min(times)]), flush=True)
"""
ARRAYS = """
def outer_sum(X, Y):
    return np.sum(X[:, :, None] * Y[:, None, :], axis=(-2, -1))
"""
COMPILED_ARRAYS = """
import {module} as torch
fn = torch.compile(outer_sum)
timed(lambda: fn(X, X), 21)
"""
NUMBA = """
import numba

@numba.njit(parallel=True)
def outer_sum(X, Y):
    out = np.empty(X.shape[0])
    for i in numba.prange(X.shape[0]):
        s = 0.0
        for j in range(X.shape[1]):
            for k in range(Y.shape[1]):
                s += X[i, j] * Y[i, k]
        out[i] = s
    return out

timed(lambda: outer_sum(X, X), 21)
"""
STEP = """
torch.manual_seed({seed})
model = GPT(GPTConfig(31, {block}, {layer}, {head}, {embd}))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
forward, update = (torch.compile(model), torch.compile(optimizer.step)) if {compiled} else (model, optimizer.step)
x = torch.randint(0, 31, ({batch}, {block}))

def step():
    _, loss = forward(x, x)
    optimizer.zero_grad()
    loss.backward()
    update()

timed(step, 15)
"""


def _programs(options: Options) -> list[tuple[str, str, str]]:
    """(what, package, program) of all that may be compared."""
    model = inspect.getsource(gpt).partition('if __name__ == "__main__"')[0].removeprefix(inspect.getdoc(gpt) or "")
    model = model[model.index("from dataclasses") :]
    found = [
        ("NumPy function, NumPy", "numpy", ARRAYS + "timed(lambda: outer_sum(X, X), 21)"),
        ("NumPy function, flambeau", "flambeau", ARRAYS + COMPILED_ARRAYS.format(module="flambeau")),
        ("NumPy function, numba (loops written by hand)", "numba", NUMBA),
        ("NumPy function, torch.compile", "torch", ARRAYS + COMPILED_ARRAYS.format(module="torch")),
    ]
    for compiled in (False, True):
        for package in ("flambeau", "torch"):
            text = model.replace("import flambeau as torch", f"import {package} as torch") + STEP.format(
                seed=options.seed,
                block=options.block_size,
                layer=options.n_layer,
                head=options.n_head,
                embd=options.n_embd,
                batch=options.batch_size,
                compiled=compiled,
            )
            found.append((f"GPT step, {package} {'compiled' if compiled else 'eager'}", package, text))
    return found


@dataclass
class Peer:
    """How one library did: seconds of the first call, the median and the least of the others, or why there are none."""

    what: str
    first: float | None = None
    middle: float | None = None
    least: float | None = None
    why: str | None = None

    def __str__(self) -> str:
        if self.first is None or self.middle is None or self.least is None:
            return f"{self.what:<46} {self.why}"
        then = f"{1000 * self.middle:8.2f} ms (least {1000 * self.least:.2f})"
        return f"{self.what:<46} first {self.first:6.2f} s, then {then}"

    def as_data(self) -> dict[str, Any]:
        """What a program reads of it."""
        return {
            "what": self.what,
            "first_seconds": self.first,
            "seconds": self.middle,
            "least_seconds": self.least,
            "why_not": self.why,
        }


def run(options: Options) -> Iterator[Peer]:
    """Time all, one after the other; each is told when it is done."""
    for found in _programs(options):
        yield _timed(*found)


def _timed(what: str, package: str, program: str) -> Peer:
    if importlib.util.find_spec(package) is None:
        return Peer(what, why="not installed")
    if package == "torch" and not Path(importlib.util.find_spec("torch").origin or "").with_name("nn").is_dir():
        return Peer(what, why="the installed torch is flambeau's shim")
    try:
        done = subprocess.run([sys.executable, "-c", TIMED + program], capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return Peer(what, why=f"not done after {PATIENCE} s")
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return Peer(what, why=f"failed: {reason[:90]}")
    return Peer(what, *json.loads(done.stdout.splitlines()[-1]))
