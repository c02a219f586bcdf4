"""Reductions of whole arrays and of one dimension, and products of vectors and matrices."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from . import arithmetic
from .arithmetic import cast, loop_dtypes
from .arrays import address, as_expression, count, fill, temporary
from .emitter import BOOL, F64, I64, Emitter, constant
from .rows import better, by_rows, divided, joined, places_by_rows
from .values import Declined, Expression, Scalar, View

__all__ = ["REDUCTIONS", "dot", "reduce", "sum_dtype"]


class _Accumulator:
    """A slot that elements are combined into."""

    def __init__(self, e: Emitter, dtype: np.dtype, start: str):
        e.count += 1
        self.e, self.dtype, self.name, self.llvm = e, dtype, f"acc{e.count}", arithmetic.register_type(dtype)
        e.set(self.name, self.llvm, start)

    def get(self) -> str:
        return self.e.get(self.name, self.llvm)

    def set(self, v: str) -> None:
        self.e.set(self.name, self.llvm, v)


def sum_dtype(dtype: np.dtype) -> np.dtype:
    if dtype.kind == "b" or (dtype.kind in "iu" and dtype.itemsize < 8):
        return np.dtype(np.uint64 if dtype.kind == "u" else np.int64)
    return dtype


def _combined(op: str):
    """Sums and products of floats may be taken in any order, as NumPy's are."""

    def combine(e: Emitter, dtype: np.dtype, x: str, y: str) -> str:
        if dtype.kind == "f":
            name = {"+": "fadd", "*": "fmul"}[op]
            return e.op(f"{name} reassoc {arithmetic.register_type(dtype)} {x}, {y}")
        return arithmetic.numpy_operation(e, op, dtype, x, y)

    return combine


def _total(op: str):
    def run(e, x: Expression, sizes, element) -> Scalar:
        dtype = sum_dtype(x.dtype)
        acc = _Accumulator(e, dtype, constant(dtype.type(0 if op == "+" else 1)).v)
        for indices in e.loop(sizes):
            acc.set(_combined(op)(e, dtype, acc.get(), cast(e, element(indices), dtype).v))
        return Scalar(dtype, False, acc.get())

    run.dtype = sum_dtype
    run.rows = by_rows(_combined(op), sum_dtype, 0 if op == "+" else 1)
    return run


def _mean(e, x, sizes, element) -> Scalar:
    total = _total("+")(e, x, sizes, element)
    dtype = _mean.dtype(x.dtype)
    n = cast(e, Scalar(I64, False, count(e, sizes)), dtype).v
    return Scalar(dtype, False, e.op(f"fdiv {arithmetic.register_type(dtype)} {cast(e, total, dtype).v}, {n}"))


_mean.dtype = lambda dtype: dtype if dtype.kind == "f" else F64
_mean.rows = by_rows(_combined("+"), _mean.dtype, 0, divided)


def _nonempty(e, sizes, name: str) -> None:
    n = count(e, sizes)
    e.check(
        e.op(f"icmp ne i64 {n}, 0"),
        "ValueError",
        f"zero-size array to reduction operation {name} which has no identity",
    )


def _extreme(greater: bool):
    name = "maximum" if greater else "minimum"

    def run(e, x, sizes, element) -> Scalar:
        if x.dtype.kind == "b":
            raise Declined("the extreme of bools")
        _nonempty(e, sizes, name)
        acc = _Accumulator(e, x.dtype, element(tuple("0" for _ in sizes)).v)
        for indices in e.loop(sizes):
            best = Scalar(x.dtype, False, acc.get())
            acc.set(arithmetic.extreme(e, greater, best, element(indices)).v)
        return Scalar(x.dtype, False, acc.get())

    def combine(e, dtype, a, b):
        return arithmetic.extreme(e, greater, Scalar(dtype, False, a), Scalar(dtype, False, b)).v

    run.dtype = lambda dtype: dtype
    run.rows = by_rows(combine, run.dtype)
    return run


