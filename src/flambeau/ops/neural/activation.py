"""Activations, softmax and normalisation."""

from __future__ import annotations

import math

from ...base import dtypes
from ...base.memory_format import contiguous_format
from ...base.shapes import same_shape
from ...base.symint import sym_sqrt
from ...core.declare import COMPLEX, INTEGERS, composite, explicit, pointwise
from ...core.operator import namespace
from ...core.promotion import check_parameters
from ..reductions.basic import as_dtype, widened
from .attention import streamed, streamed_whole, streams

aten = namespace("aten")


@pointwise("relu(Tensor self) -> Tensor", variants="function method nn", refuse=("bool",))
def relu(s, self):
    return s.maximum(self, 0)


@pointwise(
    "threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor",
    operands=("grad_output", "self"),
    layout=("self", "grad_output"),
    variants="",
    inplace=False,
)
def threshold_backward(s, grad_output, self, threshold):
    return s.where(s.le(self, threshold), 0, grad_output)


relu.derivative(self=lambda ct, result: threshold_backward(ct, result, 0))


@pointwise(
    "gelu(Tensor self, *, str approximate='none') -> Tensor",
    refuse=COMPLEX + INTEGERS,
    variants="nn",
    promote="float",
    backward="gelu_backward(Tensor grad_output, Tensor self, *, str approximate='none') -> Tensor",
    out_rules="exact",
)
def gelu(s, self, approximate):
    """Hendrycks & Gimpel, arXiv:1606.08415; "tanh" is the approximation of its section 2."""
    if approximate == "tanh":
        inner = s.mul(math.sqrt(2 / math.pi), s.add(self, s.mul(0.044715, s.mul(self, s.mul(self, self)))))
        return s.mul(s.mul(0.5, self), s.add(1.0, s.tanh(inner)))
    if approximate != "none":
        raise RuntimeError(f"approximate argument must be either none or tanh, but got {approximate}")
    return s.mul(s.mul(0.5, self), s.add(1.0, s.erf(s.mul(self, math.sqrt(0.5)))))


@pointwise(
    "silu(Tensor self) -> Tensor",
    variants="nn",
    promote="float",
)
def silu(s, self):
    return s.div(self, s.add(1.0, s.exp(s.neg(self))))


@pointwise("silu_backward(Tensor grad_output, Tensor self) -> Tensor", variants="", promote="float", inplace=False)
def silu_backward(s, grad_output, self):
    sigma = s.sigmoid(self)
    return s.mul(s.mul(grad_output, sigma), s.add(1.0, s.mul(self, s.sub(1.0, sigma))))


silu.derivative(self=lambda ct, self: silu_backward(ct, self))


@pointwise(
    "leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor", variants="nn", operands=("self",), refuse=INTEGERS
)
def leaky_relu(s, self, negative_slope):
    return s.where(s.gt(self, 0), self, s.mul(self, negative_slope))


@pointwise(
    "leaky_relu_backward(Tensor grad_output, Tensor self, Scalar negative_slope, bool self_is_result) -> Tensor",
    variants="",
    operands=("grad_output", "self"),
    layout=("self", "grad_output"),
    inplace=False,
)
def leaky_relu_backward(s, grad_output, self, negative_slope, self_is_result):
    return s.where(s.gt(self, 0), grad_output, s.mul(grad_output, negative_slope))


leaky_relu.derivative(self=lambda ct, self, negative_slope: leaky_relu_backward(ct, self, negative_slope, False))


@pointwise(
    "softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor",
    refuse=INTEGERS,
    variants="nn",
    promote="float",
    operands=("self",),
    out_rules="exact",
)
def softplus(s, self, beta, threshold):
    scaled = s.mul(self, float(beta))
    return s.where(s.gt(scaled, threshold), self, s.div(s.log1p(s.exp(scaled)), float(beta)))


@pointwise(
    "softplus_backward(Tensor grad_output, Tensor self, Scalar beta, Scalar threshold) -> Tensor",
    variants="",
    promote="float",
    operands=("grad_output", "self"),
    inplace=False,
)
def softplus_backward(s, grad_output, self, beta, threshold):
    scaled = s.mul(self, float(beta))
    e = s.exp(scaled)
    return s.where(s.gt(scaled, threshold), grad_output, s.div(s.mul(grad_output, e), s.add(e, 1.0)))


