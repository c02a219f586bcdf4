"""NumPy programs beside Numba, JAX and torch.compile: ``python benchmarks/numpy_programs.py [--numba-python PATH] [--jax-python PATH]
[--torch-python PATH] [--rows TEXT] [--files NAMES] [--rounds N] [--limit SECONDS] [--processor] [--peer-cache FOLDER] [--out FILE]``.

The programs are those of benchmarks/numpy_suite, as plain NumPy. flambeau and torch compile them, Numba gets the same source under ``njit``
(``parallel=True`` where that compiles), JAX the ones that write nothing in place with ``jax.numpy`` as ``np`` and the others as
benchmarks/jax_ports*.py have them (compared with NumPy at the small size first). Every peer is a process of its
own; in each round every program is asked of every peer in turn. Arguments are fresh for each call and their copying isn't timed. The first
call of a program is timed apart, in the same process. A peer that needs longer than ``--limit`` for a call is left out of that row.
``--quick`` takes one short round, waits half a minute at most and asks torch only for programs without Python loops over arrays (the others it
unrolls), twenty minutes at most (``--minutes``). ``--processor`` is for machines that others use too: the least processor time of a call, on one
core. ``--peer-cache`` keeps what Numba and JAX compile in a folder, so that a later run spends its time on measuring.
``--into docs/measurements/numpy_programs.md`` puts the table into the document, between marks that name the files, too.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
import types
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import numpy as np  # noqa: E402
import report  # noqa: E402
from harness import environment, unit  # noqa: E402
from numpy_suite import PROGRAMS  # noqa: E402
from peers import LEFT_OUT, Peer, described, geometric_mean  # noqa: E402

SPAN = 0.2  # seconds of one measurement, about


# ---- a peer ----------------------------------------------------------------------------------------------------------------


def fresh(arguments):
    return [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]


def compiled(peer: str, program):
    """The callable of this peer for a program. LookupError when the peer has none."""
    f = program.function
    if peer == "numpy":
        return f
    if peer == "flambeau":
        import flambeau

        return flambeau.compile(f)
    if peer == "torch":
        import torch

        return torch.compile(f)
    if peer == "numba":
        import numba

        cache = "NUMBA_CACHE_DIR" in os.environ
        helpers = {
            k: numba.njit(v, cache=cache)
            for k, v in f.__globals__.items()
            if isinstance(v, types.FunctionType) and k[0] == "_"
        }
        f = types.FunctionType(f.__code__, {**f.__globals__, **helpers}, f.__name__)
        return numba.njit(f, parallel=True, cache=cache)
    import jax
    import jax.numpy

    jax.config.update("jax_enable_x64", True)
    if program.functional:
        scope = {**f.__globals__, "np": jax.numpy}
        scope |= {
            k: types.FunctionType(v.__code__, scope, k) for k, v in scope.items() if isinstance(v, types.FunctionType)
        }
        f = types.FunctionType(f.__code__, scope, f.__name__)
    else:
        import jax_ports_fields  # noqa: F401
        import jax_ports_texts  # noqa: F401
        from jax_ports import PORTS

        if program.name not in PORTS:
            raise LookupError("no port")
        f = PORTS[program.name]
    static = tuple(
        i for i, a in enumerate(program.arguments(np.random.default_rng(0), program.small)) if isinstance(a, int)
    )
    run = jax.jit(f, static_argnums=static)
    return lambda *args: jax.block_until_ready(run(*args))


def leaves(x) -> list:
    return [leaf for item in x for leaf in leaves(item)] if isinstance(x, (tuple, list)) else [] if x is None else [x]


def disagreement(program, port) -> str:
    """How a function that returns what a program returns and then the arrays that it changes differs from the program; empty when it doesn't."""
    arguments = program.arguments(np.random.default_rng(0), program.small)
    args = fresh(arguments)
    wanted = leaves(program.function(*args))
    wanted += [
        a for a, b in zip(args, arguments) if isinstance(a, np.ndarray) and not np.array_equal(a, b, equal_nan=True)
    ]
    given = leaves(port(*fresh(arguments)))
    if len(given) != len(wanted):
        return f"{len(given)} results instead of {len(wanted)}"
    for k, (a, b) in enumerate(zip(given, wanted)):
        # A few elements may differ: where rounding decides on which side of a limit a number is.
        if np.shape(a) != np.shape(b) or np.mean(~np.isclose(a, b, rtol=1e-5, atol=1e-8)) > 0.05:
            return f"result {k} differs"
    return ""


