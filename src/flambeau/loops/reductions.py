"""Reductions of whole arrays and of one dimension, and products of vectors and matrices with vectors."""

from __future__ import annotations

import numpy as np

from . import arithmetic
from .arithmetic import cast, loop_dtypes
from .arrays import as_expression, count
from .emitter import BOOL, F64, I64, Emitter, constant
from .values import Declined, Expression, Scalar

__all__ = ["REDUCTIONS", "dot", "reduce"]


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


def _sum_dtype(dtype: np.dtype) -> np.dtype:
    if dtype.kind == "b" or (dtype.kind in "iu" and dtype.itemsize < 8):
        return np.dtype(np.uint64 if dtype.kind == "u" else np.int64)
    return dtype


def _total(op: str):
    def run(e, x: Expression, sizes, element) -> Scalar:
        dtype = _sum_dtype(x.dtype)
        acc = _Accumulator(e, dtype, constant(dtype.type(0 if op == "+" else 1)).v)
        for indices in e.loop(sizes):
            acc.set(arithmetic.numpy_operation(e, op, dtype, acc.get(), cast(e, element(indices), dtype).v))
        return Scalar(dtype, False, acc.get())

    run.dtype = _sum_dtype
    return run


def _mean(e, x, sizes, element) -> Scalar:
    total = _total("+")(e, x, sizes, element)
    dtype = _mean.dtype(x.dtype)
    n = cast(e, Scalar(I64, False, count(e, sizes)), dtype).v
    return Scalar(dtype, False, e.op(f"fdiv {arithmetic.register_type(dtype)} {cast(e, total, dtype).v}, {n}"))


_mean.dtype = lambda dtype: dtype if dtype.kind == "f" else F64


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

    run.dtype = lambda dtype: dtype
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
            better = arithmetic.compare(e, ">" if greater else "<", v, Scalar(x.dtype, False, old)).v
            if x.dtype.kind == "f":
                number, nan = e.op(f"fcmp ord {t} {old}, {old}"), e.op(f"fcmp uno {t} {v.v}, {v.v}")
                better = e.op(f"and i1 {number}, {e.op(f'or i1 {better}, {nan}')}")
            best.set(e.op(f"select i1 {better}, {t} {v.v}, {t} {old}"))
            i = at.get()
            place.set(e.op(f"select i1 {better}, i64 {i}, i64 {place.get()}"))
            at.set(e.op(f"add i64 {i}, 1"))
        return Scalar(I64, False, place.get())

    run.dtype = lambda dtype: I64
    return run


def _truth(every: bool):
    def run(e, x, sizes, element) -> Scalar:
        acc = _Accumulator(e, BOOL, "true" if every else "false")
        for indices in e.loop(sizes):
            acc.set(e.op(f"{'and' if every else 'or'} i1 {acc.get()}, {arithmetic.to_bool(e, element(indices))}"))
        return Scalar(BOOL, False, acc.get())

    run.dtype = lambda dtype: BOOL
    return run


REDUCTIONS = {
    "sum": _total("+"), "prod": _total("*"), "mean": _mean, "max": _extreme(True), "min": _extreme(False),
    "argmax": _place(True), "argmin": _place(False), "any": _truth(False), "all": _truth(True),
}  # fmt: skip


def reduce(e: Emitter, name: str, x, axis: int | None = None, keepdims: bool = False):
    """A reduction over all elements (a Scalar), or over one dimension (an Expression)."""
    x = as_expression(e, x)
    rule = REDUCTIONS[name]
    if isinstance(x, Scalar):
        if axis is not None or name not in ("sum", "max", "min", "prod", "mean"):
            raise Declined(f"{name} of a number")
        x = Expression(x.dtype, ("1",), lambda indices, x=x: x)
    if axis is None:
        if keepdims:
            raise Declined("keepdims without axis")
        return rule(e, x, x.sizes, x.element)
    if not -x.ndim <= axis < x.ndim:
        raise Declined(f"axis {axis} is out of bounds")
    axis %= x.ndim
    sizes = (*x.sizes[:axis], *(("1",) if keepdims else ()), *x.sizes[axis + 1 :])

    def element(indices):
        before, after = indices[:axis], indices[axis + keepdims :]
        return rule(e, x, (x.sizes[axis],), lambda inner: x.element((*before, *inner, *after)))

    if not sizes:
        return element(())
    return Expression(rule.dtype(x.dtype), sizes, element, x.reads)


def dot(e: Emitter, a, b):
    """``a @ b`` of vectors, and of a matrix and a vector, of numbers of one dtype. Sums of floats may be taken in any order, as BLAS does."""
    a, b = as_expression(e, a), as_expression(e, b)
    if not (isinstance(a, Expression) and isinstance(b, Expression)) or a.ndim + b.ndim > 3 or 0 in (a.ndim, b.ndim):
        raise Declined("a product of two matrices")
    n, m = a.sizes[-1], b.sizes[0]
    if n != m:
        e.check(e.op(f"icmp eq i64 {n}, {m}"), "ValueError", "matmul: mismatch in core dimensions, {0} and {1}", n, m)
    dtype, _ = loop_dtypes(np.multiply, Scalar(a.dtype, False, ""), Scalar(b.dtype, False, ""))
    if dtype.kind == "b":
        raise Declined("a matrix product of bools")

    def element(indices) -> Scalar:
        rows, columns = (indices, ()) if a.ndim == 2 else ((), indices)
        acc = _Accumulator(e, dtype, constant(dtype.type(0)).v)
        for inner in e.loop((n,)):
            x, y = cast(e, a.element((*rows, *inner)), dtype).v, cast(e, b.element((*inner, *columns)), dtype).v
            if dtype.kind == "f":
                product = e.op(f"fmul reassoc contract {acc.llvm} {x}, {y}")
                acc.set(e.op(f"fadd reassoc contract {acc.llvm} {acc.get()}, {product}"))
            else:
                product = arithmetic.numpy_operation(e, "*", dtype, x, y)
                acc.set(arithmetic.numpy_operation(e, "+", dtype, acc.get(), product))
        return Scalar(dtype, False, acc.get())

    sizes = (*a.sizes[:-1], *b.sizes[1:])
    return Expression(dtype, sizes, element, (*a.reads, *b.reads)) if sizes else element(())
