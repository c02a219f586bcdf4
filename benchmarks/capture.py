"""What compiling costs, beside PyTorch: ``python benchmarks/capture.py --torch-python PATH [--rows TEXT] [--rounds N]
[--out FILE] [--into DOCUMENT]``.

The rows are calls of small compiled functions, guards, capture with the backend "eager", an optimizer's step over 100
parameters plain and as one graph, and first calls in fresh processes with an empty and with a filled cache folder. In every round each row is
asked of both sides in turn. Times are CPU time of all threads of the process (other processes disturb it less than the wall's); first calls are
wall time too, since PyTorch compiles in child processes, which the CPU time doesn't count. Each figure comes with the CPU time of a fixed loop of
Python beside it; the table is in units of the fastest such loop of the run, so that both sides are told apart from a machine that slows down."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import report  # noqa: E402

ROWS: dict[str, object] = {}
FIRST: dict[str, object] = {}


def row(name: str, table=ROWS):
    def add(make):
        table[name] = make
        return make

    return add


def loop() -> float:
    """CPU seconds of a fixed piece of Python."""
    best = float("inf")
    for _ in range(5):
        start = time.thread_time()
        s = 0
        for i in range(20_000):
            s += i * i & 7
        best = min(best, time.thread_time() - start)
    return best


def least(call, span: float = 0.05, batches: int = 8) -> float:
    """CPU seconds of one call, the least of several batches."""
    start = time.process_time()
    call()
    number = max(1, int(span / batches / max(time.process_time() - start, 1e-7)))
    best = float("inf")
    for _ in range(batches):
        start = time.process_time()
        for _ in range(number):
            call()
        best = min(best, (time.process_time() - start) / number)
    return best


# --- programs --------------------------------------------------------------------------------------------------------
def gpt(torch, n: int = 8, d: int = 32):
    """A GPT with 12 n + 5 parameters, and an input for it."""
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
            self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
            self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)
            self.heads = 4

        def forward(self, x):
            b, t, c = x.shape
            q, k, v = (
                y.view(b, t, self.heads, c // self.heads).transpose(1, 2) for y in self.qkv(self.ln1(x)).split(c, dim=2)
            )
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.proj(y.transpose(1, 2).reshape(b, t, c))
            return x + self.down(nn.functional.gelu(self.up(self.ln2(x))))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.tok, self.pos = nn.Embedding(50, d), nn.Embedding(16, d)
            self.blocks = nn.ModuleList([Block() for _ in range(n)])
            self.ln, self.head = nn.LayerNorm(d), nn.Linear(d, 50, bias=False)

        def forward(self, i):
            x = self.tok(i) + self.pos(torch.arange(i.shape[1]))
            for block in self.blocks:
                x = block(x)
            return self.head(self.ln(x))

    return GPT(), torch.zeros(2, 8, dtype=torch.int64)


def two(torch):
    x, y = torch.randn(8, 8), torch.randn(8, 8)
    return (lambda x, y: torch.relu(x + y)), (x, y)


def prepared(f, *args):
    f(*args)
    return lambda: least(lambda: f(*args))


# --- rows: a function of the library that returns a function that measures --------------------------------------------
@row("compiled call of two operations on 8x8")
def _(torch):
    f, args = two(torch)
    return prepared(torch.compile(f), *args)


@row("the same operations, eager")
def _(torch):
    f, args = two(torch)
    return prepared(f, *args)


@row("guards of a GPT with 101 parameters")
def _(torch):
    model, i = gpt(torch)
    if torch.__name__ == "flambeau":
        compiled = torch.compile(model, backend="eager")
        compiled(i)
        forward = type(model).forward
        (cache,) = torch._frame.caches(forward.__code__).values()
        tree = cache.entries[0][0]
        assert tree.check(forward, (model, i))
        return lambda: least(lambda: (compiled, tree.check(forward, (model, i))))
    hooks = importlib.import_module("torch._C._dynamo.eval_frame")
    compiled = torch.compile(model, backend="eager")
    compiled(i)
    forward = type(model).forward
    (entry,) = hooks._debug_get_cache_entry_list(forward.__code__)
    cells = (c.cell_contents for c in forward.__closure__ or ())
    manager, f_locals = entry.guard_manager, {"self": model, "i": i, **dict(zip(forward.__code__.co_freevars, cells))}
    assert manager.check(f_locals), manager.check_verbose(f_locals).verbose_code_parts
    return lambda: least(lambda: (compiled, manager.check(f_locals)))


@row("capture of that GPT")
def _(torch):
    dynamo = importlib.import_module(f"{torch.__name__}._dynamo")
    if torch.__name__ == "flambeau":
        frame = importlib.import_module("flambeau.dynamo.tracing.root_frame").RootFrame
        run = frame.run

        def counted(self):
            run(self)
            COUNTS["instructions"] = self.output.executed

        frame.run = counted

    def measure():
        best = float("inf")
        for _ in range(3):
            dynamo.reset()
            model, i = gpt(torch)
            compiled = torch.compile(model, backend="eager")
            start = time.process_time()
            compiled(i)
            best = min(best, time.process_time() - start)
        return best

    measure()  # imports, shape rules
    return measure


COUNTS: dict[str, int] = {}  # what a measurement counted besides


def optimizer_step(torch, name: str, compiled: bool):
    step = importlib.import_module("cases").optimizer_step(torch, name, compiled)
    for _ in range(8):  # states, and what is compiled after a few steps
        step()
    return lambda: least(step)


for _name in ("SGD", "AdamW"):
    for _how in (False, True):
        row(f"{_name} step over 100 parameters, {'one graph' if _how else 'eager'}")(
            lambda torch, name=_name, how=_how: optimizer_step(torch, name, how)
        )


# --- first calls: a function of the library that returns the call ----------------------------------------------------
@row("first compiled step of the demo GPT", FIRST)
def _(torch):
    return importlib.import_module("cases").first_gpt_step(torch)


@row("the same with optimizer.step compiled", FIRST)
def _(torch):
    return importlib.import_module("cases").first_whole_step(torch)


@row("first compiled AdamW step over 100 parameters", FIRST)
def _(torch):
    return importlib.import_module("cases").optimizer_step(torch, "AdamW", True)


@row("first compiled step of EfficientNet-B0 (CIFAR)", FIRST)
def _(torch):
    networks = importlib.import_module("networks")
    return networks.training_step(torch, *networks._efficientnet(torch), True)


# --- worker -----------------------------------------------------------------------------------------------------------
def worker(peer: str, first: str | None) -> None:
    out, sys.stdout = sys.stdout, sys.stderr  # what a peer prints must not mix with the answers
    torch = importlib.import_module(peer)
    if first is not None:
        call = FIRST[first](torch)
        unit, wall, cpu = loop(), time.perf_counter(), time.process_time()
        call()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        print(json.dumps({"wall": wall, "cpu": cpu, "loop": min(unit, loop())}), file=out, flush=True)
        return
    measures: dict[str, object] = {}
    for line in sys.stdin:
        name = line.strip()
        try:
            if name not in measures:
                measures[name] = ROWS[name](torch)
            unit = loop()
            seconds = measures[name]()
            answer = {"cpu": seconds, "loop": min(unit, loop()), **COUNTS}
            COUNTS.clear()
        except Exception as e:  # a row that a peer hasn't is left empty, not the end of the run
            answer = {"error": f"{type(e).__name__}: {e}".splitlines()[0][:160]}
        print(json.dumps(answer), file=out, flush=True)


# --- the table --------------------------------------------------------------------------------------------------------
def shown(seconds: float | None) -> str:
    if seconds is None:
        return ""
    for scale, name in ((1, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {name}"
    return f"{seconds:.1e} s"


def line(name: str, found: dict[str, list[dict]], what: str, unit: float) -> str:
    """A row of medians: seconds on a machine whose loop takes ``unit``."""
    mid = {p: median(a[what] / a["loop"] for a in v) * unit for p, v in found.items() if v}
    ratio = f"{mid['flambeau'] / mid['torch']:.3f}" if len(mid) == 2 else ""
    return f"| {name} | {shown(mid.get('flambeau'))} | {shown(mid.get('torch'))} | {ratio} |"


def environment(cache: str) -> dict[str, str]:
    folders = ("FLAMBEAU_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")
    return {**os.environ, **{name: os.path.join(cache, name.lower()) for name in folders}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch-python", metavar="PATH", help="interpreter with PyTorch (default: flambeau alone)")
    parser.add_argument(
        "--rows", default="", metavar="TEXT", help="only rows whose name contains one of these (with commas between)"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--first-rounds", type=int, default=1, help="rounds of first calls (0: leave them out)")
    parser.add_argument("--seconds", type=float, default=110, help="a first call that takes longer is left empty")
    report.add_options(parser)
    parser.add_argument("--worker", metavar="PEER", help=argparse.SUPPRESS)
    parser.add_argument("--first", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return worker(options.worker, options.first)
    peers = {"flambeau": sys.executable, **({"torch": options.torch_python} if options.torch_python else {})}
    wanted = [text.strip().lower() for text in options.rows.split(",")]
    rows, first_rows = ([n for n in t if any(text in n.lower() for text in wanted)] for t in (ROWS, FIRST))
    notes: list[str] = []
    units: list[float] = []
    found: dict[tuple[str, str], dict[str, list[dict]]] = {}

    def keep(key, peer: str, answer: dict) -> None:
        values = found.setdefault(key, {p: [] for p in peers})[peer]
        if "error" in answer:
            notes.append(f"{key[0]} ({peer}): {answer['error']}")
        else:
            values.append(answer)
            units.append(answer["loop"])

    with contextlib.ExitStack() as stack:
        cache = stack.enter_context(tempfile.TemporaryDirectory())
        workers = {}
        for peer, python in peers.items():
            workers[peer] = stack.enter_context(
                subprocess.Popen(
                    [python, __file__, "--worker", peer],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    env=environment(cache),
                )
            )
        for name in rows:
            for _ in range(options.rounds):
                for peer, process in workers.items():
                    process.stdin.write(name + "\n")
                    process.stdin.flush()
                    keep((name, "cpu"), peer, json.loads(process.stdout.readline() or '{"error": "the worker ended"}'))
            print(f"  {name}", file=sys.stderr)
        for process in workers.values():
            process.stdin.close()
    for name in first_rows:
        for _ in range(options.first_rounds):
            for peer, python in peers.items():
                with tempfile.TemporaryDirectory() as cache:
                    for how in ("empty cache", "filled cache"):
                        command = [python, __file__, "--worker", peer, "--first", name]
                        try:
                            done = subprocess.run(
                                command,
                                capture_output=True,
                                text=True,
                                env=environment(cache),
                                timeout=options.seconds,
                                check=False,
                            )
                            last = (done.stdout.strip().splitlines() or [""])[-1]
                            error = (done.stderr.strip().splitlines() or ["no output"])[-1][:160]
                            answer = json.loads(last) if done.returncode == 0 and last else {"error": error}
                        except subprocess.TimeoutExpired:
                            answer = {"error": f"more than {options.seconds:.0f} s"}
                        keep((f"{name}, {how}", "wall"), peer, answer)
                        keep((f"{name}, {how}", "cpu"), peer, answer)
        print(f"  {name}", file=sys.stderr)

    unit = min(units)
    lines = ["| what | flambeau | torch | flambeau / torch |", "| --- | --- | --- | --- |"]
    for (name, what), values in found.items():
        first = any(name.startswith(n) for n in FIRST)
        lines.append(line(f"{name} ({'wall' if what == 'wall' else 'CPU'})" if first else name, values, what, unit))
        counted = [a for v in values.values() for a in v if "instructions" in a]
        if counted and name.startswith("capture"):
            each = median(a["cpu"] / a["loop"] / a["instructions"] for a in counted) * unit
            lines.append(f"| capture, for each of {counted[0]['instructions']} instructions | {shown(each)} | | |")
    slower = median(units) / unit
    text = (
        "\n".join(lines)
        + f"\n\nThe fixed loop took {unit * 1e3:.2f} ms at best, {slower:.2f} times that in the median.\n"
    )
    text += "".join(f"Not measured: {note}\n" for note in dict.fromkeys(notes))
    report.publish(text, options)


if __name__ == "__main__":
    main()