softplus.derivative(self=lambda ct, self, beta, threshold: softplus_backward(ct, self, beta, threshold))


def _check_floating(name, self):
    if self.dtype.category < 2:
        raise NotImplementedError(f"\"{name}_kernel_impl\" not implemented for '{self.dtype.scalar_type}'")


@explicit("_softmax(Tensor self, int dim, bool half_to_float) -> Tensor", refuse=COMPLEX)
def _softmax(self, dim, half_to_float):
    _check_floating("softmax", self)
    if self.ndim == 0:
        return aten.exp.default(aten.sub.Tensor(self, self))
    self = aten.contiguous.default(self)
    if self.numel() == 0:
        return aten.clone.default(self, memory_format=contiguous_format)
    x = widened(self)
    e = aten.exp.default(aten.sub.Tensor(x, aten.amax.default(x, [dim], True)))
    return as_dtype(self.dtype, aten.div.Tensor(e, aten.sum.dim_IntList(e, [dim], True)))


def _weights_again(self, top, total):
    return aten.div.Tensor(aten.exp.default(aten.sub.Tensor(self, top)), total)


@_softmax.override("recompute")
def _softmax_again(self, dim, half_to_float):
    """See aot/recompute.py: two numbers a row are kept instead of the result."""
    if not _kept_by_rows(self, dim):
        return None
    top = aten.amax.default(self, [dim], True)
    return (top, aten.sum.dim_IntList(aten.exp.default(aten.sub.Tensor(self, top)), [dim], True)), _weights_again


def _kept_by_rows(self, dim) -> bool:
    size = self.shape[dim] if self.ndim else 0
    return self.is_contiguous() and isinstance(size, int) and size > 0


@explicit("_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor")
def _softmax_backward_data(grad_output, output, dim, input_dtype):
    if output.ndim == 0:
        return aten.zeros_like.default(output)
    grad_output, output = aten.contiguous.default(grad_output), aten.contiguous.default(output)
    kind, output = output.dtype, widened(output)
    weighted = aten.mul.Tensor(widened(grad_output), output)
    of_input = aten.sub.Tensor(weighted, aten.mul.Tensor(output, aten.sum.dim_IntList(weighted, [dim], True)))
    return as_dtype(kind, of_input)


@explicit("_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor", refuse=COMPLEX)
def _log_softmax(self, dim, half_to_float):
    _check_floating("log_softmax", self)
    if self.ndim == 0:
        return aten.sub.Tensor(self, self)
    self = aten.contiguous.default(self)
    if self.numel() == 0:
        return aten.clone.default(self, memory_format=contiguous_format)
    return _of_statistics(self, *_statistics(self, dim))


def _statistics(self, dim):
    """Maximum and logarithm of the sum of each row; of 16-bit numbers in float32."""
    self = widened(self)
    top = aten.amax.default(self, [dim], True)
    return top, aten.log.default(aten.sum.dim_IntList(aten.exp.default(aten.sub.Tensor(self, top)), [dim], True))


def _of_statistics(self, top, rest):
    return as_dtype(self.dtype, aten.sub.Tensor(aten.sub.Tensor(widened(self), top), rest))


@_log_softmax.override("recompute")
def _log_softmax_again(self, dim, half_to_float):
    """See aot/recompute.py: two numbers a row are kept instead of the result."""
    return (_statistics(self, dim), _of_statistics) if _kept_by_rows(self, dim) else None


@explicit("_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor")
def _log_softmax_backward_data(grad_output, output, dim, input_dtype):
    if output.ndim == 0:
        return aten.zeros_like.default(output)
    kind, grad_output, output = output.dtype, widened(grad_output), widened(output)
    total = aten.sum.dim_IntList(grad_output, [dim], True)
    return as_dtype(kind, aten.sub.Tensor(grad_output, aten.mul.Tensor(aten.exp.default(output), total)))


