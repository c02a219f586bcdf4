"""Looking into the compiler: source listeners, and the directory that TORCH_COMPILE_DEBUG=1 writes."""

from __future__ import annotations

import contextlib
import itertools
import os

from flambeau.base import debug_folder

from .ir.nodes import ExternCall, show
from .ir.values import walk
from .settings import config

__all__ = ["dump", "listeners", "notify", "observers", "observing"]

listeners: list = []
"""Functions that get the source text of every graph compiled."""

observers: list = []
"""Functions (gm, made, info) that see every graph compiled, with what the passes made."""

_count = itertools.count()


@contextlib.contextmanager
def observing(fn):
    """``fn`` is an observer within the block."""
    observers.append(fn)
    try:
        yield
    finally:
        observers.remove(fn)


def notify(source: str) -> None:
    for listener in list(listeners):
        listener(source)


def directory() -> str:
    """The directory of this run."""
    return debug_folder.directory(config.trace.debug_dir)


def dump(gm, program, made, info) -> None:
    """Write the files whose switches in config.trace are on."""
    trace = config.trace
    if not trace.enabled:
        return
    folder = os.path.join(directory(), "torchinductor", f"model__{next(_count)}")
    os.makedirs(folder, exist_ok=True)

    def write(name, text):
        with open(os.path.join(folder, name), "w") as f:
            f.write(text)

    if trace.debug_log:
        times = "\n".join(f"{name}: {seconds * 1e3:.2f} ms" for name, seconds in info.times.items())
        write(
            "debug.log",
            f"{times}\n{len(info.kernels)} kernels, {len(info.steps)} steps, arena of {info.arena_size} bytes\n"
            + "".join(f"eager kernel: {reason}\n" for reason in info.fallbacks),
        )
    if trace.fx_graph:
        write("fx_graph_readable.py", gm.print_readable(print_output=False))
        write("fx_graph_runnable.py", runnable(gm))
    if trace.fx_graph_transformed:
        write(
            "fx_graph_transformed.py", '"""The flat program after opening composites.\n\n' + program.show() + '\n"""\n'
        )
    if trace.ir_pre_fusion:
        write("ir_pre_fusion.txt", show(made.nodes, made.lowering.buffers))
    if trace.ir_post_fusion:
        write("ir_post_fusion.txt", show_groups(made.groups))
    if trace.graph_diagram:
        write("graph_diagram.svg", diagram(info.steps))
    if trace.compile_profile:
        import cProfile

        from .compile import compile_program

        profile = cProfile.Profile()
        profile.runcall(compile_program, program)
        profile.dump_stats(os.path.join(folder, "compile.prof"))
    if trace.output_code:
        write("output_code.py", info.source)


def diagram(steps) -> str:
    """The launches from top to bottom as an SVG drawing; an arc for each buffer from the step that writes it to one that reads it."""
    import html

    boxes, arcs, writer = [], [], {}
    for i, s in enumerate(steps):
        extern = isinstance(s, ExternCall)
        reads = [r.buffer for r in s.inputs] if extern else s.args
        writes = s.outputs if extern else list({n.buffer: None for n in s.nodes if n.buffer in s.args})
        text = (
            f"{s.what} {s.name}"
            if extern
            else f"kernel {s.name[:9]}: {', '.join(dict.fromkeys(v.op for n in s.nodes for v in walk(n.value)))}"
        )
        y = 20 + 44 * i
        boxes.append(
            f'<rect x="160" y="{y}" width="620" height="28" rx="4" fill="{"#fde8c8" if extern else "#d8e8fb"}" stroke="#667"/>'
            f'<text x="168" y="{y + 18}">{html.escape(text[:90])} -> {html.escape(", ".join(writes))}</text>'
        )
        for name in dict.fromkeys(reads):
            if name in writer and writer[name] != i:
                a, b = 34 + 44 * writer[name], 34 + 44 * i
                bend = 150 - min(140, 12 * (i - writer[name]))
                arcs.append(f'<path d="M160 {a} C {bend} {a}, {bend} {b}, 160 {b}" fill="none" stroke="#888"/>')
        writer.update(dict.fromkeys(writes, i))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="800" height="{44 * len(steps) + 40}" font-family="monospace" font-size="12">'
        + "".join(arcs + boxes)
        + "</svg>\n"
    )


def inject_relu_bug(lowering, bug: str) -> None:
    """Break every ``maximum(x, 0)``, to have something for bisection tools to find: ``compile_error`` raises, ``accuracy`` gives a wrong
    result."""
    for node in lowering.nodes:
        if isinstance(node, ExternCall):
            continue
        for v in walk(node.value):
            if v.op == "maximum" and any(a.op == "const" and a.args[0] == 0 for a in v.args):
                if bug == "compile_error":
                    raise RuntimeError("injected compile error: relu (config.cpp.inject_relu_bug_TESTING_ONLY)")
                if bug != "accuracy":
                    raise ValueError(
                        f"config.cpp.inject_relu_bug_TESTING_ONLY: {bug!r} is not compile_error or accuracy"
                    )
                one = lowering.values.const(1, v.args[0].dtype)
                wrong = lowering.values.make("add", (v.args[0], one), v.dtype)
                node.value = lowering.values.transform(node.value, lambda x: x if x.op == "const" else None, {v: wrong})


def show_groups(groups) -> str:
    """The loop IR by kernel."""
    return "\n".join(
        f"group {i} ({g.kind}, domain {list(g.outer)} x {g.inner and list(g.inner)}):\n" + show(g.nodes, {})
        for i, g in enumerate(groups)
    )


def runnable(gm) -> str:
    """A script that builds the graph again with random inputs of the same shapes and runs it compiled."""
    lines = [
        "import flambeau as torch",
        "from flambeau import device",
        "from math import inf, nan",
        "",
        "class Repro(torch.nn.Module):",
    ]
    lines += ["    " + line for line in gm.code.strip().splitlines()]
    lines.append("")
    args = []
    for node in gm.graph.nodes:
        if node.op != "placeholder":
            continue
        val = node.meta.get("val")
        if hasattr(val, "stride"):
            shape = [int(n) for n in val.shape]
            make = (
                f"torch.randn({shape}).to({val.dtype})"
                if val.dtype.is_floating_point
                else f"torch.zeros({shape}, dtype={val.dtype})"
            )
            args.append(make)
        else:
            args.append(repr(val))
    lines += [
        f"args = [{', '.join(args)}]",
        "module = Repro()",
        "from flambeau.proxy import make_fx",
        "from flambeau.inductor import compile_graph",
        "graph = make_fx(module.forward, tracing_mode='fake', _allow_non_fake_inputs=True)(*args)",
        "print([tuple(t.shape) for t in compile_graph(graph, args)(*args)])",
        "",
    ]
    return "\n".join(lines)
