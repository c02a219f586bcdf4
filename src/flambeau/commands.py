"""Commands of ``flambeau`` that tell about the compiler and the machine: explain, info, cache, bench."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import runpy
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["CommandError", "ProgramError", "bench", "cache", "explain", "info"]

# environment variables that change results or times


class CommandError(Exception):
    """What the user can mend: one line, exit status 2."""


class ProgramError(Exception):
    """The user's code failed: its traceback, exit status 1."""

    def __init__(self, error: Exception):
        super().__init__(str(error))
        self.error = error

    def show(self, file: Any) -> None:
        """The traceback from the first frame on that is neither ours nor the interpreter's way to it."""
        ours = (os.path.dirname(os.path.abspath(__file__)), "<frozen ")
        tb = self.error.__traceback__
        while tb is not None and tb.tb_frame.f_code.co_filename.startswith(ours):
            tb = tb.tb_next
        if tb is None and not isinstance(self.error, SyntaxError):
            tb = self.error.__traceback__  # a fault of ours
        traceback.print_exception(type(self.error), self.error, tb, file=file)


def _target(text: str) -> tuple[str, Callable, list[Any]]:
    """(name, function, arguments) of ``script.py:function``. The arguments are the script's ``example_inputs``, a tuple or a function that
    returns one."""
    path, _, name = text.rpartition(":")
    if not path or not name:
        raise CommandError(f"expected script.py:function, got {text!r}")
    if not os.path.isfile(path):
        raise CommandError(f"no such file: {path}")
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    names = _own(lambda: runpy.run_path(path, run_name="__flambeau__"))
    if name not in names:
        known = sorted(k for k, v in names.items() if callable(v) and getattr(v, "__module__", None) == "__flambeau__")
        raise CommandError(f"{path} has no function {name!r}; it has: {', '.join(known) or 'none'}")
    if not callable(names[name]):
        raise CommandError(f"{name} of {path} is a {type(names[name]).__name__}, not a function")
    given = names.get("example_inputs", ())
    given = _own(given) if callable(given) else given
    if not isinstance(given, tuple | list):
        raise CommandError(f"example_inputs of {path} is a {type(given).__name__}, not a tuple of arguments")
    return name, names[name], list(given)


@contextlib.contextmanager
def _prints_aside(wanted: bool) -> Iterator[None]:
    """Let standard output be the command's own: what the program prints, from Python or not, goes to standard error."""
    if not wanted:
        yield
        return
    sys.stdout.flush()
    own = os.dup(1)
    os.dup2(2, 1)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(own, 1)
        os.close(own)


def _own(call: Callable[[], Any]) -> Any:
    """What the program's own code gives. ProgramError, its traceback without our frames, when it fails."""
    try:
        return call()
    except CommandError:
        raise
    except Exception as error:
        raise ProgramError(error) from error


def _call(name: str, call: Callable[[], Any]) -> Any:
    """:func:`_own` of the function that a command is for: without its arguments that is what to mend."""
    try:
        return _own(call)
    except ProgramError as failed:
        if isinstance(failed.error, TypeError) and "argument" in str(failed.error):
            text = f"{name}: {failed.error}; give the arguments as a tuple `example_inputs` in the script"
            raise CommandError(text) from failed.error
        raise


def explain(args: argparse.Namespace) -> int:
    """What the compiler does with a function, as text or as an HTML file."""
    with _prints_aside(args.json):
        name, fn, inputs = _target(args.target)
        import flambeau as torch

        made = _call(name, lambda: torch.compiler.report(fn, calls=args.calls)(*inputs))
    if args.json:
        print(json.dumps(_as_data(made), indent=2))
    else:
        print(made)
        if args.guards:
            for event in made.events:
                print(f"guards of {event.code.co_name}:", *(f"  {g}" for g in event.guards), sep="\n")
    if args.html:
        path = args.html if isinstance(args.html, str) else f"{name}.html"
        made.save(path)
        print(f"written: {path}", file=sys.stderr)
    return 0


