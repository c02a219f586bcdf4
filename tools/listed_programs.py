"""Run the programs of a folder that a list says pass, and fail when one doesn't any more.

usage: listed_programs.py LIST FOLDER [--update] [--jobs N]

A line of the list is a path below FOLDER; "beyond" after it: with FLAMBEAU_BEYOND=1. With ``--update`` all programs of FOLDER are run
(``beyond`` first) and the list is written anew: programs are added, and none that passed is taken away without a word.
Each program runs in an empty folder of its own with its own time limit. Exit status 1 when a listed program fails.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import os
import subprocess
import sys
import tempfile
from pathlib import Path

LIMIT = 120  # seconds for one program


def run(program: Path, beyond: bool) -> tuple[bool, str]:
    env = {**os.environ, "FLAMBEAU_BEYOND": str(int(beyond))}
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run(
                [sys.executable, str(program)], cwd=folder, env=env, capture_output=True, text=True, timeout=LIMIT
            )
        except subprocess.TimeoutExpired:
            return False, f"took more than {LIMIT} s"
    return done.returncode == 0, (done.stdout + done.stderr)[-1500:]


def read(path: Path) -> tuple[list[str], dict[str, bool]]:
    """(comment lines, {program: beyond})"""
    lines = path.read_text().splitlines() if path.exists() else []
    entries = {}
    for line in lines:
        words = line.split("#")[0].split()
        if words:
            entries[words[0]] = words[1:] == ["beyond"]
    return [line for line in lines if line.startswith("#")], entries


def best(folder: Path, name: str) -> tuple[bool, bool]:
    """(passes, with the beyond checks)"""
    if run(folder / name, True)[0]:
        return True, True
    return run(folder / name, False)[0], False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("list", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    folder = options.folder.resolve()
    if not folder.is_dir():
        print(f"no programs at {folder}: left out")
        return 0
    comments, entries = read(options.list)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        if options.update:
            names = sorted(str(p.relative_to(folder)) for p in folder.rglob("[0-9]*.py"))
            results = dict(zip(names, pool.map(lambda name: best(folder, name), names)))
            for name, beyond in entries.items():
                if not results[name][0] or beyond > results[name][1]:
                    print(f"passed before, not now: {name}")
            passing = [name + " beyond" * beyond for name, (ok, beyond) in results.items() if ok]
            options.list.write_text("\n".join([*comments, *passing]) + "\n")
            print(f"{len(passing)} of {len(names)} programs pass")
            return 0
        results = pool.map(lambda e: run(folder / e[0], e[1]), entries.items())
        failed = 0
        for name, (ok, output) in zip(entries, results):
            if not ok:
                failed += 1
                print(f"FAIL {name}: it passed before\n{output}")
    print(f"{len(entries) - failed} passed, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
