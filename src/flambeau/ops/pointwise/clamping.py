"""Keeping elements between bounds: clamp, clamp_min, clamp_max, clip."""

from __future__ import annotations

from ...core.declare import composite, pointwise
from ...core.operator import namespace

aten = namespace("aten")


@pointwise(
    "clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor",
    operands=("self", "min", "max"),
    tags=("pointwise", "numbers_as_elements"),
)
def clamp(s, self, min, max):
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    out = self if min is None else s.maximum(self, min)
    return out if max is None else s.minimum(out, max)


def _clamp_vjp(ct, self, min, max):
    inside = None
    for bound, compare in ((min, aten.ge.Scalar), (max, aten.le.Scalar)):
        if bound is not None:
            m = compare(self, bound)
            inside = m if inside is None else aten.logical_and.default(inside, m)
    return aten.where.ScalarOther(inside, ct, 0)


clamp.derivative(self=_clamp_vjp)


@pointwise(
    "clamp_min(Tensor self, Scalar min) -> Tensor", operands=("self", "min"), tags=("pointwise", "numbers_as_elements")
)
def clamp_min(s, self, min):
    return s.maximum(self, min)


@pointwise(
    "clamp_max(Tensor self, Scalar max) -> Tensor", operands=("self", "max"), tags=("pointwise", "numbers_as_elements")
)
def clamp_max(s, self, max):
    return s.minimum(self, max)


clamp_min.derivative(self=lambda ct, self, min: aten.where.ScalarOther(aten.ge.Scalar(self, min), ct, 0))
clamp_max.derivative(self=lambda ct, self, max: aten.where.ScalarOther(aten.le.Scalar(self, max), ct, 0))


@pointwise("clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor", numbers=False)
def clamp_tensor(s, self, min, max):
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    out = self if min is None else s.maximum(self, min)
    return out if max is None else s.minimum(out, max)


def _clamp_to(self, min, max):
    """(where the input is between the bounds, where the result is ``min``, where it is ``max``): ``max`` wins where they cross."""
    if max is None:
        return aten.ge.Tensor(self, min), aten.lt.Tensor(self, min), None
    if min is None:
        return aten.le.Tensor(self, max), None, aten.gt.Tensor(self, max)
    inside = aten.logical_and.default(aten.ge.Tensor(self, min), aten.le.Tensor(self, max))
    low = aten.logical_and.default(aten.lt.Tensor(self, min), aten.lt.Tensor(min, max))
    return inside, low, aten.logical_or.default(aten.gt.Tensor(self, max), aten.lt.Tensor(max, min))


def _clamp_tensor_vjp(ct, self, min, max, mask):
    return tuple(
        aten.where.ScalarOther(where, ct, 0) if wanted and where is not None else None
        for wanted, where in zip(mask, _clamp_to(self, min, max))
    )


clamp_tensor.derivative(self__min__max=_clamp_tensor_vjp)


@pointwise("clamp_min.Tensor(Tensor self, Tensor min) -> Tensor", numbers="after")
def clamp_min_tensor(s, self, min):
    return s.maximum(self, min)


@pointwise("clamp_max.Tensor(Tensor self, Tensor max) -> Tensor", numbers="after")
def clamp_max_tensor(s, self, max):
    return s.minimum(self, max)


clamp_min_tensor.derivative(
    self=lambda ct, self, min: aten.where.ScalarOther(aten.ge.Tensor(self, min), ct, 0),
    min=lambda ct, self, min: aten.where.ScalarOther(aten.lt.Tensor(self, min), ct, 0),
)
clamp_max_tensor.derivative(
    self=lambda ct, self, max: aten.where.ScalarOther(aten.le.Tensor(self, max), ct, 0),
    max=lambda ct, self, max: aten.where.ScalarOther(aten.gt.Tensor(self, max), ct, 0),
)


@composite("clip(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor")
def clip(self, min, max):
    return aten.clamp.default(self, min, max)


@composite("clip.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor")
def clip_tensor(self, min, max):
    return aten.clamp.Tensor(self, min, max)
