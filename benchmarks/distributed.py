"""Two processes of one thread each: collectives, start, idle waiting, and steps of DistributedDataParallel, beside PyTorch's gloo.

    python benchmarks/distributed.py [--torch PYTHON] [--rounds 3] [--rows collectives,mlp,gpt,overlap]

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


def steps(torch, dist, make, compiled):
    from importlib import import_module

    ddp = import_module(f"{torch.__name__}.nn.parallel").DistributedDataParallel
    torch.manual_seed(0)
    model, shape = make(torch)
    if dist.get_world_size() > 1:
        model = ddp(model, gradient_as_bucket_view=True)
    cpu = time.process_time()
    out = step_time(torch, torch.compile(model) if compiled else model, shape)
    return {"step ms": out, "cpu s": time.process_time() - cpu}


def overlap(torch, dist):
    """Steps while each all_reduce takes the time of a link: hidden behind the backward, or not."""
    from flambeau.distributed.exchange import ThrottledEngine

    ddp = torch.nn.parallel.DistributedDataParallel
    torch.manual_seed(0)
    model, shape = mlp(torch)
    size = 4 * sum(p.numel() for p in model.parameters())
    plain = step_time(torch, model, shape)
    group = dist.group.WORLD
    link = size / (0.6e-3 * plain)  # bytes a second: communication takes 0.6 of a step
    group._engine = ThrottledEngine(group._engine, link)
    wrapped = ddp(model, bucket_cap_mb=4, gradient_as_bucket_view=True)
    both = step_time(torch, wrapped, shape)
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
        out = overlap(torch, dist)
    else:
        out = steps(torch, dist, {"mlp": mlp, "gpt": gpt}[what], compiled)
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--torch", help="an interpreter with PyTorch")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", default="collectives,mlp,gpt,overlap")
    parser.add_argument("--rank", help=argparse.SUPPRESS)
    parser.add_argument("--compiled", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.rank:
        rank_main(args.rank, args.compiled)
        return
    impls = [(sys.executable, "flambeau")] + ([(args.torch, "torch")] if args.torch else [])
    for row in args.rows.split(","):
        cases = [(row, RANKS, False)]
        if row in ("mlp", "gpt"):
            cases = [(row, ranks, compiled) for compiled in (False, True) for ranks in (1, RANKS)]
        for what, ranks, compiled in cases:
            found = {impl: [] for _, impl in impls if not (what == "overlap" and impl == "torch")}
            for _ in range(args.rounds):
                for python, impl in impls:
                    if impl in found:
                        found[impl].append(job(python, impl, what, ranks, compiled))
            for impl, runs in found.items():
                numbers = ", ".join(f"{k} {v:.2f}" for k, v in medians(runs).items())
                print(
                    f"{what:<12} {ranks} ranks {'compiled' if compiled else 'eager':<8} {impl:<9} {numbers}", flush=True
                )


if __name__ == "__main__":
    main()
