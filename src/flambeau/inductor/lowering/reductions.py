"""Reductions as loops: in one pass, or in pieces of a fixed length first."""

from __future__ import annotations

import math

from ...base.expr import Div, Expr, Mod, floordiv, linear, mod, terms, variable
from ..ir.nodes import Reduction, dense_strides
from ..ir.values import walk
from ..settings import config

__all__ = ["reduce"]

# Elements from which a dimension is worth a loop of its own.
_LINE = 8


def reduce(lowering, combine, init, shape, kept, dims, element):
    """Emit the reduction; returns the function from kept coordinates to the accumulated Value. A reduction with few results is done in
    two steps, pieces of fixed length first: parallel, and with the accuracy of a pairwise sum, whatever the number of threads."""
    outer, inner = [shape[k] for k in kept], [shape[k] for k in dims]
    rows, n, hint = math.prod(outer), math.prod(inner), lowering.values.hint
    coords: list = [None] * len(shape)

    def value(outer_coords, inner_coords):
        for k, c in zip(kept, outer_coords):
            coords[k] = c
        for k, c in zip(dims, inner_coords):
            coords[k] = c
        return element(tuple(coords))

    if n == 0:
        v = value([0] * len(kept), [0] * len(dims))
        return lambda c: lowering.values.const(init, v.dtype)
    if n == 1:
        zero = [0] * len(dims)
        if combine in ("argmax", "argmin"):
            return lambda c: lowering.values.const(0, "i64")
        return lambda c: value(c, zero)
    if combine == "add" and len(dims) == 1:
        loops, (r,) = lowering.variables(outer), lowering.variables(inner)
        if _picks_one(value([variable(p) for p in loops], [variable(r)]), r):
            return lambda c: _picked(lowering, value(c, [variable(r)]), r)
    arg = combine in ("argmax", "argmin")
    column = bool(kept) and kept[-1] == len(shape) - 1
    many = hint(n)
    if type(n) is Expr and not column:
        many = max(many, 4 * config.reduction_piece) if many > 1024 else many  # it may be longer next time
    long = (
        many >= config.reduction_piece
        if column
        else many >= 4 * config.reduction_piece and (hint(rows) < 16 or many > 64 * config.reduction_piece)
    )

    def by_lines(inside):
        """The last ``inside`` dimensions first, then the rest."""
        rest = list(range(len(shape) - inside))
        part = reduce(lowering, combine, init, shape, rest, dims[-inside:], element)
        return reduce(lowering, combine, init, shape[: len(rest)], kept, dims[:-inside], part)

    # Dimensions of a sum over channels (n, c, h, w) that lie together.
    inside = len(shape) - 1 - kept[-1] if kept else 0
    if not arg and long and 0 < inside < len(dims) and hint(math.prod(shape[len(shape) - inside :])) >= _LINE:
        return by_lines(inside)
    if not arg and long:
        # Columns are summed one element after the other: pieces of about the square root keep the error that of a pairwise sum.
        piece = max(64, 1 << (many.bit_length() // 2)) if column else config.reduction_piece
        pieces = floordiv(n + (piece - 1), piece)
        c, l = lowering.variables((pieces, piece))
        loops = lowering.variables(outer)
        flat = variable(c) * piece + variable(l)
        v = value([variable(p) for p in loops], _unflatten(flat, inner))
        line = None if column or not _divides(v, {c, l}) else _line(shape, dims, hint)
        if line is not None:
            return by_lines(line)
        buffer = lowering.new_buffer((pieces, *outer), dense_strides((pieces, *outer)), v.dtype)
        where = linear([variable(c), *map(variable, loops)], buffer.strides)
        limit = (c, l, n) if mod(n, piece) != 0 else None
        lowering.add(Reduction(buffer.name, (c, *loops), (l,), combine, init, v, where, limit))
        return reduce(
            lowering,
            combine,
            init,
            (pieces, *outer),
            list(range(1, len(outer) + 1)),
            [0],
            lambda cs: lowering.values.load(buffer.name, linear(cs, buffer.strides), v.dtype),
        )
    loops, reduced = lowering.variables(outer), lowering.variables(inner)
    v = value([variable(p) for p in loops], [variable(r) for r in reduced])
    t = "i64" if arg else v.dtype
    buffer = lowering.new_buffer(outer, dense_strides(outer), t)
    lowering.add(Reduction(buffer.name, loops, reduced, combine, init, v, linear(map(variable, loops), buffer.strides)))
    return lambda c: lowering.values.load(buffer.name, linear(c, buffer.strides), t)


def _picks_one(v, r) -> bool:
    """Whether ``v`` is 0 but at one place of ``r``: the gradient of an element picked by its place, of which the sum is known."""
    if v.op != "where" or v.args[0].op != "eq" or v.args[2].op != "const" or v.args[2].args[0] != 0:
        return False
    return r not in v.args[1].variables() and _place(v, r) is not None


def _place(v, r):
    """What ``r`` itself is compared with; None where there is no such comparison."""
    x, y = v.args[0].args
    for it, place in ((x, y), (y, x)):
        if it.op == "index" and it.args[0] == variable(r) and r not in place.variables():
            return place
    return None


def _picked(lowering, v, r):
    """The sum of such a ``v`` over ``r``: its value where the place is one of ``r``'s, 0 where it is none. Added to 0, as -0 would be."""
    place = _place(v, r)
    whole, typed = lowering.handler(place.dtype), lowering.handler(v.dtype)
    inside = whole.logical_and(whole.ge(place, 0), whole.lt(place, lowering.values.index(r.extent)))
    return typed.where(inside, typed.add(v.args[1], 0), 0)


def _unflatten(flat: Expr | int, shape):
    out, stride = [], math.prod(shape)
    for k, n in enumerate(shape):
        stride = floordiv(stride, n)
        q = floordiv(flat, stride)
        out.append(mod(q, n) if k else q)
    return out


def _line(shape, dims, hint) -> int | None:
    """The number of last dimensions, all reduced, that make a line of `_LINE` elements or more; None unless others are left to be reduced."""
    for many in range(1, len(dims)):
        if dims[-many] != len(shape) - many:
            return None
        if hint(math.prod(shape[-many:])) >= _LINE:
            return many
    return None


def _divides(v, loops) -> bool:
    """Whether an index below ``v`` divides one of the loops' variables: where places of operands don't follow from the place in the flattened shape
    by sums and products (broadcast, transposed or cut ones), and each element would cost divisions."""
    return any(
        isinstance(atom, (Div, Mod)) and not loops.isdisjoint(atom.variables())
        for w in walk(v)
        if w.op in ("load", "index")
        for atom, _ in terms(w.args[-1])
    )
