"""Constant right operands of products in the order that the kernels read (csrc/kernels/prepack.c).

Packing is part of what follows from constants, so it is done once. A product of many rows has the bits of the one that packs at each call;
one of few rows with a weight (N, K) those of ``x @ w.t().contiguous()``."""

from __future__ import annotations

from ...base import dtypes, prepacked
from ...base.blas import takes_bf16
from ...core.operator import namespace
from ...fx import Graph, Node
from .folding import Writer, follows, number

__all__ = ["pack"]

aten = namespace("aten")


def pack(graph: Graph, constant: set[Node]) -> list[tuple]:
    """Give each product with a constant right operand that operand packed, where that is worth it; what was packed, and how."""
    frozen, found, made = set(constant), [], {}
    for n in list(graph.nodes):
        if follows(n, frozen):
            frozen.add(n)
            continue
        parts = _product(n)
        how = parts and parts[2] in frozen and _how(*parts)
        if not how:
            continue
        bias, x, weight = parts
        size, transposed, way, rows = how
        columns = weight.meta["val"].shape[1]
        with graph.inserting_before(n):
            if (weight, size, way) not in made:
                made[weight, size, way] = Writer(graph, frozen)(aten._prepack.default, weight, size, transposed, way)
            joined = bias if weight.meta["val"].dtype is dtypes.bfloat16 else None  # that sum is rounded once
            args = (x, made[weight, size, way], joined, columns, transposed, way)
            new = graph.call_function(aten._mm_prepacked.default, args)
            new.meta = dict(n.meta)
            if bias is not joined:
                new = graph.call_function(aten.add.Tensor, (new, bias))
                new.meta = dict(n.meta)
        n.replace_all_uses_with(new)
        found.append((rows, columns, size, transposed, way))
    return found


def _product(n: Node):
    """(bias or None, left operand, right operand) of a product of matrices."""
    if n.op != "call_function" or n.kwargs:
        return None
    if n.target is aten.mm.default:
        return None, *n.args
    if n.target is aten.addmm.default and len(n.args) == 3:
        return n.args
    return None


def _how(bias: Node | None, x: Node, weight: Node):
    """(elements packed, whether columns of the weight are contiguous, way, rows); None: it is best where it is."""
    b, rows = weight.meta["val"], number(x.meta["val"].shape[0])
    (deep, columns), (down, across) = b.shape, b.stride()
    if rows is None or x.meta["val"].dtype != b.dtype or min(deep, columns, rows) < 2:
        return None
    if b.dtype is dtypes.bfloat16 and not takes_bf16(x.meta["val"], b, *(() if bias is None else (bias.meta["val"],))):
        return None
    transposed = down == 1
    if not transposed and across != 1:
        return None
    size, way = prepacked.elements(b.dtype.np, rows, columns, deep, transposed)
    return (size, transposed, way, rows) if size else None