def _place(greater: bool):
    """argmax and argmin: the first of equals, and of nans."""

    def run(e, x, sizes, element) -> Scalar:
        if x.dtype.kind == "b":
            raise Declined("the place of an extreme of bools")
        n = count(e, sizes)
        name = "argmax" if greater else "argmin"
        e.check(e.op(f"icmp ne i64 {n}, 0"), "ValueError", f"attempt to get {name} of an empty sequence")
        best = _Accumulator(e, x.dtype, element(tuple("0" for _ in sizes)).v)
        place, at = _Accumulator(e, I64, "0"), _Accumulator(e, I64, "0")
        t = best.llvm
        for indices in e.loop(sizes):
            v, old = element(indices), best.get()
            wins = better(e, greater, v, old)
            best.set(e.op(f"select i1 {wins}, {t} {v.v}, {t} {old}"))
            i = at.get()
            place.set(e.op(f"select i1 {wins}, i64 {i}, i64 {place.get()}"))
            at.set(e.op(f"add i64 {i}, 1"))
        return Scalar(I64, False, place.get())

    run.dtype = lambda dtype: I64
    run.rows = places_by_rows(greater)
    return run


def _truth(every: bool):
    def run(e, x, sizes, element) -> Scalar:
        acc = _Accumulator(e, BOOL, "true" if every else "false")
        for indices in e.loop(sizes):
            acc.set(e.op(f"{'and' if every else 'or'} i1 {acc.get()}, {arithmetic.to_bool(e, element(indices))}"))
        return Scalar(BOOL, False, acc.get())

    def combine(e, dtype, a, b):
        return e.op(f"{'and' if every else 'or'} i1 {a}, {b}")

    run.dtype = lambda dtype: BOOL
    run.rows = by_rows(combine, run.dtype, every)
    return run


REDUCTIONS = {
    "sum": _total("+"), "prod": _total("*"), "mean": _mean, "max": _extreme(True), "min": _extreme(False),
    "argmax": _place(True), "argmin": _place(False), "any": _truth(False), "all": _truth(True),
}  # fmt: skip


def reduce(e: Emitter, name: str, x, axes: tuple[int, ...] | None = None, keepdims: bool = False, place: str = ""):
    """A reduction over all elements (a Scalar), or over some dimensions. ``place`` names where in the code this is."""
    x = as_expression(e, x)
    rule = REDUCTIONS[name]
    if isinstance(x, Scalar):
        if axes is not None or name not in ("sum", "max", "min", "prod", "mean"):
            raise Declined(f"{name} of a number")
        x = Expression(x.dtype, ("1",), lambda indices, x=x: x)
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
    if kept and kept[-1] == x.ndim - 1 and rule.rows is not None:
        out = rule.rows(e, x, over, kept, place)
        if keepdims:
            it = iter(zip(out.sizes, out.strides))
            both = [("1", "0") if d in over else next(it) for d in range(x.ndim)]
            out = replace(out, sizes=tuple(n for n, _ in both), strides=tuple(s for _, s in both))
        return out
    sizes = tuple("1" if d in over else n for d, n in enumerate(x.sizes) if keepdims or d in kept)

    def element(indices):
        outer = dict(zip(range(x.ndim) if keepdims else kept, indices))
        return rule(e, x, tuple(x.sizes[d] for d in over), lambda inner: x.element(joined(x.ndim, outer, over, inner)))

    return Expression(rule.dtype(x.dtype), sizes, element, x.reads, x.pairs)


def _whole(e: Emitter, rule, x: Expression) -> Scalar:
    e.count += 1
    name, llvm = f"whole{e.count}", arithmetic.register_type(rule.dtype(x.dtype))

    def write():
        e.set(name, llvm, rule(e, x, x.sizes, x.element).v)

    e.versions(x.pairs, write)
    return Scalar(rule.dtype(x.dtype), False, e.get(name, llvm))


