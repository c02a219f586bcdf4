"""The inverse of a view: the base after its view was overwritten.

A view is a chain of steps (core/viewmap.py); each has an inverse. Steps that only rename indices are undone; steps
that leave part of the base out put the new values into it. Everything is done by calling operators, so that a trace
sees it."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from ..core.operator import OpOverload, namespace
from ..core.viewmap import Step, ViewRecorder

__all__ = ["copying", "place", "repeats", "settings", "steps_of", "write_back"]


class _Settings(threading.local):
    """``copies``: views are computed as copies of what they show, ``view_copy`` for ``view``. ``recorded``: what is held by
    functional tensors may ask for gradients, too."""

    copies = False
    recorded = False


settings = _Settings()


def copying(op: OpOverload) -> OpOverload:
    """``view_copy`` of ``view`` and the like; the operator itself where no such one exists."""
    packet = getattr(namespace(op.namespace), f"{op._opname}_copy", None)
    return op if packet is None else getattr(packet, op._overloadname, op)


def _aten(name: str, overload: str = "default"):
    op = getattr(getattr(namespace("aten"), name), overload)
    return copying(op) if settings.copies else op


def steps_of(op, base_shape, args: tuple) -> list[tuple[Step, ...]]:
    """Steps of a view operator for a base of this shape, one chain for each of its results. ``args``: all but the
    base, in schema order.
    """
    recorded = op.definition.map(ViewRecorder(base_shape), *args)
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
    return namespace("aten").view_copy(x, list(shape)) if settings.copies else namespace("aten").reshape(x, list(shape))


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
    if step.name == "expand" and not repeats(step):
        return reshape(new, step.in_shape)
    if step.name == "slice":
        d, start, length, stride = step.params
        if length == step.in_shape[d]:
            return new
        if "slice_scatter" in dir(namespace("aten")):
            return _aten("slice_scatter")(
                before, new, d, start, start + (length - 1) * stride + 1 if length else start, stride
            )
    return place(before, [partial(apply, step)], new)


def repeats(step: Step) -> bool:
    """Whether the step shows elements more than once. What is written behind it can't be undone step by step: other copies of an element
    would bring its old value back."""
    if step.name == "unfold":
        d, size, stride = step.params
        return bool(step.in_shape) and size > stride and step.out_shape[d] > 1
    return step.name == "expand" and math.prod(step.in_shape) != math.prod(step.out_shape)


def place(base: Any, path: list[Callable], new: Any) -> Any:
    """``base`` after ``new`` was written to its view along any ``path`` of functions: positions of its elements are sent the same way, and the
    new values put at those that come out. RuntimeError when one comes out twice."""
    shape = tuple(base.shape)
    n = math.prod(shape)
    positions = reshape(namespace("aten").arange(n, device=base.device), shape)
    for step in path:
        positions = step(positions)
    positions = reshape(positions, (math.prod(positions.shape),))
    flat = _aten("scatter", "src")(reshape(base, (n,)), 0, positions, reshape(new, positions.shape))
    return reshape(flat, shape)
