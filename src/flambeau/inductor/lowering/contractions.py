"""Contractions as matrix products: which letters are rows, columns, summed or batched, and how BLAS reads the operands in place."""

from __future__ import annotations

import math

from ...base import accelerator, blas, dtypes
from ...base.expr import at_least, maximum
from ...base.kernels import Product
from ...base.records import slotted
from ...core.contractions import keeps_zeros
from ...core.definition import TensorMeta
from ..ir.nodes import ExternCall, Region, dense_strides
from ..ir.values import short

__all__ = ["PACKED", "Gemm", "lower_contraction", "packed_product"]


@slotted(frozen=False)
class Gemm:
    """C = A B in C order, for each element of ``batch`` = ((count, A stride, B stride, C stride), ...), strides in elements."""

    t: str
    ta: str
    tb: str
    m: int
    n: int
    k: int
    lda: int
    ldb: int
    ldc: int
    batch: tuple
    choice: int = 0  # a Product, plus 16 or 32 for pieces by rows or columns; from PACKED on

    def flops(self):
        return 2 * self.m * self.n * self.k * math.prod(b[0] for b in self.batch)


def lower_contraction(lowering, op, full, val):
    """A Gemm call; NotImplementedError (then the eager kernel runs) for forms BLAS has no product for."""
    inputs, _, out = op.definition.letters.partition("->")
    left, right = inputs.split(",")
    a, b = full[0], full[1]
    t = short(val.dtype)
    sizes = {**dict(zip(left, a.sizes)), **dict(zip(right, b.sizes))}
    batch = [c for c in out if c in left and c in right]
    rows = [c for c in out if c in left and c not in right]
    columns = [c for c in out if c in right and c not in left]
    summed = [c for c in left if c in right and c not in out]
    if len(rows) > 1 or len(columns) > 1 or len(summed) != 1 or out != "".join([*batch, *rows, *columns]):
        raise NotImplementedError(f"contraction {op.definition.letters} is not a matrix product")
    m, n, k = (math.prod(sizes[c] for c in group) for group in (rows, columns, summed))
    if lowering.on_device is None and k == 1 and t in _SINGLE:
        return _single_products(lowering, left, right, out, sizes, a, b, val)
    if lowering.on_device is None and out in ("mn", "bmn") and blas.takes_bf16(a, b):
        return lowering.product_bf16(val, a, b)
    library = lowering.on_device is not None and accelerator.has_products() and m != 1 and n != 1
    if t in ("f16", "bf16") and not library:  # multiplied in float32 and rounded once, as eager does
        single = replace_dtype(val)
        wide = [
            lowering.lazy(x.sizes, dtypes.float32, lambda c, x=x: lowering.values.cast(x.at(c), "f32"), device=x.device)
            for x in (a, b)
        ]
        product = lower_contraction(lowering, op, wide, single)
        return lowering.lazy(
            product.sizes,
            val.dtype,
            lambda c: lowering.values.cast(product.at(c), t),
            strides=product.strides,
            device=val.device,
        )
    if t not in ("f32", "f64", "f16", "bf16") and lowering.on_device is not None:
        for x in (a, b):
            lowering.realize(x)
        return _matrix_vector(lowering, left, right, out, summed[0], sizes, a, b, t, val)
    if t not in ("f32", "f64") and not library:
        raise NotImplementedError(f"BLAS has no product for {val.dtype}")
    shape = tuple(sizes[c] for c in out)
    if not (m and n and k and math.prod(shape)):
        zero = lowering.values.const(0, t)
        return lowering.lazy(shape, val.dtype, lambda coords: zero, strides=dense_strides(shape), device=val.device)
    if (n == 1 or m == 1) and not _is_large_matrix(lowering, batch, left, right, rows, columns, summed, a, b):
        return _matrix_vector(lowering, left, right, out, summed[0], sizes, a, b, t, val)

    ra, ta, lda, sa = _matrix(lowering, a, left, rows, summed)
    rb, tb, ldb, sb = _matrix(lowering, b, right, summed, columns)
    buffer = lowering.new_buffer(shape, dense_strides(shape), t)
    sc = dict(zip(out, buffer.strides))
    plan = Gemm(t, ta, tb, m, n, k, lda, ldb, maximum(n, 1), tuple((sizes[c], sa[c], sb[c], sc[c]) for c in batch))
    lowering.add(ExternCall("gemm", op._opname, [ra, rb], [buffer.name], plan))
    return lowering.in_memory(Region(buffer.name, shape, buffer.strides), val.dtype, buffer.strides, val.device)


_SINGLE = ("f32", "f64", "f16", "bf16", "i8", "i16", "i32", "i64", "u8")


