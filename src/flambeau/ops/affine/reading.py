"""What quantised tensors are asked: their values, codes, scales and zero points."""

from __future__ import annotations

import numpy as np

from ... import _C
from ...base import dtypes
from ...base.memory_format import format_strides, suggested_format
from ...core.operator import namespace
from ...core.quantized import Affine, dequantized, is_quantized, parts
from .declaration import quantized_operator

aten = namespace("aten")


@quantized_operator("dequantize.self(Tensor self) -> Tensor", variants="function method")
def dequantize(self):
    if not is_quantized(self):
        return self.to(dtypes.float32)
    values = dequantized(self)
    # Dense, also where indices share their codes.
    strides = format_strides(values.shape, suggested_format(values.shape, self._strides))
    if self._strides != strides:
        out = np.ndarray(values.shape, values.dtype, np.empty(values.size, values.dtype), 0, [n * 4 for n in strides])
        out[...] = values
        values = out
    return _C.computed(values)


@quantized_operator("dequantize.tensors(Tensor[] tensors) -> Tensor[]", variants="function")
def dequantize_each(tensors):
    return [aten.dequantize.self(t) for t in tensors]


@quantized_operator("int_repr(Tensor self) -> Tensor", variants="function method")
def int_repr(self):
    return _of(self, "int_repr").codes.clone()


def _of(t, name: str) -> Affine:
    p = parts(t)
    if p is None:
        raise NotImplementedError(
            f"Could not run 'aten::{name}' with arguments from the 'CPU' backend: it takes quantised tensors, got {t._dtype}"
        )
    return p


def _whole(t, name: str) -> Affine:
    p = _of(t, name)
    if p.axis is not None:
        raise RuntimeError(f"{name}: Expected quantizer->qscheme() == kPerTensorAffine to be true, but got {p.scheme}")
    return p


def _by_axis(t, name: str) -> Affine:
    p = _of(t, name)
    if p.axis is None:
        raise RuntimeError(f"{name}: Expected quantizer->qscheme() == kPerChannelAffine to be true, but got {p.scheme}")
    return p


@quantized_operator("q_scale(Tensor self) -> float", variants="function method")
def q_scale(self):
    return _whole(self, "q_scale").scale


@quantized_operator("q_zero_point(Tensor self) -> int", variants="function method")
def q_zero_point(self):
    return _whole(self, "q_zero_point").zero_point


@quantized_operator("q_per_channel_scales(Tensor self) -> Tensor", variants="function method")
def q_per_channel_scales(self):
    return _by_axis(self, "q_per_channel_scales").scale


@quantized_operator("q_per_channel_zero_points(Tensor self) -> Tensor", variants="function method")
def q_per_channel_zero_points(self):
    return _by_axis(self, "q_per_channel_zero_points").zero_point


@quantized_operator("q_per_channel_axis(Tensor self) -> int", variants="function method")
def q_per_channel_axis(self):
    return _by_axis(self, "q_per_channel_axis").axis
