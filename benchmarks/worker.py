"""One peer in a process of its own: ``python worker.py PEER`` answers JSON requests on stdin, one a line.

``{"case": NAME}`` -> ``{"seconds": per call}`` or ``{"error": text}``. The call is prepared at the first request for it, and repeated
for about ``SPAN`` seconds a request. ``python worker.py PEER first NAME`` times one first call and leaves.
"""

from __future__ import annotations

import importlib
import json
import sys
from time import perf_counter

SPAN = 0.05


def measure(call) -> float:
    """Seconds of one call: the mean over a batch that takes about SPAN."""
    start = perf_counter()
    call()
    once = perf_counter() - start
    n = max(1, int(SPAN / max(once, 1e-7)))
    start = perf_counter()
    for _ in range(n):
        call()
    return (perf_counter() - start) / n


def main() -> None:
    peer = sys.argv[1]
    start = perf_counter()
    module = importlib.import_module(peer)
    if len(sys.argv) > 2 and sys.argv[2] == "import":
        print(json.dumps({"seconds": perf_counter() - start}))
        return
    from cases import CASES, FIRST

    if len(sys.argv) > 2 and sys.argv[2] == "first":
        call = FIRST[sys.argv[3]](module)
        start = perf_counter()
        call()
        print(json.dumps({"seconds": perf_counter() - start}))
        return
    out = sys.stdout
    sys.stdout = sys.stderr  # what a peer prints must not mix with the answers
    prepared: dict[str, object] = {}
    for line in sys.stdin:
        name = json.loads(line)["case"]
        try:
            if name not in prepared:
                prepared[name] = CASES[name][peer](module)
                prepared[name]()
            answer = {"seconds": measure(prepared[name])}
        except Exception as error:  # a case that a peer can't run is a row without its number, not the end of the run
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
        print(json.dumps(answer), file=out, flush=True)


if __name__ == "__main__":
    main()
