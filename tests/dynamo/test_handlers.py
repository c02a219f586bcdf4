"""Handlers that compile while their own thread loads the compiler, or is in the middle of an operator: a process of its own for each kind."""

import os
import subprocess
import sys

import pytest

import flambeau as torch
from flambeau import _C
from flambeau.core.keys import AUTOGRAD

HEAD = """
import gc, os, sys
import flambeau as torch
ran, busy, wrong = [0], [False], []
def handle():
    if busy[0] or ran[0] == 40:
        return
    busy[0] = True
    ran[0] += 1
    k = ran[0]
    try:
        @torch.compile(backend=sys.argv[1])
        def g(x):
            return (x * k).sin()
        if not torch.allclose(g(torch.ones(3)), (torch.ones(3) * k).sin()):
            wrong.append(k)
    except BaseException as e:
        wrong.append(repr(e))
    finally:
        busy[0] = False
def main(x, w):
    for i in range(2):
        x = torch.nn.functional.gelu(x @ w + i)
    return x.softmax(-1).std()
"""
TAIL = """
x, y, w = torch.ones(4, 8, requires_grad=True), torch.ones(4, 8, requires_grad=True), torch.full((8, 8), 0.1)
torch.compile(main, backend=sys.argv[1])(x, w).backward()
main(y, w).backward()
assert torch.allclose(x.grad, y.grad, atol=1e-6)
assert ran[0] and not wrong, (ran, wrong)
os._exit(0)  # the handlers may not run while the interpreter is taken down
"""
WAYS = {
    "audit hook": """
seen = [0]
def hook(event, args):
    seen[0] += 1
    if seen[0] % 60 == 0:
        handle()
sys.addaudithook(hook)
""",
    "finder of modules": """
class Finder:
    def find_spec(self, name, path=None, target=None):
        handle()
sys.meta_path.insert(0, Finder())
""",
    "finaliser": """
class Gone:
    def __del__(self):
        handle()
def collected(phase, info, turns=[0]):
    turns[0] += 1
    if turns[0] % 9 == 0:
        Gone()
gc.set_threshold(40)
gc.callbacks.append(collected)
""",
    "callback of a weak reference": """
import weakref
class Seen: pass
kept = []
def collected(phase, info, turns=[0]):
    turns[0] += 1
    if turns[0] % 9 == 0:
        seen = Seen()
        kept.append(weakref.ref(seen, lambda r: handle()))
gc.set_threshold(40)
gc.callbacks.append(collected)
""",
    "handler of a log": """
import logging
class Handler(logging.Handler):
    def emit(self, record):
        handle()
torch._logging.set_logs(dynamo=logging.DEBUG, graph_breaks=True)
logging.getLogger("flambeau").addHandler(Handler())
logging.getLogger("torch").addHandler(Handler())
logging.root.addHandler(Handler())
""",
}


@pytest.mark.parametrize("backend", ["inductor"])
@pytest.mark.parametrize("way", WAYS)
def test_handlers_that_compile(way, backend, tmp_path):
    env = os.environ | {"FLAMBEAU_CACHE_DIR": str(tmp_path)}
    ran = subprocess.run(
        [sys.executable, "-c", HEAD + WAYS[way] + TAIL, backend], env=env, capture_output=True, text=True, timeout=240
    )
    assert ran.returncode == 0, ran.stderr[-3000:]


def test_a_call_inside_of_an_operator_runs_plainly():
    """A finaliser that runs while an operator computes: nothing is compiled for a state that no other call has."""
    made = []

    def backend(gm, examples):
        made.append(gm)
        return gm

    @torch.compile(backend=backend)
    def f(x):
        return (x * 2).sin()

    x = torch.ones(3, requires_grad=True)
    before = _C.exclude(AUTOGRAD)
    try:
        y = f(x)
    finally:
        _C.restore(before)
    assert not y.requires_grad and not made
    f(x).sum().backward()
    assert made and x.grad is not None
