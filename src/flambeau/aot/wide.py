"""Wide values between two batched products: the scores and weights of attention, which are far larger than the queries and keys they are made of.

The compiler takes such products and the loops between them through blocks of rows, forward and backward
(inductor/scheduling/rows.py). These values are never in memory as a whole, unless the backward wants them from the forward. So they may be
recomputed, the product too: it has few terms.
"""

from __future__ import annotations

from collections.abc import Collection

from ..fx import Node
from ..fx.targets import kind_of
from .costs import elements, is_fusible, is_view

__all__ = ["wide_values"]

TERMS = 256  # of a product that may be made again
TIMES = 4  # how much larger its result is than what it multiplies, at least
LEAST = 64  # rows and columns


def wide_values(forward: Collection[Node], outputs: list) -> set[Node]:
    """The values of the forward that may be computed again for this reason. ``outputs``: the forward's, which are in memory anyway."""
    out: set[Node] = set()
    for n in forward:
        if n not in out and _widens(n):
            out |= _between(n, forward, outputs)
    return out


def _is_product(n: Node) -> bool:
    return kind_of(n.target) == "contraction" and len(n.meta["val"].shape) == 3


def _widens(n: Node) -> bool:
    if n.op != "call_function" or not _is_product(n):
        return False
    # By its arguments: a product of a matrix and itself has one input.
    (_, rows, terms), (*_, columns) = (i.meta["val"].shape for i in n.args)
    if any(type(x) is not int for x in (*n.meta["val"].shape, terms)):
        return False
    return terms <= TERMS and min(rows, columns) >= LEAST and elements(n) >= TIMES * sum(map(elements, n._inputs))


def _between(product: Node, forward: Collection[Node], outputs: list) -> set[Node]:
    """What loops make of a product, as large as it, up to the products that read it by rows; nothing where somebody else wants one of them whole."""
    size, found, stack = elements(product), {product}, [product]
    narrowed = False
    while stack:
        n = stack.pop()
        if n in outputs:
            return set()
        for u in n.users:
            if u not in forward or u in found:
                continue
            if is_view(u) or (is_fusible(u) and elements(u) == size):
                found.add(u)
                stack.append(u)
            elif u.op == "call_function" and _is_product(u) and u.args[0] is n and elements(u) < size:
                narrowed = True
            elif not is_fusible(u):
                return set()
    return found if narrowed else set()
