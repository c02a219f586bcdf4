"""PyTorch's own test files, run on flambeau:
``python tools/suites.py [--update] [--table] [--only TEXT ...] [--folder DIR] [--jobs N] [--out FILE]``.

The folder (default: ``$FLAMBEAU_SHARED/suites``) holds the files, the runner ``suites.py`` and the list of tests that pass on PyTorch. Nothing of it
is in this repository. Three files here say where flambeau stands:

- ``tests/suites_passing.txt``: the tests that pass, ``file::Class.test``, one a line. It only grows.
- ``tests/suites_out.txt``: tests that ask for PyTorch's insides, ``file::Class.test  # reason``.
- ``docs/measurements/suites.md``: the table by file, and why in files below 70 % the others don't pass.

Without options the passing list is run, one process a file and ``--jobs`` of them at once; exit status 1 when a listed test fails. A test that fails
is run a second time in a process of its own, for a machine under load runs into time limits. ``--update`` runs every test of the baseline that isn't
out, adds what passes to the list, and names what passed before and doesn't now. ``--table`` writes the table. ``--only`` takes files whose name
contains one of the texts. ``--out`` keeps the outcome of each test as JSON.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import importlib.util
import json
import os
import sys
import tempfile
from argparse import Namespace
from collections import Counter
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parent.parent
PASSING = ROOT / "tests/suites_passing.txt"
OUT = ROOT / "tests/suites_out.txt"
TABLE = ROOT / "docs/measurements/suites.md"
TEST_LIMIT, FILE_LIMIT = 60, 500  # seconds
SHARE = 0.7  # a file of which less passes is explained in the table

Tests = dict[str, list[str]]  # of each file


def read(path: Path) -> dict[str, str]:
    """{file::test: reason} of a list."""
    entries = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        name, _, reason = line.partition("#")
        if name.strip():
            entries[name.strip()] = reason.strip()
    return entries


def by_file(names: list[str]) -> Tests:
    files: Tests = {}
    for name in sorted(names):
        file, _, test = name.partition("::")
        files.setdefault(file, []).append(test)
    return files


def load_runner(folder: Path, results: Path) -> ModuleType:
    """The folder's runner; what it writes goes to ``results``."""
    spec = importlib.util.spec_from_file_location("suites_runner", folder / "suites.py")
    runner = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(runner)
    runner.RESULTS = str(results)
    return runner


def outcomes(runner: ModuleType, tests: Tests, jobs: int, scratch: Path) -> dict[str, str]:
    """{file::test: outcome} of the tests named, one process a file."""
    options = {"impl": "flambeau", "native": False, "strict_imports": False, "k": None, "every": None, "retry": False}
    args = Namespace(**options, timeout=TEST_LIMIT, budget=FILE_LIMIT)
    names = scratch / "names.json"
    names.write_text(json.dumps(tests))

    def one(file: str) -> dict[str, str]:
        done = runner.run_suite(file, args, str(names))
        absent = f"the file doesn't import: {done['import']}" if done["import"] else "there is no such test"
        return {f"{file}::{test}": done["tests"].get(test, absent) for test in tests[file]}

    result: dict[str, str] = {}
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for part in pool.map(one, sorted(tests, key=lambda file: -len(tests[file]))):
            result |= part
    return result


def passes(outcome: str) -> bool:
    return outcome in ("pass", "xfail")


def check(runner: ModuleType, tests: Tests, jobs: int, scratch: Path) -> int:
    first = outcomes(runner, tests, jobs, scratch)
    suspects = by_file([name for name, outcome in first.items() if not passes(outcome)])
    second = outcomes(runner, suspects, 1, scratch)
    failed = {name: outcome for name, outcome in second.items() if not passes(outcome)}
    for name in second.keys() - failed.keys():
        print(f"passed the second time: {name} ({first[name]})")
    for name, outcome in sorted(failed.items()):
        print(f"FAIL {name}: it passed before: {outcome}")
    print(f"{len(first) - len(failed)} passed, {len(failed)} failed")
    return int(bool(failed))


