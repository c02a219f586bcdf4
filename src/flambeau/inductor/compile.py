"""The compiler as a list of passes: graph -> program -> loop IR -> groups -> kernels -> LLVM text -> native graph."""

from __future__ import annotations

import contextlib
import functools
import logging
import time
from collections import Counter
from typing import Any

from ..base import accelerator
from ..base.enums import Out
from ..base.logs import artifact
from ..base.records import made_by, slotted
from ..base.shape_checks import shape_rules
from ..fx.graph_facts import facts_of
from . import debug, metrics, on_host
from .assumptions import Assuming
from .codegen.kernel import write_kernel
from .ir.nodes import ExternCall, eliminate_dead, verify
from .ir.notes import Note
from .lowering.donate import donate, pass_on, spend
from .lowering.lowering import Lowering
from .machine import cache
from .passes.decompose import decompose_graph
from .passes.sums import join_sums
from .runtime.plan import LaunchPlan
from .runtime.program import assemble
from .runtime.recall import recall, remember
from .scheduling import memory
from .scheduling.branches import arrange
from .scheduling.building import build
from .scheduling.duplicates import Duplicates
from .scheduling.effects import flat
from .scheduling.fusion import fuse, merge
from .scheduling.notes import label_of, notes_of
from .scheduling.overwriting import overwrite
from .scheduling.planes import PlaneChain, chain_planes
from .scheduling.rows import RowChain, chain_rows
from .scheduling.sized import SizedGroups
from .scheduling.tables import Table, tabulate
from .settings import config
from .tuning import products as autotune
from .tuning import rows as autotune_rows

__all__ = ["CompiledInfo", "compile_graph"]

log = logging.getLogger("flambeau.inductor")
_OUTPUT = artifact("output_code", "launches and LLVM assembly of every graph compiled")
_SCHEDULE = artifact("schedule", "which loop nests share a kernel")
_PRE_FUSION = artifact("ir_pre_fusion", "loop IR before fusion")
_POST_FUSION = artifact("ir_post_fusion", "loop IR after fusion")
_HINTS = artifact("perf_hints", "fallbacks and other things that cost time")
_GIVEN, _CACHING = artifact("post_grad_graphs", ""), artifact("caching", "")
_INDUCTOR = artifact("inductor", "times of the compiler's passes")
_OF_THE_PASSES = (
    _GIVEN,
    _SCHEDULE,
    _PRE_FUSION,
    _POST_FUSION,
    _HINTS,
    _INDUCTOR,
)  # what a graph from the disk doesn't know


@slotted(frozen=False)
class CompiledInfo:
    """What is kept with a compiled graph: its source text, its kernels by name, times of the passes (seconds), operators that run by their
    eager kernel and why; what the native graph is made of. ``steps``: kernels and calls in order, ``launches``: the same with those that are launched
    together as one, ``notes``: of each of these, in the order of the native graph's steps. ``backward``: whether it is a backward
    pass. ``choices``: under max-autotune, products and convolutions and the way that was measured to be the fastest. ``orders``: see
    compile_graph."""

    source: str
    kernels: dict[str, str]
    steps: list
    launches: list
    times: dict[str, float]
    fallbacks: list[str]
    arena_size: int
    plan: LaunchPlan
    notes: list[Note]
    backward: bool = False
    choices: list[str] = made_by(list)
    orders: dict[int, tuple[int, ...]] = made_by(dict)


def compile_graph(gm, example_inputs=None, **_unused):
    """Compile an ATen-level ``fx.GraphModule`` (functional operators, ``meta["val"]`` on its nodes). The result is called with the graph's
    inputs as positional tensors and returns the list of its outputs. ``gm.facts`` (GraphFacts): outputs that
    overwrite an input, as ``output_aliases`` allow, are None in the list; ``info.orders`` tells how free outputs lie where it isn't as
    ``meta["val"]`` says (output -> dimensions, the outermost in memory first)."""
    if _GIVEN.on:
        _GIVEN("%s", gm.print_readable(print_output=False))
    elsewhere = on_host.devices_of(gm)
    if elsewhere:
        return _elsewhere(gm, elsewhere)
    graph, assumed = _compile_once(gm)
    return graph if not assumed else Assuming(gm, graph, assumed, _env_of(gm), _compile_once)


