"""Long runs of the random programs: ``python tests/dynamo/fuzz.py KIND FIRST COUNT BACKENDS [FOLDER]``, KIND being programs, language,
world, alias, generators, iterators, containers, library, objects or sets.

Seeds go in chunks of 250, each chunk in a process of its own, so that a crash or a hang costs one seed and is told like any other failure. Each
*distinct* failure (type, place in the library, text without names and numbers) is kept once, as a file of FOLDER; all are counted. The last
line of ``FOLDER/counts.txt`` for a kind and backend says how many programs ran and how many failed.
"""

from __future__ import annotations

import collections
import faulthandler
import importlib.util
import os
import re
import subprocess
import sys
import traceback
import warnings
from pathlib import Path

PACKAGE = Path(importlib.util.find_spec("flambeau").origin).parent
CHUNK = 250
SECONDS = 120  # for one program


def signature(e: BaseException) -> str:
    """What two failures of one cause have in common."""
    inside = [f for f in traceback.extract_tb(e.__traceback__) if Path(f.filename).is_relative_to(PACKAGE)]
    where = f"{Path(inside[-1].filename).name}:{inside[-1].name}" if inside else ""
    text = re.sub(
        r"tensor\(\[[^\]]*\]|0x[0-9a-f]+|[-\d.]+(e[-+]\d+)?|\b[a-zA-Z]\w?\d+\b", "#", str(e).partition("\n")[0]
    )
    return f"{type(e).__name__} {where} {text[:100]}"


def chunk(kind: str, first: int, count: int, backend: str) -> None:
    """Run in a process of its own: a line a seed that begins, and a line of ``repr`` for each that fails."""
    run = importlib.import_module(f"fuzz_{kind}").run
    warnings.simplefilter("ignore")
    for seed in range(first, first + count):
        print("seed", seed, flush=True)
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        try:
            run(seed, backend)
        except Exception as e:
            told = "".join(traceback.format_exception(e))
            print("failed", repr((seed, signature(e), told[-12000:])), flush=True)
        faulthandler.cancel_dump_traceback_later()


def campaign(kind: str, first: int, count: int, backends: list[str], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    distinct: collections.Counter = collections.Counter()
    ran: collections.Counter = collections.Counter()

    def failed(backend: str, seed: int, what: str, text: str) -> None:
        distinct[backend, what] += 1
        if distinct[backend, what] == 1:
            (folder / f"{kind}-{backend}-{seed}.txt").write_text(what + "\n" + text)

    for start in range(first, first + count, CHUNK):
        for backend in backends:
            seed, end = start, min(start + CHUNK, first + count)
            while seed < end:  # goes on behind a seed that took the process down
                command = [
                    sys.executable,
                    "-X",
                    "faulthandler",
                    __file__,
                    "--chunk",
                    kind,
                    str(seed),
                    str(end - seed),
                    backend,
                ]
                done = subprocess.run(command, capture_output=True, text=True)
                lines = done.stdout.splitlines()
                last = max((int(line.split()[1]) for line in lines if line.startswith("seed ")), default=seed)
                for line in lines:
                    if line.startswith("failed "):
                        failed(backend, *eval(line[len("failed ") :]))
                ran[backend] += last + 1 - seed
                if done.returncode:
                    failed(backend, last, f"exit {done.returncode}", done.stdout[-1000:] + done.stderr[-4000:])
                elif last + 1 < end:
                    raise RuntimeError(done.stdout + done.stderr)
                seed = last + 1
        with open(folder / "counts.txt", "a") as f:
            for backend in backends:
                failures = {w: n for (b, w), n in distinct.items() if b == backend}
                print(
                    f"{kind} {backend} from {first}: {ran[backend]} ran, {sum(failures.values())} failed, {len(failures)} distinct",
                    file=f,
                )


if __name__ == "__main__":
    if sys.argv[1] == "--chunk":
        chunk(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
        os._exit(0)
    kind, first, count, backends = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4].split(",")
    campaign(kind, first, count, backends, Path(sys.argv[5] if len(sys.argv) > 5 else "fuzz-failures"))