_softmax.derivative(
    self=lambda ct, self_like, result, dim: aten._softmax_backward_data.default(ct, result, dim, self_like.dtype)
)
_log_softmax.derivative(
    self=lambda ct, self_like, result, dim: aten._log_softmax_backward_data.default(ct, result, dim, self_like.dtype)
)


def _softmax_data_vjps(op, of_grad, of_output):
    op.derivative(grad_output=of_grad, output=of_output)


def _sm_out(ct, grad_output, output, dim):
    dot = aten.sum.dim_IntList(aten.mul.Tensor(grad_output, output), [dim], True)
    return aten.sub.Tensor(
        aten.sub.Tensor(aten.mul.Tensor(ct, grad_output), aten.mul.Tensor(ct, dot)),
        aten.mul.Tensor(grad_output, aten.sum.dim_IntList(aten.mul.Tensor(ct, output), [dim], True)),
    )


_softmax_data_vjps(
    _softmax_backward_data,
    lambda ct, output, dim, input_dtype: aten._softmax_backward_data.default(ct, output, dim, input_dtype),
    _sm_out,
)
_softmax_data_vjps(
    _log_softmax_backward_data,
    lambda ct, output, dim: aten.sub.Tensor(
        ct, aten.sum.dim_IntList(aten.mul.Tensor(ct, aten.exp.default(output)), [dim], True)
    ),
    lambda ct, grad_output, output, dim: aten.neg.default(
        aten.mul.Tensor(aten.mul.Tensor(ct, aten.exp.default(output)), aten.sum.dim_IntList(grad_output, [dim], True))
    ),
)


def _as_float(self, dtype):
    return aten._to_copy.default(self, dtype=dtype) if dtype is not None and dtype is not self.dtype else self


@composite("softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", out_rules="exact")
def softmax(self, dim, dtype):
    return aten._softmax.default(_as_float(self, dtype), dim, False)


@composite("log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", out_rules="exact")
def log_softmax(self, dim, dtype):
    return aten._log_softmax.default(_as_float(self, dtype), dim, False)


def check_affine(normalized_shape, weight, bias=None):
    """RuntimeError unless weight and bias of a norm have the shape that is normalised."""
    for name, t in (("weight", weight), ("bias", bias)):
        if t is not None and not same_shape(t.shape, normalized_shape):
            raise RuntimeError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape {list(t.shape)} and normalized_shape = "
                f"{list(normalized_shape)}"
            )


@explicit(
    "native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> (Tensor, Tensor, Tensor)",
    refuse=COMPLEX,
    variants="function",
)
def native_layer_norm(input, normalized_shape, weight, bias, eps):
    """Ba et al., arXiv:1607.06450. Returns (output, mean, reciprocal standard deviation); variance by two passes."""
    if not len(normalized_shape):
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element"
        )
    if input.ndim < len(normalized_shape) or any(
        n != m for n, m in zip(normalized_shape, input.shape[input.ndim - len(normalized_shape) :])
    ):
        raise RuntimeError(
            f"Given normalized_shape={list(normalized_shape)}, expected input with shape [*, {', '.join(map(str, normalized_shape))}], but got "
            f"input of size{list(input.shape)}"
        )
    check_affine(normalized_shape, weight, bias)
    check_parameters(input, weight, bias)
    kind, input = input.dtype, aten.contiguous.default(widened(input))
    dims = list(range(input.ndim - len(normalized_shape), input.ndim))
    mean = aten.mean.dim(input, dims, True)
    centred = aten.sub.Tensor(input, mean)
    rstd = aten.rsqrt.default(aten.add.Tensor(aten.mean.dim(aten.mul.Tensor(centred, centred), dims, True), eps))
    out = aten.mul.Tensor(centred, rstd)
    if weight is not None:
        out = aten.mul.Tensor(out, weight)
    if bias is not None:
        out = aten.add.Tensor(out, bias)
    return as_dtype(kind, out), as_dtype(kind, mean), as_dtype(kind, rstd)


