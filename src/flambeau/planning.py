"""``flambeau plan script.py:build``: one rank's step is measured here, and predicted for many (distributed/plan.py)."""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import flambeau as torch
import flambeau.distributed as dist

from .aot.backends import aot_autograd
from .commands import CommandError, _call, _target
from .distributed.plan import Link, Row, Step, predict, sizes
from .fx.interpreter import Interpreter
from .nn.parallel import DistributedDataParallel

__all__ = ["main", "measure", "plan"]

_UNITS = {"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}


def rate(text: str) -> float:
    """Bytes a second of ``10GB/s`` or ``100Gbit/s``. ValueError for anything else."""
    found = re.fullmatch(r"([\d.]+)\s*([kmgt]?)(b|bit)(/s)?", text.strip().lower())
    if found is None:
        raise ValueError(f"a rate is like 10GB/s or 100Gbit/s, got {text!r}")
    return float(found[1]) * _UNITS[found[2]] / (8 if found[3] == "bit" else 1)


def _built(target: str) -> tuple[Any, tuple, Callable]:
    """(model, inputs, loss of the model's result) that the script's function makes."""
    name, build, inputs = _target(target)
    made = _call(name, lambda: build(*inputs))
    if not isinstance(made, tuple) or len(made) not in (2, 3) or not isinstance(made[0], torch.nn.Module):
        raise CommandError(f"{name} must return (model, inputs) or (model, inputs, loss): loss(result) is a number")
    model, given = made[:2]
    loss = made[2] if len(made) == 3 else lambda out: out.float().pow(2).mean()
    return model, tuple(given) if isinstance(given, tuple | list) else (given,), loss


class _Timed:
    """Runs captured graphs operator by operator and notes the times."""

    def __init__(self):
        self.forward = self.backward = 0.0
        self.activations = 0
        self.gradients: list[tuple[int, float]] = []

    def graph(self, backward: bool):
        def compiler(gm, examples):
            return lambda *inputs: self._run(gm, inputs, backward)

        return compiler

    def _run(self, gm, inputs, backward: bool):
        runner, ready = _Clock(gm), {}
        runner.after = lambda node, spent: ready.setdefault(node, spent)
        out = runner.run(*inputs)
        results = gm.graph.output_node().args[0]
        if backward:
            values = out if isinstance(out, tuple | list) else (out,)
            found = [
                (v.nbytes, self.backward + ready[n])
                for n, v in zip(results, values)
                if isinstance(v, torch.Tensor) and n in ready
            ]
            self.gradients += sorted(found, key=lambda row: row[1])
            self.backward += runner.spent
        else:
            given = {id(t) for t in inputs}
            kept = {id(t): t.nbytes for t in out if isinstance(t, torch.Tensor) and id(t) not in given}
            self.activations += sum(kept.values())
            self.forward += runner.spent
        return out


class _Clock(Interpreter):
    spent = 0.0
    after: Callable

    def run_node(self, node):
        began = time.perf_counter()
        out = super().run_node(node)
        if node.op.startswith("call"):
            self.spent += time.perf_counter() - began
        self.after(node, self.spent)
        return out


def _median(call: Callable, repeats: int = 5) -> float:
    call()
    spent = []
    for _ in range(repeats):
        began = time.perf_counter()
        call()
        spent.append(time.perf_counter() - began)
    return statistics.median(spent)


def measure(model, inputs: tuple, loss: Callable) -> Step:
    """One rank's step: the compiled forward and backward timed as a whole, the operators of its graphs for when each gradient is there, and a step of
    AdamW."""
    timed = _Timed()
    backend = aot_autograd(fw_compiler=timed.graph(False), bw_compiler=timed.graph(True))
    optimizer = torch.optim.AdamW(model.parameters())
    shown = torch.compile(model, backend=backend)
    loss(shown(*inputs)).backward()  # traces
    timed.forward = timed.backward = 0.0
    timed.activations, timed.gradients = 0, []
    model.zero_grad()
    loss(shown(*inputs)).backward()
    optimize = _median(optimizer.step)
    state = sum(t.nbytes for s in optimizer.state.values() for t in s.values() if isinstance(t, torch.Tensor))
    torch._dynamo.reset()
    compiled = torch.compile(model)

    def step():
        model.zero_grad()
        loss(compiled(*inputs)).backward()

    whole = _median(step)
    scale = whole / max(timed.forward + timed.backward, 1e-9)
    parts = [sum(p.nbytes for p in m.parameters()) for c in model.children() for m in (list(c.children()) or [c])]
    return Step(
        timed.forward * scale,
        timed.backward * scale,
        optimize,
        sum(p.nbytes for p in model.parameters()),
        state,
        timed.activations,
        max(parts, default=0),
        [(b, when * scale) for b, when in timed.gradients],
    )


# ---- two processes here --------------------------------------------------------------------------------------------------


def main(argv: list[str] | None = None) -> int:
    """What each of two ranks runs: rank 0 prints {"seconds": of a step, "rate": bytes a second of an all-reduce}."""
    target = (sys.argv[1:] if argv is None else argv)[0]
    dist.init_process_group()
    model, inputs, loss = _built(target)
    wrapped = torch.compile(DistributedDataParallel(model))
    optimizer = torch.optim.AdamW(model.parameters())

    def step():
        optimizer.zero_grad()
        loss(wrapped(*inputs)).backward()
        optimizer.step()

    step()
    seconds = _median(step, 7)
    size = max(sum(p.numel() for p in model.parameters()), 1 << 16)
    # Buckets lie in memory that the ranks share, where there is such.
    shared = dist.group.WORLD._engine.shared(4 * size)
    data = torch.ones(size) if shared is None else torch.from_numpy(shared[: 4 * size].view("float32"))
    n = dist.get_world_size()
    spent = _median(lambda: dist.all_reduce(data), 7)
    if dist.get_rank() == 0:
        print(json.dumps({"seconds": seconds, "rate": 2 * (n - 1) / n * data.nbytes / spent}))
    dist.destroy_process_group()
    return 0


def _on_two(target: str) -> dict:
    command = [sys.executable, "-m", "flambeau.distributed.run", "-n", "2", "-m", "flambeau.planning", target]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise CommandError(f"the two processes failed:\n{done.stderr.strip()}")
    return json.loads(done.stdout.strip().splitlines()[-1].partition("] ")[2])


# ---- the command ---------------------------------------------------------------------------------------------------------


def plan(args: argparse.Namespace) -> int:
    """A table (and a picture, and JSON) of what a step takes on each number of ranks."""
    try:
        counts, link = sizes(args.n), Link(rate(args.link), args.latency * 1e-6)
    except ValueError as error:
        raise CommandError(str(error)) from None
    threads = torch.get_num_threads()
    if args.measure:  # two ranks share the cores
        torch.set_num_threads(max(1, (os.cpu_count() or 2) // 2))
    try:
        step = measure(*_built(args.target))
    finally:
        torch.set_num_threads(threads)
    rows = [row for n in counts for row in predict(step, n, link)]
    data = {"step": vars(step), "rows": [vars(r) for r in rows]}
    if args.measure:
        found = _on_two(args.target)
        guess = predict(step, 2, Link(found["rate"], 0.0))[0].seconds
        data["two"] = {"predicted": guess, "measured": found["seconds"], "rate": found["rate"]}
    print(json.dumps(data, indent=2) if args.json else _shown(step, rows, data.get("two")))
    if args.plot:
        _draw(args.plot, step, rows)
        print(f"written: {args.plot}", file=sys.stderr)
    return 0


def _bytes(n: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if n < 1000:
            return f"{n:.3g} {unit}"
        n /= 1000
    return f"{n:.3g} TB"


def _shown(step: Step, rows: list[Row], two: dict | None) -> str:
    alone = step.forward + step.backward + step.optimizer
    lines = [
        f"one rank: forward {step.forward * 1e3:.2f} ms, backward {step.backward * 1e3:.2f} ms, optimizer {step.optimizer * 1e3:.2f} ms; "
        f"{_bytes(step.parameters)} of parameters, {_bytes(step.activations)} kept for the backward",
        "",
        f"{'ranks':>6}  {'way':<5} {'memory a rank':>14} {'moved a rank':>14} {'step':>11} {'efficiency':>11}",
    ]
    for r in rows:
        bar = "#" * round(20 * min(r.efficiency, 1))
        lines.append(
            f"{r.ranks:>6}  {r.way:<5} {_bytes(r.memory):>14} {_bytes(r.moved):>14} {r.seconds * 1e3:>8.2f} ms {r.efficiency:>10.0%}  {bar}"
        )
    lines.append(
        f"efficiency: the step of one rank alone ({alone * 1e3:.2f} ms) over the step; each rank has a batch of its own"
    )
    if two is not None:
        lines.append(
            f"two processes here (ddp, {_bytes(two['rate'])}/s measured): predicted {two['predicted'] * 1e3:.2f} ms, "
            f"measured {two['measured'] * 1e3:.2f} ms"
        )
    return "\n".join(lines)


def _draw(path: str, step: Step, rows: list[Row]) -> None:
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise CommandError("--plot needs matplotlib: pip install 'flambeau[demo]'") from None
    figure, axes = plt.subplots(1, 2, figsize=(10, 4))
    for way in dict.fromkeys(r.way for r in rows):
        mine = [r for r in rows if r.way == way]
        axes[0].plot([r.ranks for r in mine], [r.seconds * 1e3 for r in mine], marker="o", label=way)
        axes[1].plot([r.ranks for r in mine], [r.memory / 1e9 for r in mine], marker="o", label=way)
    for axis, label in zip(axes, ("ms a step", "GB a rank")):
        axis.set(xscale="log", xlabel="ranks", ylabel=label)
        axis.legend()
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)


if __name__ == "__main__":
    sys.exit(main())
