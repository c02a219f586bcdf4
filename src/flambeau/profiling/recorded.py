"""From the rows of the native recorder to a tree of events."""

from __future__ import annotations

import enum
import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .. import _C
from ..base.sizes import dense_strides
from ..core.definition import TensorMeta
from ..core.operator import OpOverload
from ..core.tensor import meta_tensor
from ..inductor.ir.notes import Line, Note
from ..utils import flop_counter  # noqa: F401  (it installs the facet "flops")
from .events import FunctionEvent, Interval

__all__ = ["Flags", "Kind", "events_of"]


class Kind(enum.IntEnum):
    """csrc/core/events.h."""

    OPERATOR = 0
    NODE = 1
    GRAPH = 2
    STEP = 3
    RANGE = 4
    LOOP = 5
    COLLECTIVE = 6
    DEVICE = 7


class Flags(enum.IntFlag):
    """csrc/core/events.h."""

    ON = 1
    SHAPES = 2
    STACKS = 4
    MEMORY = 8


CATEGORIES = {
    Kind.OPERATOR: "cpu_op",
    Kind.NODE: "autograd",
    Kind.GRAPH: "compiled_graph",
    Kind.STEP: "kernel",
    Kind.RANGE: "user_annotation",
    Kind.LOOP: "native_loop",
    Kind.COLLECTIVE: "collective",
    Kind.DEVICE: "device",
}
PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
SHOWN = tuple(PACKAGE + part + os.sep for part in ("nn", "modules", "optim", "examples", "distributions"))


def events_of(rows: Iterable[_C.EventRow], flags: Flags, flops_wanted: bool) -> list[FunctionEvent]:
    """Events in the order of their beginnings, with parents and children."""
    made: list[FunctionEvent] = []
    in_order: list[FunctionEvent] = []
    forward: dict[int, FunctionEvent] = {}  # number of a node -> the call that made it
    for number, row in enumerate(rows):
        kind = Kind(row.kind)
        event = FunctionEvent(
            id=number,
            name=_name(row, kind),
            category=CATEGORIES[kind],
            thread=row.thread,
            time_range=Interval(row.begin / 1e3, row.end / 1e3),
            sequence_nr=row.sequence,
        )
        event.lines = _lines(row, kind)
        event.is_async = kind is Kind.COLLECTIVE
        event.note = _note(row) if kind is Kind.STEP else None
        if event.note is not None:
            event.bytes, event.flops = event.note.bytes, event.note.flops if flops_wanted else 0
        if row.inputs is not None:
            event.input_shapes = [_shapes(x) for x in row.inputs]
            event.input_dtypes = [_dtype(x) for x in row.inputs]
            event.concrete_inputs = [x if _is_plain(x) else None for x in row.inputs]
            if flops_wanted and isinstance(row.what, OpOverload):
                event.flops = _flops(row.what, row.inputs, row.result)
        if row.stack is not None:
            event.stack = _stack(row.stack)
        if flags & Flags.MEMORY:
            event.cpu_memory_usage = row.bytes
        if 0 <= row.parent < len(made):
            event.cpu_parent = made[row.parent]
            if kind is Kind.STEP:
                _take_in(event, event.cpu_parent.cpu_children)
            event.cpu_parent.cpu_children.append(event)
        if kind is Kind.OPERATOR and row.sequence >= 0 and event.sequence_nr not in forward:
            forward[row.sequence] = event
        elif kind is Kind.NODE and row.sequence in forward:
            event.forward = forward[row.sequence]
            event.stack = event.stack if event.forward.stack is None else event.forward.stack
        made.append(event)
        in_order.insert(_place(in_order, event), event)
    # A whole counts for its parts: whether they are shown depends on how the call ran, as a call plan or as its body.
    for event in in_order:
        above = event.cpu_parent
        event.counted = event.flops > 0 or (above is not None and above.counted)
        if above is not None and above.counted:
            event.flops = 0
    return in_order


def _take_in(step: FunctionEvent, before: list[FunctionEvent]) -> None:
    """A step is written down when it ends: what ran inside it stands in front of it among the children of the graph, and becomes its own."""
    first = len(before)
    while first and before[first - 1].time_range.start >= step.time_range.start:
        first -= 1
    step.cpu_children, before[first:] = before[first:], []
    for child in step.cpu_children:
        child.cpu_parent = step


