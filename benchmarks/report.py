"""What a table of a benchmark stands under (date, machine, command), and where it goes: the terminal, a file, a document between its marks."""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import re
import sys
from pathlib import Path

# Instructions that kernels are written for: their word in /proc/cpuinfo, and their name.
INSTRUCTIONS = {"avx512f": "AVX-512", "amx_tile": "AMX"}


def machine() -> str:
    """The processor with the instructions that kernels are written for, how many of its cores this process may use, and the interpreter."""
    try:
        facts = dict(re.findall(r"^(\S[^\t:]*)\t*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE))
    except OSError:  # only Linux has it
        facts = {}
    name = facts.get("model name") or platform.processor() or platform.machine()
    if "cpu family" in facts:
        name += f" (family {facts['cpu family']}, model {facts['model']})"
    known = [shown for flag, shown in INSTRUCTIONS.items() if flag in facts.get("flags", "").split()]
    with_them = f" with {' and '.join(known)}" if known else ""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{name}{with_them}, {cores} core{'s' * (cores != 1)}, CPython {platform.python_version()}"


def command() -> str:
    """The command of this process as another machine would give it: interpreters and files that lie elsewhere are PATH and FILE."""
    words = [f"benchmarks/{Path(sys.argv[0]).name}"]
    for before, word in zip(sys.argv, sys.argv[1:]):
        if before == "--into":
            words.pop()
        elif before in ("--out", "--peer-cache"):
            words.append("FILE")
        else:
            words.append("PATH" if before.endswith("-python") else word)
    return "python " + " ".join(words)


def add_options(parser: argparse.ArgumentParser) -> None:
    """``--out FILE`` and ``--into DOCUMENT``."""
    parser.add_argument("--out", type=Path, metavar="FILE", help="also write the table here")
    parser.add_argument(
        "--into", type=Path, metavar="DOCUMENT", help="also put the table into this document, between its marks"
    )


def publish(table: str, options: argparse.Namespace, mark: str = "") -> None:
    """Print a table under its heading, and write it where ``options`` say. ``mark`` names the place in the document (default: the script)."""
    text = f"{datetime.date.today()}, {machine()}: `{command()}`\n\n{table.strip()}\n"
    print(text)
    if options.out:
        options.out.write_text(text)
    if options.into:
        put_into(options.into, mark or Path(sys.argv[0]).name, text)


def put_into(document: Path, mark: str, text: str) -> None:
    """Replace what is between the marks of this name in a document. ValueError when it has none."""
    begin, end = f"<!-- {mark}: begin -->", f"<!-- {mark}: end -->"
    before, _, rest = document.read_text().partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise ValueError(f"{document} has no marks {begin} and {end}")
    document.write_text(f"{before}{begin}\n{text.strip()}\n{end}{after}")
