"""NumPy's own tests, their functions captured:
``python tools/numpy_tests.py [--backend eager] [--file NAME] [--out FILE] [-k TESTS] [--every N [--from K]]``.

The tests that NumPy installs with itself (or those below ``--folder``) are copied to a folder outside of site-packages, so that they are a
program's code and not a library's. Each file is run twice, in processes of their own: plainly, and with every test function compiled and the
functions that it calls captured where they are reached. A test that passes plainly has to pass captured. Warnings are errors on both sides.

Prints a line for each file and each test that differs. ``--out`` adds the outcome as JSON: by file, tests that pass plainly, how many of them pass
captured, in how many at least one graph ran, and the ones that differ. Exit status 1 when some differ that aren't named in ``--known``.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

FILES = {
    "_core": "test_multiarray test_indexing test_ufunc test_numeric test_umath test_umath_complex test_shape_base test_einsum test_nep50_promotions "
    "test_item_selection test_function_base test_mem_overlap test_scalarmath test_scalar_methods test_scalar_ctors test_errstate test_half "
    "test_indexerrors test_getlimits test_numerictypes test_regression test_casting_floatingpoint_errors",
    "lib": "test_function_base test_histograms test_shape_base test_twodim_base test_index_tricks test_arraypad test_arraysetops test_nanfunctions "
    "test_polynomial test_stride_tricks test_type_check test_ufunclike test_packbits test_array_utils test_regression",
    "linalg": "test_linalg test_regression test_deprecations",
    "fft": "test_pocketfft test_helper",
    "random": "test_random test_randomstate test_generator_mt19937 test_smoke test_seed_sequence",
    "polynomial": "test_polynomial test_chebyshev test_hermite test_hermite_e test_laguerre test_legendre test_classes test_polyutils",
    "ma": "test_core test_extras test_old_ma test_subclassing",
}
LIMIT = 3600  # seconds for a file
MARKERS = ("slow", "leaks_references", "valgrind_error", "slow_pypy", "parallel_threads", "iterations", "thread_unsafe")


class Plugin:
    """In the process of a file: the outcome of each test, and the functions captured when ``backend`` is given."""

    def __init__(self, backend: str, out: str, every: int = 1, first: int = 0):
        self.backend, self.out, self.every, self.first = backend, out, every, first
        self.outcomes: dict[str, str] = {}
        self.captured: dict[str, int] = {}
        self.breaks: Counter = Counter()
        self.graphs, self.failed = 0, ""

    def pytest_configure(self, config):
        for marker in MARKERS:
            config.addinivalue_line("markers", f"{marker}: of NumPy's")

    def pytest_collection_modifyitems(self, config, items):
        if self.every > 1:
            taken = items[self.first :: self.every]
            config.hook.pytest_deselected(items=[i for k, i in enumerate(items) if k % self.every != self.first])
            items[:] = taken

    def pytest_collectreport(self, report):
        if report.failed:
            self.failed = last_line(report.longreprtext)

    def pytest_pyfunc_call(self, pyfuncitem):
        if not self.backend or pyfuncitem.get_closest_marker("slow"):
            return
        import flambeau

        flambeau._dynamo.reset()
        flambeau._dynamo.utils.counters.clear()
        self.graphs = 0
        pyfuncitem.obj = flambeau.compile(pyfuncitem.obj, backend=self.compile)

    def compile(self, gm, example_inputs):
        from flambeau.compiler.backends import lookup_backend

        self.graphs += 1
        return lookup_backend(self.backend)(gm, example_inputs)

    def pytest_runtest_logreport(self, report):
        if report.when == "call" or report.outcome != "passed":
            self.outcomes[report.nodeid] = (
                report.outcome if report.outcome != "failed" else "failed: " + last_line(report.longreprtext)
            )
        if report.when == "call" and self.backend:
            from flambeau.dynamo.utils import counters

            self.captured[report.nodeid] = self.graphs
            self.breaks.update(counters["graph_break"])

    def pytest_sessionfinish(self):
        Path(self.out).write_text(
            json.dumps(
                {"outcomes": self.outcomes, "graphs": self.captured, "breaks": self.breaks, "ended": self.failed}
            )
        )


def last_line(text: str) -> str:
    lines = [line[1:].strip() for line in text.splitlines() if line.startswith("E ")]
    return " | ".join(lines[:2])[:300] or text.strip().splitlines()[-1][:300] if text.strip() else ""


def run_here(path: str, backend: str, out: str, every: int, first: int, more: list[str]) -> None:
    """A file's tests in this process."""
    import pytest

    os.environ["NUMPY_EXPERIMENTAL_DTYPE_API"] = "1"
    args = [
        path,
        "-q",
        "-p",
        "no:cacheprovider",
        "-W",
        "error",
        "-W",
        "ignore::pytest.PytestWarning",
        "-W",
        "ignore:the matrix subclass:PendingDeprecationWarning",
        "--timeout=60",
        "--no-header",
        "--tb=short",
        "-m",
        "not slow",
    ]
    args += ["-c", os.devnull, "--rootdir", str(Path(path).parent), *more]
    pytest.main(args, plugins=[Plugin(backend, out, every, first)])