def _place(events: list[FunctionEvent], event: FunctionEvent) -> int:
    """Where an event stands among those before it: in front of what ran within it."""
    at = len(events)
    if event.cpu_children:
        first = event.cpu_children[0]
        while events[at - 1] is not first:
            at -= 1
        at -= 1
    return at


def _name(row: _C.EventRow, kind: Kind) -> str:
    what = row.what
    if kind is Kind.OPERATOR:
        packet = what.overloadpacket
        return f"{what.namespace}::{packet.__name__}"
    if kind is Kind.GRAPH:
        return _graph_name(what)
    if kind is Kind.STEP:
        note = _note(row)
        return f"kernel {row.index}" if note is None else f"{note.kind}: {note.label}"
    if kind is Kind.LOOP:
        return getattr(what, "loop_name", "native loop")
    return what


def _graph_name(info: Any) -> str:
    """Of a compiled graph: the function that most of it comes from."""
    notes = getattr(info, "notes", ())
    places = Counter((line.function, line.file) for n in notes for line in n.lines)
    if not places:
        return "compiled operator" if notes else "compiled graph"
    (function, file), _ = places.most_common(1)[0]
    name = (
        Path(file).stem if function.startswith("__") else function
    )  # a class's own __init__ says less than where it is
    return f"compiled {name}{' backward' if info.backward else ''}"


def _note(row: _C.EventRow) -> Note | None:
    """Of a step; several that ran side by side are one."""
    notes = getattr(row.what, "notes", None)
    if notes is None or row.index >= len(notes):
        return None
    parts = notes[row.index : row.index + row.count]
    if len(parts) == 1:
        return parts[0]
    origins = tuple(o for p in parts for o in p.origins)
    label = " | ".join(p.label for p in parts)
    return Note("together", label, "", sum(p.bytes for p in parts), sum(p.flops for p in parts), origins, tuple(parts))


def _lines(row: _C.EventRow, kind: Kind) -> list[Line]:
    if kind is Kind.STEP:
        note = _note(row)
        return [] if note is None else note.lines
    if kind is Kind.GRAPH:
        return list(dict.fromkeys(line for n in getattr(row.what, "notes", ()) for line in n.lines))
    return []


def _is_tensor(x: Any) -> bool:
    return type(x) is tuple


def _is_plain(x: Any) -> bool:
    return not _is_tensor(x) and not (isinstance(x, list) and any(map(_is_tensor, x)))


def _shapes(x: Any) -> list:
    if _is_tensor(x):
        return list(x[0])
    return [list(y[0]) for y in x if _is_tensor(y)] if isinstance(x, list) else []


def _dtype(x: Any) -> str:
    if _is_tensor(x):
        return str(x[1]).removeprefix("torch.")
    return "TensorList" if isinstance(x, list) and any(map(_is_tensor, x)) else "" if x is None else type(x).__name__


def _without_data(x: Any) -> Any:
    if _is_tensor(x):
        shape, dtype = x
        return meta_tensor(TensorMeta(tuple(shape), dense_strides(tuple(shape)), dtype, None))
    return [_without_data(y) for y in x] if isinstance(x, list) else x


def _flops(op: OpOverload, inputs: tuple, result: Any) -> int:
    """Of one call: by the operator's formula, else one for each element of the result of an operator that computes each by itself."""
    if op.kind == "pointwise":
        return _elements(result[0]) if type(result) is tuple else 0
    try:
        return int(op.facet("flops")(*map(_without_data, inputs)))
    except (NotImplementedError, RuntimeError, TypeError, ValueError, IndexError):
        return 0  # what can't be counted by shapes alone


def _elements(shape: Iterable[int]) -> int:
    n = 1
    for k in shape:
        n *= k
    return n


def _stack(flat: list) -> list[str]:
    """``file(line): function``, the innermost first, without the frames of this package that no user wrote or calls."""
    found = []
    for code, line in zip(flat[::2], flat[1::2]):
        file = code.co_filename
        if file.startswith(PACKAGE) and not file.startswith(SHOWN) or file.startswith("<frozen"):
            continue
        found.append(f"{file}({line}): {code.co_name}")
    return found