def on_one_core() -> None:
    """The peers that this process starts run on one core, with one thread each."""
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    for name in ("OMP", "NUMBA", "OPENBLAS", "MKL"):
        os.environ[f"{name}_NUM_THREADS"] = "1"
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def worker(peer: str, span: float, processor: bool) -> None:
    out, sys.stdout = sys.stdout, sys.stderr
    clock = process_time if processor else perf_counter
    ready: dict[str, tuple] = {}
    for line in sys.stdin:
        name = json.loads(line)["program"]
        try:
            answer = {}
            if name not in ready:
                program = PROGRAMS[name]
                arguments = program.arguments(np.random.default_rng(0), program.large)
                f = compiled(peer, program)
                if peer == "jax" and not program.functional and (why := disagreement(program, f)):
                    raise AssertionError(f"the port: {why}")
                args = fresh(arguments)
                start = perf_counter()
                f(*args)
                answer["first"] = perf_counter() - start
                f(*fresh(arguments))  # what one call tells (a size that varies) may be compiled at the next
                ready[name] = f, arguments
            f, arguments = ready[name]
            times: list[float] = []
            while sum(times) < span and len(times) < 1000:
                args = fresh(arguments)
                start = clock()
                f(*args)
                times.append(clock() - start)
            answer["seconds"] = min(times) if processor else sum(times) / len(times)
        except Exception as error:  # a program that a peer can't run is a row without its number
            answer = {"error": described(error)}
        print(json.dumps(answer), file=out, flush=True)


# ---- the comparison --------------------------------------------------------------------------------------------------------


class Programs(Peer):
    """A peer that is asked for programs by name, and the time of each one's first call."""

    def __init__(self, name: str, command: list[str], environment: dict[str, str], limit: float):
        super().__init__(name, command, environment, limit)
        self.first: dict[str, float] = {}

    def seconds(self, program: str) -> float | None:
        answer = self.ask(program, {"program": program})
        if answer is None:
            return None
        self.first.setdefault(program, answer.get("first", math.nan))
        return answer["seconds"]


def table(values: dict[str, dict[str, list[float]]], peers: list[Programs]) -> str:
    others = [p.name for p in peers if p.name not in ("flambeau",)]
    lines = [
        "| program | flambeau | first call | " + " | ".join(c for p in others for c in (p, f"{p} / flambeau")) + " |"
    ]
    lines.append("| --- " * (3 + 2 * len(others)) + "|")
    own = next(p for p in peers if p.name == "flambeau")
    ratios: dict[str, list[float]] = {p: [] for p in others}
    firsts = []
    for name, row in values.items():
        mid = {p: median(v) for p, v in row.items() if v}
        first = own.first.get(name)
        cells = [name, unit(mid.get("flambeau")), unit(first)]
        if first is not None:
            firsts.append(first)
        for p in others:
            ratio = mid[p] / mid["flambeau"] if p in mid and "flambeau" in mid else None
            if ratio is not None:
                ratios[p].append(ratio)
            cells += [unit(mid.get(p)), f"{ratio:.2f}" if ratio is not None else ""]
        lines.append("| " + " | ".join(cells) + " |")
    lines.append("")
    lines += [
        f"Geometric mean of {p} / flambeau over {len(r)} programs: {geometric_mean(r):.2f}." for p, r in ratios.items()
    ]
    slower = sorted(
        n for n, row in values.items() if row["flambeau"] and median(row["numpy"]) < 0.95 * median(row["flambeau"])
    )
    lines.append(f"Slower than 0.95 of NumPy: {', '.join(slower) or 'none'}.")
    quick = sum(f <= 0.5 for f in firsts)
    lines.append(
        f"First calls: {quick} of {len(values)} within 0.5 s, the longest {max(firsts, default=math.nan):.2f} s."
    )
    for p in peers:
        if p.name not in ("flambeau", "numpy") and p.first:
            lines.append(
                f"First calls of {p.name}: median {unit(median(p.first.values()))}, the longest {unit(max(p.first.values()))}."
            )
    lines += [f"- {n} ({p.name}): {why}" for p in peers for n, why in p.failed.items() if why != LEFT_OUT]
    return "\n".join(lines)


