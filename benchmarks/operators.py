"""Operators one by one: flambeau eager and compiled, beside PyTorch eager and NumPy, small and large inputs.

    python benchmarks/operators.py --torch-python /path/to/python [--only REGEX] [--rounds 5] [--out FILE] [--into DOCUMENT]

A case is one line of ``CASES``: a name, an expression on the inputs in words that both libraries share, the NumPy expression (or None) and the
inputs' shapes, small and large. Each library runs in a worker of its own (this file with ``--worker``); the rounds of both alternate, each is the
minimum of some repetitions long enough to be timed, and the table has the medians in microseconds and the ratio to PyTorch.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import time

import numpy as np
import report

V = ((64,), (1 << 20,))  # vectors
M = ((16, 16), (1024, 1024))  # matrices
CASES = [
    *[(n, f"torch.{n}(a)", f"np.{n}(a)", V) for n in "abs neg exp log sqrt sin tanh floor".split() if n != "neg"],
    ("neg", "-a", "-a", V),
    ("sigmoid", "torch.sigmoid(a)", "1 / (1 + np.exp(-a))", V),
    ("relu", "torch.relu(a)", "np.maximum(a, 0)", V),
    ("gelu", "F.gelu(a)", None, V),
    ("silu", "F.silu(a)", None, V),
    ("erf", "torch.erf(a)", None, V),
    ("lgamma", "torch.lgamma(a)", None, V),
    ("add", "a + b", "a + b", V),
    ("mul", "a * b", "a * b", V),
    ("div", "a / b", "a / b", V),
    ("pow", "a ** 3", "a ** 3", V),
    ("atan2", "torch.atan2(a, b)", "np.arctan2(a, b)", V),
    ("maximum", "torch.maximum(a, b)", "np.maximum(a, b)", V),
    ("where", "torch.where(a > b, a, b)", "np.where(a > b, a, b)", V),
    ("clamp", "a.clamp(0.2, 0.8)", "np.clip(a, 0.2, 0.8)", V),
    ("add_", "a.add_(b)", None, V),
    ("sum", "a.sum()", "a.sum()", V),
    ("mean dim", "a.mean(1)", "a.mean(1)", M),
    ("var", "a.var(1)", "a.var(1, ddof=1)", M),
    ("amax", "a.amax(0)", "a.max(0)", M),
    ("argmax", "a.argmax(1)", "a.argmax(1)", M),
    ("logsumexp", "a.logsumexp(1)", None, M),
    ("cumsum", "a.cumsum(1)", "a.cumsum(1)", M),
    ("norm", "torch.linalg.vector_norm(a)", "np.linalg.norm(a)", M),
    ("softmax", "a.softmax(1)", None, M),
    ("layer_norm", "F.layer_norm(a, (a.shape[1],))", None, M),
    ("cross_entropy", "F.cross_entropy(a, a.argmax(1))", None, M),
    ("transpose copy", "a.t().contiguous()", "np.ascontiguousarray(a.T)", M),
    ("cat", "torch.cat([a, b])", "np.concatenate([a, b])", M),
    ("stack", "torch.stack([a, b])", "np.stack([a, b])", M),
    ("slice add", "a[1:] + b[:-1]", "a[1:] + b[:-1]", M),
    ("flip", "a.flip(0)", "np.flip(a, 0).copy()", M),
    ("roll", "a.roll(3, 1)", "np.roll(a, 3, 1)", M),
    ("pad", "F.pad(a, (1, 1))", "np.pad(a, ((0, 0), (1, 1)))", M),
    ("tril", "a.tril()", "np.tril(a)", M),
    ("gather", "a.gather(1, i)", "np.take_along_axis(a, i, 1)", M),
    ("index_select", "a.index_select(0, i[:, 0])", "np.take(a, i[:, 0], 0)", M),
    ("scatter_add", "a.scatter_add(1, i, b)", None, M),
    ("mask", "a.masked_fill(a > b, 0.0)", "np.where(a > b, 0, a)", M),
    ("nonzero", "(a > b).nonzero()", "np.argwhere(a > b)", M),
    ("sort", "a.sort(1)", "np.sort(a, 1)", M),
    ("topk", "a.topk(5, 1)", None, M),
    ("mm", "a @ b", "a @ b", M),
    ("mv", "a @ b[0]", "a @ b[0]", M),
    ("bmm", "torch.bmm(a[None], b[None])", "a[None] @ b[None]", M),
    ("einsum", "torch.einsum('ij,kj->ik', a, b)", "np.einsum('ij,kj->ik', a, b, optimize=True)", M),
    ("outer", "torch.outer(a[0], b[0])", "np.outer(a[0], b[0])", M),
    ("linear", "F.linear(a, b, b[0])", "a @ b.T + b[0]", M),
    ("solve", "torch.linalg.solve(a + 9 * torch.eye(a.shape[0]), b)", None, ((16, 16), (512, 512))),
    ("svdvals", "torch.linalg.svdvals(a)", "np.linalg.svd(a, compute_uv=False)", ((16, 16), (256, 256))),
    ("cholesky", "torch.linalg.cholesky(a @ a.t() + 9 * torch.eye(a.shape[0]))", None, ((16, 16), (512, 512))),
    ("fft", "torch.fft.rfft(a)", "np.fft.rfft(a)", M),
    ("conv2d", "F.conv2d(a, c)", None, ((1, 3, 16, 16), (8, 3, 64, 64))),
    ("max_pool2d", "F.max_pool2d(a, 2)", None, ((1, 3, 16, 16), (8, 3, 64, 64))),
    ("interpolate", "F.interpolate(a, scale_factor=2.0, mode='bilinear')", None, ((1, 3, 16, 16), (8, 3, 64, 64))),
    ("attention", "F.scaled_dot_product_attention(a, a, a)", None, ((1, 2, 16, 16), (2, 4, 256, 64))),
    ("embedding", "F.embedding(i, b)", "b[i]", ((16, 16), (256, 256))),
    ("sparse mm", "torch.sparse.mm(s, b)", None, M),
    ("sparse coalesce", "torch.sparse_coo_tensor(ij, v, a.shape).coalesce()", None, M),
    ("unique", "i.unique()", "np.unique(i)", M),
]


def inputs(shape):
    rng = np.random.default_rng(0)
    n, width = int(np.prod(shape)), shape[-1]
    places = np.stack(np.unravel_index(rng.integers(0, n, max(n // 20, 1)), shape))
    return {
        "a": rng.random(shape, np.float32) + 0.01,
        "b": rng.random(shape, np.float32) + 0.01,
        "c": rng.random((4, 3, 3, 3), np.float32),
        "i": rng.integers(0, width, shape),
        "ij": places,
        "v": rng.random(places.shape[1], np.float32),
    }


def best(fn, seconds=0.02) -> float:
    """Microseconds a call: the least of five rounds of as many calls as fill ``seconds``."""
    begin = time.perf_counter()
    fn()
    n = max(1, min(2000, int(seconds / max(time.perf_counter() - begin, 1e-7))))
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        for _ in range(n):
            fn()
        times.append((time.perf_counter() - begin) / n)
    return min(times) * 1e6


def worker(library: str) -> None:
    """Answers lines [case, size, compiled] with microseconds, or an error text."""
    import importlib

    torch = importlib.import_module(library)
    functional = importlib.import_module(f"{library}.nn.functional")
    torch.set_num_threads(2)
    for line in sys.stdin:
        k, size, way = json.loads(line)
        _, text, numpy_text, shapes = CASES[k]
        data = inputs(shapes[size])
        try:
            if way == "numpy":
                space = {"np": np, **data}
                fn = eval(f"lambda a=a, b=b, i=i: {numpy_text}", space)
            else:
                space = {"torch": torch, "F": functional, **{n: torch.from_numpy(x) for n, x in data.items()}}
                space["s"] = (
                    torch.sparse_coo_tensor(space["ij"], space["v"], shapes[size]).coalesce()
                    if "torch.sparse.mm" in text
                    else None
                )
                call = eval(f"lambda a, b, c, i, ij, v, s: {text}", space)
                call = torch.compile(call) if way == "compiled" else call
                arguments = [space[n] for n in ("a", "b", "c", "i", "ij", "v", "s")]
                fn = lambda call=call, arguments=arguments: call(*arguments)  # noqa: E731
                fn()
                fn()
            answer = best(fn)
        except Exception as e:
            answer = f"{type(e).__name__}: {e}".splitlines()[0][:80]
        print(json.dumps(answer), flush=True)


def start(python: str, library: str):
    return subprocess.Popen(
        [python, __file__, "--worker", library],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def ask(process, *question):
    process.stdin.write(json.dumps(question) + "\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def shown(x) -> str:
    return (
        ""
        if x is None
        else f"{x:.1f}"
        if isinstance(x, float) and x < 100
        else f"{x:.0f}"
        if isinstance(x, float)
        else str(x)
    )


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--worker", default=None)
    p.add_argument("--torch-python", default=sys.executable, help="an interpreter that has PyTorch")
    p.add_argument("--only", default="")
    p.add_argument("--rounds", type=int, default=3)
    report.add_options(p)
    a = p.parse_args()
    if a.worker:
        worker(a.worker)
        return
    ours, theirs = start(sys.executable, "flambeau"), start(a.torch_python, "torch")
    rows, over = [], []
    for k, (name, _, numpy_text, shapes) in enumerate(CASES):
        if not re.search(a.only, name):
            continue
        for size in (0, 1):
            found = {"eager": [], "compiled": [], "torch": [], "numpy": []}
            for _ in range(a.rounds):
                found["torch"].append(ask(theirs, k, size, "eager"))
                found["eager"].append(ask(ours, k, size, "eager"))
                found["compiled"].append(ask(ours, k, size, "compiled"))
                if numpy_text is not None:
                    found["numpy"].append(ask(ours, k, size, "numpy"))
            middle = {
                way: None
                if not times
                else statistics.median(times)
                if all(isinstance(t, float) for t in times)
                else str(times[-1])
                for way, times in found.items()
            }
            t, e, c = (middle[w] for w in ("torch", "eager", "compiled"))
            ratio = lambda x, t=t: f"{x / t:.2f}" if isinstance(x, float) and isinstance(t, float) else "-"  # noqa: E731
            rows.append(
                (name, "x".join(map(str, shapes[size])), *map(shown, (t, e, c, middle["numpy"])), ratio(e), ratio(c))
            )
            if isinstance(t, float) and isinstance(e, float) and e / t > 2:
                over.append(f"{name} {rows[-1][1]} ({e / t:.1f})")
            print(*rows[-1], sep="  ", file=sys.stderr)
    lines = [
        "| operator | size | PyTorch µs | eager µs | compiled µs | NumPy µs | eager / PyTorch | compiled / PyTorch |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
        *("| " + " | ".join(row) + " |" for row in rows),
        "",
        "Eager over twice PyTorch's time: " + (", ".join(over) or "none") + ".",
    ]
    report.publish("\n".join(lines), a)


if __name__ == "__main__":
    main()
