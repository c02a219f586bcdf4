"""Logs: each artifact is declared once with its help. ``TORCH_LOGS=graph_breaks,+dynamo`` (or FLAMBEAU_LOGS) turns some on at start,
:func:`set_logs` later. An artifact is off unless asked for, and costs one attribute test then.

``TORCH_TRACE=folder`` writes the artifacts of the compiler as events to a file there, in the form that tlparse reads: a line of JSON with
the kind of event and the compilation it belongs to, then its text, each line after a tab.
"""

from __future__ import annotations

import os
import sys
import threading

__all__ = ["ARTIFACTS", "Artifact", "artifact", "set_logs"]


class Artifact:
    """A named stream of messages. ``on`` tells whether somebody reads it; test it before building an expensive message."""

    __slots__ = ("name", "help", "on", "logged")

    def __init__(self, name: str, help: str):
        self.name, self.help, self.logged = name, help, False
        self.on = _trace is not None and name in _EVENTS

    def __call__(self, message: str, *args) -> None:
        """Log the message (%-format) when the artifact is on."""
        if self.logged:
            import logging  # only whom a program asks for messages pays for it

            logging.getLogger(f"flambeau.{self.name}").info(message, *args)
        if _trace is not None and self.name in _EVENTS:
            _trace.write(_EVENTS[self.name], message % args if args else message)

    def switch(self, logged: bool) -> None:
        self.logged = logged
        self.on = logged or (_trace is not None and self.name in _EVENTS)


# Artifact -> kind of event; "artifact NAME" is the kind for what has none of its own.
_EVENTS = {
    "compile_start": "dynamo_start",
    "compile_metrics": "compilation_metrics",
    "graph_code": "dynamo_output_graph",
    "guards": "artifact dynamo_guards",
    "graph_breaks": "artifact dynamo_graph_break_reason",
    "recompiles": "artifact recompile_reasons",
    "bytecode": "artifact dynamo_bytecode",
    "aot_joint_graph": "aot_joint_graph",
    "aot_forward_graph": "aot_forward_graph",
    "aot_backward_graph": "aot_backward_graph",
    "schedule": "artifact inductor_schedule",
    "output_code": "inductor_output_code",
    "sym_shapes": "artifact symbolic_shapes",
    "perf_hints": "artifact perf_hints",
}
# PyTorch's artifacts of what isn't built here.
_NOT_BUILT = dict.fromkeys(
    ("compiled_autograd", "compiled_autograd_verbose"), "backward passes are compiled with their forward"
)
_NOT_BUILT |= dict.fromkeys(("cudagraphs", "cudagraph_static_inputs"), "kernels run on the processor")
_NOT_BUILT |= dict.fromkeys(("overlap", "overlap_scheduling"), "the artifact ddp_graphs tells of buckets")
_NOT_BUILT |= dict.fromkeys(("benchmarking", "incremental"), "the artifact autotuning tells of measurements")
_NOT_BUILT |= dict.fromkeys(
    ("hierarchical_compile", "graph_region_expansion"), "regions that are alike aren't looked for"
)
_NOT_BUILT |= dict.fromkeys(("loop_ordering", "loop_tiling"), "the artifact schedule tells of loops as well")
_NOT_BUILT |= dict.fromkeys(("sym_node", "trace_shape_events"), "the artifact sym_shapes tells of symbols")
_NOT_BUILT |= dict.fromkeys(("aot_graphs_effects", "graph_code_verbose"), "the artifact of the shorter name tells all")
compilation = threading.local()
"""``compilation.id``: (number of the frame, how often it was compiled before) while a frame is being compiled."""


_trace = None
if os.environ.get("TORCH_TRACE"):
    from .trace_file import TraceFile  # not worth its imports otherwise

    _trace = TraceFile(os.environ["TORCH_TRACE"], compilation)

ARTIFACTS: dict[str, Artifact] = {}
_handler = None


def artifact(name: str, help: str) -> Artifact:
    """Declare an artifact (the same object for the same name)."""
    found = ARTIFACTS.get(name)
    if found is None:
        found = ARTIFACTS[name] = Artifact(name, help)
        if name in _pending:
            _switch(found, True)
    return found


def _install() -> None:
    global _handler
    if _handler is None:
        import logging

        class Formatter(logging.Formatter):
            """Lines start with the artifact's name as PyTorch prints it: ``[__graph_breaks]``."""

            def format(self, record):
                record.artifact = record.name.rpartition(".")[2]
                return super().format(record)

        _handler = logging.StreamHandler(sys.stderr)
        _handler.setFormatter(Formatter("[__%(artifact)s] %(message)s"))
        root = logging.getLogger("flambeau")
        root.addHandler(_handler)
        root.setLevel(logging.INFO)
        root.propagate = False


