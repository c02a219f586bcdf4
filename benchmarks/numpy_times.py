"""Processor time of NumPy programs, plain and compiled, on one thread: ``python benchmarks/numpy_times.py [texts,fields,numerics,lectures]``.

For machines that others use too, where wall time says little: the least processor time of some calls of each, alternately, and that of the first
compiled call. The programs are those of benchmarks/numpy_suite, of the files that are named.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np  # noqa: E402
from numpy_suite import PROGRAMS  # noqa: E402

import flambeau as torch  # noqa: E402

NEW = "texts,fields,numerics,lectures"  # that nothing was tuned for
CALLS, LONG = 5, 1.0  # calls of each; seconds after which NumPy isn't asked again


def seconds(fn, args) -> float:
    given = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    start = time.process_time()
    fn(*given)
    return time.process_time() - start


def main() -> None:
    wanted = (sys.argv[1] if len(sys.argv) > 1 else NEW).split(",")
    torch.set_num_threads(1)
    print("| program | flambeau, ms | first call, ms | numpy, ms | numpy / flambeau |\n| --- | --- | --- | --- | --- |")
    ratios = []
    for name, p in PROGRAMS.items():
        if p.function.__module__.rpartition(".")[2] not in wanted:
            continue
        args = p.arguments(np.random.default_rng(0), p.large)
        compiled = torch.compile(p.function)
        first, ours, theirs = seconds(compiled, args), np.inf, np.inf
        for _ in range(CALLS):
            ours = min(ours, seconds(compiled, args))
            if not LONG < theirs < np.inf:
                theirs = min(theirs, seconds(p.function, args))
        ratios.append(theirs / ours)
        print(f"| {name} | {ours * 1e3:.3g} | {first * 1e3:.0f} | {theirs * 1e3:.3g} | {ratios[-1]:.2f} |", flush=True)
    print(f"\nGeometric mean over {len(ratios)} programs: {np.exp(np.mean(np.log(ratios))):.1f}.")


if __name__ == "__main__":
    main()
