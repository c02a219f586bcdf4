"""Array views, element-wise expressions, and what stores and reduces them: small loops inside the loop.

Indices are checked as NumPy checks them. An expression is evaluated where it is used up, element by element in row-major order; when it
reads memory that it is being stored to under another view, it goes through a temporary copy.
"""

from __future__ import annotations

import numpy as np

from . import arithmetic
from .arithmetic import cast, loop_dtypes
from .emitter import F64, I64, Emitter, constant
from .values import Array, Declined, Expression, Known, Scalar, Slice, Tuple, View, memory_type

__all__ = ["as_expression", "assign", "dot", "elementwise", "load", "operand", "reduce", "subscript"]


def operand(array: Array) -> View:
    """The whole of an operand."""
    n = array.n
    return View(
        array, "0", tuple(f"%a{n}.n{d}" for d in range(array.ndim)), tuple(f"%a{n}.s{d}" for d in range(array.ndim))
    )


# ---- subscripts ----------------------------------------------------------------------------------------------------------


def _index(e: Emitter, i: Scalar, n: str, axis: int) -> str:
    """A checked, non-negative index."""
    if i.kind not in "iu" or i.dtype == np.uint64:
        raise Declined(f"an index of {i.dtype}")
    v = cast(e, i, I64).v
    if not (i.bounds and i.bounds[0] >= 0):
        negative = e.op(f"icmp slt i64 {v}, 0")
        place = e.op(f"select i1 {negative}, i64 {e.op(f'add i64 {v}, {n}')}, i64 {v}")
    else:
        place = v
    ok = e.op(f"icmp ult i64 {place}, {n}")
    e.check(ok, "IndexError", f"index {{0}} is out of bounds for axis {axis} with size {{1}}", v, n)
    return place


def _bound(e: Emitter, s, n: str, default: str) -> str:
    """One end of a slice, clamped into 0..n."""
    if isinstance(s, Known) and s.value is None:
        return default
    if not isinstance(s, Scalar) or s.kind not in "iu":
        raise Declined("a slice whose ends aren't integers")
    v = cast(e, s, I64).v
    if not (s.bounds and s.bounds[0] >= 0):
        if s.bounds and s.bounds[1] < 0:
            v = e.op(f"add i64 {v}, {n}")
        else:
            v = e.op(f"select i1 {e.op(f'icmp slt i64 {v}, 0')}, i64 {e.op(f'add i64 {v}, {n}')}, i64 {v}")
        v = e.larger(v, "0")
    return e.smaller(v, n)


def subscript(e: Emitter, view: View, key) -> View | Scalar:
    """``view[key]`` for integers, slices, ``...`` and None; a Scalar when no dimension is left."""
    keys = list(key.items) if isinstance(key, Tuple) else [key]
    if any(isinstance(k, Known) and k.value is Ellipsis for k in keys):
        at = next(i for i, k in enumerate(keys) if isinstance(k, Known) and k.value is Ellipsis)
        used = sum(not (isinstance(k, Known) and k.value is None) for k in keys) - 1
        full = Slice(Known(None), Known(None), Known(None))
        keys[at : at + 1] = [full] * (view.ndim - used)
    offset, sizes, strides, d = view.offset, [], [], 0
    for k in keys:
        if isinstance(k, Known) and k.value is None:
            sizes.append("1")
            strides.append("0")
            continue
        if d >= view.ndim:
            raise Declined("too many indices")
        n, s = view.sizes[d], view.strides[d]
        if isinstance(k, Scalar):
            offset = e.add(offset, e.mul(_index(e, k, n, d), s))
        elif isinstance(k, Slice):
            step = 1 if isinstance(k.step, Known) else getattr(k.step, "const", None)
            if not isinstance(step, int) or step < 1:
                raise Declined("a slice with this step")
            start, stop = _bound(e, k.start, n, "0"), _bound(e, k.stop, n, n)
            length = e.larger(e.sub(stop, start), "0") if not (start == "0" and stop == n) else n
            if step != 1:
                length = e.op(f"sdiv i64 {e.add(length, str(step - 1))}, {step}")
            offset = e.add(offset, e.mul(start, s))
            sizes.append(length)
            strides.append(e.mul(s, str(step)))
        else:
            raise Declined(f"an index that is a {type(k).__name__.lower()}")
        d += 1
    sizes += view.sizes[d:]
    strides += view.strides[d:]
    out = View(view.array, offset, tuple(sizes), tuple(strides))
    return out if sizes else load(e, out, ())


