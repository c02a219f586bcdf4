"""Batching of contractions: one more letter. A product of two tensors by letters is brought to one ``mm`` or
``bmm``."""

from __future__ import annotations

import math

from ..base.memory_format import contiguous_format
from ..core.contractions import check
from ..core.operator import OpOverload, namespace
from .handler import rule

__all__ = ["contract"]

aten = namespace("aten")


def _arrange(x, letters: str, order: str, shape):
    perm = [letters.index(c) for c in order]
    if perm != list(range(len(perm))):
        x = aten.permute.default(x, perm)
    return aten.reshape.default(x, list(shape))


def contract(a, b, left: str, right: str, out: str):
    """The einsum ``left,right->out`` of two tensors, in matrix products. No letter may repeat within a term."""
    sizes = {**dict(zip(left, a._shape)), **dict(zip(right, b._shape))}
    for x, term, other in ((0, left, right), (1, right, left)):
        alone = [i for i, c in enumerate(term) if c not in other and c not in out]
        if alone:  # summed on its own first
            reduced = aten.sum.dim_IntList((a, b)[x], alone)
            kept = "".join(c for c in term if c in other or c in out)
            return contract(reduced, b, kept, right, out) if x == 0 else contract(a, reduced, left, kept, out)
    batch = [c for c in out if c in left and c in right]
    rows = [c for c in out if c in left and c not in right]
    columns = [c for c in out if c in right and c not in left]
    summed = [c for c in left if c in right and c not in out]

    def size(letters):
        return math.prod(sizes[c] for c in letters)

    n, m, k, p = size(batch), size(rows), size(summed), size(columns)
    if batch:
        product = aten.bmm.default(
            _arrange(a, left, "".join(batch + rows + summed), (n, m, k)),
            _arrange(b, right, "".join(batch + summed + columns), (n, k, p)),
        )
    else:
        product = aten.mm.default(
            _arrange(a, left, "".join(rows + summed), (m, k)), _arrange(b, right, "".join(summed + columns), (k, p))
        )
    made = "".join(batch + rows + columns)
    product = aten.view.default(product, [sizes[c] for c in made])
    perm = [made.index(c) for c in out]
    return product if perm == list(range(len(perm))) else aten.permute.default(product, perm)


def _by_example(product):
    """Examples that lie as the operator leaves them, row after row: their views are those of its result."""
    return product if product.is_contiguous() else aten.clone.default(product, memory_format=contiguous_format)


class _Example:
    """Shape and dtype of one example, for the checks of the operator."""

    def __init__(self, x, mapped):
        self.shape, self.dtype = tuple(x._shape)[1:] if mapped else tuple(x._shape), x._dtype


@rule("contraction")
def contraction(op: OpOverload):
    terms, _, out = op.definition.letters.partition("->")
    terms = terms.split(",")
    new = next(c for c in "ZYXWVU" if c not in op.definition.letters)

    def run(call, *tensors):
        check(op, [_Example(x, m) for x, m in zip(tensors, call.mask)])
        letters = [new + t if m else t for t, m in zip(terms, call.mask)]
        if len(tensors) == 2:
            return _by_example(contract(*tensors, *letters, new + out))
        # More than two factors: one after the other, keeping the letters that are needed later.
        x, have = tensors[0], letters[0]
        for i in range(1, len(tensors)):
            later = set("".join(letters[i + 1 :]) + new + out)
            keep = "".join(dict.fromkeys(c for c in have + letters[i] if c in later))
            last = i == len(tensors) - 1
            x, have = contract(x, tensors[i], have, letters[i], new + out if last else keep), keep
        return x

    return run