def _compile_once(gm) -> tuple[Any, list[Any]]:
    """The native graph, and what it takes for granted of symbolic sizes."""
    start = time.perf_counter()
    facts = facts_of(gm)
    with _assuming(gm) as assumed:
        program = decompose_graph(gm)
        output_aliases = facts.output_aliases
        written = set() if facts.untouched_at_errors else donate(program, output_aliases)
        pass_on(program)
        output_aliases = {k: i for k, i in output_aliases.items() if k not in written}
        graph, made = compile_program(
            program, {"open composites": time.perf_counter() - start}, output_aliases, facts.untouched_at_errors
        )
    info = graph.info
    launches = sum(not isinstance(s, ExternCall) for s in info.steps)
    launches -= sum(len(s.steps) - 1 for s in info.launches if isinstance(s, Table))
    metrics.ir_nodes_pre_fusion += len(made.nodes)
    metrics.generated_kernel_count += launches
    entry = facts.entry
    _CACHING("compiled %s", entry or "a graph that isn't kept on disk")
    # What a graph takes for granted isn't kept with it. Where choices are still measured a later process goes on.
    if entry is not None and not assumed and autotune.is_whole(info.choices):
        remember(entry, facts.output_aliases, graph, len(made.nodes), launches)
    debug.dump(gm, program, made, info)
    for observer in list(debug.observers):
        observer(gm, made, info)
    _report(info)
    if _HINTS.on:
        for s in info.steps:
            if isinstance(s, ExternCall):
                if s.what == "call" and s.data.call is not None:
                    _HINTS("%s has no kernel here: its eager one is called from Python", s.name)
            elif s.serial:
                _HINTS("kernel %s runs on one thread: iterations of a scatter may write the same element", s.name)
        copied = len(output_aliases) - len(made.placed)
        if copied:
            _HINTS("%d inputs that are written get their new values by a copy", copied)
    if _PRE_FUSION.on:
        _PRE_FUSION("%s", debug.show(made.nodes, made.lowering.buffers))
    if _POST_FUSION.on:
        _POST_FUSION("%s", debug.show_groups(made.groups))
    if _SCHEDULE.on:
        _SCHEDULE("%s", debug.show_groups(made.groups))
    _INDUCTOR(
        "compiled %d kernels: %s", len(info.kernels), ", ".join(f"{k} {v * 1e3:.1f} ms" for k, v in info.times.items())
    )
    return graph, assumed


def _elsewhere(gm, devices):
    """A graph some of whose tensors lie on other devices than the CPU: kernels of the device where all do, else the same graph on the CPU
    between copies, else its operators one by one, which themselves say what another device gives, or that there is none."""
    # Here, since a first call on the CPU needs none of the device's compiler.
    from .device import replay
    from .device.compile import compile_on_device

    (device, *others) = devices
    if others or device.type != "cuda" or not accelerator.count():
        return lambda *inputs: list(gm(*inputs))
    if not on_host.stays(gm):
        host = on_host.host_graph(gm)
        return (
            on_host.OnHost(compile_graph(host), gm, device) if host is not None else lambda *inputs: list(gm(*inputs))
        )
    with _assuming(gm):
        program = decompose_graph(gm)
        program.free, program.orders = (), {}  # results lie as their shape rules say
        graph = compile_on_device(program, device)
    if config.triton.cudagraphs and replay.can_replay(graph):
        graph = replay.Replayed(graph)
    if debug.listeners or _OUTPUT.on:
        debug.notify(graph.info.source)
        _OUTPUT("%s", graph.info.source)
    for name in graph.info.called:
        _HINTS("%s has no kernel on device '%s': it is called from Python", name, device)
    return graph


def recalled(entry: str, output_aliases: dict[int, int]):
    """The native graph that was compiled under this name (``GraphFacts.entry``) and is on disk, else None."""
    if any(a.on for a in _OF_THE_PASSES):
        return None
    graph = recall(entry, output_aliases)
    if graph is not None:
        _CACHING("recalled %s", entry)
        _report(graph.info)
    return graph


def _report(info) -> None:
    metrics.num_fallbacks += len(info.fallbacks)
    for reason in info.fallbacks:
        log.warning("an eager kernel runs inside a compiled graph: %s", reason)
        _HINTS("an eager kernel runs inside a compiled graph: %s", reason)
    if debug.listeners or _OUTPUT.on:
        debug.notify(info.source)
        _OUTPUT("%s", info.source)


compile_graph.recall = recalled
compile_graph.chooses_orders = True


def _env_of(gm):
    """The environment of a graph's symbolic sizes; None where it has none."""
    return next((n.env for node in gm.graph.nodes for n in _numbers(node.meta.get("val"))), None)


@contextlib.contextmanager
def _assuming(gm):
    """Questions about the symbolic sizes of a graph are answered, and leave no guard, since the trace is over: the list of what was assumed."""
    env = _env_of(gm)
    if env is None:
        yield []
        return
    with shape_rules(env), env.assuming() as assumed:
        yield assumed


