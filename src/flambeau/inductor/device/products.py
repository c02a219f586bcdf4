"""Matrix products: what the compiler of the host gives to BLAS is work of the device's library where there is one, else a reduction, which fuses
with its neighbours."""

from __future__ import annotations

import itertools

from ...base.enums import Element
from ...base.expr import Var, linear, variable
from ...base.switches import SWITCHES
from ..codegen.nests import ids
from ..ir.nodes import ExternCall, Reduction
from ..ir.values import Values
from .launches import ProductStep

__all__ = ["as_product", "as_reduction"]


def as_product(node: ExternCall) -> ProductStep:
    """The step of a "gemm"."""
    g, (a, b) = node.data, node.inputs
    numbers = (a.offset, b.offset, g.m, g.n, g.k, g.lda, g.ldb, g.ldc, *itertools.chain(*g.batch))
    fast = SWITCHES["float32_matmul_precision"] != "highest"
    buffers = (a.buffer, b.buffer, node.outputs[0])
    return ProductStep("product", Element[g.t.upper()], g.ta == "T", g.tb == "T", fast, buffers, numbers, len(g.batch))


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
