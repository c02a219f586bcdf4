"""Matrix products and what is made of them."""

from __future__ import annotations

import math

from ...base import blas
from ...base.dtypes import bool_
from ...base.memory_format import contiguous_format
from ...base.shapes import broadcast_shapes, check_expands
from ...core.declare import composite, contraction, explicit
from ...core.operator import namespace
from ..pointwise.arithmetic import check_factor, scaled
from ..reductions.basic import as_dtype, widened

aten = namespace("aten")

mm = contraction(
    "mm(Tensor self, Tensor mat2) -> Tensor",
    "mk,kn->mn",
    mismatch="mat1 and mat2 shapes cannot be multiplied ({})",
    refuse=("bool",),
)
bmm = contraction("bmm(Tensor self, Tensor mat2) -> Tensor", "bmk,bkn->bmn", refuse=("bool",))
mv = contraction("mv(Tensor self, Tensor vec) -> Tensor", "mk,k->m", refuse=("bool",))
dot = contraction(
    "dot(Tensor self, Tensor tensor) -> Tensor",
    "k,k->",
    ranks="1D tensors expected, but got {} and {} tensors",
    mismatch="inconsistent tensor size, expected tensor [{1}] and src [{2}] to have the same number of elements, but got {1} and {2} elements "
    "respectively",
    refuse=("bool",),
)


@composite("vdot(Tensor self, Tensor other) -> Tensor", out_rules="exact")
def vdot(self, other):
    return aten.dot.default(aten.conj_physical.default(self) if self.dtype.is_complex else self, other)


def _left_gradient(ct, mat2, by_columns):
    """Of the left operand of a product, in its order in memory."""
    if by_columns:
        return aten.t.default(aten.mm.default(mat2, aten.t.default(ct)))
    return aten.mm.default(ct, aten.t.default(mat2))


def _right_gradient(ct, mat1, by_columns):
    if by_columns:
        return aten.t.default(aten.mm.default(aten.t.default(ct), mat1))
    return aten.mm.default(aten.t.default(mat1), ct)


def _transposed(t):
    return aten.transpose.int(t, 1, 2)


def _left_gradients(ct, mat2, by_columns):
    """Of a batch. Where one matrix stands for each of them (a weight under vmap), in its order in memory, as the gradient of a single product is."""
    if by_columns:
        return _transposed(aten.bmm.default(mat2, _transposed(ct)))
    return aten.bmm.default(ct, _transposed(mat2))


def _right_gradients(ct, mat1, by_columns):
    if by_columns:
        return _transposed(aten.bmm.default(_transposed(ct), mat1))
    return aten.bmm.default(_transposed(mat1), ct)


mm.derivative(
    self=lambda ct, mat2, self_by_columns: _left_gradient(ct, mat2, self_by_columns),
    mat2=lambda ct, self, mat2_by_columns: _right_gradient(ct, self, mat2_by_columns),
)
bmm.derivative(
    self=lambda ct, mat2, self_by_columns: _left_gradients(ct, mat2, self_by_columns),
    mat2=lambda ct, self, mat2_by_columns: _right_gradients(ct, self, mat2_by_columns),
)
mv.derivative(
    self=lambda ct, vec: aten.mul.Tensor(aten.unsqueeze.default(ct, 1), aten.unsqueeze.default(vec, 0)),
    vec=lambda ct, self: aten.mv.default(aten.t.default(self), ct),
)
dot.derivative(self=lambda ct, tensor: aten.mul.Tensor(tensor, ct), tensor=lambda ct, self: aten.mul.Tensor(self, ct))


def _added(self, product, a, b, beta, alpha):
    """``beta * self + alpha * product(a, b)``; of 16-bit numbers in float32, rounded once."""
    kind = a.dtype
    if self.dtype is not kind:
        raise RuntimeError(
            f"self and mat2 must have the same dtype, but got {self.dtype.scalar_type} and {kind.scalar_type}"
        )
    if kind is b.dtype:
        self, a, b = widened(self), widened(a), widened(b)
    # An empty sum is zero whatever it is multiplied by: nan too.
    out = scaled(product(a, b), alpha if a.shape[-1] != 0 else 1)
    if a.dtype is not kind and a.shape[-1] == 1:
        out = aten.add.Tensor(out, 0.0)  # in 16 bits a sum begins with 0, whatever matrices of float32 do
    check_expands(self.shape, out.shape)
    if beta != 0:
        out = aten.add.Tensor(out, scaled(self, beta))  # in the product's order in memory
    return as_dtype(kind, out)


