"""PyTorch's own tests of collectives and DistributedDataParallel on processors, run on flambeau:
``python tools/distributed_suite.py --torch PYTHON [--impl flambeau|torch] [--ranks 2] [--only TEXT ...] [--update] [--table]``.

``--torch`` names an interpreter with PyTorch, in whose wheel the tests lie (``torch/testing/_internal/distributed/distributed_test.py``; nothing of
it is in this repository). The ranks are processes that stay for many tests (tools/distributed_suite_rank.py); they are started anew behind a failure.

``tests/distributed_suite.txt`` has the tests that pass on PyTorch's gloo, one a line, ``name ranks``, with ``# why`` behind those that don't pass
here. ``--update`` runs all of them and writes the reasons anew; with ``--impl torch`` it makes the list. ``--table`` writes
docs/measurements/distributed_suite.md.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIST, TABLE = ROOT / "tests/distributed_suite.txt", ROOT / "docs/measurements/distributed_suite.md"
LIMIT = 40  # seconds that a test may take

Row = tuple[str, int]  # test, ranks


def read() -> dict[Row, str]:
    """{(test, ranks): why it doesn't pass} of the list."""
    rows = {}
    for line in LIST.read_text().splitlines() if LIST.exists() else []:
        name, _, why = line.partition("#")
        test, ranks = name.split()
        rows[test, int(ranks)] = why.strip()
    return rows


def write(rows: dict[Row, str]) -> None:
    lines = [f"{test} {ranks}" + (f"  # {why}" if why else "") for (test, ranks), why in sorted(rows.items())]
    LIST.write_text("".join(f"{line}\n" for line in lines))


def folder_of(python: str) -> Path:
    """Where an interpreter's PyTorch lies."""
    code = "import importlib.util; print(importlib.util.find_spec('torch').origin)"
    return Path(subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()).parent


class Suite:
    def __init__(self, options: argparse.Namespace):
        self.impl, self.verbose = options.impl, options.verbose
        self.source = folder_of(options.torch) / "testing/_internal/distributed/distributed_test.py"
        self.python = options.torch if self.impl == "torch" else sys.executable
        self.standins = options.folder.resolve() / "standins"

    def command(self, outcomes: Path, tests: list[str]) -> list[str]:
        rank = str(Path(__file__).with_name("distributed_suite_rank.py"))
        return [self.python, rank, self.impl, str(self.source), str(self.standins), str(outcomes), *tests]

    def environment(self, rank: int, ranks: int, scratch: str) -> dict[str, str]:
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        env = {**os.environ, "RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_RANK": str(rank), "BACKEND": "gloo"}
        env |= {
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            "SUITE_TEMP": scratch,
            "SUITE_LIMIT": str(LIMIT / 2),
        }
        env |= {"INIT_METHOD": f"file://{scratch}/init", "TEMP_DIR": scratch, "OMP_NUM_THREADS": "1"}
        if self.impl == "torch":
            env["PYTHONPATH"] = os.environ.get("TORCH_PYTHONPATH", "")
        return env

    def names(self) -> list[str]:
        with tempfile.TemporaryDirectory() as scratch:
            command = self.command(Path(scratch), ["--list"])
            done = subprocess.run(
                command, capture_output=True, text=True, env=self.environment(0, 2, scratch), check=True
            )
        return done.stdout.split()

    def run(self, tests: list[str], ranks: int) -> dict[str, str]:
        """{test: outcome}, the worst of the ranks'."""
        found: dict[str, str] = {}
        left = list(tests)
        while left:
            part = self._job(left, ranks)
            found |= part
            left = [t for t in left if t not in part]
        return found

    def _job(self, tests: list[str], ranks: int) -> dict[str, str]:
        """The outcomes of the tests that one job ran, to the first failure."""
        with tempfile.TemporaryDirectory() as scratch, open(f"{scratch}/log", "w+b") as log:
            files = [Path(scratch) / f"outcomes-{r}" for r in range(ranks)]
            processes = []
            for r in range(ranks):
                files[r].touch()
                command, env = self.command(files[r], tests), self.environment(r, ranks, scratch)
                processes.append(subprocess.Popen(command, env=env, stdout=log, stderr=log, start_new_session=True))
            self._wait(processes, files)
            out = _merged(files, tests)
            if self.verbose and any(o.startswith("fail") for o in out.values()):
                log.seek(0)
                print(log.read().decode(errors="replace")[-4000:])
            return out

    def _wait(self, processes, files) -> None:
        """Until all have ended; nobody waits longer for the others than a test may take."""
        seen, since = -1, time.monotonic()
        while any(p.poll() is None for p in processes):
            size = sum(f.stat().st_size for f in files)
            if size != seen:
                seen, since = size, time.monotonic()
            failed = any(p.poll() not in (None, 0) for p in processes)
            if time.monotonic() - since > (8 if failed else LIMIT):
                for p in processes:
                    if p.poll() is None:
                        os.killpg(p.pid, signal.SIGKILL)
            time.sleep(0.1)


def _merged(files: list[Path], tests: list[str]) -> dict[str, str]:
    out: dict[str, str] = {}
    begun: dict[str, int] = {}
    for file in files:
        open_ = None
        for line in file.read_text().splitlines():
            kind, name, *rest = line.split(" ", 3)
            if kind == "begin":
                begun[name], open_ = begun.get(name, 0) + 1, name
                continue
            open_, text = None, rest[1] if len(rest) > 1 else rest[0]
            if name not in out or text.startswith("fail") and not out[name].startswith("fail"):
                out[name] = text
        if open_ is not None and not out.get(open_, "").startswith("fail"):
            out[open_] = "fail a rank hangs or dies"
    if not begun:
        out[tests[0]] = "fail the ranks don't start"
    return out


def table(rows: dict[Row, str]) -> str:
    passing = [row for row, why in rows.items() if not why]
    lines = [
        "# PyTorch's tests of collectives and DistributedDataParallel",
        "",
        "`python tools/distributed_suite.py --torch PYTHON --table` writes this page, of `tests/distributed_suite.txt`.",
        "",
        f"Of {len(rows)} tests of `distributed_test.py` that pass on PyTorch's gloo on processors, {len(passing)} ({len(passing) / len(rows):.1%})",
        "pass on flambeau over MPI, in processes. Two others of that folder, `fake_pg.py` and `multi_threaded_pg.py`, are helpers and have no tests.",
        "",
        "| ranks | tests | pass |",
        "| ---: | ---: | ---: |",
    ]
    for ranks in sorted({ranks for _, ranks in rows}):
        mine = [why for (_, r), why in rows.items() if r == ranks]
        lines.append(f"| {ranks} | {len(mine)} | {mine.count('')} |")
    lines += ["", "| the others | why |", "| --- | --- |"]
    lines += [f"| `{test}` | {why} |" for (test, _), why in sorted(rows.items()) if why]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--torch", required=True, help="an interpreter with PyTorch")
    parser.add_argument("--impl", default="flambeau", choices=["flambeau", "torch"])
    parser.add_argument(
        "--folder", type=Path, default=Path(os.environ.get("FLAMBEAU_SHARED", ROOT / "../shared")) / "suites"
    )
    parser.add_argument("--ranks", type=int, default=2, help="of a list that is made")
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    rows = read()
    if options.table:
        TABLE.write_text(table(rows))
        return 0
    suite = Suite(options)
    making = options.impl == "torch" and options.update
    todo = (
        [(name, options.ranks) for name in suite.names()]
        if making
        else [row for row, why in rows.items() if options.update or not why or options.only]
    )
    todo = [row for row in todo if not options.only or any(text in row[0] for text in options.only)]
    failed = 0
    for ranks in sorted({ranks for _, ranks in todo}):
        found = suite.run([name for name, r in todo if r == ranks], ranks)
        for name, outcome in found.items():
            good = outcome.startswith("pass")
            failed += not good and not outcome.startswith("skip")
            if not good:
                print(f"{name} {ranks}: {outcome}", flush=True)
            if making and good:
                rows.setdefault((name, ranks), "")
            elif options.update and not making:
                rows[name, ranks] = "" if good else outcome.partition(" ")[2].replace("#", "").strip()[:160]
        print(f"{ranks} ranks: {sum(o.startswith('pass') for o in found.values())} of {len(found)} pass")
    if options.update:
        write(rows)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