def chosen(text: str, files: str) -> list[str]:
    """Programs whose names contain ``text``, of these files of the suite, of all where none is named."""
    of = {name: p.function.__module__.rpartition(".")[2] for name, p in PROGRAMS.items()}
    wanted = files.split(",") if files else sorted(set(of.values()))
    unknown = set(wanted) - set(of.values())
    if unknown:
        raise SystemExit(f"no such file of the suite: {', '.join(sorted(unknown))}")
    return [name for name in PROGRAMS if text in name and of[name] in wanted]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    for peer in ("numba", "jax", "torch"):
        parser.add_argument(f"--{peer}-python", metavar="PATH", help=f"interpreter that has {peer}")
    parser.add_argument("--rows", default="", metavar="TEXT", help="only programs whose name contains this")
    parser.add_argument(
        "--files", default="", metavar="NAMES", help="only programs of these files of the suite, as texts,fields"
    )
    parser.add_argument("--quick", action="store_true", help="few measurements, see above")
    parser.add_argument("--rounds", type=int, help="5, with --quick 1")
    parser.add_argument(
        "--limit", type=float, help="seconds for one measurement, the first call included: 40, with --quick 30"
    )
    parser.add_argument("--span", type=float, default=SPAN, help=argparse.SUPPRESS)
    parser.add_argument(
        "--minutes", type=float, help="after so long only flambeau and numpy are asked; with --quick 18"
    )
    report.add_options(parser)
    parser.add_argument("--table", type=Path, help="measure nothing: the table is that of an earlier --out, for --into")
    parser.add_argument("--processor", action="store_true", help="the least processor time on one core, see above")
    parser.add_argument("--peer-cache", type=Path, metavar="FOLDER", help="keep what Numba and JAX compile here")
    options = parser.parse_args()
    if options.worker:
        return worker(options.worker, options.span, options.processor)
    if options.processor:
        on_one_core()
    mark = f"{Path(__file__).name} {options.files}".strip()
    if options.table:
        return report.put_into(options.into, mark, options.table.read_text())
    started, minutes = perf_counter(), options.minutes or (18 if options.quick else math.inf)
    span = SPAN / 4 if options.quick else SPAN
    rounds = options.rounds or (1 if options.quick else 5)
    limit = options.limit or (30 if options.quick else 40)
    pythons = {"flambeau": sys.executable, "numpy": sys.executable}
    pythons |= {p: v for p in ("numba", "jax", "torch") if (v := getattr(options, f"{p}_python"))}
    with tempfile.TemporaryDirectory() as cache:
        given = environment(cache)
        if options.peer_cache:
            given["NUMBA_CACHE_DIR"] = str(options.peer_cache.resolve() / "numba")
            given["JAX_COMPILATION_CACHE_DIR"] = str(options.peer_cache.resolve() / "jax")
            given |= {
                "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.05",
                "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "0",
            }
        more = ["--span", str(span), *(["--processor"] if options.processor else [])]
        peers = [
            Programs(name, [python, __file__, "--worker", name, *more], given, limit)
            for name, python in pythons.items()
        ]
        values: dict[str, dict[str, list[float]]] = {}
        for name in chosen(options.rows, options.files):
            row = values[name] = {p.name: [] for p in peers}
            if options.quick and not PROGRAMS[name].functional:
                for peer in peers:
                    if peer.name == "torch":
                        peer.failed[name] = LEFT_OUT
            for _ in range(rounds):
                for peer in peers:
                    if peer.name not in ("flambeau", "numpy") and perf_counter() - started > 60 * minutes:
                        peer.failed.setdefault(name, LEFT_OUT)
                    seconds = peer.seconds(name)
                    if seconds is not None:
                        row[peer.name].append(seconds)
            print(f"  {name}", file=sys.stderr)
        for peer in peers:
            peer.close()
    report.publish(table(values, peers), options, mark)


if __name__ == "__main__":
    main()
