"""Kernels of common networks, forward and backward, each in three sizes, beside PyTorch: ``python kernels.py [--rows TEXT] [--rounds N] [--threads N]
[--mode eager|compiled] [--sizes 3] [--out FILE] [--into DOCUMENT]``, in an interpreter that has both.

Both sides run in one process and in alternation, and the least time of each over the rounds counts. The table gives the ratio flambeau / PyTorch
(eager, which is the faster one for a single kernel nearly always) of each size; below it stand the geometric mean and the rows at 1 or above.
"""

from __future__ import annotations

import argparse
import importlib
import math
import os
import sys
from time import perf_counter, process_time

import report
from peers import geometric_mean

KERNELS: dict[str, list] = {}


def kernel(name: str, *sizes):
    """``make(torch, *size)`` -> (function of tensors, its tensors): a row for each size, forward, and backward where a tensor asks for it."""

    def register(make):
        KERNELS[name] = [make, sizes]
        return make

    return register


def _grad(torch, *shape):
    return torch.randn(*shape, requires_grad=True)


@kernel("matrix product", (128, 128, 128), (512, 512, 512), (1024, 1024, 1024))
def _(torch, m, n, k):
    return torch.mm, [_grad(torch, m, k), _grad(torch, k, n)]


@kernel("linear", (64, 256, 256), (1024, 256, 1024), (1024, 1024, 256))
def _(torch, m, k, n):
    return torch.nn.functional.linear, [_grad(torch, m, k), _grad(torch, n, k), _grad(torch, n)]


@kernel("linear, gelu", (64, 256, 256), (1024, 256, 1024), (1024, 1024, 256))
def _(torch, m, k, n):
    F = torch.nn.functional
    # Of the size that networks begin with: gelu far from zero has subnormal slopes, and products of those are a hundred times slower.
    w = (torch.randn(n, k) * k**-0.5).requires_grad_()
    return (lambda x, w, b: F.gelu(F.linear(x, w, b))), [_grad(torch, m, k), w, _grad(torch, n)]


@kernel("batched product", (64, 64, 64, 32), (64, 128, 128, 32), (16, 256, 256, 64))
def _(torch, b, m, n, k):
    return torch.bmm, [_grad(torch, b, m, k), _grad(torch, b, k, n)]


def _attention(causal):
    def make(torch, b, h, t, e):
        return (lambda q, k, v: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)), [
            _grad(torch, b, h, t, e) for _ in range(3)
        ]

    return make


kernel("attention", (8, 3, 64, 64), (4, 8, 256, 32), (1, 8, 1024, 64))(_attention(False))
kernel("attention, causal", (8, 8, 128, 32), (4, 8, 256, 32), (1, 8, 1024, 64))(_attention(True))


@kernel("attention of one's own scores", (8, 3, 64, 64), (4, 8, 256, 32), (1, 8, 1024, 64))
def _(torch, b, h, t, e):
    far = (torch.arange(t)[:, None] - torch.arange(t)).abs() * 0.1

    def attend(q, k, v):
        return ((q @ k.transpose(-2, -1)) * e**-0.5 - far).softmax(-1) @ v

    return attend, [_grad(torch, b, h, t, e) for _ in range(3)]


@kernel("attention, one more token", (1, 8, 128, 32), (1, 12, 512, 64), (4, 12, 2048, 64))
def _(torch, b, h, s, e):
    tensors = [torch.randn(b, h, n, e) for n in (1, s, s)]
    return torch.nn.functional.scaled_dot_product_attention, tensors


