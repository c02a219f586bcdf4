"""What stands for a quantised tensor while it is traced."""

from __future__ import annotations

import math

from .... import _C
from ....base import dtypes
from ....base.shapes import Size, contiguous_strides
from ....core.quantized import (
    PACKED,
    QUANTISED,
    per_channel_affine,
    per_channel_affine_float_qparams,
    per_tensor_affine,
)
from ....core.tensor import CPU, Tensor, strided
from ..tracing import quantised_of
from . import functions

__all__ = ["CodesTensor", "is_codes", "like"]


class CodesTensor(Tensor):
    """Capture has a variable in its place, export an object. ``_codes``: a plain tensor; ``_scale``, ``_zero_point``: numbers, tensors of one element, or with ``_axis``
    tensors with an entry for each index of that dimension. ``_packed``: the shape, where two codes share a byte."""

    @classmethod
    def of(cls, codes, scale, zero_point, axis=None, packed=None):
        """The object of these parts."""
        kind = QUANTISED[codes.dtype] if packed is None else PACKED
        rank = codes.dim() if packed is None else len(packed)
        # Sizes may be symbols: the properties below have them.
        made = _C.without_data(cls, (0,) * rank, (0,) * rank, kind, CPU, 0, None)
        made._codes, made._scale, made._zero_point, made._axis, made._packed = codes, scale, zero_point, axis, packed
        return made

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        """What ``func`` does with codes; what has no rule breaks the graph."""
        return functions.call(func, args, kwargs or {})

    @property
    def shape(self):
        return self._codes.shape if self._packed is None else Size(self._packed)

    def size(self, dim=None):
        """The size of a dimension, or all."""
        return self.shape if dim is None else self.shape[dim]

    def stride(self, dim=None):
        """The stride of a dimension in elements, or all."""
        found = self._codes.stride() if self._packed is None else contiguous_strides(self._packed)
        return found if dim is None else found[dim]

    def dim(self):
        """The number of dimensions."""
        return len(self.shape)

    ndimension = dim
    ndim = property(dim)

    def numel(self):
        """The number of elements."""
        return self._codes.numel() if self._packed is None else math.prod(self._packed)

    nelement = numel

    def is_contiguous(self, *args, **kwargs):
        """Whether the codes lie one behind the other."""
        return self._packed is not None or self._codes.is_contiguous(*args, **kwargs)

    def __len__(self):
        if not self.dim():
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0]

    dtype = property(lambda self: self._dtype)
    is_quantized = property(lambda self: True)
    is_nested = property(lambda self: False)
    is_sparse = property(lambda self: False)
    is_leaf = property(lambda self: True)
    requires_grad = property(lambda self: False)
    grad_fn = property(lambda self: None)
    layout = property(lambda self: strided)
    device = property(lambda self: CPU)

    def qscheme(self):
        """How the codes are read."""
        if self._axis is None:
            return per_tensor_affine
        return per_channel_affine_float_qparams if self._zero_point.dtype is dtypes.float32 else per_channel_affine


def is_codes(x) -> bool:
    """Whether it stands for a quantised tensor."""
    return isinstance(x, _C.TensorBase) and x.is_quantized


def like(t, codes):
    """Other codes, read as those of ``t``, which is quantised as a whole."""
    return quantised_of(codes, t._scale, t._zero_point)
