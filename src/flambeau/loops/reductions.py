"""Reductions of whole arrays and of one dimension, and products of vectors and matrices."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from ..base.records import replace, slotted
from ..inductor.assembly.instructions import Operand, integer
from . import turn_products
from .arrays import address, as_expression, count, fill, temporary
from .emitter import BOOL, F64, I64, Emitter, constant
from .numbers import arithmetic, comparisons, conversions
from .numbers.conversions import cast, loop_dtypes
from .rows import better, by_rows, divided, joined, places_by_rows
from .values import ArrayView, Declined, Expression, Scalar, Size, register_type

__all__ = ["REDUCTIONS", "dot", "reduce", "sum_dtype"]


class _Accumulator:
    """A slot that elements are combined into."""

    def __init__(self, e: Emitter, dtype: np.dtype, start: Operand | int):
        self.e, self.dtype, self.name, self.type = e, dtype, e.unique("acc"), register_type(dtype)
        e.set(self.name, self.type, start)

    def get(self) -> Operand:
        return self.e.get(self.name, self.type)

    def set(self, v: Operand) -> None:
        self.e.set(self.name, self.type, v)


def sum_dtype(dtype: np.dtype) -> np.dtype:
    if dtype.kind == "b" or (dtype.kind in "iu" and dtype.itemsize < 8):
        return np.dtype(np.uint64 if dtype.kind == "u" else np.int64)
    return dtype


def _combined(op: str):
    """Sums and products of floats may be taken in any order, as NumPy's are."""

    def combine(e: Emitter, dtype: np.dtype, x: Operand, y: Operand) -> Operand:
        if dtype.kind == "f":
            name = {"+": "fadd", "*": "fmul"}[op]
            return e.op(name, x, y, "reassoc")
        return arithmetic.numpy_operation(e, op, dtype, x, y)

    return combine


@slotted
class Reduction:
    """``whole(e, x, sizes, element)``: the number that ``element(indices)`` of these sizes make; ``dtype``: of it, by that of the elements; ``rows``:
    the same where the last dimension is kept, see :mod:`.rows`."""

    whole: Callable[..., Scalar]
    dtype: Callable[[np.dtype], np.dtype]
    rows: Callable[..., ArrayView]


def _total(op: str) -> Reduction:
    def run(e, x: Expression, sizes, element) -> Scalar:
        dtype = sum_dtype(x.dtype)
        acc = _Accumulator(e, dtype, constant(dtype.type(0 if op == "+" else 1)).v)
        for indices in e.loop(sizes):
            acc.set(_combined(op)(e, dtype, acc.get(), cast(e, element(indices), dtype).v))
        return Scalar(dtype, False, acc.get())

    return Reduction(run, sum_dtype, by_rows(_combined(op), sum_dtype, 0 if op == "+" else 1))


def _mean_dtype(dtype: np.dtype) -> np.dtype:
    return dtype if dtype.kind == "f" else F64


def _mean(e, x, sizes, element) -> Scalar:
    total = _total("+").whole(e, x, sizes, element)
    dtype = _mean_dtype(x.dtype)
    n = cast(e, Scalar(I64, False, integer(count(e, sizes))), dtype).v
    return Scalar(dtype, False, e.op("fdiv", cast(e, total, dtype).v, n))


def _nonempty(e, sizes, name: str) -> None:
    n = count(e, sizes)
    e.check(
        e.cmp("ne", n, 0),
        "ValueError",
        f"zero-size array to reduction operation {name} which has no identity",
    )


def _same(dtype: np.dtype) -> np.dtype:
    return dtype


def _extreme(greater: bool) -> Reduction:
    name = "maximum" if greater else "minimum"

    def run(e, x, sizes, element) -> Scalar:
        if x.dtype.kind == "b":
            raise Declined("the extreme of bools")
        _nonempty(e, sizes, name)
        acc = _Accumulator(e, x.dtype, element(tuple(0 for _ in sizes)).v)
        for indices in e.loop(sizes):
            best = Scalar(x.dtype, False, acc.get())
            acc.set(comparisons.extreme(e, greater, best, element(indices)).v)
        return Scalar(x.dtype, False, acc.get())

    def combine(e, dtype, a, b):
        return comparisons.extreme(e, greater, Scalar(dtype, False, a), Scalar(dtype, False, b)).v

    return Reduction(run, _same, by_rows(combine, _same))


