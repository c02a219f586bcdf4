"""Products of arrays: outer, cross, over one dimension."""

from __future__ import annotations

from ...base.records import replace
from ...inductor.assembly.instructions import integer
from .. import arrays, reductions
from ..arrays import OnElements
from ..emitter import Emitter
from ..faults import Limit
from ..numbers import arithmetic
from ..values import Declined, Expression, Scalar, Tuple
from .concatenation import array

__all__ = ["cross", "outer", "outer_of", "tensordot"]


def tensordot(e: Emitter, place: str, a, b, axes=None):
    x, y = arrays.as_expression(e, a), arrays.as_expression(e, b)
    one = getattr(axes, "const", None) == 1
    if not one or not isinstance(x, Expression) or not isinstance(y, Expression) or x.ndim != 1 or y.ndim < 1:
        raise Declined("np.tensordot of these arguments")
    if x.sizes[0] != y.sizes[0]:
        e.check(e.cmp("eq", x.sizes[0], y.sizes[0]), "ValueError", "shape-mismatch for sum")
    column = replace(x, sizes=(*x.sizes, *(1 for _ in y.sizes[1:])), element=lambda indices: x.element(indices[:1]))
    product = arrays.elementwise(e, OnElements(e, lambda e, p, q: arithmetic.binary(e, "*", p, q)), column, y)
    return reductions.reduce(e, "sum", product, (0,), False, place)


def outer(e: Emitter, place: str, a, b) -> Expression:
    x, y = arrays.as_expression(e, a), arrays.as_expression(e, b)
    if (getattr(x, "ndim", 0), getattr(y, "ndim", 0)) != (1, 1):
        raise Declined("np.outer of these arguments")
    function = OnElements(e, lambda e, p, q: arithmetic.binary(e, "*", p, q))
    return outer_of(e, lambda p, q: arrays.elementwise(e, function, p, q), x, y)


def outer_of(e: Emitter, function, a, b) -> Expression | Scalar:
    """``ufunc.outer(a, b)``: ``function`` of all pairs of elements, the dimensions of ``a`` first."""
    x, y = arrays.as_expression(e, a), arrays.as_expression(e, b)
    if not isinstance(x, Expression) or not isinstance(y, Expression):
        return function(x, y)
    n = x.ndim
    column = replace(x, sizes=(*x.sizes, *(1 for _ in y.sizes)), element=lambda indices: x.element(indices[:n]))
    return function(column, y)


def cross(e: Emitter, place: str, a, b):
    """Of two vectors of three."""
    given = [arrays.as_expression(e, x) for x in (a, b)]
    if not all(isinstance(x, Expression) and x.ndim == 1 and x.dtype.kind in "if" for x in given):
        raise Declined("np.cross of other things than two vectors")
    for x in given:
        if x.sizes[0] != 3:
            e.check(e.cmp("eq", x.sizes[0], 3), "ValueError", Limit("np.cross of vectors of another size than 3"))
    (a0, a1, a2), (b0, b1, b2) = [[x.element((integer(k),)) for k in range(3)] for x in given]

    def apart(p, q, r, s):
        return arithmetic.binary(e, "-", arithmetic.binary(e, "*", p, q), arithmetic.binary(e, "*", r, s))

    return array(e, place, Tuple((apart(a1, b2, a2, b1), apart(a2, b0, a0, b2), apart(a0, b1, a1, b0))))