def _convolution(**how):
    def make(torch, n, c, side, o, k):
        groups = c if how.get("groups") else 1
        rest = {**how, "groups": groups, "padding": k // 2}
        return (lambda x, w: torch.nn.functional.conv2d(x, w, **rest)), [
            _grad(torch, n, c, side, side),
            _grad(torch, o, c // groups, k, k),
        ]

    return make


kernel("convolution 3x3", (8, 64, 32, 64, 3), (8, 256, 8, 256, 3), (2, 64, 112, 64, 3))(_convolution())
kernel("convolution 3x3, stride 2", (8, 64, 32, 128, 3), (8, 256, 8, 512, 3), (2, 64, 112, 128, 3))(
    _convolution(stride=2)
)
kernel("convolution 1x1", (8, 64, 32, 256, 1), (8, 512, 8, 128, 1), (2, 64, 112, 64, 1))(_convolution())
kernel("convolution 7x7, stride 2", (1, 3, 224, 64, 7), (4, 3, 112, 32, 7), (8, 3, 64, 64, 7))(_convolution(stride=2))
kernel("convolution, depthwise", (8, 96, 32, 96, 3), (8, 240, 16, 240, 5), (2, 64, 112, 64, 3))(
    _convolution(groups=True)
)


def _last(convolve):
    """Images and weights whose channels lie innermost."""

    def make(torch, n, c, side, o):
        image, weight = (
            torch.randn(n, c, side, side),
            torch.randn(*((c, o) if convolve == "conv_transpose2d" else (o, c)), 4, 4),
        )
        tensors = [t.to(memory_format=torch.channels_last).requires_grad_() for t in (image, weight)]
        return (lambda x, w: getattr(torch.nn.functional, convolve)(x, w, stride=2, padding=1)), tensors

    return make


_SIDES = (8, 64, 32, 128), (8, 256, 8, 256), (2, 32, 112, 64)
kernel("convolution 4x4, stride 2, channels last", *_SIDES)(_last("conv2d"))
kernel("convolution 4x4, transposed, stride 2, channels last", *_SIDES)(_last("conv_transpose2d"))


@kernel("convolution of three dimensions", (2, 32, 16, 64), (1, 64, 12, 64), (4, 16, 20, 32))
def _(torch, n, c, side, o):
    return (lambda x, w: torch.nn.functional.conv3d(x, w, padding=1)), [
        _grad(torch, n, c, side, side, side),
        _grad(torch, o, c, 3, 3, 3),
    ]


@kernel("convolution of one dimension", (8, 80, 256, 256), (4, 256, 512, 256), (16, 32, 128, 64))
def _(torch, n, c, t, o):
    return (lambda x, w: torch.nn.functional.conv1d(x, w, padding=1)), [_grad(torch, n, c, t), _grad(torch, o, c, 3)]


@kernel("batch norm, relu", (8, 64, 32), (8, 256, 8), (2, 64, 112))
def _(torch, n, c, side):
    F = torch.nn.functional
    return (lambda x, w, b: F.relu(F.batch_norm(x, None, None, w, b, True))), [
        _grad(torch, n, c, side, side),
        _grad(torch, c),
        _grad(torch, c),
    ]


@kernel("max pool 2x2", (8, 64, 32), (16, 128, 16), (2, 64, 112))
def _(torch, n, c, side):
    return (lambda x: torch.nn.functional.max_pool2d(x, 2)), [_grad(torch, n, c, side, side)]


@kernel("average pool", (8, 64, 32), (16, 128, 16), (2, 64, 112))
def _(torch, n, c, side):
    return (lambda x: torch.nn.functional.adaptive_avg_pool2d(x, 1)), [_grad(torch, n, c, side, side)]


@kernel("upsampling by 2", (8, 64, 16), (2, 64, 56), (2, 16, 112))
def _(torch, n, c, side):
    return (lambda x: torch.nn.functional.interpolate(x, scale_factor=2)), [_grad(torch, n, c, side, side)]


@kernel("group norm", (8, 64, 32), (8, 256, 8), (2, 64, 112))
def _(torch, n, c, side):
    return (lambda x, w, b: torch.nn.functional.group_norm(x, 8, w, b)), [
        _grad(torch, n, c, side, side),
        _grad(torch, c),
        _grad(torch, c),
    ]


@kernel("layer norm", (512, 192), (1024, 256), (4096, 1024))
def _(torch, m, n):
    return (lambda x, w, b: torch.nn.functional.layer_norm(x, (n,), w, b)), [
        _grad(torch, m, n),
        _grad(torch, n),
        _grad(torch, n),
    ]


def _rows(fn):
    return lambda torch, m, n: ((lambda x: fn(torch, x)), [_grad(torch, m, n)])


for _name, _fn in {
    "softmax": lambda torch, x: x.softmax(-1),
    "log softmax": lambda torch, x: x.log_softmax(-1),
    "gelu": lambda torch, x: torch.nn.functional.gelu(x),
    "gelu by tanh": lambda torch, x: torch.nn.functional.gelu(x, approximate="tanh"),
    "silu": lambda torch, x: torch.nn.functional.silu(x),
    "relu": lambda torch, x: x.relu(),
    "sum of rows": lambda torch, x: x.sum(-1),
    "sum of columns": lambda torch, x: x.sum(0),
    "variance of rows": lambda torch, x: x.var(-1),
    "transpose and copy": lambda torch, x: x.t().contiguous(),
    "concatenation": lambda torch, x: torch.cat([x, x], -1),
    "cumulative sum": lambda torch, x: x.cumsum(-1),
    "rms norm": lambda torch, x: x * (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt(),
}.items():
    kernel(_name, (256, 256), (1024, 1024), (4096, 1024))(_rows(_fn))


@kernel("cross-entropy", (256, 10), (1024, 256), (1024, 8192))
def _(torch, m, n):
    target = torch.randint(0, n, (m,))
    return (lambda x: torch.nn.functional.cross_entropy(x, target)), [_grad(torch, m, n)]


@kernel("cross-entropy, smoothed, weighted", (1024, 256), (1024, 8192), (512, 32000))
def _(torch, m, n):
    target, weight = torch.randint(0, n, (m,)), torch.rand(n) + 0.5
    target[::7] = -100
    cross_entropy = torch.nn.functional.cross_entropy
    return (lambda x: cross_entropy(x, target, weight, label_smoothing=0.1)), [_grad(torch, m, n)]


@kernel("embedding", (256, 256, 1024), (8192, 256, 1024), (32000, 512, 2048))
def _(torch, words, width, count):
    ids = torch.randint(0, words, (count,))
    return (lambda w: torch.nn.functional.embedding(ids, w)), [_grad(torch, words, width)]


@kernel("addition of a row", (256, 256), (1024, 1024), (4096, 1024))
def _(torch, m, n):
    return torch.add, [_grad(torch, m, n), _grad(torch, n)]


@kernel("gated unit", (256, 256), (1024, 1024), (4096, 1024))
def _(torch, m, n):
    return (lambda a, b: torch.nn.functional.silu(a) * b), [_grad(torch, m, n), _grad(torch, m, n)]


def _ordered(fn):
    return lambda torch, m, n: ((lambda x: fn(torch, x)), [torch.randn(m, n)])


for _name, _fn in {
    "sort": lambda torch, x: x.sort(-1)[1],
    "sort of columns": lambda torch, x: x.sort(0)[0],
    "topk, 10": lambda torch, x: x.topk(10)[0],
    "median": lambda torch, x: x.median(-1)[0],
    "unique": lambda torch, x: torch.unique((x * 100).int()),
    "cumulative maximum": lambda torch, x: x.cummax(-1)[1],
    "logcumsumexp": lambda torch, x: x.logcumsumexp(-1),
    "nonzero": lambda torch, x: (x > 0).nonzero(),
    "masked_select": lambda torch, x: x[x > 0],
    "bincount": lambda torch, x: torch.bincount((x.abs() * 50).long().flatten(), minlength=300),
    "histc": lambda torch, x: torch.histc(x, 64, -3, 3),
    "bucketize": lambda torch, x: torch.bucketize(x, torch.linspace(-3, 3, 200)),
    "dropout": lambda torch, x: torch.nn.functional.dropout(x, 0.1),
}.items():
    kernel(_name, (64, 256), (256, 1024), (2, 500000))(_ordered(_fn))


def _scattered(fn):
    def make(torch, m, n, count):
        return fn(torch, torch.randint(0, m, (count,)), torch.randint(0, m, (count, n))), [
            _grad(torch, m, n),
            _grad(torch, count, n),
        ]

    return make


for _name, _fn in {
    "index_add": lambda torch, rows, places: lambda x, y: x.index_add(0, rows, y),
    "index_put, accumulating": lambda torch, rows, places: lambda x, y: x.index_put((rows,), y, accumulate=True),
    "scatter_add": lambda torch, rows, places: lambda x, y: x.scatter_add(0, places, y),
    "scatter_reduce, amax": lambda torch, rows, places: lambda x, y: x.scatter_reduce(0, places, y, "amax"),
    "gather": lambda torch, rows, places: lambda x, y: x.gather(0, places) * y,
}.items():
    kernel(_name, (64, 64, 256), (4096, 128, 8192), (100, 32, 100000))(_scattered(_fn))


@kernel("gru", (4, 16, 64), (16, 32, 128), (16, 64, 256))
def _(torch, batch, time, width):
    torch.manual_seed(0)
    net = torch.nn.GRU(width, width, batch_first=True)
    return (lambda x: net(x)[0]), [_grad(torch, batch, time, width)]


@kernel("lstm", (4, 16, 64), (16, 32, 128), (16, 64, 256))
def _(torch, batch, time, width):
    torch.manual_seed(0)
    net = torch.nn.LSTM(width, width, batch_first=True)
    return (lambda x: net(x)[0]), [_grad(torch, batch, time, width)]


def calls(torch, make, size, compiled: bool):
    """(forward, backward or None) as calls to time."""
    torch.manual_seed(0)
    if compiled:
        torch.compiler.reset()  # many functions here share their code
    fn, tensors = make(torch, *size)
    run = torch.compile(fn) if compiled else fn
    out = run(*tensors)
    asks = [t for t in tensors if t.requires_grad]

    def forward():
        with torch.no_grad():
            return run(*tensors)

    if not asks:
        return forward, None
    cotangent = torch.ones_like(out)

    def backward():
        return torch.autograd.grad(run(*tensors), asks, cotangent)

    return forward, backward


def least(ours, theirs, rounds: int, clock=perf_counter, span: float = 0.02) -> tuple[float, float]:
    """Seconds of a call of each: the least over rounds in alternation."""
    best, count = [math.inf, math.inf], [1, 1]
    for k, call in enumerate((ours, theirs)):
        for _ in range(3):
            start = clock()
            call()
            once = clock() - start
        count[k] = max(1, int(span / max(once, 1e-7)))
    for _ in range(rounds):
        for k, call in enumerate((ours, theirs)):
            start = clock()
            for _ in range(count[k]):
                call()
            best[k] = min(best[k], (clock() - start) / count[k])
    return best[0], best[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", default="", help="only kernels whose name holds this")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--mode", choices=("eager", "compiled"), default="compiled")
    parser.add_argument("--sizes", type=int, default=3)
    report.add_options(parser)
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    peers = [importlib.import_module(name) for name in ("flambeau", "torch")]
    for peer in peers:
        peer.set_num_threads(options.threads)
    ratios: dict[str, list[float]] = {}
    slow = []
    clock = process_time if options.threads == 1 else perf_counter  # what other programs do doesn't count
    for name, (make, sizes) in KERNELS.items():
        if options.rows not in name:
            continue
        for size in sizes[: options.sizes]:
            ours, theirs = (calls(peer, make, size, options.mode == "compiled" and peer is peers[0]) for peer in peers)
            for what, a, b in zip(("", ", forward and backward"), ours, theirs):
                if a is None:
                    continue
                x, y = least(a, b, options.rounds, clock)
                ratios.setdefault(name + what, []).append(x / y)
                row = f"{name}{what}, {'x'.join(map(str, size))}"
                print(f"  {row}: {x * 1e3:.3g} ms, PyTorch {y * 1e3:.3g}, {x / y:.2f}", file=sys.stderr)
                if x >= y:
                    slow.append(f"| {row} | {x * 1e3:.3g} | {y * 1e3:.3g} | {x / y:.2f} |")
    if not ratios:
        sys.exit(f"no kernel's name holds {options.rows!r}")
    every = [ratio for row in ratios.values() for ratio in row]
    lines = [
        f"flambeau {options.mode} beside PyTorch eager, {options.threads} thread{'s' * (options.threads > 1)}. "
        f"Geometric mean of {len(every)} ratios: {geometric_mean(every):.2f}; {len(slow)} are at 1 or above.",
        "",
        "| kernel | by size, from small to large |",
        "| --- | --- |",
        *(f"| {row} | {', '.join(f'{ratio:.2f}' for ratio in of)} |" for row, of in ratios.items()),
        "",
        "| at 1 or above | flambeau, ms | PyTorch, ms | ratio |",
        "| --- | --- | --- | --- |",
        *slow,
    ]
    report.publish("\n".join(lines), options)


if __name__ == "__main__":
    main()
