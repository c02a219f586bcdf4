"""Matrix products as loops: what the compiler of the host gives to BLAS is a reduction here, which fuses with its neighbours."""

from __future__ import annotations

import itertools

from ...base.expr import Var, linear, variable
from ..codegen.nests import ids
from ..ir.nodes import ExternCall, Reduction
from ..ir.values import Values

__all__ = ["as_reduction"]


def as_reduction(node: ExternCall, values: Values) -> Reduction:
    """The loops of a "gemm"."""
    g, (a, b), (c,) = node.data, node.inputs, node.outputs
    loops = tuple(Var(next(ids), n) for n in (*(row[0] for row in g.batch), g.m, g.n))
    k = Var(next(ids), g.k)
    *batch, i, j = map(variable, loops)
    inner = variable(k)
    strides = list(itertools.zip_longest(*(row[1:] for row in g.batch))) or [(), (), ()]
    left, right, out = (linear(batch, s) for s in strides)
    left = left + a.offset + (i + inner * g.lda if g.ta == "T" else i * g.lda + inner)
    right = right + b.offset + (inner + j * g.ldb if g.tb == "T" else inner * g.ldb + j)
    x, y = (values.load(r.buffer, place, g.t) for r, place in ((a, left), (b, right)))
    value = values.make("mul", (x, y), g.t)
    return Reduction(c, loops, (k,), "add", 0, value, out + i * g.ldc + j, after=node.after)
