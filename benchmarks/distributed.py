"""Two processes of one thread each: collectives, start, idle waiting, and steps of DistributedDataParallel, beside PyTorch's gloo.

    python benchmarks/distributed.py [--torch PYTHON] [--rounds 3] [--rows collectives,mlp,gpt,resnet,overlap,equal] [--table FILE]

``--torch`` names an interpreter with PyTorch, which runs the same programs in turn with flambeau. Times are medians over the rounds.
"""

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

RANKS = 2


# ---- what a rank runs --------------------------------------------------------------------------------------


def clock(fn, repeat):
    fn()
    times = []
    for _ in range(repeat):
        begin = time.perf_counter()
        fn()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def collectives(torch, dist):
    import_and_start = time.time() - float(os.environ["BENCH_BEGAN"])
    out = {"start to first collective s": import_and_start}
    big, small = torch.ones(16 << 20), torch.ones(2)
    out["all_reduce 64 MB ms"] = 1e3 * clock(lambda: dist.all_reduce(big), 5)

    def many():
        for _ in range(100):
            dist.all_reduce(small)

    out["all_reduce 8 B us"] = 1e4 * clock(many, 5)
    if hasattr(dist.group.WORLD, "_engine"):
        import numpy as np

        shared = torch.from_numpy(dist.group.WORLD._engine.shared(64 << 20).view(np.float32))
        out["all_reduce 64 MB in a window ms"] = 1e3 * clock(lambda: dist.all_reduce(shared), 5)
    dist.barrier()
    cpu, wall = time.process_time(), time.perf_counter()
    if dist.get_rank() == 0:
        time.sleep(1.0)
    dist.barrier()
    if dist.get_rank() == 1:
        out["idle waiting % of a core"] = 100 * (time.process_time() - cpu) / (time.perf_counter() - wall)
    return out


def mlp(torch):
    nn = torch.nn
    return nn.Sequential(nn.Linear(1024, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 1024)), (
        64,
        1024,
    )


def gpt(torch):
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.one, self.two, self.heads = nn.LayerNorm(width), nn.LayerNorm(width), heads
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            b, t, c = x.shape
            q, k, v = (p.view(b, t, self.heads, -1).transpose(1, 2) for p in self.qkv(self.one(x)).split(c, 2))
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
            return x + self.down(nn.functional.gelu(self.up(self.two(x))))

    return nn.Sequential(*(Block(192, 6) for _ in range(4))), (8, 64, 192)


def resnet(torch):
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, before, width, stride):
            super().__init__()
            self.one, self.two = (
                nn.Conv2d(before, width, 3, stride, 1, bias=False),
                nn.Conv2d(width, width, 3, 1, 1, bias=False),
            )
            self.n1, self.n2 = nn.BatchNorm2d(width), nn.BatchNorm2d(width)
            changes = stride != 1 or before != width
            skip = nn.Sequential(nn.Conv2d(before, width, 1, stride, bias=False), nn.BatchNorm2d(width))
            self.skip = skip if changes else nn.Identity()

        def forward(self, x):
            y = torch.relu(self.n1(self.one(x)))
            return torch.relu(self.n2(self.two(y)) + self.skip(x))

    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    before = 64
    for width in (64, 128, 256, 512):
        layers += [Block(before, width, 1 if width == 64 else 2), Block(width, width, 1)]
        before = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000)), (8, 3, 64, 64)


MODELS = {"mlp": mlp, "gpt": gpt, "resnet": resnet}
# With buckets of so many MiB. Of the MLP each layer is one; half of its gradients are one parameter's. The links take so much of a step without
# reduction for its bytes: nothing can be sent before the backward begins, which takes some 0.6 of a step.
OVERLAPS = {
    f"overlap {make.__name__} {share}": (make, cap, share)
    for share in (0.3, 0.6)
    for make, cap in ((mlp, 16.005), (gpt, 0.25))
}


def stepping(torch, model, shape):
    """A function that does one step of training."""
    torch.manual_seed(int(os.environ.get("RANK", "0")))
    x = torch.randn(*shape)
    optimizer = torch.optim.SGD(model.parameters(), 1e-4)

    def step():
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()

    for _ in range(4):
        step()
    return step


def typical(times):
    return (min if os.environ.get("BENCH_FASTEST") else statistics.median)(times)


def milliseconds(step, repeat=4):
    times = []
    for _ in range(repeat):
        begin = time.perf_counter()
        step()
        times.append(1e3 * (time.perf_counter() - begin))
    return times


