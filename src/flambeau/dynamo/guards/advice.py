"""Advice for a guard that fails again and again, for readers who have never heard of guards."""

from __future__ import annotations

from ..bytecode.codegen import STACK_ARGUMENT
from .source import GlobalSource, LocalSource
from .tree import Failure

__all__ = ["advice"]

VALUE = (
    "{what} has another value at each call, and captured code is for one value. If it is a number, give it as a tensor, torch.tensor(...); "
    "else leave what depends on it out of the compiled function"
)
SIZE = (
    "{what} is of another shape, dtype or stride each time. torch._dynamo.mark_dynamic(x, dim) or compile(dynamic=True) makes one variant for all "
    "sizes; for other differences, bring the arguments to a few kinds"
)
OBJECT = "{what} is another object at each call, and captured code is for one. Make it once, outside of the loop that calls the compiled function"
NUMBER = (
    "{where} asks which number {what} is, and it is another one at each call. Keep what depends on the number itself (texts, keys, branches, float() "
    "of a tensor) out of the loop, or out of the compiled function"
)
KIND = "{what} is of another class, or has other keys or another length each time: captured code is for one kind"
BY_GUARD = {
    "EQUALS_MATCH": VALUE,
    "TENSOR_MATCH": SIZE,
    "NDARRAY_MATCH": SIZE,
    "NDARRAY_FEW": SIZE,
    "SIZES": SIZE,
    "ID_MATCH": OBJECT,
    "CODE_MATCH": OBJECT,
}


def advice(failed: Failure, resumed: int | None = None) -> str:
    """Why a function was compiled again and again, and what to do. ``resumed``: the line of the graph break where the function goes on."""
    if failed.kind is None:
        return "What it depends on is different at each call."
    if failed.kind == "SIZES":
        where = f"the code in line {failed.line.number}" if failed.line is not None else "the code"
        return NUMBER.format(what=_shown(failed, resumed) or "a size", where=where) + "."
    return BY_GUARD.get(failed.kind, KIND).format(what=_shown(failed, resumed)) + "."


def _shown(failed: Failure, resumed: int | None) -> str:
    """The place as the user writes it: a path that begins with a name."""
    source = failed.source
    while source is not None:
        if isinstance(source, LocalSource):
            return failed.place.replace(source.name, _named(source.local, resumed))
        if isinstance(source, GlobalSource):
            return failed.place.replace(source.name, source.global_name)
        source = source.base
    return failed.place


def _named(name: str, resumed: int | None) -> str:
    """What the user calls a local: values that were on the stack at a graph break have no name."""
    if not name.startswith(STACK_ARGUMENT):
        return name
    return "a value at a graph break" if resumed is None else f"the value that the graph break in line {resumed} gave"