def outcome(path: Path, backend: str, more: list[str]) -> dict:
    """What the tests of a file come to, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        command = [sys.executable, __file__, "--here", str(path), "--backend", backend, "--out", str(out), *more]
        try:
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=LIMIT)
        except subprocess.TimeoutExpired as e:
            return {"outcomes": {}, "ended": f"took more than {LIMIT} s: {(e.stdout or b'')[-300:]!r}"}
        if not out.exists():
            return {"outcomes": {}, "ended": f"exit status {done.returncode}: {(done.stdout + done.stderr)[-2000:]}"}
        return json.loads(out.read_text())


def copied(folder: Path, source: Path) -> Path:
    """NumPy's tests in a folder of their own, by package."""
    for package in FILES:
        shutil.copytree(
            source / package / "tests", folder / package, ignore=shutil.ignore_patterns("__pycache__", "__init__.py")
        )
    return folder


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--backend", default="eager")
    parser.add_argument("--file", action="append", help="package/name, e.g. _core/test_indexing; all when not given")
    parser.add_argument("--folder", type=Path, help="tests of another origin: each test_*.py below it")
    parser.add_argument("--out")
    parser.add_argument("--known", type=Path, help="a file that names tests which differ, a line each")
    parser.add_argument("--here", help=argparse.SUPPRESS)
    parser.add_argument("-k", default=None)
    parser.add_argument(
        "--every", type=int, default=1, help="of each file only the tests whose number is a multiple of this"
    )
    parser.add_argument("--from", dest="first", type=int, default=0, help="with --every: plus this")
    args = parser.parse_args()
    more = [*(["-k", args.k] if args.k else []), "--every", str(args.every), "--from", str(args.first)]
    if args.here:
        run_here(
            args.here,
            "" if args.backend == "none" else args.backend,
            args.out,
            args.every,
            args.first,
            more[:2] if args.k else [],
        )
        return 0
    import numpy as np

    known = set(args.known.read_text().split("\n")) if args.known else set()
    results, status = {}, 0
    with tempfile.TemporaryDirectory() as scratch:
        root = args.folder.resolve() if args.folder else copied(Path(scratch), Path(np.__file__).parent)
        names = (
            sorted(str(p.relative_to(root))[:-3] for p in root.rglob("test_*.py"))
            if args.folder
            else [f"{package}/{name}" for package, files in FILES.items() for name in files.split()]
        )
        for name in args.file or names:
            path = root / f"{name}.py"
            plain, captured = outcome(path, "none", more), outcome(path, args.backend, more)
            passing = [t for t, o in plain["outcomes"].items() if o == "passed"]
            differ = {
                t: captured["outcomes"].get(t, "didn't run") for t in passing if captured["outcomes"].get(t) != "passed"
            }
            with_graph = sum(captured.get("graphs", {}).get(t, 0) > 0 for t in passing)
            print(
                f"{name}: {len(passing) - len(differ)} of {len(passing)} pass captured, {with_graph} of them with graphs",
                plain.get("ended", "") or captured.get("ended", ""),
                flush=True,
            )
            for t, o in differ.items():
                print(f"  {t.split('::', 1)[1]}: {o}", flush=True)
                status |= f"{name}::{t.split('::', 1)[1]}" not in known
            status |= bool(plain.get("ended") or captured.get("ended"))
            results[name] = {
                "plain": len(passing),
                "captured": len(passing) - len(differ),
                "graphs": with_graph,
                "differ": differ,
                "breaks": captured.get("breaks", {}),
            }
            if args.out:
                Path(args.out).write_text(json.dumps(results, indent=1))
    total = [sum(r[k] for r in results.values()) for k in ("plain", "captured", "graphs")]
    print(f"in all: {total[1]} of {total[0]} pass captured, {total[2]} with graphs")
    return status


if __name__ == "__main__":
    sys.exit(main())