def _numbers(val):
    parts = (*val.shape, *val.stride()) if hasattr(val, "stride") else val if isinstance(val, (tuple, list)) else ()
    for n in (val, *parts):
        if type(n) is int:
            continue
        if hasattr(n, "__sym__"):
            yield n
        elif n is not val and hasattr(n, "stride"):
            yield from _numbers(n)


@slotted(frozen=False)
class CompiledParts:
    """The intermediate results of the passes, for dumps and reports."""

    nodes: list
    groups: list
    lowering: Lowering
    placed: set


class _Clock:
    """Adds the time since the pass before to ``times``, under the name of a pass that is over."""

    def __init__(self, times: dict[str, float]):
        self.times, self.last = times, time.perf_counter()

    def passed(self, name: str) -> None:
        now = time.perf_counter()
        self.times[name] = self.times.get(name, 0.0) + now - self.last
        self.last = now


def _grouped(program, clock: _Clock, overwritten=(), checks_first=False):
    """(lowering, nodes, fused groups, buffers of outputs) of a program. ``overwritten``: inputs whose new contents are wanted in their memory."""
    join_sums(program)
    clock.passed("join sums")
    lowering = Lowering(compile_graph, overwritten=overwritten, checks_first=checks_first)
    lowering.run(program)
    clock.passed("lower")
    bug = config.cpp.inject_relu_bug_TESTING_ONLY
    if bug is not None:
        debug.inject_relu_bug(lowering, bug)
    outputs = {o[1].buffer for o in lowering.outputs if o[0] == Out.SLOT}
    nodes = eliminate_dead(lowering.nodes, outputs)
    verify(nodes, lowering.buffers)
    clock.passed("eliminate dead nodes")
    groups = fuse(nodes, lowering.buffers, lowering.values, config.fusion, lowering.copies)
    verify([n for g in groups for n in g.nodes], lowering.buffers)
    clock.passed("fuse")
    groups = merge(groups, lowering.values) if config.fusion else groups
    verify([n for g in groups for n in g.nodes], lowering.buffers)
    clock.passed("merge groups")
    return lowering, nodes, groups, outputs


def _written(groups, lowering, outputs, over, clock: _Clock) -> tuple[list, list]:
    """(The steps in order, their LLVM text written and being compiled; the groups that they are made of)."""
    leaving = outputs.difference(*(g.reads for g in groups))
    sized = SizedGroups(lowering.buffers, lowering.values, leaving, over)
    if config.tables:
        groups = sized.separate(groups, _kept(groups, outputs))
        verify([n for g in groups for n in g.nodes], lowering.buffers)
    clock.passed("separate rows")

    def write(kernel) -> None:
        clock.passed("build kernels")
        write_kernel(kernel, lowering.buffers, lowering.values, leaving)
        kernel.name = cache.kernel_name(kernel.text)
        kernel.text = kernel.text.replace("@KERNEL", f"@{kernel.name}")
        cache.begin(kernel.name, kernel.text)
        clock.passed("write LLVM text")

    steps = []
    for step in _kernels(groups, lowering, outputs, leaving, sized, write):
        if not isinstance(step, ExternCall) and not step.name:
            write(step)
        steps.append(step)
    clock.passed("build kernels")
    return steps, groups


def compile_program(program, times=None, output_aliases=None, untouched_at_errors=False):
    """(native graph, CompiledParts) of a decomposed program. ``output_aliases``: outputs (by position) that are wanted in
    the memory of an input (by position); those that can be are, and are None in the result (``CompiledParts.placed``).
    ``untouched_at_errors``: only those that are written when nothing can fail any more."""
    times = {} if times is None else times
    clock = _Clock(times)
    output_aliases = output_aliases or {}
    lowering, nodes, groups, outputs = _grouped(
        program, clock, output_aliases.values(), untouched_at_errors and bool(output_aliases)
    )
    steps, groups = _written(groups, lowering, outputs, _wanted_over(lowering, output_aliases), clock)
    overwritten = overwrite(lowering, steps, output_aliases)
    placed = overwritten.placed
    spend(steps, lowering)
    launches = steps
    # A chain does a part of each of its steps in turn.
    if config.epilogue_fusion and not (overwritten.positions and untouched_at_errors):
        launches = chain_planes(chain_rows(steps, lowering.buffers, placed), lowering.buffers, placed)
    clock.passed("chain rows and planes")
    if not overwritten.in_order:
        launches = tabulate(launches, placed)
    steps = flat(launches)
    clock.passed("make tables")
    begin = autotune.clock()
    choices = autotune.tune(launches, lowering.buffers) if config.max_autotune else []
    left = config.autotune_seconds - (autotune.clock() - begin)
    clock.passed("autotune")
    own = memory.apart(lowering.buffers, launches, lowering.backed_hint)
    launches, together, offsets, arena, notes = arrange(
        launches,
        lowering.buffers,
        placed,
        lowering.backed_hint,
        config.parallel_branches and not overwritten.in_order,
    )
    clock.passed("plan memory")
    kernels = {s.name: s.text for s in steps if not isinstance(s, ExternCall)}
    addresses = cache.addresses(kernels) if kernels else {}
    clock.passed("compile")
    plan = assemble(lowering, launches, together, offsets, arena, placed)
    if config.max_autotune:
        plan, more = autotune_rows.tune(plan, launches, lowering, addresses, autotune.clock() + left)
        choices = [*choices, *more]
        clock.passed("autotune")
    where = f"{arena} bytes in the arena, {len(own)} buffers of their own" if own else f"arena of {arena} bytes"
    source = _source(launches, together, kernels, [where, *own, *(f"{n} (reuse)" for n in notes), *choices])
    info = CompiledInfo(
        source,
        kernels,
        steps,
        launches,
        times,
        lowering.fallbacks,
        arena,
        plan,
        notes_of(launches, lowering),
        program.backward,
        choices,
        lowering.orders,
    )
    graph = plan.bind(addresses, info)
    clock.passed("assemble")
    return graph, CompiledParts(nodes, groups, lowering, overwritten.positions)