def address(e: Emitter, view: View, indices) -> str:
    offset = view.offset
    for i, s in zip(indices, view.strides):
        offset = e.add(offset, e.mul(i, s))
    return offset


def load(e: Emitter, view: View, indices) -> Scalar:
    return Scalar(view.dtype, False, e.load(view.array.n, address(e, view, indices), view.dtype))


# ---- element-wise expressions -------------------------------------------------------------------------------------------


def as_expression(e: Emitter, x) -> Expression | Scalar:
    if isinstance(x, View):
        return Expression(x.dtype, x.sizes, lambda indices: load(e, x, indices), (x,))
    if isinstance(x, (Expression, Scalar)):
        return x
    raise Declined(f"a {type(x).__name__.lower()} in an array expression")


def _broadcast(e: Emitter, operands) -> tuple[str, ...]:
    """Common sizes; what doesn't fit ends the loop with NumPy's error."""
    ndim = max(x.ndim for x in operands)
    sizes: list[str] = []
    for d in range(ndim):
        size = "1"
        for x in operands:
            k = d - (ndim - x.ndim)
            if k < 0 or x.sizes[k] == size or x.sizes[k] == "1":
                continue
            n = x.sizes[k]
            if size == "1":
                size = n
                continue
            one = e.op(f"icmp eq i64 {size}, 1")
            fits = e.op(f"or i1 {e.op(f'icmp eq i64 {size}, {n}')}, {one}")
            fits = e.op(f"or i1 {fits}, {e.op(f'icmp eq i64 {n}, 1')}")
            e.check(fits, "ValueError", "operands could not be broadcast together: sizes {0} and {1}", size, n)
            size = e.op(f"select i1 {one}, i64 {n}, i64 {size}")
        sizes.append(size)
    return tuple(sizes)


def _indices_of(e: Emitter, x: Expression, indices, sizes) -> tuple[str, ...]:
    """The element of ``x`` that belongs to an element of the broadcast result."""
    out = []
    for k, i in enumerate(indices[len(indices) - x.ndim :]):
        n, size = x.sizes[k], sizes[len(indices) - x.ndim + k]
        if n == size:
            out.append(i)
        elif n == "1":
            out.append("0")
        else:
            out.append(e.op(f"select i1 {e.op(f'icmp eq i64 {n}, 1')}, i64 0, i64 {i}"))
    return tuple(out)


def elementwise(e: Emitter, fn, *operands) -> Expression | Scalar:
    """``fn(*numbers)`` of each element of the broadcast operands."""
    xs = [as_expression(e, x) for x in operands]
    arrays = [x for x in xs if isinstance(x, Expression)]
    if not arrays:
        return fn(*xs)
    sizes = _broadcast(e, arrays)

    def element(indices):
        return fn(*(x.element(_indices_of(e, x, indices, sizes)) if isinstance(x, Expression) else x for x in xs))

    reads = tuple(view for x in arrays for view in x.reads)
    return Expression(_dtype(fn, xs), sizes, element, reads)


def _dtype(fn, xs) -> np.dtype:
    """The dtype of an element, from a trial whose code is thrown away."""
    trial = Emitter(0)
    numbers = []
    for x in xs:
        s = x if isinstance(x, Scalar) else Scalar(x.dtype, False, "%x")
        numbers.append(s)
    return fn.trial(trial, *numbers).dtype


