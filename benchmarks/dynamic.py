"""Programs whose sizes and numbers vary: how often they are compiled, what the first call of a dynamic graph costs, and a call.

``python benchmarks/dynamic.py`` measures flambeau; ``--torch-python PATH`` measures PyTorch of that interpreter beside it."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time


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
    F = torch.nn.functional
    body = lambda x: F.layer_norm(F.gelu(x), (256,)).softmax(-1)  # noqa: E731
    for label, kwargs in (("static", {"dynamic": False}), ("dynamic", {"dynamic": True})):
        times = []
        for k in range(5):
            torch._dynamo.reset()
            f = torch.compile(lambda x, k=k: body(x) + k, **kwargs)
            x = torch.ones(64 + k, 256)
            start = time.perf_counter()
            f(x)
            times.append(time.perf_counter() - start)
        out[f"first call, {label} (ms)"] = round(statistics.median(times) * 1e3, 1)
        torch._dynamo.reset()
        for text, fn, x in (
            ("8x8 x*2+1", lambda x: x * 2 + 1, torch.ones(8, 8)),
            ("512x256 gelu, layer_norm, softmax", body, torch.ones(512, 256)),
        ):
            f = torch.compile(fn, **kwargs)
            for _ in range(20):
                f(x)
            times = []
            for _ in range(30):
                start = time.perf_counter()
                for _ in range(50):
                    f(x)
                times.append((time.perf_counter() - start) / 50)
            out[f"call {text}, {label} (us)"] = round(min(times) * 1e6, 2)
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--torch-python", help="an interpreter that has PyTorch")
    parser.add_argument("--peer", default="flambeau", help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true", help=argparse.SUPPRESS)
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
    print("| what | flambeau | torch |\n| --- | --- | --- |")
    for what, value in ours.items():
        print(f"| {what} | {value} | {theirs.get(what, '')} |")


if __name__ == "__main__":
    main()