def data_parallel(torch, model, **options):
    from importlib import import_module

    return import_module(f"{torch.__name__}.nn.parallel").DistributedDataParallel(model, **options)


class Meter:
    """Milliseconds of the processor that the engine spent."""

    def __init__(self, group):
        self.spent, self.engine = 0.0, getattr(group, "_engine", None)
        if self.engine is not None:
            self.run, self.engine.run = self.engine.run, self.measured

    def measured(self, transfer, timeout):
        begin = time.thread_time()
        self.run(transfer, timeout)
        self.spent += 1e3 * (time.thread_time() - begin)


def steps(torch, dist, make, compiled, rounds=6):
    """Steps of one rank while the other waits, of both without reduction, and of both with it, in turn."""
    torch.manual_seed(0)
    (plain, shape), (wrapped, _) = make(torch), make(torch)
    size = sum(p.numel() for p in plain.parameters())
    wrapped = data_parallel(torch, wrapped, gradient_as_bucket_view=True)
    if compiled:
        plain, wrapped = torch.compile(plain), torch.compile(wrapped)
    one, two = stepping(torch, plain, shape), stepping(torch, wrapped, shape)
    alone, both, reduced, cpu, reduction = [], [], [], [], []
    meter = Meter(dist.group.WORLD)
    for _ in range(rounds):
        for rank in range(RANKS):
            dist.barrier()
            if dist.get_rank() == rank:
                alone += milliseconds(one)
        dist.barrier()
        both += milliseconds(one)
        dist.barrier()
        meter.spent, begin = 0.0, time.process_time()
        now = milliseconds(two)
        reduced += now
        cpu.append(1e3 * (time.process_time() - begin) / len(now))
        reduction.append(meter.spent / len(now))
    out = {"one alone ms": alone, "two without reduction ms": both, "step ms": reduced, "step ms of processor": cpu}
    if meter.engine is not None:
        out["reduction ms of processor"] = reduction
    out = {k: typical(v) for k, v in out.items()}
    return {"reduction ms of processor": reduction_cost(torch, dist, size), **out}


def reduction_cost(torch, dist, size):
    """Milliseconds of the processor for the all_reduce of so many float32, again and again."""
    flat = torch.ones(size)
    dist.all_reduce(flat)
    begin = time.process_time()
    for _ in range(5):
        dist.all_reduce(flat)
    return 200 * (time.process_time() - begin)


def equal(torch, dist, compiled):
    """The greatest difference of parameters behind ten steps on two ranks to those of one process with the whole batch. ResNet in float64: its
    normalizations make rounding in float32 some 1e-4 within ten steps, on one process too when its batch is summed in another order."""
    out = {}
    for name, make in MODELS.items():
        torch.manual_seed(0)
        model, (batch, *shape) = make(torch)
        alone, _ = make(torch)
        alone.load_state_dict(model.state_dict())
        x = torch.randn(2 * batch, *shape)
        rank = dist.get_rank()
        if name == "resnet":
            model, alone, x = model.double(), alone.double(), x.double()
        model = torch.nn.SyncBatchNorm.convert_sync_batchnorm(model)
        wrapped = data_parallel(torch, model)
        ways = ((alone, x), (torch.compile(wrapped) if compiled else wrapped, x[batch * rank : batch * rank + batch]))
        for called, given in ways:
            optimizer = torch.optim.SGD(called.parameters(), 1e-2)
            for _ in range(10):
                optimizer.zero_grad()
                called(given).pow(2).mean().backward()
                optimizer.step()
        pairs = zip(alone.parameters(), model.parameters(), strict=True)
        out[f"{name} difference"] = max((a - b).abs().max().item() for a, b in pairs)
    return out