def dot(e: Emitter, a, b, place: str):
    """``a @ b`` of vectors and matrices, of numbers of one dtype. Sums of floats may be taken in any order, as BLAS does. Products with a matrix of
    floats are the runtime's (csrc/gemm.c) unless the matrices are known to be small; a matrix of other numbers that lies by the result's elements is
    read along the memory, into a result in memory."""
    given = a, b
    a, b = as_expression(e, a), as_expression(e, b)
    if not all(isinstance(x, Expression) and x.ndim in (1, 2) for x in (a, b)):
        raise Declined("a product of these values")
    n, m = a.sizes[-1], b.sizes[0]
    if n != m:
        e.check(e.op(f"icmp eq i64 {n}, {m}"), "ValueError", "matmul: mismatch in core dimensions, {0} and {1}", n, m)
    dtype, _ = loop_dtypes(np.multiply, Scalar(a.dtype, False, ""), Scalar(b.dtype, False, ""))
    if dtype.kind == "b":
        raise Declined("a matrix product of bools")
    sizes = (*a.sizes[:-1], *b.sizes[1:])
    most = [bounds and bounds[1] for bounds in map(e.bounds_of, (*sizes, n))]
    small = None not in most and math.prod(most) <= SMALL_PRODUCT
    if sizes and dtype in (np.float32, np.float64) and not e.noting and not small:
        return _by_runtime(e, given, dtype, sizes, place)

    def added(total: str, x: str, y: str) -> str:
        if dtype.kind == "f":
            t = arithmetic.register_type(dtype)
            product = e.op(f"fmul reassoc contract {t} {x}, {y}")
            return e.op(f"fadd reassoc contract {t} {total}, {product}")
        return arithmetic.numpy_operation(e, "+", dtype, total, arithmetic.numpy_operation(e, "*", dtype, x, y))

    def factors(indices, inner) -> tuple[str, str]:
        rows, columns = indices[: a.ndim - 1], indices[a.ndim - 1 :]
        return cast(e, a.element((*rows, *inner)), dtype).v, cast(e, b.element((*inner, *columns)), dtype).v

    def element(indices) -> Scalar:
        acc = _Accumulator(e, dtype, constant(dtype.type(0)).v)
        for inner in e.loop((n,)):
            acc.set(added(acc.get(), *factors(indices, inner)))
        return Scalar(dtype, False, acc.get())

    pairs = (*a.pairs, *b.pairs)
    if not sizes:
        acc_name, llvm = f"dot{e.count}", arithmetic.register_type(dtype)
        e.versions(pairs, lambda: e.set(acc_name, llvm, element(()).v))
        return Scalar(dtype, False, e.get(acc_name, llvm))
    last = given[1] if b.ndim == 2 else given[0]  # whose elements lie as the result's do, if by rows
    along = isinstance(last, View) and last.strides[-1 if b.ndim == 2 else 0] == str(last.dtype.itemsize)
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


def _by_runtime(e: Emitter, given, dtype: np.dtype, sizes: tuple[str, ...], place: str) -> View:
    """The product, called from csrc/gemm.c: of operands in memory."""

    def in_memory(x, side: str) -> View:
        if isinstance(x, View) and x.dtype == dtype:
            e.touch(x)
            return x
        x = as_expression(e, x)
        out = temporary(e, dtype, x.sizes, f"{place} {side}")
        fill(e, out, x)
        return out

    a, b = in_memory(given[0], "left"), in_memory(given[1], "right")
    out = temporary(e, dtype, sizes, place)
    m, n = (a.sizes[0] if a.ndim == 2 else "1"), (b.sizes[1] if b.ndim == 2 else "1")
    k, item = b.sizes[0], str(dtype.itemsize)
    left = a.strides if a.ndim == 2 else (item, *a.strides)
    right = b.strides if b.ndim == 2 else (*b.strides, item)
    e.product(dtype == np.float64, (m, n, k), (a.ptr, *left), (b.ptr, *right), out.ptr)
    return out
