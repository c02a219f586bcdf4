"""Sums of many small products as one product, on the decomposed program: what a loop over time leaves in the gradient of a shared weight.

``A1 B1 + A2 B2 + ...`` is ``[A1 A2 ...] [B1; B2; ...]``: one product with a long sum reads and writes the result once and not for each term. Likewise
a sum of column sums is the column sum of the rows together. And a weight that lies by columns, multiplied again and again with few rows, is
copied into rows once: a product with few rows reads its right operand in place.
"""

from __future__ import annotations

from ...base.expr import Expr
from ...core.definition import TensorMeta
from ...core.operator import namespace
from ..ir.nodes import dense_strides
from .decompose import OpCall, OpProgram, _without_data

__all__ = ["join_sums"]

aten = namespace("aten")

TERMS = 4  # of a sum that is worth joining
DEPTH = 128  # most of a term's own length of sum
ROWS = 64  # a product with more rows packs its right operand anyway
AGAIN = 4  # products with one operand, from which on it is copied


def join_sums(program: OpProgram) -> None:
    """Changes ``program`` in place; sizes must be plain integers, other calls are left alone."""
    if sum(c.target is aten.mm.default for c in program.calls) < TERMS:
        return
    readers: dict[int, int] = {}
    for call in program.calls:
        if call.target is aten.add.Tensor:
            for x in call.args[:2]:
                if isinstance(x, OpCall):
                    readers[id(x)] = readers.get(id(x), 0) + 1
    joined: dict[tuple, OpCall] = {}  # the rows of several tensors, by their makers
    calls, program.calls = program.calls, []
    order = {id(c): i for i, c in enumerate(calls)}
    place = {}
    gone: set[int] = set()
    for call in reversed(calls):  # the whole sum before its parts
        if id(call) in gone:
            continue
        terms = _terms(call, readers)
        if len(terms) >= TERMS:
            place[id(call)] = terms
            gone |= {id(c) for c in _inside(call, terms)}
    for call in calls:
        if id(call) in gone:
            continue
        if id(call) in place:
            _replace(program, call, place[id(call)], joined, order)
        program.calls.append(call)
    _copy_weights(program)
    for call in program.calls:
        call.uses = 0
    program.count()


def _plain_add(call) -> bool:
    return call.target is aten.add.Tensor and len(call.args) == 2 and call.kwargs.get("alpha", 1) == 1


def _terms(call, readers) -> list[OpCall]:
    """The products, or the column sums, that a sum consists of; none where it is anything else."""
    if not (isinstance(call, OpCall) and call.what == "call" and _plain_add(call) and _is_fixed(call.val)):
        return []
    out, todo = [], [call]
    while todo:
        c = todo.pop()
        if not isinstance(c, OpCall) or not _is_fixed(c.val):
            return []
        if c.val.shape != call.val.shape or c.val.dtype is not call.val.dtype:
            return []
        if c is not call and (c.uses != 1 or readers.get(id(c)) != 1):
            return []
        if c.what == "call" and _plain_add(c):
            todo += c.args
        else:
            out.append(c)
    if all(c.target is aten.mm.default for c in out):
        return out if all(_depth(c) <= DEPTH for c in out) else []
    same = all(c.target is aten.sum.dim_IntList and c.args[1:] == out[0].args[1:] and not c.kwargs for c in out)
    over_rows = same and [*out[0].args[1]] == [0] and all(c.args[0].val.ndim == 2 for c in out)
    return out if over_rows and all(_is_fixed(c.args[0].val) for c in out) else []


def _is_fixed(val) -> bool:
    return all(type(n) is int for n in val.shape)


def _depth(mm) -> int | float:
    k = mm.args[1].val.shape[0]
    return k if type(k) is int else float("inf")


def _inside(call, terms):
    """The sum's own calls but the last: partial sums and terms."""
    todo, out = list(call.args), list(terms)
    while todo:
        c = todo.pop()
        if _plain_add(c):
            out.append(c)
            todo += c.args
    return out


def _replace(program, call, terms, joined, order: dict[int, int]) -> None:
    if terms[0].target is aten.mm.default:
        terms = sorted(
            terms, key=lambda c: order[id(_source(c.args[0])[0])]
        )  # the program's, and the same for the column sums
        sources = [_source(c.args[0]) for c in terms]
        if all(transposed for _, transposed in sources):
            rows = _together(program, [x for x, _ in sources], 0, joined)
            left = _add(program, aten.t.default, (rows,), rows.val.shape[::-1], rows.val.stride()[::-1], call)
        else:
            left = _together(program, [c.args[0] for c in terms], 1, joined)
        right = _together(program, [c.args[1] for c in terms], 0, joined)
        call.target, call.args, call.kwargs = aten.mm.default, (left, right), {}
    else:
        terms = sorted(terms, key=lambda c: order[id(c.args[0])])
        rows = _together(program, [c.args[0] for c in terms], 0, joined)
        call.target, call.args, call.kwargs = aten.sum.dim_IntList, (rows, *terms[0].args[1:]), {}


def _source(x):
    """(what x is the transpose of, True), or (x, False)."""
    return (x.args[0], True) if isinstance(x, OpCall) and x.target is aten.t.default else (x, False)


def _together(program, parts, dim, joined):
    key = (dim, *map(id, parts))
    if key not in joined:
        shape = list(parts[0].val.shape)
        shape[dim] = sum(p.val.shape[dim] for p in parts)
        joined[key] = _add(program, aten.cat.default, (parts, dim), tuple(shape), dense_strides(shape), parts[0])
    return joined[key]


def _add(program, target, args, shape, strides, like):
    val = _without_data(TensorMeta(tuple(shape), tuple(strides), like.val.dtype, like.val.device))
    return program.add("call", target, args, {}, val)


def _copy_weights(program) -> None:
    """The right operand of several products of few rows, in rows."""
    products: dict[int, list[OpCall]] = {}
    for call in program.calls:
        if call.target is aten.mm.default and isinstance(call.args[1], OpCall):
            m, (k, n) = call.args[0].val.shape[0], call.args[1].val.shape
            few = (
                all(type(x) is int and not isinstance(x, Expr) for x in (m, k, n)) and m <= ROWS and n >= 32 and k >= 32
            )
            if few and _source(call.args[1])[1]:
                products.setdefault(id(call.args[1]), []).append(call)
    for group in products.values():
        if len(group) < AGAIN:
            continue
        transposed = group[0].args[1]
        shape = tuple(transposed.val.shape)
        copy = _add(program, aten.clone.default, (transposed,), shape, dense_strides(shape), transposed)
        program.calls.remove(copy)
        program.calls.insert(program.calls.index(transposed) + 1, copy)
        for call in group:
            call.args = (call.args[0], copy)