class OnElements:
    """A function of numbers that emits with the given emitter; ``trial`` runs it with another one."""

    def __init__(self, e: Emitter, fn):
        self.e, self.fn = e, fn

    def __call__(self, *numbers):
        return self.fn(self.e, *numbers)

    def trial(self, emitter, *numbers):
        return self.fn(emitter, *numbers)


# ---- stores and reductions ------------------------------------------------------------------------------------------------


def assign(e: Emitter, target: View, value) -> None:
    """``target[...] = value``"""
    x = as_expression(e, value)
    if isinstance(x, Scalar):
        v = _converted(e, x, target.dtype)
        for indices in e.loop(target.sizes):
            e.store(target.array.n, address(e, target, indices), target.dtype, v)
        return
    if x.ndim > target.ndim:
        raise Declined("an array with more dimensions than its place")
    sizes = target.sizes
    for k, n in enumerate(x.sizes):
        m = sizes[target.ndim - x.ndim + k]
        if n not in (m, "1"):
            fits = e.op(f"or i1 {e.op(f'icmp eq i64 {n}, {m}')}, {e.op(f'icmp eq i64 {n}, 1')}")
            e.check(fits, "ValueError", "could not broadcast input array from size {0} into size {1}", n, m)
    if all(view == target or view.array != target.array for view in x.reads):
        for indices in e.loop(sizes):
            v = _converted(e, x.element(_indices_of(e, x, indices, sizes)), target.dtype)
            e.store(target.array.n, address(e, target, indices), target.dtype, v)
        return
    count = "1"
    for n in sizes:
        count = e.mul(count, n)
    width = str(target.dtype.itemsize)
    memory = e.call("malloc", "ptr", ("i64", e.add(e.mul(count, width), "1")))
    e.check(e.op(f"icmp ne ptr {memory}, null"), "MemoryError", "")
    steps, step = [], width
    for n in reversed(sizes):
        steps.append(step)
        step = e.mul(step, n)
    steps.reverse()

    def place(indices):
        offset = "0"
        for i, s in zip(indices, steps):
            offset = e.add(offset, e.mul(i, s))
        return e.op(f"getelementptr i8, ptr {memory}, i64 {offset}")

    for indices in e.loop(sizes):
        v = _converted(e, x.element(_indices_of(e, x, indices, sizes)), target.dtype)
        e.store_at(place(indices), target.dtype, v)
    for indices in e.loop(sizes):
        from_memory = place(indices)
        llvm = "i8" if target.dtype.kind == "b" else None
        if llvm:
            e.line(
                f"call void @llvm.memcpy.p0.p0.i64(ptr {_at(e, target, indices)}, ptr {from_memory}, i64 1, i1 false)"
            )
            e.declared.add("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
        else:
            e.store(
                target.array.n,
                address(e, target, indices),
                target.dtype,
                e.op(f"load {memory_type(target.dtype)}, ptr {from_memory}, align 1"),
            )
    e.call("free", "void", ("ptr", memory))


def _at(e, view, indices):
    return e.op(f"getelementptr i8, ptr %a{view.array.n}, i64 {address(e, view, indices)}")


def _converted(e: Emitter, s: Scalar, dtype: np.dtype) -> str:
    """A number as an element of an array of ``dtype``: any Python or NumPy number may be stored, Python integers must fit."""
    if s.weak is not False and s.kind == "i" and dtype.kind in "iu":
        return arithmetic._operand(e, s if s.weak else Scalar(s.dtype, True, s.v, s.bounds, s.const), dtype)
    return cast(e, s, dtype).v


def store_element(e: Emitter, view: View, key, value: Scalar) -> None:
    """``view[key] = number`` where the key gives one element."""
    keys = key.items if isinstance(key, Tuple) else (key,)
    if len(keys) != view.ndim or not all(isinstance(k, Scalar) for k in keys):
        assign(e, subscript(e, view, key), value)
        return
    offset = view.offset
    for d, (k, n, s) in enumerate(zip(keys, view.sizes, view.strides)):
        offset = e.add(offset, e.mul(_index(e, k, n, d), s))
    e.store(view.array.n, offset, view.dtype, _converted(e, value, view.dtype))


def reduce(e: Emitter, uf: str, x, where: str = "sum") -> Scalar:
    """The sum, product, least or greatest of all elements, in the dtype that NumPy gives it."""
    x = as_expression(e, x)
    if isinstance(x, Scalar):
        return Scalar(x.dtype, False, x.v)
    dtype = x.dtype
    if uf in ("+", "*"):
        if dtype.kind == "b" or (dtype.kind in "iu" and dtype.itemsize < 8):
            dtype = np.dtype(np.uint64 if dtype.kind == "u" else np.int64)
        start = constant(dtype.type(0 if uf == "+" else 1)).v
        fn = lambda a, b: arithmetic.numpy_operation(e, uf, dtype, a, b)  # noqa: E731
        first = None
    else:
        if dtype.kind == "b":
            raise Declined("the extreme of bools")
        count = "1"
        for n in x.sizes:
            count = e.mul(count, n)
        e.check(
            e.op(f"icmp ne i64 {count}, 0"),
            "ValueError",
            "zero-size array to reduction operation which has no identity",
        )
        first = cast(e, x.element(tuple("0" for _ in x.sizes)), dtype)
        start = first.v
        fn = lambda a, b: arithmetic.extreme(e, uf == "max", Scalar(dtype, False, a), Scalar(dtype, False, b)).v  # noqa: E731
    e.count += 1
    slot, llvm = f"sum{e.count}", arithmetic.register_type(dtype)
    e.set(slot, llvm, start)
    for indices in e.loop(x.sizes):
        e.set(slot, llvm, fn(e.get(slot, llvm), cast(e, x.element(indices), dtype).v))
    return Scalar(dtype, False, e.get(slot, llvm))


def mean(e: Emitter, x) -> Scalar:
    x = as_expression(e, x)
    if isinstance(x, Scalar):
        return Scalar(x.dtype, False, x.v)
    total = reduce(e, "+", x)
    dtype = total.dtype if total.kind == "f" else F64
    count = "1"
    for n in x.sizes:
        count = e.mul(count, n)
    return Scalar(
        dtype,
        False,
        e.op(
            f"fdiv {arithmetic.register_type(dtype)} {cast(e, total, dtype).v}, {cast(e, Scalar(I64, False, count), dtype).v}"
        ),
    )


def dot(e: Emitter, a, b) -> Scalar:
    """``a @ b`` of two vectors of one dtype."""
    a, b = as_expression(e, a), as_expression(e, b)
    if not (isinstance(a, Expression) and isinstance(b, Expression) and a.ndim == b.ndim == 1):
        raise Declined("a matrix product of more than two vectors")
    n, m = a.sizes[0], b.sizes[0]
    if n != m:
        e.check(e.op(f"icmp eq i64 {n}, {m}"), "ValueError", "matmul: the vectors have {0} and {1} elements", n, m)
    dtype, _ = loop_dtypes(np.multiply, Scalar(a.dtype, False, ""), Scalar(b.dtype, False, ""))
    if dtype.kind == "b":
        raise Declined("a matrix product of bools")
    e.count += 1
    slot, llvm = f"dot{e.count}", arithmetic.register_type(dtype)
    e.set(slot, llvm, constant(dtype.type(0)).v)
    for (i,) in e.loop((n,)):
        x, y = cast(e, a.element((i,)), dtype).v, cast(e, b.element((i,)), dtype).v
        # Sums of floats may be taken in any order here, as BLAS does.
        if dtype.kind == "f":
            product = e.op(f"fmul reassoc contract {llvm} {x}, {y}")
            e.set(slot, llvm, e.op(f"fadd reassoc contract {llvm} {e.get(slot, llvm)}, {product}"))
        else:
            product = arithmetic.numpy_operation(e, "*", dtype, x, y)
            e.set(slot, llvm, arithmetic.numpy_operation(e, "+", dtype, e.get(slot, llvm), product))
    return Scalar(dtype, False, e.get(slot, llvm))
