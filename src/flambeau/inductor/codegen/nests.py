"""How the loops of a kernel without reductions are laid out: in flat pieces, in tiles, in the order of what is read, or by several rows at once."""

from __future__ import annotations

import itertools
import math

from ...base.expr import Expr, Var, coefficient, floordiv, mod, substitute, variable
from ...base.expr import variables as variables_of
from ..assembly.dtypes import itemsize
from ..ir.values import loaded_atoms, walk
from ..machine.processor import follows_one_line

__all__ = ["ROWS", "all_nodes", "flat_loops", "ids", "planar_loops", "substitute_in"]

CHUNK = 4096  # elements of a piece of a flat loop
TOGETHER = (
    16  # small planes of a convolution's result that are an iteration: each way finishes so many together (planes.py)
)
TILE = 64, 16  # elements of a tile of a transposing loop along what is written, and the least there may be
LINE, PAGE = 64, 4096  # bytes of a line of the cache, of a page
ROWS = 4  # rows that are read by turns where each lies elsewhere
ids = itertools.count(1 << 20)  # of loop variables


def all_nodes(items):
    for kind, what in items:
        yield from (what if kind == "loop" else [what])


def substitute_in(m, env, values):
    memo: dict = {}
    m.value = values.substitute(m.value, env, memo)
    m.index = substitute(m.index, env, lambda v: values.substitute(v, env, memo))


def flat_loops(variables, items, values, past=frozenset()):
    """(outer, inner, limits) of a kernel without reduction: the last loop is the vector loop, in pieces that make the outer one parallel. ``past``:
    the buffers that are stored past the cache."""
    if not variables:
        return (), (), {}
    variables = list(variables)
    last = variables[-1]
    hint = values.hint
    size = hint(math.prod(v.extent for v in variables[:-1]))
    limits = {}
    if (hint(last.extent) >= 2 * CHUNK or (type(last.extent) is Expr and len(variables) == 1)) and size < 64:
        pieces = floordiv(last.extent + (CHUNK - 1), CHUNK)
        hi, lo = Var(next(ids), pieces), Var(next(ids), CHUNK)
        env = {last: variable(hi) * CHUNK + variable(lo)}
        for n in all_nodes(items):
            substitute_in(n, env, values)
        if mod(last.extent, CHUNK) != 0:
            limits = {lo: (hi, last.extent)}
        return (*variables[:-1], hi), (lo,), limits
    across = _transposed(variables, items, values)
    if across is not None:
        return _tiles(variables, across, items, values)
    if past and follows_one_line() and past == {n.buffer for n in all_nodes(items)}:
        rows = _rows_together(variables, items, values)
        if rows is not None:
            return rows
        variables = _as_read(variables, items)
    k = len(variables) - 1
    n = hint(last.extent)
    while k > 0 and n * hint(variables[k - 1].extent) <= CHUNK and n < 512:
        k -= 1
        n *= hint(variables[k].extent)
    return tuple(variables[:k]), tuple(variables[k:]), limits