def overlap(torch, dist, make, compiled, cap, share):
    """Steps while each all_reduce takes the time of a link: hidden behind the backward, or not. "earliest": of a link that is never idle while a
    bucket is ready, with the times at which gradients come."""
    from flambeau.distributed.exchange import ThrottledEngine

    if compiled:
        torch._dynamo.config.optimize_ddp = "python_reducer"
    torch.manual_seed(0)
    (plain, shape), (inner, _) = make(torch), make(torch)
    size = 4 * sum(p.numel() for p in plain.parameters())
    wrapped = data_parallel(torch, inner, bucket_cap_mb=cap, gradient_as_bucket_view=True)
    step = stepping(torch, torch.compile(plain) if compiled else plain, shape)
    slow = stepping(torch, torch.compile(wrapped) if compiled else wrapped, shape)
    compute = typical(milliseconds(step, 10))
    link = size / (share * 1e-3 * compute)  # bytes a second
    meter = Meter(dist.group.WORLD)
    dist.group.WORLD._engine = ThrottledEngine(meter.engine, link)
    reducer, ready, finished = wrapped.reducer, [], []
    start, finish = reducer._start, reducer._finish

    def noted(index):
        ready.append((time.perf_counter(), reducer.buckets[index].size / link))
        start(index)

    def ended():
        finish()
        finished.append(time.perf_counter())

    reducer._start, reducer._finish = noted, ended
    both, earliest = [], []
    for _ in range(10):
        ready.clear()
        dist.barrier()
        begin = time.perf_counter()
        slow()
        end, done = time.perf_counter(), 0.0
        for at, takes in ready:
            done = max(done, at - begin) + takes
        both.append(1e3 * (end - begin))
        earliest.append(1e3 * (done + end - finished[-1]))
    both, last, reduction = typical(both), 1e3 * ready[-1][1], meter.spent / 10
    return {
        "compute ms": compute,
        "communication ms": share * compute,
        "last bucket ms": last,
        "step ms": both,
        "earliest ms": typical(earliest),
        "reduction ms of processor": reduction,
        "step / (compute + last bucket)": both / (compute + last),
        "step / (compute + last bucket + reduction)": both / (compute + last + reduction),
    }


def rank_main(what, compiled):
    if os.environ["BENCH_IMPL"] == "torch":
        import torch
        import torch.distributed as dist

        torch.set_num_threads(1)
    else:
        import flambeau as torch
        import flambeau.distributed as dist
    dist.init_process_group("gloo")
    dist.barrier()
    if what == "collectives":
        out = collectives(torch, dist)
    elif what in OVERLAPS:
        make, cap, share = OVERLAPS[what]
        out = overlap(torch, dist, make, compiled, cap, share)
    elif what == "equal":
        out = equal(torch, dist, compiled)
    else:
        out = steps(torch, dist, MODELS[what], compiled)
    print("RESULT " + json.dumps(out), flush=True)
    dist.destroy_process_group()


# ---- the jobs ----------------------------------------------------------------------------------------------


def job(python, impl, what, ranks, compiled=False):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    processes = []
    for rank in range(ranks):
        env = {
            **os.environ, "RANK": str(rank), "WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
            "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "BENCH_IMPL": impl, "BENCH_BEGAN": str(time.time()),
        }  # fmt: skip
        if impl == "torch":
            env.pop("PYTHONPATH", None)
        command = [python, str(Path(__file__).resolve()), "--rank", what, *(["--compiled"] if compiled else [])]
        processes.append(subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True))
    merged, told = {}, 0
    for p in processes:
        text, _ = p.communicate(timeout=600)
        told += "RESULT " in text
        for line in text.splitlines():
            if line.startswith("RESULT "):
                merged = {**json.loads(line[7:]), **merged}
    if told < ranks:  # a process of PyTorch's that crashes at its end, gloo's threads still there, has measured
        raise SystemExit(f"{impl} {what}: a rank failed")
    return merged


def merged(runs, how):
    return {k: how(r[k] for r in runs) for k in runs[0]}


# ---- the table ---------------------------------------------------------------------------------------------


def cases(row):
    """(row, ranks, compiled) of each job."""
    rows = OVERLAPS if row == "overlap" else [row]
    return [
        (each, RANKS, compiled) for each in rows for compiled in ((False,) if row == "collectives" else (False, True))
    ]


