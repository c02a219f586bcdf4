"""Reading the arguments of a reduction by the names its definition gives."""

from __future__ import annotations

from typing import Any, NamedTuple

from .. import _C
from ..base import dtypes
from .body import REAL_ONLY
from .operator import OpOverload
from .promotion import accumulation_dtype, refuse


class Arguments(NamedTuple):
    input: Any
    dims: Any  # list of ints, an int, or None for all
    keepdim: bool
    acc: dtypes.DType
    out: dtypes.DType
    params: tuple


def arguments(op: OpOverload):
    """A function from all schema arguments to :class:`Arguments`."""
    d = op.definition
    names = [a.name for a in op._schema.arguments]
    at = {
        role: names.index(n)
        for role, n in (("dims", d.dims), ("keepdim", d.keepdim), ("dtype", d.dtype))
        if n is not None and n in names
    }
    taken = {0, *at.values()}
    rest = [i for i in range(len(names)) if i not in taken]
    dims_at, keep_at, dtype_at = at.get("dims"), at.get("keepdim"), at.get("dtype")
    is_arg = d.combine in ("argmax", "argmin")

    ordered = d.combine in ("argmax", "argmin") or d.combine in REAL_ONLY

    def read(args) -> Arguments:
        x = args[0]
        dtype = x._dtype if isinstance(x, _C.TensorBase) else x.dtype
        if dtype.is_complex and ordered:
            refuse(op, dtype)
        requested = args[dtype_at] if dtype_at is not None else None
        acc, out = (
            (dtype, dtypes.int64)
            if is_arg and not (op.refuses and dtype.name in op.refuses)
            else accumulation_dtype(op, dtype, requested)
        )
        return Arguments(
            x,
            args[dims_at] if dims_at is not None else None,
            args[keep_at] if keep_at is not None else False,
            acc,
            out,
            tuple(args[i] for i in rest),
        )

    return read
