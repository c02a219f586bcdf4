"""Runs a function and gathers what the compiler did with it."""

from __future__ import annotations

import functools
import linecache
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from flambeau import _C
from flambeau.aot.settings import config as aot_config
from flambeau.base.pytree import tree_map
from flambeau.dynamo import utils
from flambeau.dynamo.capture_events import Event
from flambeau.dynamo.convert import Compiler
from flambeau.inductor import debug
from flambeau.inductor.assembly.dtypes import itemsize
from flambeau.inductor.ir.nodes import ExternCall
from flambeau.inductor.ir.notes import Note
from flambeau.inductor.scheduling.planes import PlaneChain
from flambeau.inductor.scheduling.rows import RowChain
from flambeau.inductor.scheduling.tables import Table
from flambeau.inductor.settings import config
from flambeau.profiling.recorded import Flags, Kind

from .. import controls, wrap
from ..backends import lookup_backend
from .advice import advice
from .loops import loops_of
from .machine import Machine, machine

__all__ = ["Launch", "Program", "Report", "report"]

RUNS = 7
_SHOWN = 10  # launches in the text


@dataclass
class Launch:
    """A step of a compiled graph: its note, its kernel's loops as text, and the seconds it takes (the median of some runs)."""

    note: Note
    loops: list[str]
    reads: list[str]
    writes: list[str]
    seconds: float = 0.0
    begin: float = 0.0  # after the start of the timeline

    @property
    def bandwidth(self) -> float:
        return self.note.bytes / self.seconds if self.seconds else 0.0

    @property
    def rate(self) -> float:
        return self.note.flops / self.seconds if self.seconds else 0.0


@dataclass
class Program:
    """A native graph: its launches, and where its buffers live (name -> bytes, first and last launch)."""

    name: str
    backward: bool
    launches: list[Launch]
    buffers: dict[str, tuple[int, int, int]]
    arena: Any
    remarks: list[str]
    gm: Any
    fallbacks: list[str] = field(default_factory=list)


@dataclass
class Report:
    """What the compiler did. ``events``: of capture, in order; ``programs``: native graphs; ``recompiles``: (function, where, the guard that failed);
    ``first``, ``plain``, ``compiled``: seconds of the first call, and of later ones without and with compilation."""

    title: str
    file: str
    events: list[Event]
    programs: list[Program]
    recompiles: list[tuple[str, str, str]]
    first: float
    plain: float | None
    compiled: float
    machine: Machine
    advice: list[str] = field(default_factory=list)

    def html(self) -> str:
        """The whole report as one HTML document that loads nothing."""
        from .page import page

        return page(self)

    def save(self, path: str | Path) -> Path:
        """Write :meth:`html` to a file; its path."""
        path = Path(path)
        path.write_text(self.html(), encoding="utf-8")
        return path

    def __str__(self) -> str:
        graphs = sum(e.graph is not None for e in self.events)
        launches = sum(len(p.launches) for p in self.programs)
        counts = ((graphs, "graph", "s"), (launches, "launch", "es"), (len(self.recompiles), "recompilation", "s"))
        lines = [f"{self.title}: {', '.join(f'{n} {word}' + end * (n != 1) for n, word, end in counts)}"]
        lines.append(f"first call {self.first:.2f} s, then {1000 * self.compiled:.3f} ms" + (
            f"; without compilation {1000 * self.plain:.3f} ms" if self.plain is not None else ""
        ))  # fmt: skip
        return "\n".join([*lines, *self._slowest(), *(f"- {a}" for a in self.advice)])

    def _slowest(self) -> list[str]:
        """The launches that take the longest, a line each: time, memory that is touched, what it computes and where it is written."""
        every = sorted((x for p in self.programs for x in p.launches), key=lambda x: -x.seconds)
        rows = []
        for x in every[:_SHOWN]:
            where = ", ".join(f"{Path(line.file).name}:{line.number}" for line in x.note.lines[:3])
            rows.append(
                f"  {1000 * x.seconds:8.3f} ms {x.note.bytes / 1e6:9.2f} MB  {x.note.kind}: {x.note.label}  {where}".rstrip()
            )
        return rows + ([f"  and {len(every) - _SHOWN} launches more"] if len(every) > _SHOWN else [])