def _single_products(lowering, left, right, out, sizes, a, b, val):
    """A product whose sums have one term each, as loops that fuse with their neighbours. As in PyTorch and eager code, only products of float32 or
    float64 matrices of several rows and columns have a negative zero (``keeps_zeros``)."""
    t, shape = short(val.dtype), tuple(sizes[c] for c in out)
    wide = "f32" if t in ("f16", "bf16") else t
    keeps = t[0] in "iu" or keeps_zeros(val.dtype.np, shape)
    values = lowering.values

    def element(coords):
        at = dict(zip(out, coords))
        x, y = (values.cast(o.at(tuple(at.get(c, 0) for c in letters)), wide) for o, letters in ((a, left), (b, right)))
        made = values.make("mul", (x, y), wide)
        return values.cast(made if keeps else values.make("add", (made, values.const(0.0, wide)), wide), t)

    return lowering.lazy(shape, val.dtype, element, strides=dense_strides(shape), device=val.device)


def _matrix(lowering, x, letters, row, column):
    """(region, transposed?, leading dimension, batch strides): a matrix of ``row`` by ``column`` with one of them contiguous."""
    for region in (lowering.realize(x), None):
        region = region if region is not None else lowering.contiguous(_detached(lowering, x))
        stride = dict(zip(letters, region.strides))
        r = stride[row[0]] if row else 0
        c = stride[column[0]] if column else 0
        own = dict(
            zip(letters, region.shape)
        )  # a guard may say that a size equals the other operand's, in other symbols
        nr, nc = (own[g[0]] if g else 1 for g in (row, column))
        if (c == 1 or nc == 1) and (at_least(r - nc, 0) or nr == 1):
            return region, "N", maximum(r if nr != 1 else nc, nc, 1), stride
        if (r == 1 or nr == 1) and (at_least(c - nr, 0) or nc == 1):
            return region, "T", maximum(c if nc != 1 else nr, nr, 1), stride
    raise AssertionError("a contiguous operand has a leading dimension")


PACKED = Product.PANELS  # from this way on the right operand is packed


def packed_product(lowering, val, x, packed, addend, transposed, way):
    """``x`` (m, k) times what was packed before (csrc/kernels/prepack.c), plus ``addend`` in bfloat16.
    ``transposed``: from (n, k); ``way``: a member of Product."""
    if val.dtype is dtypes.bfloat16:
        return lowering.packed_product_bf16(val, x, packed, addend)
    (m, n), k, t = val.shape, x.sizes[1], short(val.dtype)
    rx, tx, ld, _ = _matrix(lowering, x, "mk", "m", "k")
    buffer = lowering.new_buffer((m, n), (n, 1), t)
    plan = Gemm(t, tx, "T" if transposed else "N", m, n, k, ld, n, n, (), way)
    lowering.add(ExternCall("gemm", "_mm_prepacked", [rx, lowering.contiguous(packed)], [buffer.name], plan))
    return lowering.in_memory(Region(buffer.name, (m, n), buffer.strides), val.dtype, buffer.strides, val.device)


def replace_dtype(val) -> TensorMeta:
    """The shape rule's result in float32."""
    return TensorMeta(val.shape, val.stride(), dtypes.float32, val.device)


def _detached(lowering, x):
    return lowering.lazy(x.sizes, x.dtype, x.at)


GEMV_WORTH = 8192  # elements of a matrix from which BLAS's matrix-vector product beats a reduction that fuses with its neighbours


def _is_large_matrix(lowering, batch, left, right, rows, columns, summed, a, b) -> bool:
    """Whether one operand is a large matrix that lies in memory as BLAS reads it, and the other a vector."""
    matrix, letters = (a, left) if lowering.elements(a) >= lowering.elements(b) else (b, right)
    if batch or matrix.region is None or lowering.elements(matrix) < GEMV_WORTH:
        return False
    strides = dict(zip(letters, matrix.region.strides))
    kept = [c for c in (*rows, *columns) if c in strides]
    return len(kept) == 1 and 1 in (strides[kept[0]], strides[summed[0]])


def _matrix_vector(lowering, left, right, out, k, sizes, a, b, t, val):
    """One row or one column: a reduction, which fuses with its neighbours."""
    shape = tuple(sizes[c] for c in out)
    matrix, letters = (a, left) if lowering.elements(a) >= lowering.elements(b) else (b, right)
    strides = dict(zip(letters, matrix.strides or dense_strides(matrix.sizes)))
    wide = next((c for c in reversed(out) if sizes[c] != 1), None)
    # Read along the memory: where the matrix lies by its kept letter, sums run down columns.
    down = wide is not None and strides.get(wide) == 1 and strides.get(k) != 1
    order = k + out if down else out + k

    def element(coords):
        at = dict(zip(order, coords))
        x = lowering.values.cast(a.at(tuple(at[c] for c in left)), t)
        y = lowering.values.cast(b.at(tuple(at[c] for c in right)), t)
        return lowering.values.make("mul", (x, y), t)

    kept = [order.index(c) for c in out]
    result = lowering.reduce("add", 0, [sizes[c] for c in order], kept, [order.index(k)], element)
    return lowering.lazy(shape, val.dtype, result, strides=dense_strides(shape), device=val.device)
