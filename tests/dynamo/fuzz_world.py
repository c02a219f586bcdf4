"""Random programs whose world changes between calls: a function that reads classes, objects, modules, functions, containers and settings, and writes
to some, is called plainly and compiled, with random changes in between (a method patched, an attribute deleted, an object swapped, a mode entered).

``python fuzz_world.py SEED [COUNT] [BACKENDS]`` runs many; a failing program is printed with its seed.
"""

import builtins
import contextlib
import math
import os
import random
import sys
import types
import warnings

from programs import attempt, differ, snapshot
from world_tables import CHANGES, READS, SETUP, WATCHED, WRITES

import flambeau as torch
from flambeau import _frame
from flambeau.compiler import compile, reset
from flambeau.dynamo.config import config

# How a read may be wrapped: guards have to hold through everything that is inlined.
PLACES = (
    "{}",
    "{}",
    "{}",
    "(lambda: {})()",
    "[{} for _ in range(2)][1]",
    "help{i}(x)",
    "Helper(x).get{i}()",
    "next(gen{i}(x))",
    "max([{}], key=lambda _: 0)",
)


def names(text: str) -> set[str]:
    for c in "().,[]=\"':{}":
        text = text.replace(c, " ")
    return {w for w in text.split() if w.isidentifier()} - {
        "torch",
        "x",
        "s",
        "n",
        "lambda",
        "I",
        "F",
        "1",
        "self",
        "if",
        "else",
    }


def source(seed: int) -> tuple[str, list[str]]:
    """The functions, and the statements between the calls of the last."""
    r = random.Random(seed)
    reads = r.sample(READS, r.randint(1, 5))
    before, body = [], ["def f(x):", "    y = x * 1"]
    for i, e in enumerate(reads):
        place = r.choice(PLACES)
        if "help" in place:
            before.append(f"def help{i}(x): return {e}")
        if "Helper" in place:
            before.append(
                f"class Helper:\n    def __init__(self, x): self.x = x\n    def get{i}(self):\n        x = self.x\n        return {e}"
            )
        if "gen" in place:
            before.append(f"def gen{i}(x): yield {e}")
        body.append("    y = y * 2 + (" + place.replace("{i}", str(i)).replace("{}", e) + ")")
        if r.random() < 0.2:
            body.append("    " + r.choice(WRITES))
    if any("global G" in line for line in body):
        body = [line.replace("global G; ", "") for line in body]
        body.insert(1, "    global G")
    f = "\n".join([*before, *body, "    return y", ""])
    near = [c for c in CHANGES if names(c) & names(" ".join(reads))]
    changes = []
    for _ in range(r.randint(3, 7)):
        text = r.choice(near if near and r.random() < 0.85 else CHANGES)
        if r.random() < 0.1:
            text = "I = I + 1"
        for mark, value in (("I", f"{r.randint(3, 9)}"), ("F", f"{r.randint(3, 9)}.5")):
            for left in " (=,{[":
                for right in ("", ")", ",", "}", "]", " ", ";"):
                    if right or text.endswith(left + mark):
                        text = text.replace(left + mark + right, left + value + right)
        changes.append(text)
    return f, changes


@contextlib.contextmanager
def put_back():
    """What a program may patch outside of its own world is put back."""
    owners = (torch, torch.nn.functional, builtins, math, torch.Tensor, torch.nn.Module, torch.nn.Linear, torch.nn.ReLU)
    kept = [(o, dict(vars(o))) for o in owners]
    environment, threads = dict(os.environ), torch.get_num_threads()
    try:
        yield
    finally:
        for o, was in kept:
            for k in [k for k in vars(o) if k not in was and not k.startswith("__")]:
                if isinstance(o, type) or not isinstance(vars(o)[k], types.ModuleType):
                    delattr(o, k)
            for k, v in was.items():
                if vars(o).get(k) is not v and not k.startswith("__"):
                    setattr(o, k, v)
        os.environ.clear()
        os.environ.update(environment)
        sys.modules.pop("zmod", None)
        torch.set_num_threads(threads)
        torch.use_deterministic_algorithms(False)
        torch.set_default_dtype(torch.float32)
        torch.set_grad_enabled(True)


def told(error: tuple) -> tuple:
    """Texts of errors differ in addresses; of what must not happen they are wanted."""
    return error if error[1] in ("RuntimeWarning", "InternalTorchDynamoError") else error[:2]


def run_one(f: str, changes: list[str], C) -> list:
    space: dict = {"__name__": "a_world"}
    with put_back():
        exec(SETUP + f, space)
        space["I"] = 7
        space["x"] = torch.tensor([1.0, -2.0])
        call, out = C(space["f"]), []

        def within(x):
            with space["ctx"]():
                return call(x)

        for change in ["pass", "pass", *changes, "pass"]:
            attempt(exec, change, space)
            r = attempt(within, space["x"])
            out.append(told(r) if isinstance(r, tuple) and r[:1] == ("error",) else snapshot(r))
            out.append(snapshot([attempt(eval, w, space) for w in WATCHED]))
    return out


def run(seed: int, backend: str = "eager") -> None:
    f, changes = source(seed)
    want = run_one(f, changes, lambda g: g)
    reset()
    old = _frame.set_strict_guards(True)
    try:
        with warnings.catch_warnings(), config.patch(strict_capture=True, cache_size_limit=32):
            warnings.simplefilter("error", RuntimeWarning)
            got = run_one(f, changes, lambda g: compile(g, backend=backend))
    finally:
        _frame.set_strict_guards(old)
    where = differ(want, got)
    assert where is None, f"seed {seed}: {where}\n{f}\n" + "\n".join(changes)


if __name__ == "__main__":
    first, count = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    backends = sys.argv[3].split(",") if len(sys.argv) > 3 else ["eager"]
    failed = 0
    for seed in range(first, first + count):
        for backend in backends:
            try:
                run(seed, backend)
            except Exception as e:
                failed += 1
                print(backend, type(e).__name__, e, flush=True)
    print(f"{count} programs, {failed} failed")
