"""Steps of whole networks beside PyTorch and JAX: ``python benchmarks/models.py --torch-python PATH [--jax-python PATH] --out FILE.json``.

A row is a network of networks.py: a training step (SGD), or one more token. Five peers, each a process of its own: flambeau and PyTorch,
eager and compiled, and JAX (jax_networks.py, one jitted function for the whole step). All start from the same weights and data; the losses of
the first steps have to agree within ``AGREE``, a peer whose don't is left out of the row. The first call of each is made alone, with an
empty cache folder; then all are asked in turn, ``--rounds`` times; the table gives medians. Last, the memory that a step takes: the greatest
resident size during one less that before it, caches emptied.

Rows are written to ``--out`` as they are done, and a row that is there already isn't measured again: the same command goes on where it ended.
After ``--minutes`` no row is begun. ``--rows TEXT,TEXT`` takes those whose name contains one of the texts, ``--peers`` some peers only.
``--threads N`` keeps every peer on N processors, ``--cpu-time`` counts processor time (for a machine with other work, with one thread).
``--into docs/measurements/networks.md`` puts the table of ``--out`` into the document; with ``--rounds 0`` nothing is measured before.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import importlib
import json
import os
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import numpy as np  # noqa: E402
import report  # noqa: E402
from networks import DECODERS, NETWORKS, state, with_state  # noqa: E402
from peers import Peer, described, geometric_mean  # noqa: E402

PEERS = ("flambeau eager", "flambeau compiled", "torch eager", "torch compiled", "jax compiled")
STEPS = 3  # whose losses are compared
AGREE = 2e-3  # of a loss
SPAN = 0.3  # seconds of one measurement, about


# ---- a peer -------------------------------------------------------------------------------------------------------------------
def prepared(peer: str, mode: str, name: str, arrays: dict):
    if peer == "jax":
        from jax_networks import step

        return step(name, arrays)
    return with_state(importlib.import_module(peer), name, arrays, mode == "compiled")


def resident(what: str) -> int:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(what))
    return int(line.split()[1]) * 1024


def memory(peer: str, step) -> int:
    """Bytes that a step takes beyond what is there before it. LookupError where the system doesn't tell."""
    if not Path("/proc/self/clear_refs").exists():
        raise LookupError("no /proc/self/clear_refs")
    gc.collect()
    if peer == "flambeau":
        importlib.import_module(peer).cpu.empty_cache()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # the greatest size begins anew
    before = resident("VmRSS")
    step()
    return resident("VmHWM") - before


def answers(peer: str, mode: str, clock):
    """A function from requests to answers."""
    step = None

    def answer(request: dict) -> dict:
        nonlocal step
        if "make" in request:
            torch = importlib.import_module(peer)
            torch.manual_seed(0)
            np.savez(request["state"], **state(*{**NETWORKS, **DECODERS}[request["make"]](torch)))
            return {}
        if "first" in request:
            step = prepared(peer, mode, request["first"], dict(np.load(request["state"])))
            start = perf_counter()
            loss = float(step())
            first = perf_counter() - start
            return {"first": first, "losses": [loss, *(float(step()) for _ in range(STEPS - 1))]}
        if "memory" in request:
            return {"bytes": memory(peer, step)}
        start = clock()
        step()
        count = max(1, min(1000, int(SPAN / max(clock() - start, 1e-6))))
        start = clock()
        for _ in range(count):
            step()
        return {"seconds": (clock() - start) / count}

    return answer


def worker(peer: str, mode: str, cpu_time: bool) -> None:
    out, sys.stdout = sys.stdout, sys.stderr
    answer = answers(peer, mode, process_time if cpu_time else perf_counter)
    for line in sys.stdin:
        try:
            said = answer(json.loads(line))
        except Exception as error:  # what a peer can't run is a place in the table without its number
            said = {"error": described(error)}
        print(json.dumps(said), file=out, flush=True)


# ---- the comparison -----------------------------------------------------------------------------------------------------------
class Measurement:
    """A row: its peers, started for it, and what they say."""

    def __init__(self, name: str, options, pythons: dict[str, str]):
        self.name, self.options = name, options
        self.folder = tempfile.TemporaryDirectory()
        self.peers = []
        for who in options.peers:
            peer, mode = who.split()
            if peer not in pythons:
                continue
            # PyTorch's compiler passes paths to g++ as they are: no spaces.
            environment = self.environment(os.path.join(self.folder.name, who.replace(" ", "_")))
            command = [pythons[peer], __file__, "--worker", peer, mode, *(["--cpu-time"] if options.cpu_time else [])]
            self.peers.append(Peer(who, command, environment, options.limit))

    def environment(self, cache: str) -> dict[str, str]:
        from harness import environment

        kept = environment(cache)
        if self.options.threads:
            kept["OMP_NUM_THREADS"] = str(self.options.threads)
        return kept

    def run(self) -> dict:
        path = os.path.join(self.folder.name, "state.npz")
        maker = Peer(
            "flambeau",
            [sys.executable, __file__, "--worker", "flambeau", "eager"],
            self.environment(self.folder.name),
            120.0,
        )
        if maker.ask(self.name, {"make": self.name, "state": path}) is None:
            raise RuntimeError(f"{self.name}: {maker.failed[self.name]}")
        maker.close()
        row: dict = {"first": {}, "losses": {}, "seconds": {p.name: [] for p in self.peers}, "memory": {}, "failed": {}}
        for peer in self.peers:
            said = peer.ask(self.name, {"first": self.name, "state": path})
            if said:
                row["first"][peer.name], row["losses"][peer.name] = said["first"], said["losses"]
        wanted = next(iter(row["losses"].values()), [])
        for peer in self.peers:
            losses = row["losses"].get(peer.name, wanted)
            if not np.allclose(losses, wanted, rtol=AGREE, atol=0):
                peer.failed[self.name] = f"losses {losses} instead of {wanted}"
        for _ in range(self.options.rounds):
            for peer in self.peers:
                if said := peer.ask(self.name, {"seconds": True}):
                    row["seconds"][peer.name].append(said["seconds"])
        for peer in self.peers:
            if said := peer.ask(self.name, {"memory": True}):
                row["memory"][peer.name] = said["bytes"]
            peer.close()
            if self.name in peer.failed:
                row["failed"][peer.name] = peer.failed[self.name]
        self.folder.cleanup()
        return row