def _as_data(made: Any) -> dict:
    return {
        "function": made.title,
        "file": made.file,
        "first_call_seconds": made.first,
        "plain_seconds": made.plain,
        "compiled_seconds": made.compiled,
        "graphs": sum(e.graph is not None for e in made.events),
        "breaks": [
            {"reason": r.reason, "line": r.user_stack[-1].lineno if r.user_stack else None, "hint": r.hint}
            for r in (e.break_reason for e in made.events)
            if r is not None
        ],
        "recompilations": [list(r) for r in made.recompiles],
        "launches": [
            {
                "graph": p.name,
                "backward": p.backward,
                "kind": x.note.kind,
                "computes": x.note.label,
                "operators": x.note.operators,
                "lines": [f"{line.file}:{line.number}" for line in x.note.lines],
                "bytes": x.note.bytes,
                "operations": x.note.flops,
                "seconds": x.seconds,
            }
            for p in made.programs
            for x in p.launches
        ],
        "advice": made.advice,
    }


def info(args: argparse.Namespace) -> int:
    """Versions, processor, threads, libraries, cache: what a bug report needs."""
    from flambeau.utils import collect_env

    data = collect_env.environment()
    if args.json:
        print(json.dumps(data, indent=2))
        return 0
    print(collect_env.as_text(data))
    return 0


def cache(args: argparse.Namespace) -> int:
    """Size, entries, verification and removal of the compiler's files on disk."""
    from flambeau.base import disk

    root = disk.root()
    if trouble := disk.trouble():
        raise CommandError(f"nothing is kept in {root}: {trouble}")
    links = [name for name, size in disk.entries() if size is None]
    kept = sorted((name, size) for name, size in disk.entries() if size is not None)
    if args.action == "clear":
        for name in (*links, *(name for name, _ in kept)):
            _remove(os.path.join(root, "entries", name))
        removed = sum(size for _, size in kept)
        _say(
            args,
            {"folder": root, "removed": len(kept), "bytes": removed},
            f"removed {len(kept)} entries, {removed / 1e6:.1f} MB, from {root}",
        )
        return 0
    if args.action == "verify":
        damaged = [os.path.join(root, "entries", name) for name, _ in kept if disk.read_entry(name) is None]
        text = "\n".join([*damaged, f"{len(kept)} entries, {len(damaged)} damaged"])
        _say(args, {"folder": root, "entries": len(kept), "damaged": damaged}, text)
        return 1 if damaged else 0
    if args.action == "entries":
        rows = [{"path": os.path.join("entries", name), "bytes": size} for name, size in kept]
        _say(args, rows, "\n".join(f"{r['bytes']:>10}  {r['path']}" for r in rows))
        return 0
    total = sum(size for _, size in kept)
    _say(
        args,
        {"folder": root, "entries": len(kept), "bytes": total},
        f"{root}\n{len(kept)} entries, {total / 1e6:.1f} MB",
    )
    return 0


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return  # another process has
    except OSError as error:
        raise CommandError(f"can't remove {path}: {error.strerror}") from error


def _say(args: argparse.Namespace, data: Any, text: str) -> None:
    print(json.dumps(data, indent=2) if args.json else text)


def bench(args: argparse.Namespace) -> int:
    """Time a function of a script, plain and compiled by turns."""
    with _prints_aside(args.json):
        name, fn, inputs = _target(args.target)
        import flambeau as torch
        from flambeau.demo.timing import Pairs

        compiled = torch.compile(fn)
        begin = time.perf_counter()
        _call(name, lambda: compiled(*inputs))
        first = time.perf_counter() - begin
        times, interrupted = _by_turns({"plain": fn, "compiled": compiled}, inputs, args.pairs)
    pairs = Pairs(times["plain"], times["compiled"])
    plain, fast = (1000 * t for t in pairs.medians)
    _say(
        args,
        {"function": name, "first_call_seconds": first, **pairs.as_data()},
        f"{name}: first compiled call {first:.2f} s\nplain {plain:.3f} ms, compiled {fast:.3f} ms: {pairs}",
    )
    if interrupted:
        print(f"interrupted: {len(pairs.plain)} of {args.pairs} pairs were timed", file=sys.stderr)
        return 130
    return 0


def _by_turns(ways: dict[str, Callable], inputs: list[Any], pairs: int) -> tuple[dict[str, list[float]], bool]:
    """(seconds of the calls of each way, whether the user stopped it)."""
    times: dict[str, list[float]] = {way: [] for way in ways}
    try:
        for call in (*ways.values(), *ways.values()):
            call(*inputs)
        for i in range(pairs):
            for way, call in list(ways.items())[:: 1 if i % 2 == 0 else -1]:
                begin = time.perf_counter()
                call(*inputs)
                times[way].append(time.perf_counter() - begin)
    except KeyboardInterrupt:
        if not all(times.values()):
            raise
        return times, True
    return times, False