def _copied(args: Any) -> Any:
    """Arguments that a run may write into."""
    return tree_map(
        lambda x: x.detach().clone().requires_grad_(x.requires_grad) if isinstance(x, _C.TensorBase) else x, args
    )


def _each_part(step: Any) -> list[Any]:
    return list(step.steps) if isinstance(step, (RowChain, PlaneChain, Table)) else [step]


def _program(gm: Any, made: Any, info: Any) -> Program:
    launches, lives = [], {}
    buffers = made.lowering.buffers
    for number, (step, note) in enumerate(zip(info.launches, info.notes)):
        reads, writes, loops = [], [], []
        for part in _each_part(step):
            if isinstance(part, ExternCall):
                reads += [r.buffer for r in part.inputs]
                writes += part.outputs
                continue
            loops.append(loops_of(part))
            stored = {part.renamed.get(n.buffer, n.buffer) for n in part.nodes if not n.internal}
            reads += [a for a in part.args if a not in stored]
            writes += [a for a in part.args if a in stored]
        for name in (*reads, *writes):
            if name in buffers and buffers[name].kind.name in ("TEMP", "OWN", "OUTPUT"):
                size = made.lowering.values.hint(buffers[name].size)
                known = lives.get(name, (int(size) * buffers[name].width * _itemsize(buffers[name]), number, number))
                lives[name] = (known[0], known[1], number)
        launches.append(Launch(note, loops, list(dict.fromkeys(reads)), list(dict.fromkeys(writes))))
    remarks = [
        line[2:]
        for line in info.source.partition("\n\n")[0].splitlines()
        if not line.startswith(("; launch", "; call", "; extern"))
    ]
    functions = [line.function for n in info.notes for line in n.lines]
    name = max(set(functions), key=functions.count) if functions else "graph"
    return Program(name, info.backward, launches, lives, info.arena_size, remarks, gm, list(info.fallbacks))


def _itemsize(buffer: Any) -> int:
    return itemsize(buffer.dtype)


def _backward(result: Any) -> None:
    """The backward pass of what asks for a gradient."""
    found: list[Any] = []
    tree_map(lambda x: found.append(x) if isinstance(x, _C.TensorBase) and x.requires_grad else None, result)
    if found:
        functools.reduce(lambda a, b: a + b, (x.real.sum() if x.is_complex() else x.sum() for x in found)).backward()


def _by_turns(plain: Callable, compiled: Callable, runs: int) -> tuple[float, float]:
    """The median seconds of each, run by turns: what the machine does beside meets both."""
    times: tuple[list[float], list[float]] = ([], [])
    for i in range(runs):
        for k in (0, 1) if i % 2 == 0 else (1, 0):
            begin = perf_counter()
            (plain, compiled)[k]()
            times[k].append(perf_counter() - begin)
    return median(times[0]), median(times[1])


def report(f: Callable, *, calls: int = RUNS) -> Callable[..., Report]:
    """``report(f)(*args, **kwargs)`` compiles ``f``, runs it ``calls`` times with copies of the arguments (with its backward pass, where a result
    asks for a gradient), and returns a :class:`Report` of everything that happened: graphs, breaks, guards, recompilations, kernels
    with their source lines and what they
    achieve beside the machine. ``str()`` of it is a summary, ``save(path)`` writes an HTML file.

    The function is run without compilation, too, so it should have no effect that matters twice. Compiled code on disk isn't used.

    Raises TypeError when ``f`` isn't callable, ValueError for ``calls`` below 1; exceptions of ``f`` pass.

    >>> import flambeau as torch
    >>> made = torch.compiler.report(lambda x: x.exp() + 1)(torch.ones(8))
    >>> [launch.note.label for p in made.programs for launch in p.launches]
    ['exp, add']
    """
    if not callable(f):
        raise TypeError(f"report() takes a function, not {type(f).__name__}")
    if calls < 1:
        raise ValueError(f"calls must be at least 1, got {calls}")

    @functools.wraps(f)
    def inner(*args: Any, **kwargs: Any) -> Report:
        return _report(f, args, kwargs, calls)

    return inner