def update(runner: ModuleType, tests: Tests, jobs: int, scratch: Path) -> dict[str, str]:
    found = outcomes(runner, tests, jobs, scratch)
    listed, out = read(PASSING).keys(), read(OUT).keys()
    passing = {name for name, outcome in found.items() if passes(outcome)}
    for name in sorted(listed & found.keys() - passing):
        print(f"passed before, not now: {name}: {found[name]}")
    for name in sorted(passing & out):
        print(f"it passes, but stands in {OUT.name}: {name}")
    PASSING.write_text("".join(f"{name}\n" for name in sorted((listed | passing) - out)))
    print(f"{len(passing)} of {len(found)} pass; {len(passing - listed)} are new in the list")
    return found


def table(baseline: Tests) -> str:
    passing, out = (Counter(name.partition("::")[0] for name in read(path)) for path in (PASSING, OUT))
    total, good, outside = (sum(counts.values()) for counts in ({f: len(t) for f, t in baseline.items()}, passing, out))
    lines = [
        "# PyTorch's own tests",
        "",
        "`python tools/suites.py --table` writes this page. `python tools/suites.py` runs the tests that pass, and `.ci/run` runs it.",
        "",
        f"Of {total} tests that pass on PyTorch, in {len(baseline)} of its test files, {good} ({good / total:.1%}) pass on flambeau. "
        f"{outside} ({outside / total:.1%})",
        "ask for PyTorch's insides: `tests/suites_out.txt` names each with the reason. The rest are differences that are not mended yet.",
        "",
        "| file | tests | pass | | insides |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for file, tests in sorted(baseline.items()):
        name = file.removeprefix("t24/")
        lines.append(
            f"| {name} | {len(tests)} | {passing[file]} | {passing[file] / len(tests):.0%} | {out[file] or ''} |"
        )
    return "\n".join(lines + below(baseline, passing)) + "\n"


def below(baseline: Tests, passing: Counter) -> list[str]:
    """The section on files of which less than the share passes that is asked for: what their other tests ask for, by reason."""
    reasons: dict[str, Counter] = {}
    for name, reason in read(OUT).items():
        reasons.setdefault(name.partition("::")[0], Counter())[reason] += 1
    lines = [
        "",
        f"## Files below {SHARE:.0%}",
        "",
        "What the tests that don't pass ask for, as `tests/suites_out.txt` says it.",
        "",
        "| file | pass | of | the others |",
        "| --- | ---: | ---: | --- |",
    ]
    for file, tests in sorted(baseline.items()):
        if passing[file] / len(tests) >= SHARE:
            continue
        why = [f"{n} {reason}" if n > 1 else reason for reason, n in reasons.get(file, Counter()).most_common()]
        left = len(tests) - passing[file] - sum(reasons.get(file, Counter()).values())
        why += [f"{left} not mended yet"] if left else []
        lines.append(f"| {file.removeprefix('t24/')} | {passing[file]} | {len(tests)} | {'; '.join(why)} |")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--folder", type=Path, default=Path(os.environ.get("FLAMBEAU_SHARED", ROOT / "../shared")) / "suites"
    )
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    folder = options.folder.resolve()
    if not (folder / "suites.py").is_file():
        print(f"no test files at {folder}: left out")
        return 0
    baseline: Tests = json.loads((folder / "baseline/suites.json").read_text())["suites"]
    if options.table:
        TABLE.write_text(table(baseline))
        return 0
    out = read(OUT).keys()
    names = (
        [f"{file}::{test}" for file, tests in baseline.items() for test in tests]
        if options.update
        else list(read(PASSING))
    )
    tests = by_file(
        [
            name
            for name in names
            if name not in out and (not options.only or any(text in name.partition("::")[0] for text in options.only))
        ]
    )
    with tempfile.TemporaryDirectory() as scratch:
        runner = load_runner(folder, Path(scratch))
        if not options.update:
            return check(runner, tests, options.jobs, Path(scratch))
        found = update(runner, tests, options.jobs, Path(scratch))
        if options.out:
            options.out.write_text(json.dumps(found, indent=0))
    return 0


if __name__ == "__main__":
    sys.exit(main())