@explicit(
    "native_layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] normalized_shape, Tensor mean, Tensor rstd, Tensor? weight, Tensor? bias, "
    "bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    refuse=COMPLEX,
)
def native_layer_norm_backward(grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask):
    kind, kind_weight = input.dtype, None if weight is None else weight.dtype
    input, grad_out, mean, rstd = (widened(t) for t in (input, grad_out, mean, rstd))
    input, grad_out = aten.contiguous.default(input), aten.contiguous.default(grad_out)
    lead = input.ndim - len(normalized_shape)
    inner, outer = list(range(lead, input.ndim)), list(range(lead))
    normed = aten.mul.Tensor(aten.sub.Tensor(input, mean), rstd)
    d_input = d_weight = d_bias = None
    if output_mask[0]:
        g = grad_out if weight is None else aten.mul.Tensor(grad_out, weight)
        a = aten.mean.dim(g, inner, True)
        b = aten.mean.dim(aten.mul.Tensor(g, normed), inner, True)
        d_input = aten.mul.Tensor(aten.sub.Tensor(aten.sub.Tensor(g, a), aten.mul.Tensor(normed, b)), rstd)
    if output_mask[1] and weight is not None:
        product = aten.mul.Tensor(grad_out, normed)
        d_weight = aten.sum.dim_IntList(product, outer) if outer else product
    if output_mask[2] and bias is not None:
        d_bias = aten.sum.dim_IntList(grad_out, outer) if outer else aten.clone.default(grad_out)
    kinds = (kind, kind_weight, None if bias is None else bias.dtype)
    return tuple(d if d is None else as_dtype(k, d) for d, k in zip((d_input, d_weight, d_bias), kinds))


def _layer_norm_vjp(ct0, input, normalized_shape, result1, result2, weight, bias, mask):
    return aten.native_layer_norm_backward.default(ct0, input, normalized_shape, result1, result2, weight, bias, mask)


native_layer_norm.derivative((0,), input__weight__bias=_layer_norm_vjp)


def _differentiable_backward(grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask):
    """The backward for a second derivative: mean and rstd as functions of ``input`` again, with the eps that the saved rstd tells."""
    dims = list(range(input.ndim - len(normalized_shape), input.ndim))
    mean = aten.mean.dim(input, dims, True)
    centred = aten.sub.Tensor(input, mean)
    variance = aten.mean.dim(aten.mul.Tensor(centred, centred), dims, True)
    eps = aten.sub.Tensor(aten.pow.Tensor_Scalar(aten.detach.default(rstd), -2), aten.detach.default(variance))
    rstd = aten.rsqrt.default(aten.add.Tensor(variance, eps))
    return native_layer_norm_backward.definition.fn(
        grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask
    )


native_layer_norm_backward.override("autograd", _differentiable_backward)


@composite(
    "layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool cudnn_enable=True) -> Tensor",
    refuse=COMPLEX,
    variants="function nn",
)
def layer_norm(input, normalized_shape, weight, bias, eps, cudnn_enable):
    n = len(normalized_shape)
    if n == 0 or list(input.shape[-n:]) != list(normalized_shape):
        want = "*, " + ", ".join(map(str, normalized_shape))
        raise RuntimeError(
            f"Given normalized_shape={list(normalized_shape)}, expected input with shape [{want}], but got input of size{list(input.shape)}"
        )
    for name, t in (("weight", weight), ("bias", bias)):
        if t is not None and list(t.shape) != list(normalized_shape):
            raise RuntimeError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape {list(t.shape)} and "
                f"normalized_shape = {list(normalized_shape)}"
            )
    return aten.native_layer_norm.default(input, list(normalized_shape), weight, bias, eps)[0]


@explicit(
    "native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)",
    variants="function",
    tags=("nondeterministic_seeded",),
)
def native_dropout(input, p, train):
    if train is False or p == 0:
        return aten.clone.default(input), aten.ones_like.default(input, dtype=dtypes.bool_)
    if p == 1:
        return aten.zeros_like.default(input), aten.zeros_like.default(input, dtype=dtypes.bool_)
    mask = aten.bernoulli.p(aten.empty_like.default(input, dtype=dtypes.bool_), 1 - p)
    return aten.mul.Tensor(aten.mul.Tensor(input, mask), 1 / (1 - p)), mask