def _in_one_launch(op):
    """Products of bfloat16 take the addend with them, where the CPU makes such."""

    @op.override("keep_fused")
    def _(self, a, b, beta, alpha):
        return beta != 0 and blas.takes_bf16(a, b, self)

    @op.override("lower")
    def _(lowering, val, self, a, b, beta, alpha):
        return lowering.product_bf16(val, a, b, self, beta, alpha)

    op.override("arrays")(blas.added_bf16)


@explicit(
    "addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    variants="function method",
    inplace=True,
)
def addmm(self, mat1, mat2, beta, alpha):
    return _added(self, aten.mm.default, mat1, mat2, beta, alpha)


addmm.derivative(
    self=lambda ct, beta: scaled(ct, beta),
    mat1=lambda ct, mat2, mat1_by_columns, alpha: scaled(_left_gradient(ct, mat2, mat1_by_columns), alpha),
    mat2=lambda ct, mat1, mat2_by_columns, alpha: scaled(_right_gradient(ct, mat1, mat2_by_columns), alpha),
)


@explicit(
    "addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    variants="function method",
    inplace=True,
)
def addmv(self, mat, vec, beta, alpha):
    return _added(self, aten.mv.default, mat, vec, beta, alpha)


addmv.derivative(
    self=lambda ct, beta: scaled(ct, beta),
    mat=lambda ct, vec, alpha: scaled(
        aten.mul.Tensor(aten.unsqueeze.default(ct, 1), aten.unsqueeze.default(vec, 0)), alpha
    ),
    vec=lambda ct, mat, alpha: scaled(aten.mv.default(aten.t.default(mat), ct), alpha),
)


@explicit(
    "baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    variants="function method",
    inplace=True,
)
def baddbmm(self, batch1, batch2, beta, alpha):
    return _added(self, aten.bmm.default, batch1, batch2, beta, alpha)


baddbmm.derivative(
    self=lambda ct, beta: scaled(ct, beta),
    batch1=lambda ct, batch2, alpha: scaled(aten.bmm.default(ct, aten.transpose.int(batch2, 1, 2)), alpha),
    batch2=lambda ct, batch1, alpha: scaled(aten.bmm.default(aten.transpose.int(batch1, 1, 2), ct), alpha),
)


_in_one_launch(addmm)
_in_one_launch(baddbmm)


@composite("matmul(Tensor self, Tensor other) -> Tensor", out_rules="exact")
def matmul(self, other):
    """Vectors, matrices and batches by the rules of the @ operator; batches are broadcast and multiplied by one bmm."""
    a, b = self.ndim, other.ndim
    if a == 0 or b == 0:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {a}D and {b}D")
    if a == 1 and b == 1:
        return aten.dot.default(self, other)
    if a == 2 and b == 1:
        return aten.mv.default(self, other)
    if a == 1 and b == 2:
        return aten.squeeze.dim(aten.mm.default(aten.unsqueeze.default(self, 0), other), 0)
    if a == 2 and b == 2:
        return aten.mm.default(self, other)
    if a >= 3 and b <= 2:
        # The batch folds into the rows: one matrix product.
        rows = aten.reshape.default(self, [math.prod(self.shape[:-1]), self.shape[-1]])
        if b == 1:
            return aten._unsafe_view.default(aten.mv.default(rows, other), list(self.shape[:-1]))
        return aten._unsafe_view.default(aten.mm.default(rows, other), [*self.shape[:-1], other.shape[-1]])
    left = aten.unsqueeze.default(self, 0) if a == 1 else self
    right = aten.unsqueeze.default(other, -1) if b == 1 else other
    batch = broadcast_shapes(left.shape[:-2], right.shape[:-2])
    n = math.prod(batch)
    (m, k), (k2, p) = left.shape[-2:], right.shape[-2:]
    if k != k2:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{n}, {k}] but got: [{n}, {k2}]."
        )
    left = aten.reshape.default(aten.expand.default(left, [*batch, m, k]), [n, m, k])
    right = aten.reshape.default(aten.expand.default(right, [*batch, k, p]), [n, k, p])
    sizes = [*batch, *([] if a == 1 else [m]), *([] if b == 1 else [p])]
    return aten._unsafe_view.default(aten.bmm.default(left, right), sizes)


