"""The rule of contractions: products by BLAS."""

from __future__ import annotations

import math

import numpy as np

from ...core.contractions import check, keeps_zeros
from ...core.operator import OpOverload, namespace
from ..backend import PRODUCTS
from ..contraction import of_one_term
from .program import Program
from .rules import RULES, rule
from .values import NotPlanned, PlanValue, narrow, value_meta
from .whole import SMALL_PRODUCT


@rule("contraction")
def _contraction(p: Program, op: OpOverload, values, out):
    a, b = values
    check(op, [value_meta(a), value_meta(b)])
    dtype = a.dtype
    if op.definition.letters in PRODUCTS and of_one_term(a, b) and a.dtype == b.dtype:
        return _single_products(p, a, b, out)
    if narrow(dtype) and b.dtype == dtype:
        a, b = p.cast(a, np.dtype(np.float32)), p.cast(b, np.dtype(np.float32))
    if a.dtype != b.dtype or a.dtype.char not in "fd":
        raise NotPlanned
    terms, _, result = op.definition.letters.partition("->")
    ta, tb = terms.split(",")
    if any(len(set(t)) != len(t) for t in (ta, tb, result)):
        raise NotPlanned
    at = [dict(zip(ta, a.strides)), dict(zip(tb, b.strides))]
    size = {**dict(zip(ta, a.shape)), **dict(zip(tb, b.shape))}
    batch = [c for c in result if c in ta and c in tb]
    rows = [c for c in result if c in ta and c not in tb]
    columns = [c for c in result if c in tb and c not in ta]
    summed = [c for c in ta if c in tb and c not in result]
    if len(rows) > 1 or len(columns) > 1 or len(summed) != 1 or set(ta + tb) != {*batch, *rows, *columns, *summed}:
        raise NotPlanned
    m, n, k = (x[0] if x else None for x in (rows, columns, summed))
    work = math.prod(size.values())
    if work > SMALL_PRODUCT:
        raise NotPlanned
    shape = [size[c] for c in result]
    to = p.memory(out if dtype == a.dtype else None, shape, a.dtype)
    to_at, item = dict(zip(result, to.strides)), a.dtype.itemsize
    # A missing dimension counts as one of size 1; its stride is what BLAS expects of a dense matrix.
    core = (
        at[0][m] if m else size[k] * item, at[0][k],
        at[1][k], at[1][n] if n else item,
        to_at[m] if m else size.get(n, 1) * item, to_at[n] if n else item,
    )  # fmt: skip
    p.matmul(
        [size[c] for c in batch],
        [a, b, to],
        [[at[0][c] for c in batch], [at[1][c] for c in batch], [to_at[c] for c in batch]],
        (size.get(m, 1), size[k], size.get(n, 1)),
        core,
    )
    return to if dtype == a.dtype else p.copy(to, p.memory(out, shape, dtype))


def _single_products(p: Program, a: PlanValue, b: PlanValue, out):
    """The product whose sums have one term each: element by element, row-major as all products."""
    aten = namespace("aten")
    shape = (*a.shape[:-1], b.shape[-1])
    keeps = a.dtype.kind in "iu" or keeps_zeros(a.dtype, shape)
    to = p.memory(out, shape, a.dtype)
    made = RULES["pointwise"](p, aten.mul.Tensor, [a, b], to if keeps else None)
    return made if keeps else RULES["pointwise"](p, aten.add.Tensor, [made, p.constant(0, a.dtype), 1], to)