native_dropout.derivative(
    input=lambda ct0, result1, p, train: aten.mul.Tensor(
        aten.mul.Tensor(ct0, result1), 1 if train is False else 1 / (1 - p) if p < 1 else 0.0
    )
)


@composite("dropout(Tensor input, float p, bool train) -> Tensor", variants="function")
def dropout(input, p, train):
    if not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not train or p == 0:
        return input
    if input.dtype.category < 2:
        raise RuntimeError(f"result type Float can't be cast to the desired output type {input.dtype.scalar_type}")
    return aten.native_dropout.default(input, p, train)[0]


@dropout.override("watched")
def _dropout(input, p, train):
    if not train or not 0 < p < 1:
        return dropout.definition.fn(input, p, train)
    kept = aten.bernoulli_.float(aten.empty_like.default(input), 1 - p)
    return aten.mul.Tensor(input, aten.div_.Scalar(kept, 1 - p))


@composite(
    "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0.0, bool is_causal=False, *, "
    "float? scale=None, bool enable_gqa=False) -> Tensor",
    variants="nn",
)
def scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa):
    """softmax(Q K^T / sqrt(E)) V. Vaswani et al., arXiv:1706.03762."""
    if query.shape[-1] != key.shape[-1] or key.shape[-2] != value.shape[-2]:
        raise RuntimeError(
            f"scaled_dot_product_attention: query {list(query.shape)}, key {list(key.shape)} and value {list(value.shape)} don't fit: "
            "query and key must agree in the last dimension, key and value in the one before"
        )
    if is_causal and attn_mask is not None:
        raise RuntimeError("_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True")
    if streams(query, key, value, attn_mask, dropout_p, enable_gqa):
        return streamed(query, key, value, attn_mask, dropout_p, is_causal, scale)
    if query.ndim == key.ndim == value.ndim == 3 and query.is_contiguous():
        heads = [aten.unsqueeze.default(x, 0) for x in (query, key, value)]
        if streams(*heads, attn_mask, dropout_p, enable_gqa):
            out = streamed(*heads, attn_mask, dropout_p, is_causal, scale)
            return aten._unsafe_view.default(out, list(out.shape[1:]))
    out = streamed_whole(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
    if out is not None:
        return out
    if enable_gqa:
        heads, held, held_values = query.shape[-3], key.shape[-3], value.shape[-3]
        if heads % held or heads % held_values:
            raise RuntimeError(
                f"scaled_dot_product_attention: with enable_gqa the number of heads of query ({heads}) must be a multiple of those of key "
                f"({held}) and value ({held_values})"
            )
        key = aten.repeat_interleave.self_int(key, heads // held, -3)
        value = aten.repeat_interleave.self_int(value, heads // held_values, -3)
    kind = query.dtype
    query, key, value = (widened(t) for t in (query, key, value))
    factor = 1 / sym_sqrt(max(query.shape[-1], 1)) if scale is None else scale
    scores = aten.matmul.default(aten.mul.Tensor(query, factor), aten.transpose.int(key, -2, -1))
    if is_causal:
        rows, columns = scores.shape[-2:]
        keep = aten.tril.default(aten.ones.default([rows, columns], dtype=dtypes.bool_, device=query.device))
        scores = aten.masked_fill.Scalar(scores, aten.logical_not.default(keep), -math.inf)
    elif attn_mask is not None:
        if attn_mask.dtype is dtypes.bool_:
            scores = aten.masked_fill.Scalar(scores, aten.logical_not.default(attn_mask), -math.inf)
        else:
            scores = aten.add.Tensor(scores, attn_mask)
    # A row whose keys are all masked weighs them 0, not nan.
    weights = aten._softmax.default(scores, -1, False) if attn_mask is None else aten._safe_softmax.default(scores, -1)
    if dropout_p > 0:
        weights = aten.dropout.default(weights, dropout_p, True)
    return as_dtype(kind, aten.matmul.default(weights, value))