@composite("linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor", variants="nn", out_rules="exact")
def linear(input, weight, bias):
    if input.shape[-1:] != weight.shape[-1:] and input.ndim:
        rows = math.prod(input.shape[:-1])
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({rows}x{input.shape[-1]} and {'x'.join(map(str, reversed(weight.shape)))})"
        )
    if weight.ndim == 1 and bias is not None and input.ndim:
        raise RuntimeError("mat2 must be a matrix, got 1-D tensor")
    if bias is not None and input.ndim > 1 and input.dtype is not weight.dtype:
        raise RuntimeError(
            f"mat1 and mat2 must have the same dtype, but got {input.dtype.scalar_type} and {weight.dtype.scalar_type}"
        )
    if bias is None or weight.ndim == 1:
        out = aten.matmul.default(input, aten.t.default(weight))
        return out if bias is None else aten.add.Tensor(out, bias)
    if input.ndim == 2:
        return aten.addmm.default(bias, input, aten.t.default(weight))
    if input.ndim == 1:
        return aten.addmv.default(bias, weight, input)
    rows = aten.reshape.default(input, [math.prod(input.shape[:-1]), input.shape[-1]])
    return aten._unsafe_view.default(
        aten.addmm.default(bias, rows, aten.t.default(weight)), [*input.shape[:-1], weight.shape[0]]
    )


@linear.override("watched")
def _linear(input, weight, bias):
    if bias is None or input.ndim < 3 or weight.ndim != 2:
        return linear.definition.fn(input, weight, bias)
    if input.ndim > 3 or not input.is_contiguous() or not bias.is_contiguous():
        return aten.add.Tensor(aten.matmul.default(input, aten.t.default(weight)), bias)
    rows = aten.view.default(input, [-1, input.shape[-1]])
    return aten.view.default(
        aten.addmm.default(bias, rows, aten.t.default(weight)), [*input.shape[:-1], weight.shape[0]]
    )


@composite("outer(Tensor self, Tensor vec2) -> Tensor")
def outer(self, vec2):
    for name, v in (("self", self), ("vec2", vec2)):
        if v.ndim != 1:
            raise RuntimeError(f"outer: Expected 1-D argument {name}, but got {v.ndim}-D")
    return aten.mul.Tensor(aten.reshape.default(self, [self.shape[0], 1]), vec2)


@composite("ger(Tensor self, Tensor vec2) -> Tensor")
def ger(self, vec2):
    return aten.outer.default(self, vec2)


@composite("inner(Tensor self, Tensor other) -> Tensor", out_rules="exact")
def inner(self, other):
    """Sum of products over the last dimension of both."""
    if self.ndim == 0 or other.ndim == 0:
        return aten.mul.Tensor(self, other)
    if self.shape[-1] != other.shape[-1]:
        raise RuntimeError(
            f"inner() the last dimension must match on both input tensors but got shapes {list(self.shape)} and {list(other.shape)}"
        )
    rows = aten.reshape.default(self, [math.prod(self.shape[:-1]), self.shape[-1]])
    columns = aten.reshape.default(other, [math.prod(other.shape[:-1]), other.shape[-1]])
    return aten._unsafe_view.default(
        aten.mm.default(rows, aten.t.default(columns)), [*self.shape[:-1], *other.shape[:-1]]
    )


@explicit(
    "addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    variants="function method",
    inplace=True,
    out_rules="casts",
)
def addr(self, vec1, vec2, beta, alpha):
    for k, v in enumerate((vec1, vec2), 1):
        if v.ndim != 1:
            raise RuntimeError(f"addr: Expected 1-D argument vec{k}, but got {v.ndim}-D")
    for name, by in (("beta", beta), ("alpha", alpha)):
        check_factor(name, by, (self, vec1, vec2))
    if self.dtype is vec1.dtype is vec2.dtype is bool_:
        outer = aten.logical_and.default(aten.unsqueeze.default(vec1, 1), vec2)
        kept = [t for t, by in ((self, beta), (outer, alpha)) if by]
        if len(kept) == 2:
            return aten.logical_or.default(*kept)
        made = kept[0] if kept else aten.zeros_like.default(outer)
        return aten.clone.default(aten.expand.default(made, list(outer.shape)), memory_format=contiguous_format)
    product = scaled(aten.mul.Tensor(aten.unsqueeze.default(vec1, 1), vec2), alpha)
    check_expands(self.shape, product.shape)
    return product if beta == 0 else aten.add.Tensor(scaled(self, beta), product)


@explicit(
    "addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    variants="function method",
    inplace=True,
)
def addbmm(self, batch1, batch2, beta, alpha):
    def product(a, b):
        made = aten.bmm.default(a, b)
        return aten.sum.dim_IntList(made, [0], dtype=made.dtype)

    return _added(self, product, batch1, batch2, beta, alpha)


@composite("kron(Tensor self, Tensor other) -> Tensor", out_rules="rows")
def kron(self, other):
    n = max(self.ndim, other.ndim)
    a, b = ([1] * (n - t.ndim) + list(t.shape) for t in (self, other))
    left = aten._unsafe_view.default(self, [m for s in a for m in (s, 1)])
    right = aten._unsafe_view.default(other, [m for s in b for m in (1, s)])
    return aten._unsafe_view.default(aten.mul.Tensor(left, right), [p * q for p, q in zip(a, b)])
