"""Softmax and log_softmax, with their derivatives."""

from __future__ import annotations

from ...base.memory_format import contiguous_format
from ...base.shapes import normalize_dim
from ...core.declare import COMPLEX, composite, explicit
from ...core.operator import namespace
from ...core.sharding import Apart
from ..reductions.basic import as_dtype, widened

aten = namespace("aten")


def _check_floating(name, self):
    if self.dtype.category < 2:
        raise NotImplementedError(f"\"{name}_kernel_impl\" not implemented for '{self.dtype.scalar_type}'")


@explicit("_softmax(Tensor self, int dim, bool half_to_float) -> Tensor", refuse=COMPLEX)
def _softmax(self, dim, half_to_float):
    _check_floating("softmax", self)
    normalize_dim(dim, self.ndim)
    if self.ndim == 0:
        return aten.exp.default(aten.sub.Tensor(self, self))
    self = aten.contiguous.default(self)
    if self.numel() == 0:
        return aten.clone.default(self, memory_format=contiguous_format)
    x = widened(self)
    e = aten.exp.default(aten.sub.Tensor(x, aten.amax.default(x, [dim], True)))
    return as_dtype(self.dtype, aten.div.Tensor(e, aten.sum.dim_IntList(e, [dim], True)))


_softmax.override("rows", lambda h, self, dim, half_to_float: h.softmax(self, dim, False))


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
    normalize_dim(dim, self.ndim)
    if self.ndim == 0:
        return aten.sub.Tensor(self, self)
    self = aten.contiguous.default(self)
    if self.numel() == 0:
        return aten.clone.default(self, memory_format=contiguous_format)
    return _of_statistics(self, *_statistics(self, dim))


_log_softmax.override("rows", lambda h, self, dim, half_to_float: h.softmax(self, dim, True))


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


for _op in (_softmax, _softmax_backward_data, _log_softmax, _log_softmax_backward_data):
    _op.override("sharding", Apart("dim"))

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
