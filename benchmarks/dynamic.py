"""Programs whose sizes and numbers vary: how often they are compiled, what the first call of a dynamic graph costs, a call, and a kernel.

``python benchmarks/dynamic.py [--out FILE] [--into DOCUMENT]`` measures flambeau; ``--torch-python PATH`` measures PyTorch of that interpreter
beside it. Of a kernel, the static and the dynamic one are called in turn, and the median of the ratios of neighbours is quoted."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import time
import types
from pathlib import Path

import report

GPT = Path(__file__).resolve().parents[1] / "src/flambeau/examples/gpt.py"


def programs(torch):
    nn = torch.nn
    ones = torch.ones

    class Cache(nn.Module):
        def __init__(self):
            super().__init__()
            self.k = None

        def forward(self, x):
            self.k = x if self.k is None else torch.cat([self.k, x], 0)
            return self.k.sum(0)

    def broken(x):
        y = x * 2
        torch._dynamo.graph_break()
        return y + x.shape[0]

    def marked(n):
        x = ones(n, 4)
        torch._dynamo.mark_dynamic(x, 0)
        return (x,)

    def model():
        return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))

    class Schedule:
        def __init__(self, compile):
            m = nn.Linear(2, 1)
            opt = torch.optim.Adam(m.parameters(), lr=0.1)
            self.step, self.opt, self.model = compile(opt.step), opt, m

        def __call__(self, lr):
            for g in self.opt.param_groups:
                g["lr"] = lr
            self.opt.zero_grad()
            self.model(ones(2, 2)).sum().backward()
            self.step()

    rows = [(ones(n, 4),) for n in range(2, 12)]
    return {
        "10 batch sizes": (lambda c: c(model()), rows, {"fullgraph": True}),
        "10 batch sizes, mark_dynamic": (
            lambda c: c(lambda x: x * 2),
            [marked(n) for n in range(2, 12)],
            {"fullgraph": True},
        ),
        "10 batch sizes, dynamic=True": (lambda c: c(model()), rows, {"fullgraph": True, "dynamic": True}),
        "graph break and 10 sizes": (lambda c: c(broken), rows, {}),
        "float argument": (
            lambda c: c(lambda x, a: x * a),
            [(ones(2), i / 7) for i in range(2, 14)],
            {"fullgraph": True},
        ),
        "int argument": (lambda c: c(lambda x, k: x * k), [(ones(2), i) for i in range(2, 14)], {"fullgraph": True}),
        "key-value cache to 200": (lambda c: c(Cache()), [(ones(1, 2),)] * 200, {"fullgraph": True}),
        "Adam with a schedule": (Schedule, [(0.1 / (i + 1),) for i in range(12)], {}),
    }


def measure(name: str) -> dict:
    torch = __import__(name)
    __import__(f"{name}._dynamo")
    out = {}
    for what, (make, calls, kwargs) in programs(torch).items():
        torch._dynamo.reset()
        count = 0

        def backend(gm, examples):
            nonlocal count
            count += 1
            return gm.forward

        f = make(lambda fn, backend=backend, kwargs=kwargs: torch.compile(fn, backend=backend, **kwargs))
        for args in calls:
            f(*args)
        out[what] = count
    out.update(first_calls(torch))
    out.update(small_calls(torch))
    out.update(kernels(torch))
    return out


def body(torch, x):
    F = torch.nn.functional
    return F.layer_norm(F.gelu(x), (256,)).softmax(-1)


def first_calls(torch) -> dict:
    """Milliseconds; each function is new, so that nothing of it was compiled before."""
    times: dict[str, list] = {"static": [], "dynamic": []}
    for k in range(9):
        for label in times:
            torch._dynamo.reset()
            f = torch.compile(
                lambda x, k=k + 0.5 * (label == "dynamic"): body(torch, x) + k, dynamic=label == "dynamic"
            )
            x = torch.ones(64 + k, 256)
            start = time.perf_counter()
            f(x)
            times[label].append(time.perf_counter() - start)
    out = {f"first call, {label} (ms)": round(statistics.median(t[1:]) * 1e3, 1) for label, t in times.items()}
    ratio = statistics.median(d / s for s, d in list(zip(times["static"], times["dynamic"]))[1:])
    return {**out, "first call, dynamic / static": round(ratio, 2)}


def small_calls(torch) -> dict:
    """Microseconds of a call of 8x8, in which the kernel hardly counts."""
    out = {}
    for label, dynamic in (("static", False), ("dynamic", True)):
        torch._dynamo.reset()
        f = torch.compile(lambda x: x * 2 + 1, dynamic=dynamic)
        x = torch.ones(8, 8)
        out[f"call x * 2 + 1 of 8x8, {label} (us)"] = round(repeated(lambda f=f, x=x: f(x), 2000) * 1e6, 2)
    return out


def repeated(f, count: int) -> float:
    """Seconds of a call: the least of many short rounds."""
    for _ in range(20):
        f()
    best = float("inf")
    for _ in range(30):
        start = time.perf_counter()
        for _ in range(count // 30):
            f()
        best = min(best, (time.perf_counter() - start) / (count // 30))
    return best


def gpt_step(torch, dynamic: bool | None):
    """step(batch size): a training step of the GPT of the demo (2 layers), model compiled."""
    module = types.ModuleType("gpt")  # dataclasses look their module up
    sys.modules["gpt"] = module
    source = GPT.read_text().replace("import flambeau as torch", f"import {torch.__name__} as torch")
    exec(compile(source, str(GPT), "exec"), module.__dict__)
    torch.manual_seed(0)
    model = module.GPT(module.GPTConfig(vocab_size=96, block_size=64, n_layer=2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    compiled = torch.compile(model, dynamic=dynamic)
    data = {n: torch.randint(0, 96, (n, 64)) for n in (4, 8, 16)}

    def step(n):
        optimizer.zero_grad()
        x = data[n]
        _, loss = compiled(x, x)
        loss.backward()
        optimizer.step()

    return step


def own_code(f):
    """``f`` with a code object of its own: PyTorch keeps what it compiled by code object, whatever it was compiled for."""
    return types.FunctionType(f.__code__.replace(), f.__globals__, f.__name__, f.__defaults__, f.__closure__)


def kernels(torch) -> dict:
    """Dynamic over static, for several sizes from one dynamic graph: the second size that is met makes the rows vary."""
    F = torch.nn.functional
    numpy = importlib.import_module("numpy")
    w, b = torch.randn(1024), torch.randn(1024)

    def gelu_norm(x):
        return F.layer_norm(F.gelu(x), (1024,), w, b)

    def softmax(x):
        return torch.softmax(x, -1)

    def outer_sum(x):
        return numpy.sum(x[:, :, None] * x[:, None, :], axis=(-2, -1))

    cases = {
        "gelu + layer_norm": (gelu_norm, lambda n: torch.randn(n, 1024), (64, 512, 4096)),
        "softmax": (softmax, lambda n: torch.randn(n, 1024), (64, 512, 4096)),
        "np.sum(X[:, :, None] * X[:, None, :])": (outer_sum, lambda n: numpy.random.randn(n, 64), (64, 256, 1024)),
    }
    out = {}
    for what, (f, make, sizes) in cases.items():
        torch._dynamo.reset()
        dynamic = torch.compile(own_code(lambda x, f=f: f(x)))
        dynamic(make(37))
        dynamic(make(41))
        for n in sizes:
            x = make(n)
            static = torch.compile(own_code(lambda x, f=f: f(x)), dynamic=False)
            out.update(side_by_side(f"{what}, {n} rows", lambda s=static, x=x: s(x), lambda d=dynamic, x=x: d(x)))
    torch._dynamo.reset()
    dynamic = gpt_step(torch, None)
    dynamic(4)
    dynamic(8)
    for n in (4, 8, 16):
        static_step = gpt_step(torch, False)
        out.update(side_by_side(f"GPT step, batch {n}", lambda s=static_step, n=n: s(n), lambda n=n: dynamic(n)))
    return out


def side_by_side(what: str, static, dynamic) -> dict:
    """Milliseconds of the dynamic one and the ratio, from calls in turn."""
    for _ in range(3):
        static()
        dynamic()
    once = max(min(timed(static), timed(static)), 1e-7)
    inner = max(1, int(2e-3 / once))
    rounds = max(15, min(60, int(1.0 / (once * inner * 2))))
    a, b = [], []
    for k in range(rounds):
        for f, t in ((static, a), (dynamic, b)) if k % 2 else ((dynamic, b), (static, a)):
            start = time.perf_counter()
            for _ in range(inner):
                f()
            t.append((time.perf_counter() - start) / inner)
    ratio = statistics.median(d / s for s, d in zip(a, b))
    return {f"{what}, dynamic (ms)": round(min(b) * 1e3, 3), f"{what}, dynamic / static": round(ratio, 2)}


def timed(f) -> float:
    start = time.perf_counter()
    f()
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--torch-python", help="an interpreter that has PyTorch")
    parser.add_argument("--peer", default="flambeau", help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true", help=argparse.SUPPRESS)
    report.add_options(parser)
    args = parser.parse_args()
    ours = measure(args.peer)
    if args.json:
        print(json.dumps(ours))
        return
    theirs = {}
    if args.torch_python:
        done = subprocess.run(
            [args.torch_python, os.path.abspath(__file__), "--peer", "torch", "--json"], capture_output=True, text=True
        )
        if done.returncode:
            sys.exit(done.stderr)
        theirs = json.loads(done.stdout.splitlines()[-1])
    lines = ["| what | flambeau | torch |", "| --- | --- | --- |"]
    lines += [f"| {what} | {value} | {theirs.get(what, '')} |" for what, value in ours.items()]
    report.publish("\n".join(lines), args)


if __name__ == "__main__":
    main()
