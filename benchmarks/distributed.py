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


def step_time(torch, model, shape, repeat=10):
    torch.manual_seed(int(os.environ.get("RANK", "0")))
    x = torch.randn(*shape)
    optimizer = torch.optim.SGD(model.parameters(), 1e-4)

    def step():
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()

    for _ in range(3):
        step()
    return 1e3 * clock(step, repeat)


def data_parallel(torch, model, **options):
    from importlib import import_module

    return import_module(f"{torch.__name__}.nn.parallel").DistributedDataParallel(model, **options)


def steps(torch, dist, make, compiled):
    torch.manual_seed(0)
    model, shape = make(torch)
    size = sum(p.numel() for p in model.parameters())
    if dist.get_world_size() > 1:
        model = data_parallel(torch, model, gradient_as_bucket_view=True)
    cpu = time.process_time()
    out = {"step ms": step_time(torch, torch.compile(model) if compiled else model, shape)}
    out["cpu s"] = time.process_time() - cpu
    if dist.get_world_size() > 1:
        out["reduction ms of processor"] = reduction_cost(torch, dist, size)
    return out


def reduction_cost(torch, dist, size):
    """Milliseconds of the processor for the all_reduce of so many float32."""
    flat = torch.ones(size)
    if hasattr(dist.group.WORLD, "_engine"):
        import numpy as np

        shared = dist.group.WORLD._engine.shared(4 * size)
        flat = flat if shared is None else torch.from_numpy(shared.view(np.float32))
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


def overlap(torch, dist, compiled):
    """Steps while each all_reduce takes the time of a link: hidden behind the backward, or not."""
    from flambeau.distributed.exchange import ThrottledEngine

    if compiled:
        torch._dynamo.config.optimize_ddp = "python_reducer"
    torch.manual_seed(0)
    model, shape = mlp(torch)
    size = 4 * sum(p.numel() for p in model.parameters())
    plain = step_time(torch, torch.compile(model) if compiled else model, shape)
    group = dist.group.WORLD
    link = size / (0.6e-3 * plain)  # bytes a second: communication takes 0.6 of a step
    group._engine = ThrottledEngine(group._engine, link)
    wrapped = data_parallel(torch, model, bucket_cap_mb=4, gradient_as_bucket_view=True)
    both = step_time(torch, torch.compile(wrapped) if compiled else wrapped, shape)
    last = wrapped.reducer.buckets[-1].size / link
    return {
        "compute ms": plain,
        "communication ms": 0.6 * plain,
        "step ms": both,
        "step / (compute + last bucket)": both / (plain + 1e3 * last),
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
    elif what == "overlap":
        out = overlap(torch, dist, compiled)
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
    merged = {}
    for p in processes:
        text, _ = p.communicate(timeout=600)
        for line in text.splitlines():
            if line.startswith("RESULT "):
                merged = {**json.loads(line[7:]), **merged}
    if any(p.returncode for p in processes):
        raise SystemExit(f"{impl} {what}: a rank failed")
    return merged


def medians(runs):
    return {k: statistics.median(r[k] for r in runs) for k in runs[0]}


# ---- the table ---------------------------------------------------------------------------------------------


def cases(row):
    """(row, ranks, compiled) of each job."""
    if row in MODELS:
        return [(row, ranks, compiled) for compiled in (False, True) for ranks in (1, RANKS)]
    return [(row, RANKS, compiled) for compiled in ((False,) if row == "collectives" else (False, True))]


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
    for row in MODELS:
        for compiled in (False, True):
            one, two = (value("flambeau", "step ms", row, n, compiled) for n in (1, RANKS))
            if one is None or two is None:
                continue
            cost, label = (
                value("flambeau", "reduction ms of processor", row, RANKS, compiled),
                "compiled" if compiled else "eager",
            )
            out.append((f"{row} {label}: two ranks / (one + reduction)", two / (one + cost), "<= 1.1"))
            theirs = value("torch", "step ms", row, RANKS, compiled)
            if theirs:
                out.append((f"{row} {label}: two ranks / PyTorch's", two / theirs, "<= 0.8"))
    for compiled in (False, True):
        label = "compiled" if compiled else "eager"
        for key, most in (("step / (compute + last bucket)", "<= 1.1"),):
            if value("flambeau", key, "overlap", RANKS, compiled):
                out.append((f"overlap {label}: {key}", value("flambeau", key, "overlap", RANKS, compiled), most))
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
        f"thread, medians of {rounds} rounds, beside PyTorch's gloo in turn.",
        f"Load of the machine behind the run: {os.getloadavg()[2]:.1f} on {os.cpu_count()} cores.",
        "",
        "| | measured | wanted |",
        "| --- | ---: | ---: |",
        *(f"| {what} | {number:.3g} | {wanted} |" for what, number, wanted in bars(found)),
        "",
        "| | ranks | | | numbers |",
        "| --- | ---: | --- | --- | --- |",
    ]
    for (impl, row, ranks, compiled), numbers in found.items():
        text = ", ".join(f"{k} {v:.3g}" for k, v in numbers.items())
        lines.append(f"| {row} | {ranks} | {'compiled' if compiled else 'eager'} | {impl} | {text} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--torch", help="an interpreter with PyTorch")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", default="collectives,mlp,gpt,resnet,overlap,equal")
    parser.add_argument("--table", type=Path, help="write a page of the results")
    parser.add_argument("--rank", help=argparse.SUPPRESS)
    parser.add_argument("--compiled", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.rank:
        rank_main(args.rank, args.compiled)
        return
    impls = [(sys.executable, "flambeau")] + ([(args.torch, "torch")] if args.torch else [])
    found = {}
    for what, ranks, compiled in (case for row in args.rows.split(",") for case in cases(row)):
        runs = {impl: [] for _, impl in impls if not (what in ("overlap", "equal") and impl == "torch")}
        for _ in range(1 if what == "equal" else args.rounds):
            for python, impl in impls:
                if impl in runs:
                    runs[impl].append(job(python, impl, what, ranks, compiled))
        for impl, numbers in runs.items():
            found[impl, what, ranks, compiled] = medians(numbers)
            text = ", ".join(f"{k} {v:.3g}" for k, v in found[impl, what, ranks, compiled].items())
            print(f"{what:<12} {ranks} ranks {'compiled' if compiled else 'eager':<8} {impl:<9} {text}", flush=True)
    for what, number, wanted in bars(found):
        print(f"{what:<70} {number:.3g}  {wanted}")
    if args.table:
        args.table.write_text(page(found, args.rounds))


if __name__ == "__main__":
    main()
