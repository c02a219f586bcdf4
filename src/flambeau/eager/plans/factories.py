"""The rules of factories, and of reads and writes by index."""

from __future__ import annotations

import math

import numpy as np

from ...base import dtypes
from ...base.quiet import errstate
from ...core.layouts import made_strides, takes_format
from ...core.operator import OpOverload
from .program import LARGE, Program
from .rules import rule
from .values import NotPlanned, value_meta

KERNEL = 1 << 12  # elements of an array that is kept to be copied


@rule("index")
def _index(p: Program, op: OpOverload, values, out):
    from . import indexing

    return (indexing.read if op.definition.mode == "read" else indexing.write)(p, op, values, out)


@rule("factory")
def _factory(p: Program, op: OpOverload, values, out):
    d = op.definition
    metas = [value_meta(x) for x in values]
    shape = tuple(d.shape(*metas))
    if math.prod(shape) == 0 or math.prod(shape) >= LARGE:
        raise NotPlanned
    dtype = d.dtype(*metas).np
    to = p.memory(out, shape, dtype, made_strides(shape, metas) if takes_format(op) else None)
    if d.body is None:
        return to
    from ..pointwise import NUMPY

    index = tuple(np.arange(n).reshape((-1,) + (1,) * (len(shape) - 1 - k)) for k, n in enumerate(shape))
    value = d.body(NUMPY, index, *metas)
    if value.__class__ is int or value.__class__ is float:
        dtypes.check_number(value, d.dtype(*metas))
    value = np.asarray(value)
    if value.size > KERNEL:
        raise NotPlanned
    with errstate(over="ignore"):
        value = value.astype(dtype)
    return p.copy(p.constant(value), to)
