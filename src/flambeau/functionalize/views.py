"""The inverse of a view: the base after its view was overwritten.

A view is a chain of steps (core/viewmap.py); each has an inverse. Steps that only rename indices are undone; steps
that leave part of the base out put the new values into it. Everything is done by calling operators, so that a trace
sees it."""

from __future__ import annotations

import math
from typing import Any

from ..core.operator import namespace
from ..core.viewmap import Recorder, Step

__all__ = ["steps_of", "write_back"]


def _aten(name: str, overload: str = "default"):
    return getattr(getattr(namespace("aten"), name), overload)


def steps_of(op, base_shape, args: tuple) -> list[tuple[Step, ...]]:
    """Steps of a view operator for a base of this shape, one chain for each of its results. ``args``: all but the
    base, in schema order.
    """
    recorded = op.definition.map(Recorder(base_shape), *args)
    return [tuple(r.steps) for r in (recorded if isinstance(recorded, (list, tuple)) else [recorded])]


def apply(step: Step, x: Any) -> Any:
    """The step on a tensor."""
    p = step.params
    if step.name == "permute":
        return _aten("permute")(x, list(p[0]))
    if step.name == "expand":
        return _aten("expand")(x, list(p[0]))
    if step.name == "slice":
        d, start, length, stride = p
        return _aten("slice", "Tensor")(x, d, start, start + (length - 1) * stride + 1 if length else start, stride)
    if step.name == "diagonal":
        d1, d2, offset = p
        return _aten("diagonal")(x, offset, d1, d2)
    if step.name == "unfold":
        return _aten("unfold")(x, *p)
    return reshape(x, step.out_shape)  # reshape, squeeze, unsqueeze


def reshape(x: Any, shape) -> Any:
    return namespace("aten").reshape(x, list(shape))


def write_back(base: Any, steps: tuple[Step, ...], new: Any) -> Any:
    """The base whose view along ``steps`` is ``new`` and which is otherwise ``base``."""
    # Values before each step are needed only where a step drops elements.
    last = max((i for i, s in enumerate(steps) if s.name in ("slice", "diagonal", "unfold")), default=-1)
    before = [base]
    for s in steps[:last]:
        before.append(apply(s, before[-1]))
    for i in reversed(range(len(steps))):
        new = _undo(steps[i], before[i] if i < len(before) else None, new)
    return new


def _undo(step: Step, before: Any, new: Any) -> Any:
    if step.name == "permute":
        perm = step.params[0]
        return _aten("permute")(new, [perm.index(d) for d in range(len(perm))])
    if step.name in ("reshape", "squeeze", "unsqueeze"):
        return reshape(new, step.in_shape)
    if step.name == "expand":
        if math.prod(step.in_shape) == math.prod(step.out_shape):
            return reshape(new, step.in_shape)
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
            "Please clone() the tensor before performing the operation."
        )
    if step.name == "slice":
        d, start, length, stride = step.params
        if length == step.in_shape[d]:
            return new
        if "slice_scatter" in dir(namespace("aten")):
            return _aten("slice_scatter")(
                before, new, d, start, start + (length - 1) * stride + 1 if length else start, stride
            )
    return _place(step, before, new)


def _place(step: Step, before: Any, new: Any) -> Any:
    """Any step: send the positions of the base's elements through it, and put the new values at those that come out."""
    n = math.prod(step.in_shape)
    positions = reshape(namespace("aten").arange(n, device=before.device), step.in_shape)
    positions = reshape(apply(step, positions), (math.prod(step.out_shape),))
    flat = _aten("scatter", "src")(reshape(before, (n,)), 0, positions, reshape(new, positions.shape))
    return reshape(flat, step.in_shape)
