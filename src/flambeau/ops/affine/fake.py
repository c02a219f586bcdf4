"""Fake quantisation: floats rounded to what codes could stand for, for training that knows of the rounding.

The gradient passes where the code was within its range, and is 0 elsewhere (the straight-through estimator; Bengio, Léonard and Courville, 2013).
"""

from __future__ import annotations

import numpy as np

from ...base.shapes import normalize_dim
from ...core.declare import composite, explicit
from ...core.operator import namespace

aten = namespace("aten")


def _check_range(name: str, quant_min: int, quant_max: int, zero_point=None) -> None:
    if quant_min > quant_max:
        raise RuntimeError(
            f"{name}: `quant_min` should be less than or equal to `quant_max`, got {quant_min} and {quant_max}."
        )
    if zero_point is not None and not quant_min <= zero_point <= quant_max:
        raise RuntimeError(f"{name}: `zero_point` must be between `quant_min` and `quant_max`, got {zero_point}.")


def _rounded(x, inverse, scale, zero_point, quant_min, quant_max):
    """(what the nearest codes stand for, where the codes are within their range)."""
    codes = aten.add.Tensor(aten.round.default(aten.mul.Tensor(x, inverse)), zero_point)
    inside = aten.logical_and.default(aten.ge.Scalar(codes, quant_min), aten.le.Scalar(codes, quant_max))
    kept = aten.clamp.default(codes, quant_min, quant_max)
    return aten.mul.Tensor(aten.sub.Tensor(kept, zero_point), scale), inside


def _passes_inside(op) -> None:
    op.derivative(self=lambda ct0, result1: aten.mul.Tensor(ct0, result1))


@explicit(
    "fake_quantize_per_tensor_affine_cachemask(Tensor self, float scale, int zero_point, int quant_min, int quant_max) -> "
    "(Tensor output, Tensor mask)"
)
def whole_with_mask(self, scale, zero_point, quant_min, quant_max):
    _check_range("fake_quantize_per_tensor_affine", quant_min, quant_max, zero_point)
    single = np.float32(scale)
    return _rounded(self, float(np.float32(1) / single), float(single), zero_point, quant_min, quant_max)


@composite(
    "fake_quantize_per_tensor_affine(Tensor self, float scale, int zero_point, int quant_min, int quant_max) -> Tensor",
    variants="function",
)
def whole(self, scale, zero_point, quant_min, quant_max):
    return whole_with_mask(self, scale, zero_point, quant_min, quant_max)[0]


@explicit(
    "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, Tensor fake_quant_enabled, "
    "int quant_min, int quant_max) -> (Tensor output, Tensor mask)"
)
def by_tensors_with_mask(self, scale, zero_point, fake_quant_enabled, quant_min, quant_max):
    _check_range("fake_quantize_per_tensor_affine", quant_min, quant_max)
    scale, zero_point = scale.reshape([]), zero_point.reshape([])
    made, inside = _rounded(self, aten.reciprocal.default(scale), scale, zero_point, quant_min, quant_max)
    off = aten.eq.Scalar(fake_quant_enabled.reshape([]), 0)
    return aten.where.self(off, self, made), aten.logical_or.default(inside, off)


@composite(
    "fake_quantize_per_tensor_affine.tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, int quant_min, int quant_max) -> Tensor",
    variants="function",
)
def by_tensors(self, scale, zero_point, quant_min, quant_max):
    return by_tensors_with_mask(self, scale, zero_point, aten.ones.default([1]), quant_min, quant_max)[0]


@explicit(
    "fake_quantize_per_channel_affine_cachemask(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, int quant_max) -> "
    "(Tensor output, Tensor mask)"
)
def by_channel_with_mask(self, scale, zero_point, axis, quant_min, quant_max):
    name = "fake_quantize_per_channel_affine"
    _check_range(name, quant_min, quant_max)
    axis = normalize_dim(axis, self.ndim)
    for what, given in (("scale", scale), ("zero-point", zero_point)):
        if tuple(given.shape) != (self.shape[axis],):
            raise RuntimeError(
                f"{name}: dimensions of {what} and the input's dimension {axis} are not consistent: {list(given.shape)} and {self.shape[axis]}"
            )
    shape = [1] * self.ndim
    shape[axis] = self.shape[axis]
    scale, zero_point = scale.reshape(shape), zero_point.reshape(shape)
    return _rounded(self, aten.reciprocal.default(scale), scale, zero_point, quant_min, quant_max)


@composite(
    "fake_quantize_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, int quant_max) -> Tensor",
    variants="function",
)
def by_channel(self, scale, zero_point, axis, quant_min, quant_max):
    return by_channel_with_mask(self, scale, zero_point, axis, quant_min, quant_max)[0]


for _op in (whole_with_mask, by_tensors_with_mask, by_channel_with_mask):
    _passes_inside(_op)