def _switch(a: Artifact, on: bool) -> None:
    a.switch(bool(on))
    if on:
        _install()


def set_logs(*, all=None, **names) -> None:
    """``set_logs(graph_breaks=True)``. ValueError for an artifact that doesn't exist, listing those that do."""
    for name, on in names.items():
        if name not in ARTIFACTS:
            raise ValueError(_unknown(name))
        _switch(ARTIFACTS[name], on)
    if all is not None:
        for a in ARTIFACTS.values():
            _switch(a, all is not False)


def _table() -> str:
    lines = [
        f"  {name:<20} {a.help}" + (f" (as {a.name})" if a.name != name else "")
        for name, a in sorted(ARTIFACTS.items())
    ]
    return "\n".join(lines)


def _unknown(name: str) -> str:
    if name in _NOT_BUILT:
        return f"The log artifact '{name}' of PyTorch isn't built: {_NOT_BUILT[name]}. The artifacts are:\n{_table()}"
    return f"Unrecognized log artifact '{name}'. The artifacts are:\n{_table()}"


_HELP = """TORCH_LOGS Info

Examples:
  TORCH_LOGS="graph_breaks,recompiles" turns these artifacts on; a + in front of a name is allowed, a name with a - is left out
  torch._logging.set_logs(graph_breaks=True) does it while the program runs

The artifacts:
"""


def check_environment() -> None:
    """ValueError for names in TORCH_LOGS that no artifact has. For ``help`` the list of artifacts is printed and the program ends. Called when
    the compiler has been imported."""
    if "help" in _pending:
        print(f"{_HELP}{_table()}")
        raise SystemExit(0)
    for name in sorted(_pending - set(ARTIFACTS)):
        raise ValueError(_unknown(name))


def _parse(text: str) -> set[str]:
    return {part.strip().lstrip("+") for part in text.split(",") if part.strip() and not part.strip().startswith("-")}


_pending = _parse(os.environ.get("TORCH_LOGS", os.environ.get("FLAMBEAU_LOGS", "")))

for _name, _help in [
    ("graph_breaks", "why and where a graph was broken"),
    ("ddp_graphs", "buckets of gradients, and where graphs are split for them"),
    ("dtensor", "operators on DTensors whose arguments are moved between ranks"),
    ("recompiles", "which guard failed when a frame was compiled again"),
    ("guards", "the guards of each compiled frame"),
    ("graph_code", "the captured graph as Python"),
    ("graph", "the captured graph as a table"),
    ("graph_sizes", "the shape of every value of the captured graph"),
    ("bytecode", "bytecode before and after"),
    ("aot_graphs", "forward and backward graphs after differentiation"),
    ("aot_forward_graph", "the forward graph (or the only one) alone"),
    ("aot_backward_graph", "the backward graph alone"),
    ("aot_joint_graph", "the joint graph before partitioning"),
    ("output_code", "generated kernels and the launch program"),
    ("ir_pre_fusion", "loop IR before fusion"),
    ("ir_post_fusion", "loop IR after fusion"),
    ("schedule", "which nodes were fused and why not others"),
    ("dynamo", "capture: which frames, and how long it took"),
    ("compile_start", "the frame whose capture begins"),
    ("compile_metrics", "sizes and times of each capture, as JSON"),
    ("loops", "which loops became native ones, and why others did not"),
    ("aot", "differentiation ahead of time"),
    ("inductor", "lowering and code generation"),
    ("perf_hints", "fallbacks and other things that cost time"),
    ("sym_shapes", "symbols of sizes and numbers, and what the trace assumed about them"),
    ("not_implemented", "handlers that returned NotImplemented"),
    ("trace_source", "the source lines that are traced, one by one"),
    ("trace_call", "the calls that are inlined or become nodes of the graph, with a mark under their part of the line"),
    ("trace_bytecode", "the instructions that are traced, with the stack in front of each"),
    ("side_effects", "what captured code writes when its graph has run: objects, globals, classes"),
    ("post_grad_graphs", "the graphs of operators that the compiler of kernels is given"),
    ("autotuning", "what max-autotune measured, chose and dropped"),
    ("caching", "which graphs were compiled and which were recalled from the disk"),
]:
    artifact(_name, _help)

# PyTorch's names for what is one stream here.
for _alias, _name in [
    ("dynamic", "sym_shapes"),
    ("recompiles_verbose", "recompiles"),
    ("verbose_guards", "guards"),
    ("fusion", "schedule"),
    ("kernel_code", "output_code"),
    ("inductor_metrics", "inductor"),
    ("pre_grad_graphs", "graph_code"),
]:
    ARTIFACTS[_alias] = ARTIFACTS[_name]
    if _alias in _pending:
        _switch(ARTIFACTS[_alias], True)