def cell(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1e3:.3g}"


def _head(titles: list[str]) -> list[str]:
    return ["| " + " | ".join(titles) + " |", "| --- " * len(titles) + "|"]


def table(rows: dict[str, dict]) -> str:
    """The markdown tables of steps and of first calls and memory, with means."""
    ratio = ["eager / PyTorch eager", "compiled / best of PyTorch", "compiled / JAX"]
    sides = ["flambeau eager", "compiled", "PyTorch eager", "compiled", "JAX"]
    steps = _head(["ms", *sides, *ratio])
    others = _head(
        ["first call (s), memory of a step (MB)", "flambeau", "PyTorch", "JAX", "memory: flambeau eager", *sides[1:]]
    )
    ratios: dict[str, list[float]] = {kind: [] for kind in ratio}
    notes = []
    for name in (n for n in (*NETWORKS, *DECODERS) if n in rows):
        row = rows[name]
        mid = {p: median(v) for p, v in row["seconds"].items() if v}
        ours, best = mid.get("flambeau compiled"), min((mid[p] for p in PEERS[2:4] if p in mid), default=None)
        pairs = ((mid.get("flambeau eager"), mid.get("torch eager")), (ours, best), (ours, mid.get("jax compiled")))
        shown = []
        for kind, (a, b) in zip(ratios, pairs):
            shown.append(f"{a / b:.2f}" if a and b else "")
            if a and b:
                ratios[kind].append(a / b)
        steps.append("| " + " | ".join([name, *(cell(mid.get(p)) for p in PEERS), *shown]) + " |")
        first = [f"{row['first'][p]:.2f}" if p in row["first"] else "" for p in (PEERS[1], PEERS[3], PEERS[4])]
        kept = [f"{row['memory'][p] / 1e6:.0f}" if p in row["memory"] else "" for p in PEERS]
        others.append("| " + " | ".join([name, *first, *kept]) + " |")
        if name in DECODERS:
            said = ", ".join(f"{p.replace('torch', 'PyTorch')} {1 / s:.0f}" for p, s in mid.items())
            notes.append(f"Tokens a second, {name}: {said}.")
        notes += [f"- {name} ({who}): {why}" for who, why in row["failed"].items()]
    means = [
        f"Geometric mean of {kind} over {len(r)} rows: {geometric_mean(r):.2f}." for kind, r in ratios.items() if r
    ]
    return "\n".join([*steps, "", *means, "", *others, "", *notes])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--torch-python", metavar="PATH", help="interpreter that has PyTorch")
    parser.add_argument("--jax-python", metavar="PATH", help="interpreter that has JAX")
    parser.add_argument("--rows", default="", metavar="TEXT,TEXT")
    parser.add_argument("--peers", type=lambda text: text.split(","), default=PEERS, metavar="NAME,NAME")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--minutes", type=float, default=45.0)
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for one answer, first calls included")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--cpu-time", action="store_true")
    parser.add_argument("--out", type=Path, metavar="FILE.json")
    parser.add_argument("--into", type=Path, metavar="DOCUMENT")
    options = parser.parse_args()
    if options.worker:
        return worker(*options.worker, options.cpu_time)
    if options.threads:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.threads])  # the peers' processes inherit it
    pythons = {"flambeau": sys.executable, "torch": options.torch_python, "jax": options.jax_python}
    pythons = {k: v for k, v in pythons.items() if v}
    rows = json.loads(options.out.read_text()) if options.out and options.out.exists() else {}
    started = perf_counter()
    for name in (*NETWORKS, *DECODERS):
        if name in rows or not options.rounds or not any(text in name for text in options.rows.split(",")):
            continue
        if perf_counter() - started > 60 * options.minutes:
            print(f"left for another run: {name}", file=sys.stderr)
            continue
        rows[name] = Measurement(name, options, pythons).run()
        if options.out:
            options.out.write_text(json.dumps(rows, indent=1))
        print(f"  {name}, {perf_counter() - started:.0f} s", file=sys.stderr)
    # --out has the rows themselves.
    report.publish(table(rows), argparse.Namespace(out=None, into=options.into))


if __name__ == "__main__":
    main()
