"""A note (ir/notes.py) for each launch of a compiled graph."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from ..assembly.dtypes import itemsize
from ..ir.nodes import BufferKind, ExternCall
from ..ir.notes import Note, Origin
from ..ir.values import walk
from .planes import PlaneChain
from .rows import RowChain
from .tables import Table

__all__ = ["label_of", "notes_of"]

NOT_COMPUTED = frozenset(("const", "load", "index", "cast"))
REDUCTIONS = {"add": "sum", "mul": "prod"}


def label_of(kernel: Any) -> str:
    """Names of what a kernel computes."""
    values = (v.op for n in kernel.nodes for v in walk(n.value))
    names = dict.fromkeys(op for op in values if op not in NOT_COMPUTED)
    reductions = dict.fromkeys(REDUCTIONS.get(n.combine, n.combine) for n in kernel.nodes if n.reduction)
    return ", ".join([*names, *reductions]) or "copy"


def notes_of(launches: Iterable[Any], lowering: Any) -> list[Note]:
    """A note for each launch."""
    return [_note(s, lowering) for s in launches]


def _note(step: Any, lowering: Any) -> Note:
    hint = lowering.values.hint
    if isinstance(step, Table):
        rows = [_note(s, lowering) for s in step.steps]
        origins = tuple(dict.fromkeys(o for r in rows for o in r.origins))
        moved, flops = sum(r.bytes for r in rows), sum(r.flops for r in rows)
        return Note("kernel", f"{rows[0].label}, {len(rows)} rows", step.name, moved, flops, origins)
    if isinstance(step, (RowChain, PlaneChain)):
        parts = tuple(_note(s, lowering) for s in step.steps)
        inside = set(step.locals)
        made = sum(p.bytes for p in parts) - sum(2 * _bytes(lowering.buffers[n], hint) for n in inside)
        origins = tuple(dict.fromkeys(o for p in parts for o in p.origins))
        kind = "rows" if isinstance(step, RowChain) else "planes"
        return Note(
            kind, " + ".join(p.label for p in parts), "", max(made, 0), sum(p.flops for p in parts), origins, parts
        )
    if isinstance(step, ExternCall):
        moved = sum(_elements(r.shape, hint) * itemsize(lowering.buffers[r.buffer].dtype) for r in step.inputs)
        outputs = [lowering.buffers[n] for n in step.outputs]
        moved += sum(_bytes(b, hint) for b in outputs)
        flops = step.data.flops() if step.what == "gemm" else step.data.flops if step.what == "native" else 0
        kind = {"gemm": "product"}.get(step.what, step.what)
        return Note(kind, step.name, "", moved, int(hint(flops)), _origins(step.outputs, lowering)[-1:])
    moved = sum(_bytes(lowering.buffers[n], hint) for n in dict.fromkeys(step.args))
    made = [step.renamed.get(n.buffer, n.buffer) for n in step.nodes]
    return Note("kernel", label_of(step), step.name, moved, _flops(step, hint), _origins(made, lowering))


def _elements(shape: Iterable[Any], hint: Any) -> int:
    return int(hint(math.prod(shape)))


def _bytes(buffer: Any, hint: Any) -> int:
    return (
        0
        if buffer.kind in (BufferKind.NUMBER, BufferKind.VALUE)
        else _elements(buffer.shape, hint) * buffer.width * itemsize(buffer.dtype)
    )


def _flops(kernel: Any, hint: Any) -> int:
    """Each distinct value of a loop once an iteration."""
    outer, inner = _elements((v.extent for v in kernel.outer), hint), _elements((v.extent for v in kernel.inner), hint)
    total = 0
    for kind, what in kernel.items:
        nodes = what if kind == "loop" else [what]
        values = {v for n in nodes for v in walk(n.value) if v.op not in NOT_COMPUTED}
        total += (len(values) + sum(bool(n.combine) for n in nodes)) * outer * (inner if kind == "loop" else 1)
    return total


def _origins(names: Iterable[str], lowering: Any) -> tuple[Origin, ...]:
    return tuple(dict.fromkeys(o for n in names for o in lowering.origins.get(n, ())))
