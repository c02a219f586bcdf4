"""What a program keeps for its backward when nothing is compiled. A write to that before the backward is an error there, so it is one here,
though the compiled backward may read something else."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from .. import _C
from ..base.records import slotted

__all__ = ["Kept", "Versions", "kept_by", "versions_of"]


@slotted
class Kept:
    """Of the caller's tensors, by index: the inputs and the outputs of a graph that some part of its tape keeps."""

    inputs: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()


def kept_by(ends: list[Any], inputs: list[Any], outputs: list[Any]) -> list[Kept]:
    """What the tape behind each of ``ends``, tensors of a trace, keeps. What hooks on saved tensors have packed is theirs to check."""
    n, bit = len(inputs), {}
    for i, t in reversed(list(enumerate([*inputs, *outputs]))):
        if isinstance(t, _C.TensorBase):
            bit[id(t._counter)] = 1 << i
    reached: dict[Any, int] = {None: 0}  # a leaf that the program made has no tape
    for end in ends:
        stack = [end.grad_fn]
        while stack:
            node = stack[-1]
            if node not in reached:
                before = [e[0] for e in node.next_edges if e is not None and e[0] not in reached]
                if before:
                    stack += before
                    continue
                kept = 0
                for counter in node._counters():
                    kept |= bit.get(id(counter), 0)
                for e in node.next_edges:
                    kept |= 0 if e is None else reached[e[0]]
                reached[node] = kept
            stack.pop()
    found = []
    for end in ends:
        indices = [i for i in range(n + len(outputs)) if reached[end.grad_fn] >> i & 1]
        found.append(Kept(tuple(i for i in indices if i < n), tuple(i - n for i in indices if i >= n)))
    return found


def versions_of(values: Sequence) -> list[int | None]:
    return [t._writes if isinstance(t, _C.TensorBase) else None for t in values]


class Versions:
    """Of the inputs of a call, and of those outputs that its tape would keep. These are referred to weakly: nobody writes to what is gone."""

    def __init__(self, kept: list[Kept], inputs: tuple, outputs: list):
        self.inputs = versions_of(inputs)
        self.outputs = {k: (weakref.ref(outputs[k]._counter), outputs[k]._writes) for row in kept for k in row.outputs}
