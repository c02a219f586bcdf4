"""In-place and out= kernels, derived: compute the functional result, check that it fits, write it."""

from __future__ import annotations

import numpy as np

from ..core.operator import OpOverload
from ..core.promotion import _scalar_name
from .backend import rule


def write(op: OpOverload, target, result) -> None:
    """Copy ``result`` into ``target``. RuntimeError when shape or dtype category don't allow it; nothing is written then."""
    if not target._array.flags.writeable:
        raise RuntimeError(f"{op._opname}: the tensor's memory is read-only (it comes from a read-only NumPy array)")
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
    if result._dtype.category > target._dtype.category:
        raise RuntimeError(
            f"result type {_scalar_name(result._dtype)} can't be cast to the desired output type {_scalar_name(target._dtype)}"
        )
    np.copyto(target._array, result._array, casting="unsafe")
    target._bump_version()


@rule("inplace")
def inplace(op: OpOverload):
    functional = op.definition.functional.facet("eager")

    def run(*args):
        write(op, args[0], functional(*args))
        return args[0]

    return run


@rule("out")
def out(op: OpOverload):
    functional = op.definition.functional
    kernel = functional.facet("eager")
    n = len(functional._schema.arguments)

    def run(*args):
        result = kernel(*args[:n])
        targets = args[n:]
        results = result if isinstance(result, (tuple, list)) else (result,)
        for t, r in zip(targets, results):
            write(op, t, r)
        return targets[0] if len(targets) == 1 else tuple(targets)

    return run