def _place(greater: bool) -> Reduction:
    """argmax and argmin: the first of equals, and of nans."""

    def run(e, x, sizes, element) -> Scalar:
        if x.dtype.kind == "b":
            raise Declined("the place of an extreme of bools")
        n = count(e, sizes)
        name = "argmax" if greater else "argmin"
        e.check(e.cmp("ne", n, 0), "ValueError", f"attempt to get {name} of an empty sequence")
        best = _Accumulator(e, x.dtype, element(tuple(0 for _ in sizes)).v)
        place, at = _Accumulator(e, I64, 0), _Accumulator(e, I64, 0)
        for indices in e.loop(sizes):
            v, old = element(indices), best.get()
            wins = better(e, greater, v, old)
            best.set(e.select(wins, v.v, old))
            i = at.get()
            place.set(e.select(wins, i, place.get()))
            at.set(e.op("add", i, 1))
        return Scalar(I64, False, place.get())

    return Reduction(run, lambda dtype: I64, places_by_rows(greater))


def _truth(every: bool) -> Reduction:
    def run(e, x, sizes, element) -> Scalar:
        acc = _Accumulator(e, BOOL, every)
        for indices in e.loop(sizes):
            acc.set(e.op("and" if every else "or", acc.get(), conversions.to_bool(e, element(indices))))
        return Scalar(BOOL, False, acc.get())

    def combine(e, dtype, a, b):
        return e.op("and" if every else "or", a, b)

    return Reduction(run, lambda dtype: BOOL, by_rows(combine, lambda dtype: BOOL, every))


REDUCTIONS = {
    "sum": _total("+"),
    "prod": _total("*"),
    "mean": Reduction(_mean, _mean_dtype, by_rows(_combined("+"), _mean_dtype, 0, divided)),
    "max": _extreme(True),
    "min": _extreme(False),
    "argmax": _place(True),
    "argmin": _place(False),
    "any": _truth(False),
    "all": _truth(True),
}


def reduce(e: Emitter, name: str, x, axes: tuple[int, ...] | None = None, keepdims: bool = False, place: str = ""):
    """A reduction over all elements (a Scalar), or over some dimensions. ``place`` names where in the code this is."""
    x = as_expression(e, x)
    rule = REDUCTIONS[name]
    if isinstance(x, Scalar):
        if axes is not None or name not in ("sum", "max", "min", "prod", "mean"):
            raise Declined(f"{name} of a number")
        number = x
        x = Expression(x.dtype, (1,), lambda indices: number)
    if axes is None:
        if keepdims:
            raise Declined("keepdims without axis")
        return _whole(e, rule, x)
    if not all(-x.ndim <= axis < x.ndim for axis in axes):
        raise Declined(f"axis {axes} is out of bounds")
    over = sorted({axis % x.ndim for axis in axes})
    kept = [d for d in range(x.ndim) if d not in over]
    if len(over) != len(axes) or (len(over) > 1 and name in ("argmax", "argmin")):
        raise Declined("a dimension is reduced twice")
    if not kept and not keepdims:
        return _whole(e, rule, x)
    if kept and kept[-1] == x.ndim - 1:
        out = rule.rows(e, x, over, kept, place)
        if keepdims:
            it = iter(zip(out.sizes, out.strides))
            both = [(1, 0) if d in over else next(it) for d in range(x.ndim)]
            out = replace(out, sizes=tuple(n for n, _ in both), strides=tuple(s for _, s in both), rows=False)
        return out
    sizes = tuple(1 if d in over else n for d, n in enumerate(x.sizes) if keepdims or d in kept)

    def element(indices):
        outer = dict(zip(range(x.ndim) if keepdims else kept, indices))
        return rule.whole(
            e, x, tuple(x.sizes[d] for d in over), lambda inner: x.element(joined(x.ndim, outer, over, inner))
        )

    return Expression(rule.dtype(x.dtype), sizes, element, x.reads, x.pairs)


def _whole(e: Emitter, rule: Reduction, x: Expression) -> Scalar:
    name, t = e.unique("whole"), register_type(rule.dtype(x.dtype))

    def write():
        e.set(name, t, rule.whole(e, x, x.sizes, x.element).v)

    e.versions(x.pairs, write)
    return Scalar(rule.dtype(x.dtype), False, e.get(name, t))