def bars(found):
    """(what, measured, wanted) of the numbers that are asked for."""
    out = []

    def value(impl, name, row, ranks=RANKS, compiled=False):
        return found.get((impl, row, ranks, compiled), {}).get(name)

    for name, key, most in (("64 MB", "all_reduce 64 MB ms", 0.35), ("8 B", "all_reduce 8 B us", 0.2)):
        mine, theirs = (value(impl, key, "collectives") for impl in ("flambeau", "torch"))
        if mine and theirs:
            out.append((f"all_reduce of {name} / PyTorch's", mine / theirs, f"<= {most}"))
            window = value("flambeau", "all_reduce 64 MB in a window ms", "collectives")
            if name == "64 MB" and window:
                out.append(("all_reduce of 64 MB in a window / PyTorch's", window / theirs, f"<= {most}"))
    for key, most in (("start to first collective s", "<= 1"), ("idle waiting % of a core", "<= 10")):
        if value("flambeau", key, "collectives") is not None:
            out.append((key, value("flambeau", key, "collectives"), most))
    for row, compiled in ((row, compiled) for row in MODELS for compiled in (False, True)):
        two, one, cost = (
            value("flambeau", name, row, RANKS, compiled)
            for name in ("step ms", "one alone ms", "reduction ms of processor")
        )
        if two is None:
            continue
        label = f"{row} {'compiled' if compiled else 'eager'}"
        out.append((f"{label}: two ranks / (one + reduction)", two / (one + cost), "<= 1.1"))
        theirs = value("torch", "step ms", row, RANKS, compiled)
        if theirs:
            out.append((f"{label}: two ranks / PyTorch's", two / theirs, "<= 0.8"))
    for compiled in (False, True):
        label = "compiled" if compiled else "eager"
        for row in OVERLAPS:
            key = "step / (compute + last bucket)"
            if value("flambeau", key, row, RANKS, compiled):
                out.append((f"{row} {label}: {key}", value("flambeau", key, row, RANKS, compiled), "<= 1.1"))
                key = "step / (compute + last bucket + reduction)"
                out.append((f"{row} {label}: {key}", value("flambeau", key, row, RANKS, compiled), ""))
                step, earliest = (value("flambeau", k, row, RANKS, compiled) for k in ("step ms", "earliest ms"))
                out.append((f"{row} {label}: step / earliest", step / earliest, ""))
        for name in MODELS:
            if value("flambeau", f"{name} difference", "equal", RANKS, compiled) is not None:
                difference = value("flambeau", f"{name} difference", "equal", RANKS, compiled)
                out.append((f"{name} {label}: parameters behind ten steps differ by", difference, "<= 1e-6"))
    return out


def page(found, rounds):
    lines = [
        "# Two processes",
        "",
        f"`python benchmarks/distributed.py --torch PYTHON --rounds {rounds} --table FILE` writes this page: two processes of one",
        f"thread, medians of {rounds} rounds (minima with --fastest), beside PyTorch's gloo in turn. A model's row has, in turn, steps of one",
        "rank while the other waits, of both without reduction, and of both with it; the reduction's time of the processor is what its",
        "thread took in these steps.",
        '"earliest" is the step of a link that is never idle while a bucket is ready, with the times at which gradients came.',
        f"Load of the machine behind the run: {os.getloadavg()[2]:.1f} on {os.cpu_count()} cores.",
        "",
        "| | measured | wanted |",
        "| --- | ---: | ---: |",
        *(f"| {what} | {number:.3g} | {wanted} |" for what, number, wanted in bars(found)),
        "",
        "| | | | numbers |",
        "| --- | --- | --- | --- |",
    ]
    for (impl, row, _, compiled), numbers in found.items():
        text = ", ".join(f"{k} {v:.3g}" for k, v in numbers.items())
        lines.append(f"| {row} | {'compiled' if compiled else 'eager'} | {impl} | {text} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--torch", help="an interpreter with PyTorch")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", default="collectives,mlp,gpt,resnet,overlap,equal")
    parser.add_argument("--table", type=Path, help="write a page of the results")
    parser.add_argument(
        "--fastest", action="store_true", help="minima instead of medians, for a machine with other work"
    )
    parser.add_argument("--rank", help=argparse.SUPPRESS)
    parser.add_argument("--compiled", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.fastest:
        os.environ["BENCH_FASTEST"] = "1"
    if args.rank:
        rank_main(args.rank, args.compiled)
        return
    impls = [(sys.executable, "flambeau")] + ([(args.torch, "torch")] if args.torch else [])
    found = {}
    for what, ranks, compiled in (case for row in args.rows.split(",") for case in cases(row)):
        runs = {impl: [] for _, impl in impls if not ((what in OVERLAPS or what == "equal") and impl == "torch")}
        for _ in range(1 if what == "equal" else args.rounds):
            for python, impl in impls:
                if impl in runs:
                    runs[impl].append(job(python, impl, what, ranks, compiled))
        for impl, numbers in runs.items():
            found[impl, what, ranks, compiled] = merged(numbers, min if args.fastest else statistics.median)
            text = ", ".join(f"{k} {v:.3g}" for k, v in found[impl, what, ranks, compiled].items())
            print(f"{what:<12}  {'compiled' if compiled else 'eager':<8} {impl:<9} {text}", flush=True)
    for what, number, wanted in bars(found):
        print(f"{what:<70} {number:.3g}  {wanted}")
    if args.table:
        # What was written by hand below the tables stays.
        _, _, kept = (args.table.read_text() if args.table.exists() else "").partition("\n## ")
        args.table.write_text(page(found, args.rounds) + (f"\n## {kept}" if kept else ""))


if __name__ == "__main__":
    main()