def planar_loops(shape, variables, items, values):
    """The loops of :func:`flat_loops` so that an iteration is some whole planes of a convolution's result of this shape; None where there is
    none, or the loops can't be cut so."""
    if not shape or not variables or any(type(n) is Expr for n in (*shape, *(v.extent for v in variables))):
        return None
    if _transposed(list(variables), items, values) is not None:
        return None
    images, channels, *places = shape
    plane = math.prod(places)
    if plane >= 2 * CHUNK and images * channels < TOGETHER:
        return None  # too few for the threads
    together = math.gcd(channels, TOGETHER)
    while together > 1 and together * plane > CHUNK:
        together //= 2
    whole = together * plane
    if whole < 64:
        return None
    k, n = len(variables), 1
    while k > 0 and n < whole:
        k -= 1
        v = variables[k]
        if whole % (n * v.extent) == 0:
            n *= v.extent
        elif whole % n == 0 and v.extent % (whole // n) == 0:
            lo = Var(next(ids), whole // n)
            hi = Var(next(ids), v.extent // lo.extent)
            for stored in all_nodes(items):
                substitute_in(stored, {v: variable(hi) * lo.extent + variable(lo)}, values)
            return (*variables[:k], hi), (lo, *variables[k + 1 :]), {}
        else:
            return None
    return (variables[:k], variables[k:], {}) if n == whole else None


def _transposed(variables, items, values):
    """The loop along which most loads are contiguous, when they jump along the last one."""
    last, hint = variables[-1], values.hint
    if hint(math.prod(v.extent for v in variables)) < 1 << 14:
        return None
    jumping = [
        v.args[1]
        for n in all_nodes(items)
        for v in walk(n.value)
        if v.op == "load" and last in variables_of(v.args[1]) and coefficient(v.args[1], last) != 1
    ]
    if not jumping or hint(last.extent) < TILE[-1]:
        return None
    for v in variables[:-1]:
        if hint(v.extent) >= TILE[-1] and all(coefficient(ix, v) == 1 for ix in jumping):
            return v
    return None


def _tiles(variables, across, items, values):
    """Tiles of the last loop and the one it is transposed with: as many elements across as a cache line has, so that it is used whole and at once,
    and few lines of the result are begun at a time. Neighbours in the order of tiles lie side by side in what is read across."""
    last, least = variables[-1], TILE[-1]
    loads = [
        v for n in all_nodes(items) for v in walk(n.value) if v.op == "load" and coefficient(v.args[1], across) == 1
    ]
    wanted = {across: max([least, *(LINE // itemsize(v.dtype) for v in loads)]), last: TILE[0]}
    env, limits, pieces = {}, {}, {}
    outer = [v for v in variables if v is not across and v is not last]
    for v, side in wanted.items():
        side = side if values.hint(v.extent) >= side else least
        hi, lo = pieces[v] = Var(next(ids), floordiv(v.extent + (side - 1), side)), Var(next(ids), side)
        env[v] = variable(hi) * side + variable(lo)
        if mod(v.extent, side) != 0:
            limits[lo] = (hi, v.extent)
    for n in all_nodes(items):
        substitute_in(n, env, values)
    return (*outer, pieces[last][0], pieces[across][0]), (pieces[across][1], pieces[last][1]), limits


def _as_read(variables, items) -> list:
    """The loops in the order in which memory is read, where lines of it are stored whole: what goes past the cache may be stored anywhere, and the
    processor foresees only reading that goes up."""
    last, orders = variables[-1], set()
    whole = LINE // min(itemsize(n.value.dtype) for n in all_nodes(items))
    if any(type(v.extent) is Expr for v in variables) or last.extent % whole or last.extent < 2 * whole:
        return variables
    for v in walk(*(n.value for n in all_nodes(items))):
        if v.op != "load" or loaded_atoms(v.args[1]):
            continue
        steps = [coefficient(v.args[1], x) for x in variables]
        if all(type(c) is int and c > 0 for c in steps):
            orders.add(tuple(sorted(range(len(steps)), key=lambda i, steps=steps: -steps[i])))
    if len(orders) != 1:
        return variables
    (order,) = orders
    return [variables[i] for i in order] if order[-1] == len(variables) - 1 else variables


def _rows_together(variables, items, values):
    """Loops over a few rows at once, when where each is read from is loaded: long lines that lie anywhere are read by turns, so that more of them are
    on their way."""
    if len(variables) != 2 or any(type(v.extent) is Expr for v in variables):
        return None
    row, last = variables
    nodes = list(all_nodes(items))
    loads = [v for v in walk(*(n.value for n in nodes)) if v.op == "load"]
    least = min(itemsize(n.value.dtype) for n in nodes)
    if row.extent % ROWS or last.extent * least < PAGE or last.extent % (4 * LINE // least):
        return None
    if any(last in x.variables() for v in loads for x in loaded_atoms(v.args[1])):
        return None
    if not any(loaded_atoms(v.args[1]) for v in loads):
        return None
    hi, lo = Var(next(ids), row.extent // ROWS), Var(next(ids), ROWS)
    for n in nodes:
        substitute_in(n, {row: variable(hi) * ROWS + variable(lo)}, values)
    return (hi,), (lo, last), {}
