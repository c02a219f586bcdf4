"""Which launches may end a graph with an error, and whether all of them are done before others begin."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from ..ir.nodes import ExternCall
from ..ir.values import Value, loaded_atoms, walk
from .effects import effects

__all__ = ["errors_come_before", "may_fail"]


def errors_come_before(steps: list, writing: Iterable[int], copies: Collection[int], inside: dict[str, Any]) -> bool:
    """Whether each step that may fail is done before each of the steps ``writing`` in any order that keeps what reads behind what makes it.
    ``copies``: steps that will be left out, through which no other waits. ``inside``: buffer of checked indices -> what they are below."""
    failing = {i for i, s in enumerate(steps) if i not in copies and may_fail(s, inside)}
    return all(failing <= _waited_for(steps, i, copies) for i in writing) if failing else True


def _waited_for(steps: list, last: int, copies: Collection[int]) -> set[int]:
    """The steps without which step ``last`` can't begin."""
    reads, writes = map(set, effects(steps[last]))
    found = set()
    for i in range(last - 1, -1, -1):
        read, written = effects(steps[i])
        if i not in copies and (written & (reads | writes) or read & writes):
            found.add(i)
            reads |= read
            writes |= written
    return found


def may_fail(step, inside: dict[str, Any]) -> bool:
    """Whether it may report more than a lack of memory."""
    if isinstance(step, ExternCall):
        if step.what == "bind":
            return not step.data.any_fits
        return step.what != "gemm" and not (step.what == "native" and step.data.kernel.quiet)
    values = (v for n in step.nodes for v in walk(n.value, *loaded_atoms(n.index)))
    return any(v.op == "checked" and not _is_inside(v, step.renamed, inside) for v in values)


def _is_inside(check: Value, renamed: dict[str, str], inside: dict[str, Any]) -> bool:
    """Whether a loaded index was checked before it was stored."""
    source, size = check.args[:2]
    if source.op != "load":
        return False
    name = renamed.get(source.args[0], source.args[0])
    return name in inside and inside[name] == size