def _report(f: Callable, args: tuple, kwargs: dict, calls: int) -> Report:
    power = machine()
    controls.reset()
    events: list[Event] = []
    programs: list[Program] = []
    by_info: dict[int, tuple[Program, Any]] = {}
    failed: list[tuple[str, str, str]] = []

    def compiled(gm: Any, made: Any, info: Any) -> None:
        program = _program(gm, made, info)
        by_info[id(info)] = program, info  # the info is held, so that its address stays its own
        programs.append(program)

    compiler = Compiler(lookup_backend("inductor"), "inductor")
    compiler.listeners.append(events.append)
    fn = wrap.wrap_callable(f, compiler)

    def once() -> None:
        a, k = _copied((args, kwargs))
        _backward(fn(*a, **k))

    def plain() -> None:
        a, k = _copied((args, kwargs))
        _backward(f(*a, **k))

    with ExitStack() as stack:
        # What comes from disk has neither the compiler's loops nor the program's lines.
        stack.enter_context(config.patch(force_disable_caches=True))
        stack.enter_context(aot_config.patch(enable_autograd_cache=False))
        stack.enter_context(debug.observing(compiled))
        utils.recompile_records.append(failed)
        stack.callback(utils.recompile_records.remove, failed)
        begin = perf_counter()
        once()
        first = perf_counter() - begin
        once()
        recorded = [_record(once) for _ in range(calls)]
    _fill(by_info, recorded)
    for _ in range(3):
        plain()  # eager calls of large operators are compiled one by one when they are met again
    slow, fast = _by_turns(plain, once, calls)
    events.sort(key=lambda e: e.order)
    code = next((e.code for e in events), getattr(f, "__code__", None))
    title = getattr(f, "__name__", type(f).__name__)
    made = Report(title, code.co_filename if code else "", events, programs, failed, first, slow, fast, power)
    controls.reset()
    made.advice = advice(made)
    return made


def _record(fn: Callable) -> list[_C.EventRow]:
    _C.events_start(int(Flags.ON))
    try:
        fn()
    finally:
        rows, _ = _C.events_stop()
    return rows


def _fill(by_info: dict[int, tuple[Program, Any]], recorded: list[list[_C.EventRow]]) -> None:
    """Seconds of each launch: the median over the runs; where it begins: in the last run."""
    seconds: dict[tuple[int, int], list[float]] = {}
    for rows in recorded:
        start = rows[0].begin if rows else 0
        for row in rows:
            number = id(row.what)
            if row.kind != Kind.STEP or number not in by_info:
                continue
            launches = by_info[number][0].launches[row.index : row.index + row.count]
            for index, launch in enumerate(launches, row.index):
                seconds.setdefault((number, index), []).append((row.end - row.begin) / 1e9 / row.count)
                launch.begin = (row.begin - start) / 1e9
    for (number, index), times in seconds.items():
        by_info[number][0].launches[index].seconds = median(times)


def source_lines(file: str, numbers: list[int]) -> list[tuple[int, str]]:
    """Lines of a file from three before the first of the numbers to three after the last."""
    lines = linecache.getlines(file)
    if not lines or not numbers:
        return []
    begin, end = max(1, min(numbers) - 3), min(len(lines), max(numbers) + 3)
    return [(i, lines[i - 1].rstrip("\n")) for i in range(begin, end + 1)]
