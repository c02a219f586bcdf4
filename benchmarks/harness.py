"""Compare flambeau with PyTorch and NumPy: ``python benchmarks/harness.py --torch-python PATH [--rows TEXT] [--rounds N]
[--out FILE] [--into DOCUMENT]``.

Each peer is a worker process. In every round each case is asked of every peer in turn, so that noise of the machine meets all sides;
the table gives medians over the rounds and the ratio flambeau / peer (below 1, flambeau is ahead). First calls run in fresh processes:
cold with an empty cache folder, warm in a second process with the folder that the first one filled.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parent
WORKER = str(HERE / "worker.py")
CACHE_VARIABLES = ("FLAMBEAU_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TORCH_EXTENSIONS_DIR")

sys.path.insert(0, str(HERE))
import report  # noqa: E402
from cases import CASES, FIRST  # noqa: E402


class Worker:
    """A peer's process and its pipe. ``python`` is the interpreter that has the peer."""

    def __init__(self, peer: str, python: str, cache: str):
        self.peer, self.python, self.cache = peer, python, cache
        self.errors: dict[str, str] = {}
        self.process = subprocess.Popen(
            [python, WORKER, peer], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment(cache)
        )

    def seconds(self, case: str) -> float | None:
        """One measurement, or None if this peer can't run the case (``errors`` says why)."""
        if case in self.errors or self.peer not in CASES[case]:
            return None
        self.process.stdin.write(json.dumps({"case": case}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the {self.peer} worker ended while running {case!r}")
        answer = json.loads(line)
        if "error" in answer:
            self.errors[case] = answer["error"]
            return None
        return answer["seconds"]

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait(timeout=30)


def environment(cache: str) -> dict[str, str]:
    """This process's environment with cache folders below ``cache``. Bytecode is written: an installed package has it."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, **{name: os.path.join(cache, name.lower()) for name in CACHE_VARIABLES}}


def once(python: str, cache: str, *arguments: str) -> float | str:
    """Seconds that a fresh process reports, or what went wrong."""
    done = subprocess.run(
        [python, WORKER, *arguments], capture_output=True, text=True, env=environment(cache), timeout=600, check=False
    )
    if done.returncode != 0:
        return (done.stderr.strip().splitlines() or ["no output"])[-1][:200]
    return json.loads(done.stdout.strip().splitlines()[-1])["seconds"]


def unit(seconds: float | None) -> str:
    if seconds is None:
        return ""
    for scale, name in ((1, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {name}"
    return f"{seconds / 1e-9:.3g} ns"


def table(rows: list[tuple[str, dict[str, list[float]]]], peers: list[str]) -> str:
    """A markdown table of medians, with a ratio to each peer."""
    others = [p for p in peers if p != "flambeau"]
    head = ["what", "flambeau", *(c for p in others for c in (p, f"flambeau / {p}"))]
    lines = ["| " + " | ".join(head) + " |", "| --- " * len(head) + "|"]
    for name, values in rows:
        mid = {p: median(v) for p, v in values.items() if v}
        cells = [name, unit(mid.get("flambeau"))]
        for p in others:
            ratio = f"{mid['flambeau'] / mid[p]:.2f}" if p in mid and "flambeau" in mid else ""
            cells += [unit(mid.get(p)), ratio]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def measure_first(pythons: dict[str, str], wanted, rounds: int, notes: list[str]):
    """Import time, and first calls cold and warm."""
    rows = []
    if wanted("import"):
        values = {p: [] for p in pythons}
        for _ in range(max(rounds, 3)):
            for peer, python in pythons.items():
                with tempfile.TemporaryDirectory() as cache:
                    add(values[peer], once(python, cache, peer, "import"), f"import {peer}", notes)
        rows.append(("import", values))
    for name in FIRST:
        if not wanted(name):
            continue
        cold, warm = ({p: [] for p in pythons if p != "numpy"} for _ in range(2))
        for _ in range(rounds):
            for peer in cold:
                with tempfile.TemporaryDirectory() as cache:
                    add(cold[peer], once(pythons[peer], cache, peer, "first", name), f"{name} ({peer})", notes)
                    add(warm[peer], once(pythons[peer], cache, peer, "first", name), f"{name} ({peer})", notes)
        rows += [(f"{name}, cold cache", cold), (f"{name}, second process, warm cache", warm)]
    return rows


def add(values: list[float], result: float | str, what: str, notes: list[str]) -> None:
    if isinstance(result, str):
        notes.append(f"{what}: {result}")
    else:
        values.append(result)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--torch-python", metavar="PATH", help="interpreter with PyTorch (default: this one, if it has it)"
    )
    parser.add_argument("--rows", default="", metavar="TEXT", help="only cases whose name contains this")
    parser.add_argument("--rounds", type=int, default=7, help="rounds of the repeated cases")
    parser.add_argument("--first-rounds", type=int, default=1, help="rounds of the first calls (0: leave them out)")
    report.add_options(parser)
    options = parser.parse_args()

    pythons = {"flambeau": sys.executable, "numpy": sys.executable}
    torch_python = options.torch_python or sys.executable
    if once(torch_python, tempfile.gettempdir(), "torch", "import").__class__ is float:
        pythons["torch"] = torch_python
    elif options.torch_python:
        parser.error(f"--torch-python: {torch_python} can't import torch")

    def wanted(name: str) -> bool:
        return options.rows.lower() in name.lower()

    notes: list[str] = []
    rows = measure_first(pythons, wanted, options.first_rounds, notes) if options.first_rounds else []
    with tempfile.TemporaryDirectory() as cache:
        workers = [Worker(peer, python, cache) for peer, python in pythons.items()]
        for name in filter(wanted, CASES):
            values = {w.peer: [] for w in workers}
            for _ in range(options.rounds):
                for worker in workers:
                    seconds = worker.seconds(name)
                    if seconds is not None:
                        values[worker.peer].append(seconds)
            rows.append((name, values))
            print(f"  {name}", file=sys.stderr)
        for worker in workers:
            notes += [f"{name} ({worker.peer}): {error}" for name, error in worker.errors.items()]
            worker.close()

    text = table(rows, list(pythons)) + "\n"
    if notes:
        text += "\nNot measured:\n" + "".join(f"- {note}\n" for note in dict.fromkeys(notes))
    report.publish(text, options)


if __name__ == "__main__":
    main()
