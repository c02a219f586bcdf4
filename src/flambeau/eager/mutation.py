"""In-place and out= kernels, derived: compute the functional result, check that it fits, write it."""

from __future__ import annotations

import numpy as np

from .. import _C
from ..core.layouts import refuse_overlap
from ..core.operator import OpOverload
from ..core.promotion import check_can_hold
from .backend import rule


def _span(t):
    """(first, last) element of the storage that a dense tensor covers; None for one with gaps or overlaps, or without elements."""
    size, last = 1, 0
    for n, s in zip(t._shape, t._strides):
        size *= n
        last += (n - 1) * s
    return (t._offset, t._offset + last) if size == last + 1 else None


def refuse_partial_overlap(targets, sources) -> None:
    """RuntimeError when a source shares a part of its memory with a target it is written to, or all of it in another order."""
    for t in targets:
        for x in sources:
            if x is t or not isinstance(x, _C.TensorBase) or x._storage is not t._storage or x._dtype is not t._dtype:
                continue
            if x._offset == t._offset and x._strides == t._strides and x._shape == t._shape:
                continue
            a, b = _span(x), _span(t)
            if a is not None and b is not None and a[0] <= b[1] and b[0] <= a[1]:
                raise RuntimeError(
                    "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. "
                    "Please clone() the tensor before performing the operation."
                )


def write(op: OpOverload, target, result) -> None:
    """Copy ``result`` into ``target``. RuntimeError when shape or dtype category don't allow it; nothing is written then."""
    if not target._array.flags.writeable:
        raise RuntimeError(f"{op._opname}: the tensor's memory is read-only (it comes from a read-only NumPy array)")
    refuse_overlap(op, target._shape, target._strides)
    check_can_hold(target._dtype, result._dtype)
    if target._shape != result._shape:
        if op.kind == "inplace":
            raise RuntimeError(
                f"output with shape {list(target._shape)} doesn't match the broadcast shape {list(result._shape)}"
            )
        if target.numel() == 0 and target._array.base is None:
            target._array = np.empty(result._shape, target._array.dtype)
        else:
            raise RuntimeError(
                f"{op._opname}: an output with shape {list(target._shape)} was given where the result has shape "
                f"{list(result._shape)}"
            )
    np.copyto(target._array, result._array, casting="unsafe")
    target._bump_version()


@rule("inplace")
def inplace(op: OpOverload):
    functional = op.definition.functional.facet("eager")

    elementwise = op.definition.functional.kind == "pointwise"

    def run(*args):
        if elementwise and len(args) > 1:
            refuse_partial_overlap(args[:1], args[1:])
        write(op, args[0], functional(*args))
        return args[0]

    return run


@rule("out")
def out(op: OpOverload):
    functional = op.definition.functional
    kernel = functional.facet("eager")
    n = len(functional._schema.arguments)
    elementwise = functional.kind == "pointwise"

    def run(*args):
        targets = args[n:]
        if elementwise:
            refuse_partial_overlap(targets, args[:n])
        result = kernel(*args[:n])
        results = result if isinstance(result, (tuple, list)) else (result,)
        for t, r in zip(targets, results):
            write(op, t, r)
        return targets[0] if len(targets) == 1 else tuple(targets)

    return run
