"""Dropout of elements and of whole features, and alpha dropout."""

from __future__ import annotations

import math

from ...base import dtypes
from ...core.declare import composite, explicit
from ...core.operator import namespace
from .activation import SELU_ALPHA, SELU_SCALE

aten = namespace("aten")


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


def _check_p(p):
    if not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p}")


def _kept(self, p, whole_features):
    """One where an element (or the feature map it is in) is kept."""
    shape = [*self.shape[:2], *[1] * (self.ndim - 2)] if whole_features else list(self.shape)
    # Out of place: vmap can then draw for each example where the examples share the input.
    return aten.bernoulli.p(aten.new_empty.default(self, shape), 1 - p)


def _alpha(self, kept, p):
    """Dropped elements take SELU's lowest value; an affine map keeps mean and variance. Klambauer et al., arXiv:1706.02515."""
    alpha = SELU_ALPHA * SELU_SCALE
    a = 1.0 / math.sqrt((alpha * alpha * p + 1) * (1 - p))
    shift = aten.mul.Tensor(aten.sub.Tensor(kept, 1), alpha * a)
    return aten.add.Tensor(aten.mul.Tensor(self, aten.mul.Tensor(kept, a)), aten.add.Tensor(shift, alpha * a * p))


def _check_features(input, p, train):
    if train and 0 < p < 1 and input.ndim < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")


@composite("alpha_dropout(Tensor input, float p, bool train) -> Tensor", variants="function")
def alpha_dropout(input, p, train):
    _check_p(p)
    if p == 0 or not train:
        return input
    return aten.mul.Tensor(input, 0.0) if p == 1 else _alpha(input, _kept(input, p, False), p)


@composite("feature_dropout(Tensor input, float p, bool train) -> Tensor", variants="function")
def feature_dropout(input, p, train):
    _check_p(p)
    _check_features(input, p, train)
    if p == 0 or not train:
        return input
    return (
        aten.mul.Tensor(input, 0.0) if p == 1 else aten.mul.Tensor(input, aten.div.Tensor(_kept(input, p, True), 1 - p))
    )


@composite("feature_alpha_dropout(Tensor input, float p, bool train) -> Tensor", variants="function")
def feature_alpha_dropout(input, p, train):
    _check_p(p)
    _check_features(input, p, train)
    if p == 0 or not train:
        return input
    return aten.mul.Tensor(input, 0.0) if p == 1 else _alpha(input, _kept(input, p, True), p)
