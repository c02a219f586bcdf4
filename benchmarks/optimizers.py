"""Compiled steps of optimizers over the parameters of networks: ``python benchmarks/optimizers.py --torch-python PATH [--rounds N] [--out FILE]
[--into DOCUMENT]``.

Three sides in turn, each in a process of its own: the step as one graph with tables (rows of list operators share a kernel and a launch), the same
without (``torch._inductor.config.tables = False``), and PyTorch's eager step with ``foreach=True``. First calls have an empty cache folder. Times are
processor time, since that of the wall depends on what else runs; of first calls the median, of later ones the least."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import report  # noqa: E402
from networks import NETWORKS  # noqa: E402
from peers import Peer  # noqa: E402

SIDES = {"tables": "flambeau", "without": "flambeau", "eager": "torch"}
OPTIMIZERS = {"Adam": {}, "AdamW": {}, "SGD": {"momentum": 0.9}}
STEPS = 30  # of one measurement of later steps


def processor_time(call) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def measured(torch, side: str, network: str, optimizer: str) -> dict:
    """Seconds of the first step and of a later one, and what was compiled."""
    torch.manual_seed(0)
    model, _, _ = NETWORKS[network](torch)
    parameters = list(model.parameters())
    for p in parameters:
        p.grad = torch.randn_like(p)
    made = getattr(torch.optim, optimizer)(parameters, lr=1e-3, foreach=True, **OPTIMIZERS[optimizer])
    step, infos = made.step, []
    if side != "eager":
        importlib.import_module("flambeau.inductor.debug").observers.append(lambda gm, parts, info: infos.append(info))
        step = torch.compile(made.step)
    first = processor_time(step)
    step()  # SGD's has its momentum from here on
    answer = {"parameters": len(parameters), "first": first, "later": min(processor_time(step) for _ in range(STEPS))}
    if infos:
        answer |= {"kernels": len(infos[-1].kernels), "launches": len(infos[-1].launches)}
        answer["code"] = sum(map(len, infos[-1].kernels.values()))
    return answer


def worker(side: str) -> None:
    """Answers requests, a line each."""
    out, sys.stdout = sys.stdout, sys.stderr
    torch = importlib.import_module(SIDES[side])
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(measured(torch, side, request["network"], request["optimizer"])), file=out, flush=True)


def asked(side: str, peers: dict[str, Peer], python: str, request: dict[str, str], limit: float) -> dict:
    """An answer: PyTorch's of a process for all, ours of a new process with an empty cache. RuntimeError when there is none."""
    with contextlib.ExitStack() as stack:
        peer = peers.get(side)
        if peer is None:
            cache = stack.enter_context(tempfile.TemporaryDirectory())
            environment = {**os.environ, "FLAMBEAU_CACHE_DIR": cache, "FLAMBEAU_TABLES": str(int(side == "tables"))}
            peer = Peer(side, [python, __file__, "--worker", side], environment, limit)
            stack.enter_context(contextlib.closing(peer))
        answer = peer.ask(str(request), request)
        if answer is None:
            raise RuntimeError(f"{side}: {peer.failed[str(request)]}")
        return answer


def line(network: str, optimizer: str, found: dict[str, list[dict]]) -> str:
    """A row of the table."""
    ms = lambda values: f"{1e3 * values:.3g}"  # noqa: E731
    sides = [v for v in found.values() if v]
    first = [ms(median(a["first"] for a in v)) for v in sides]
    later = [ms(min(a["later"] for a in v)) for v in sides]
    cells = [f"{network}, {sides[0][0]['parameters']} parameters", optimizer]
    for what in ("kernels", "launches"):
        cells.append(" / ".join(str(found[side][0][what]) for side in ("tables", "without")))
    cells.append(" / ".join(f"{found[side][0]['code'] / 1e3:.0f}" for side in ("tables", "without")))
    return f"| {' | '.join([*cells, ' / '.join(first), ' / '.join(later)])} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch-python", metavar="PATH", help="interpreter with PyTorch (default: flambeau alone)")
    parser.add_argument("--networks", default="GPT,ViT,EfficientNet", help="names that begin so, with commas between")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=110, help="an answer that takes longer ends the run")
    report.add_options(parser)
    parser.add_argument("--worker", choices=SIDES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return worker(options.worker)
    pythons = {"flambeau": sys.executable, "torch": options.torch_python}
    sides = [side for side, peer in SIDES.items() if pythons[peer]]
    lines = [
        "| network | optimizer | kernels | launches | code, kB | first step, ms | a step, ms |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    peers = {
        "eager": Peer(
            "eager", [str(options.torch_python), __file__, "--worker", "eager"], dict(os.environ), options.seconds
        )
    }
    for network in (n for n in NETWORKS if n.startswith(tuple(options.networks.split(",")))):
        for optimizer in OPTIMIZERS:
            found: dict[str, list[dict]] = {side: [] for side in sides}
            for _ in range(options.rounds):
                for side in sides:
                    request = {"network": network, "optimizer": optimizer}
                    found[side].append(asked(side, peers, pythons[SIDES[side]], request, options.seconds))
            lines.append(line(network, optimizer, found))
            print(lines[-1], file=sys.stderr)
    peers["eager"].close()
    report.publish("\n".join(lines), options)


if __name__ == "__main__":
    main()
