"""In-place and out= kernels, derived: compute the functional result, check that it fits, write it."""

from __future__ import annotations

import warnings

import numpy as np

from .. import _C
from ..core.layouts import refuse_overlap
from ..core.operator import OpOverload
from ..core.promotion import check_can_hold
from .backend import rule

# What a definition's tags say of its out= form: it must not share memory with what is read; its dtype must be the result's.
APART, EXACT = "out_apart", "out_exact"


def _span(t):
    """(first, last) element of the storage that a dense tensor covers; None for one with gaps or overlaps, or without elements."""
    size, last = 1, 0
    for n, s in zip(t._shape, t._strides):
        size *= n
        last += (n - 1) * s
    return (t._offset, t._offset + last) if size == last + 1 else None


def refuse_partial_overlap(targets, sources, whole=False) -> None:
    """RuntimeError when a source shares a part of its memory with a target it is written to, or all of it in another order
    (``whole``: or in the same)."""
    for t in targets:
        for x in sources:
            if (
                not isinstance(x, _C.TensorBase)
                or (x is t and not whole)
                or x._storage is not t._storage
                or x._dtype is not t._dtype
            ):
                continue
            if not whole and x._offset == t._offset and x._strides == t._strides and x._shape == t._shape:
                continue
            a, b = _span(x), _span(t)
            if a is not None and b is not None and a[0] <= b[1] and b[0] <= a[1]:
                raise RuntimeError(
                    "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. "
                    "Please clone() the tensor before performing the operation."
                )


def write(op: OpOverload, target, result) -> None:
    """Copy ``result`` into ``target``. RuntimeError when shape or dtype category don't allow it; nothing is written then."""
    check_write(op, target, result)
    copy_into(target, result)


def check_write(op: OpOverload, target, result) -> None:
    if not target._array.flags.writeable:
        raise RuntimeError(f"{op._opname}: the tensor's memory is read-only (it comes from a read-only NumPy array)")
    refuse_overlap(op, target._shape, target._strides)
    check_can_hold(target._dtype, result._dtype)
    if target._shape != result._shape and op.kind == "inplace":
        raise RuntimeError(
            f"output with shape {list(target._shape)} doesn't match the broadcast shape {list(result._shape)}"
        )


def copy_into(target, result) -> None:
    if target._shape != result._shape:
        if target.numel() == 0 and target._array.base is None:
            target._array = np.empty(result._shape, target._array.dtype)
        else:
            if target.numel():
                warnings.warn(
                    f"An output with one or more elements was resized since it had shape {list(target._shape)}, which does not match the "
                    f"required output shape {list(result._shape)}. This behavior is deprecated, and in a future PyTorch release outputs will "
                    "not be resized unless they have zero elements. You can explicitly reuse an out tensor t by resizing it, inplace, to zero "
                    "elements with t.resize_(0).",
                    UserWarning,
                    stacklevel=4,
                )
            target.resize_(result._shape)
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
    apart = functional.kind in ("pointwise", "index") or APART in functional.tags
    exact = functional.kind in ("index", "contraction") or EXACT in functional.tags

    def run(*args):
        targets = args[n:]
        if apart:
            sources = [x for a in args[:n] for x in (a if isinstance(a, (list, tuple)) else [a])]
            refuse_partial_overlap(targets, sources, functional.kind != "pointwise")
        result = kernel(*args[:n])
        results = result if isinstance(result, (tuple, list)) else (result,)
        if exact or len(results) > 1:
            for t, r in zip(targets, results):
                # Beside values, integers are places: nothing else holds them.
                if t._dtype is not r._dtype and (exact or r._dtype.category == 1):
                    raise RuntimeError(f"Expected out tensor to have dtype {r._dtype}, but got {t._dtype} instead")
        for t, r in zip(targets, results):
            check_write(op, t, r)  # of all, before anything is written
        for t, r in zip(targets, results):
            copy_into(t, r)
        return targets[0] if len(targets) == 1 else tuple(targets)

    return run