def dot(e: Emitter, a, b, place: str, around: Sequence = ()):
    """``a @ b`` of vectors and matrices, of numbers of one dtype. Sums of floats may be taken in any order, as BLAS does. Products with a matrix of
    floats are the runtime's (csrc/kernels/gemm.c) unless the matrices are known to be small; a matrix of other numbers that lies by the result's
    elements is read along the memory, into a result in memory. ``around``: the operand stack."""
    given = a, b
    a, b = as_expression(e, a), as_expression(e, b)
    if not all(isinstance(x, Expression) and x.ndim in (1, 2) for x in (a, b)):
        raise Declined("a product of these values")
    n, m = a.sizes[-1], b.sizes[0]
    if n != m:
        e.check(e.cmp("eq", n, m), "ValueError", "matmul: mismatch in core dimensions, {0} and {1}", n, m)
    dtype, _ = loop_dtypes(np.multiply, _of(a.dtype), _of(b.dtype))
    if dtype.kind == "b":
        raise Declined("a matrix product of bools")
    sizes = (*a.sizes[:-1], *b.sizes[1:])
    bounds = [e.bounds_of(size) for size in (*sizes, n)]
    small = None not in bounds and math.prod([b[1] for b in bounds if b]) <= SMALL_PRODUCT
    if sizes and dtype in (np.float32, np.float64) and not e.noting and not small:
        return _by_runtime(e, given, dtype, sizes, place, around)

    def added(total: Operand, x: Operand, y: Operand) -> Operand:
        if dtype.kind == "f":
            product = e.op("fmul", x, y, "reassoc contract")
            return e.op("fadd", total, product, "reassoc contract")
        return arithmetic.numpy_operation(e, "+", dtype, total, arithmetic.numpy_operation(e, "*", dtype, x, y))

    def factors(indices, inner) -> tuple[Operand, Operand]:
        rows, columns = indices[: a.ndim - 1], indices[a.ndim - 1 :]
        return cast(e, a.element((*rows, *inner)), dtype).v, cast(e, b.element((*inner, *columns)), dtype).v

    def element(indices) -> Scalar:
        acc = _Accumulator(e, dtype, constant(dtype.type(0)).v)
        for inner in e.loop((n,)):
            acc.set(added(acc.get(), *factors(indices, inner)))
        return Scalar(dtype, False, acc.get())

    pairs = (*a.pairs, *b.pairs)
    if not sizes:
        name, t = f"dot{e.names.count}", register_type(dtype)
        e.versions(pairs, lambda: e.set(name, t, element(()).v))
        return Scalar(dtype, False, e.get(name, t))
    last = given[1] if b.ndim == 2 else given[0]  # whose elements lie as the result's do, if by rows
    along = isinstance(last, ArrayView) and last.strides[-1 if b.ndim == 2 else 0] == last.dtype.itemsize
    if not along and len(sizes) == 1:
        return Expression(dtype, sizes, element, (*a.reads, *b.reads), pairs)
    out = temporary(e, dtype, sizes, place)

    def write():
        for outer in e.loop(sizes, parallel=True):
            e.store(address(e, out, outer), dtype, constant(dtype.type(0)).v)
        for inner in e.loop((n,)):
            for outer in e.loop(sizes, parallel=True, pieces=False):
                p = address(e, out, outer)
                e.store(p, dtype, added(e.load(p, dtype), *factors(outer, inner)))

    e.versions(pairs, write)
    return out


SMALL_PRODUCT = 64  # multiply-adds


def _of(dtype: np.dtype) -> Scalar:
    """Some number of this dtype."""
    return constant(dtype.type(0))


def _by_runtime(e: Emitter, given, dtype: np.dtype, sizes: tuple[Size, ...], place: str, around: Sequence) -> ArrayView:
    """The product, called from csrc/kernels/gemm.c: of operands in memory."""

    def in_memory(x, side: str) -> ArrayView:
        if isinstance(x, ArrayView) and x.dtype == dtype:
            e.touch(x)
            return x
        x = as_expression(e, x)
        out = temporary(e, dtype, x.sizes, f"{place} {side}")
        fill(e, out, x)
        return out

    a, b = in_memory(given[0], "left"), in_memory(given[1], "right")
    out = temporary(e, dtype, sizes, place)
    m, n = (a.sizes[0] if a.ndim == 2 else 1), (b.sizes[1] if b.ndim == 2 else 1)
    k, item = b.sizes[0], dtype.itemsize
    left = a.strides if a.ndim == 2 else (item, *a.strides)
    right = b.strides if b.ndim == 2 else (*b.strides, item)
    parts = turn_products.of_arrays(a, b)
    several = None if parts is None else partial(turn_products.call, e, parts, around)
    e.product(dtype == np.float64, (m, n, k), (a.ptr, *left), (b.ptr, *right), out.ptr, several)
    return out
