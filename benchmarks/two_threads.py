"""What two threads gain over one in parallel native loops: ``python benchmarks/two_threads.py [--rounds N] [--out FILE]
[--into DOCUMENT]``, on an idle machine of two cores or more, about a minute.

Loops of turns that take about 10 microseconds or more each, in numbers from few to many. The ideal, in each round measured beside them: two
processes that run the same loop, each half of its turns, as far as the machine lets both cores run at once. The best of many short calls counts,
since on a shared machine both cores are seldom free.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import sys
from pathlib import Path
from time import perf_counter

sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np  # noqa: E402
import report  # noqa: E402
from peers import geometric_mean  # noqa: E402

import flambeau as torch  # noqa: E402

WORK = 400  # sines a turn: about 5 ns each
R = np.random.default_rng(0)


def sums(out, x, turns):
    """Turns of equal length, which write one element each."""
    for i in range(turns):
        s = 0.0
        for k in range(3 * WORK):
            s += math.sin(x[i] + k)
        out[i] = s


def uneven(out, x, turns):
    """Turns that grow longer."""
    for i in range(turns):
        s = 0.0
        for k in range(6 * WORK * i // turns + 10):
            s += math.sin(x[i] + k)
        out[i] = s


def counted(out, x, turns):
    """A count that all turns add to."""
    n = 0
    for i in range(turns):
        z, c, k = 0j, complex(x[i] - 1.5, x[i]), 0
        while k < 4 * WORK and z.real * z.real + z.imag * z.imag < 4.0:
            z = z * z + c * 0.2
            k += 1
        n += k
    return n


def rows(out, x, turns):
    """Vector operations on rows."""
    for i in range(turns):
        row = out[i]
        for _ in range(12):
            row[:] = np.sqrt(row * row + x[i])


def steps(out, x, turns):
    """Loops over space within a loop over time."""
    for _ in range(10):
        for i in range(1, turns - 1):
            s = 0.0
            for k in range(WORK):
                s += math.sin(x[i - 1] + k)
            out[i] = s
        x[0] = out[1]


PROGRAMS = {
    "sums": (sums, lambda n: (np.zeros(n), R.random(n))),
    "uneven turns": (uneven, lambda n: (np.zeros(n), R.random(n))),
    "a count": (counted, lambda n: (np.zeros(n), R.random(n))),
    "rows": (rows, lambda n: (R.random((n, 2000)), R.random(n))),
    "within time steps": (steps, lambda n: (np.zeros(n), R.random(n))),
}
TURNS = (16, 64, 512)


def best(f, args, calls: int) -> float:
    least = math.inf
    for _ in range(calls):
        start = perf_counter()
        f(*args)
        least = min(least, perf_counter() - start)
    return least


def halves(pipe, name: str, turns: int) -> None:
    """A process that runs half of the turns, once for each message."""
    torch.set_num_threads(1)
    f, arguments = PROGRAMS[name]
    compiled, args = torch.compile(f), (*arguments(turns // 2), turns // 2)
    compiled(*args)
    while (calls := pipe.recv()) is not None:
        start = perf_counter()
        for _ in range(calls):
            compiled(*args)
        pipe.send((perf_counter() - start) / calls)


def measure(name: str, turns: int, rounds: int) -> tuple[float, float, float]:
    """Seconds on one thread, on two, and of the slower of two processes with half of the turns."""
    f, arguments = PROGRAMS[name]
    compiled, args = torch.compile(f), (*arguments(turns), turns)
    pipes, processes = [], []
    for _ in range(2):
        ours, theirs = multiprocessing.Pipe()
        process = multiprocessing.get_context("spawn").Process(target=halves, args=(theirs, name, turns), daemon=True)
        process.start()
        pipes.append(ours)
        processes.append(process)
    compiled(*args)
    one = two = ideal = math.inf
    calls = max(3, int(0.02 / best(compiled, args, 3)))
    for _ in range(rounds):
        torch.set_num_threads(1)
        one = min(one, best(compiled, args, calls))
        torch.set_num_threads(2)
        compiled(*args)
        two = min(two, best(compiled, args, calls))
        for pipe in pipes:
            pipe.send(calls)
        ideal = min(ideal, max([pipe.recv() for pipe in pipes]))
    for pipe, process in zip(pipes, processes):
        pipe.send(None)
        process.join()
    return one, two, ideal


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    report.add_options(parser)
    options = parser.parse_args()
    lines = ["| loop | turns | of, µs | one thread / two | one / two processes |", "| --- | --- | --- | --- | --- |"]
    gains = []
    for name in PROGRAMS:
        for turns in TURNS:
            one, two, ideal = measure(name, turns, options.rounds)
            gains.append(one / two)
            lines.append(f"| {name} | {turns} | {one / turns * 1e6:.0f} | {one / two:.2f} | {one / ideal:.2f} |")
            print(lines[-1], file=sys.stderr)
    lines += ["", f"Least gain {min(gains):.2f}, geometric mean {geometric_mean(gains):.2f}."]
    report.publish("\n".join(lines), options)


if __name__ == "__main__":
    main()
