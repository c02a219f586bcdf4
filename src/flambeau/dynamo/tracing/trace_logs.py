"""What TORCH_LOGS tells of a trace while it goes on: the source lines, the calls that are inlined or become nodes, the instructions; and
what captured code writes when the graph has run. A function that is traced again after a graph break is told of again."""

from __future__ import annotations

import traceback

from flambeau.base import logs

from ..bytecode.instructions import shown_name

__all__ = ["SIDE_EFFECTS", "before_instruction", "called", "tell_writes", "watching"]

SOURCE, CALL = logs.artifact("trace_source", ""), logs.artifact("trace_call", "")
BYTECODE, SIDE_EFFECTS = logs.artifact("trace_bytecode", ""), logs.artifact("side_effects", "")


def watching() -> bool:
    return SOURCE.on or CALL.on or BYTECODE.on


def _place(frame) -> str:
    depth, outer = 0, frame.parent
    while outer is not None:
        depth, outer = depth + 1, outer.parent
    inlined = f" (inline depth: {depth})" if depth else ""
    return f"{frame.code.co_filename}:{frame.inst.line} in {shown_name(frame.code)}{inlined}"


def before_instruction(frame) -> None:
    """Tell of the instruction that the frame is at, with the stack in front of it; of its line when that is another one."""
    inst = frame.inst
    if SOURCE.on and inst.line != frame.logged_line:
        frame.logged_line = inst.line
        SOURCE("TRACE starts_line %s\n    %s", _place(frame), frame.location().line)
    if BYTECODE.on:
        BYTECODE("TRACE %s %s %s", inst.name, "" if inst.argval is None else inst.argval, frame.stack)


def called(frame, what: str) -> None:
    """Tell of a call, with a mark under its part of the line (none where it is all of it)."""
    if not CALL.on:
        return
    at = frame.inst.positions
    entry = frame.location()
    if at is not None and at.end_col_offset is not None and at.lineno == at.end_lineno:
        entry = traceback.FrameSummary(
            entry.filename, entry.lineno, entry.name, lookup_line=False,
            end_lineno=at.end_lineno, colno=at.col_offset, end_colno=at.end_col_offset,
        )  # fmt: skip
    shown = traceback.StackSummary.from_list([entry]).format()[0].rstrip("\n").split("\n")[1:]
    CALL("TRACE %s from %s\n%s", what, _place(frame), "\n".join(shown))


def tell_writes(effects) -> None:
    """Tell what captured code will write once the graph has run."""
    lines = [f"{type(v).__name__} at {v.source.name}" for v in effects.modified.values() if v.source is not None]
    lines += [f"global {name}" for _, _, name in effects.global_writes.values()]
    lines += [f"{cls.__qualname__}.{name}" for cls, name in effects.class_writes]
    for line in lines:
        SIDE_EFFECTS("Mutating %s", line)
