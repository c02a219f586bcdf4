"""Similarity and distance of vectors, and the bilinear form."""

from __future__ import annotations

from ...base import dtypes
from ...base.symint import is_symbolic
from ...core.declare import COMPLEX, composite, explicit
from ...core.operator import namespace

aten = namespace("aten")


@composite(
    "cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor", refuse=COMPLEX, variants="function"
)
def cosine_similarity(x1, x2, dim, eps):
    """The lengths are kept above ``eps``; their derivative is not cut there, and 0 at a length of 0."""
    if not eps >= 0:
        raise RuntimeError(f"eps must be non-negative, got: {eps}")
    x1, x2 = aten.broadcast_tensors.default([x1, x2])
    common = dtypes.result_type(x1, x2)
    if not common.is_floating_point:
        raise RuntimeError(f"expected common dtype to be floating point, yet common dtype is {common.scalar_type}")
    x1, x2 = (x if x.dtype is common else aten._to_copy.default(x, dtype=common) for x in (x1, x2))

    def unit(x):
        length = aten.linalg_vector_norm.default(x, 2, [dim], True)
        missing = aten.clamp_min.default(aten.rsub.Scalar(aten.detach.default(length), eps), 0)
        return aten.div.Tensor(x, aten.add.Tensor(length, missing))

    return aten.sum.dim_IntList(aten.mul.Tensor(unit(x1), unit(x2)), [dim])


@composite("bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor", variants="function")
def bilinear(input1, input2, weight, bias):
    """x1^T A x2 for each output: a product of x1 with all the A and sums of what that is times x2; of many outputs one product over the pairs
    of features."""
    if weight.ndim != 3:
        fits = not input1.ndim or weight.ndim < 2 or input1.shape[-1] == weight.shape[1]
        raise (IndexError if fits else RuntimeError)(
            f"bilinear(): expected a weight of 3 dimensions, but got {weight.ndim}"
        )
    if input1.ndim != input2.ndim or not input1.ndim:
        raise RuntimeError(f"bilinear(): input dimensions do not match: got {input1.ndim} and {input2.ndim}")
    if input1.shape[-1] != weight.shape[1] or input2.shape[-1] != weight.shape[2]:
        raise RuntimeError(
            f"bilinear(): input sizes {input1.shape[-1]} and {input2.shape[-1]} do not match weight {list(weight.shape)}"
        )
    given = {"input1": input1, "input2": input2, "weight": weight, "bias": bias}
    kinds = {name: t.dtype for name, t in given.items() if t is not None}
    if len(set(kinds.values())) > 1:
        shown = ", ".join(f"{name}: {kind}" for name, kind in kinds.items())
        raise RuntimeError(f"bilinear(): All tensors must have the same dtype, got {shown}")
    if bias is not None and (bias.ndim != 1 or bias.shape[0] != weight.shape[0]):
        raise RuntimeError(
            f"bilinear(): bias size does not match weight size: got {bias.shape[0] if bias.ndim else 1} but expected {weight.shape[0]}"
        )
    outputs, left, right = weight.shape
    if not any(map(is_symbolic, weight.shape)) and outputs <= left:
        beside = aten.reshape.default(aten.permute.default(weight, [1, 0, 2]), [left, outputs * right])
        products = aten.reshape.default(aten.matmul.default(input1, beside), [*input1.shape[:-1], outputs, right])
        made = aten.sum.dim_IntList(aten.mul.Tensor(products, aten.unsqueeze.default(input2, -2)), [-1])
        return made if bias is None else aten.add.Tensor(made, bias)
    pairs = aten.mul.Tensor(aten.unsqueeze.default(input1, -1), aten.unsqueeze.default(input2, -2))
    features = left * right
    flat = aten.reshape.default(pairs, [*input1.shape[:-1], features])
    return aten.linear.default(flat, aten.reshape.default(weight, [outputs, features]), bias)


@composite(
    "pairwise_distance(Tensor x1, Tensor x2, float p=2, float eps=1e-06, bool keepdim=False) -> Tensor",
    variants="function",
)
def pairwise_distance(x1, x2, p, eps, keepdim):
    return aten.norm.ScalarOpt_dim(aten.add.Scalar(aten.sub.Tensor(x1, x2), eps), p, [-1], keepdim)


@composite("pdist(Tensor self, float p=2) -> Tensor", refuse=COMPLEX, variants="function")
def pdist(self, p):
    """Distances of all pairs of rows, in the order (0, 1), (0, 2), ..., (1, 2), ..."""
    if self.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {self.ndim}D")
    if not self.dtype.is_floating_point:
        raise RuntimeError(f"pdist only supports floating-point dtypes, got {self.dtype}")
    if not p >= 0:
        raise RuntimeError("pdist only supports non-negative p values")
    return _pairs(self, p) if self.requires_grad else aten._pdist_forward.default(self, p)


def _pairs(self, p):
    n = self.shape[0]
    rows, columns = aten.triu_indices.default(n, n, 1, device=self.device).unbind(0)
    apart = aten.reshape.default(aten._cdist_forward.default(self, self, p, None), [-1])
    return aten.index_select.default(apart, 0, aten.add.Tensor(columns, rows, alpha=n))


@explicit("_pdist_forward(Tensor self, float p=2) -> Tensor", refuse=COMPLEX)
def _pdist_forward(self, p):
    """What needs no gradient, as one operator: eager calls have a kernel."""
    return _pairs(self, p)


_pdist_forward.override("rows", lambda h, self, p: h.pair_distances(self, p))