def _wanted_over(lowering, output_aliases: dict[int, int]) -> set[str]:
    """The buffers of outputs that are wanted in the memory of an input."""
    found = (lowering.outputs[position] for position in output_aliases)
    return {what.buffer for kind, what, *_ in found if kind == Out.SLOT}


def _kept(groups, outputs):
    """A function that tells what of a group stays in memory: what is an output, is read by another group, or is written by another one too."""
    readers: dict[str, set[int]] = {}
    for g in groups:
        for name in g.reads:
            readers.setdefault(name, set()).add(id(g))
    writers = Counter(name for g in groups for name in set(g.writes))
    return lambda g: {n for n in g.writes if n in outputs or readers.get(n, set()) - {id(g)} or writers[n] > 1}


def _kernels(groups, lowering, outputs, leaving, sized, write):
    """Kernels and extern calls in order; a kernel with a name is a duplicate of an earlier one, or was written by ``write``."""
    kept = _kept(groups, outputs)
    duplicates = Duplicates(lowering.buffers)
    for g in groups:
        if g.kind == "extern":
            yield g.nodes[0]
            continue
        keep = kept(g)
        if keep or g.kind == "scatter":
            make = functools.partial(build, g, lowering.buffers, lowering.values, keep, leaving)
            yield sized.kernel(g, keep, write) or duplicates.kernel(g, keep, make)


def _source(steps, together, kernels, notes) -> str:
    """What the graph runs, as text: the launches in order, then each kernel once."""
    lines = [f"; {n}" for n in notes]
    done = 0
    for begin, count in together:
        lines += [*_launches(steps[done:begin]), f"; side by side, the next {count}:"]
        done = begin + count
        lines += [f";   {line[2:]}" for line in _launches(steps[begin:done])]
    lines += _launches(steps[done:])
    return "\n".join([*lines, "", *kernels.values()])


def _launches(steps) -> list[str]:
    lines = []
    for s in steps:
        if isinstance(s, Table):
            lines.append(f"; launch {s.name} over {len(s.steps)} rows, in pieces of {s.grain}: {label_of(s.steps[0])}")
            lines += [f";   ({', '.join(r.args)}) parallel over {r.total}" for r in s.steps]
        elif isinstance(s, RowChain):
            lines.append(f"; blocks of {s.block} of {s.rows} rows, through each of these:")
            lines += [f";   {line[2:]}" for line in _launches(s.steps)]
        elif isinstance(s, PlaneChain):
            first, *rest = _launches(s.steps)
            lines += [
                first,
                f"; its {s.rows} planes, as they are finished, in multiples of {s.unit}, through each of these:",
            ]
            lines += [f";   {line[2:]}" for line in rest] + [f";   {a} lies in {b}" for a, b in s.over.items()]
        elif not isinstance(s, ExternCall):
            lines.append(
                f"; launch {s.name}({', '.join(s.args)}) parallel over {s.total} in pieces of {s.grain}: {label_of(s)}"
            )
        elif s.what == "gemm":
            ins = ", ".join(f"{r.buffer}{list(r.shape)}" for r in s.inputs)
            lines.append(f"; extern_kernels.{s.name}({ins}, out={s.outputs[0]})")
        else:
            lines.append(f"; call {s.name}({', '.join(r.buffer for r in s.inputs)}) -> {', '.join(s.outputs)}")
    return lines
