"""Elementary functions of one variable."""

from __future__ import annotations

import math

from ...base import dtypes
from ...core.declare import pointwise
from ...core.operator import namespace

aten = namespace("aten")


def _unary(name: str, promote: str = "float", refuse=(), out_rules=""):
    """An operator whose body is the scalar operation of its name."""

    def body(s, self):
        return getattr(s, name)(self)

    body.__name__ = name
    return pointwise(f"{name}(Tensor self) -> Tensor", promote=promote, refuse=refuse, out_rules=out_rules)(body)


exp, exp2, expm1, log, log1p, log2, sqrt, rsqrt = map(
    _unary, ["exp", "exp2", "expm1", "log", "log1p", "log2", "sqrt", "rsqrt"]
)
sin, cos, tan, erf, reciprocal = map(_unary, ["sin", "cos", "tan", "erf", "reciprocal"])
floor, ceil, trunc = (_unary(n, "default", ("bool",), "exact") for n in ["floor", "ceil", "trunc"])


@pointwise("round(Tensor self) -> Tensor", refuse=("bool",), out_rules="exact")
def round_(s, self):
    return s.round(self)


@pointwise(
    "tanh(Tensor self) -> Tensor",
    promote="float",
    backward="tanh_backward(Tensor grad_output, Tensor output) -> Tensor",
)
def tanh(s, self):
    return s.tanh(self)


@pointwise("sigmoid(Tensor self) -> Tensor", promote="float")
def sigmoid(s, self):
    return s.sigmoid(self)


@pointwise("sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor", variants="", inplace=False)
def sigmoid_backward(s, grad_output, output):
    return s.mul(grad_output, s.mul(s.sub(1.0, output), output))


sigmoid.derivative(self=lambda ct, result: sigmoid_backward(ct, result))


@pointwise("log10(Tensor self) -> Tensor", promote="float")
def log10(s, self):
    return s.log10(self)


log10.derivative(self=lambda ct, self: aten.div.Tensor(ct, aten.mul.Tensor(self, math.log(10))))


@pointwise("isnan(Tensor self) -> Tensor", out=dtypes.bool_, inplace=False, has_out=False)
def isnan(s, self):
    return s.isnan(self)


@pointwise("isinf(Tensor self) -> Tensor", out=dtypes.bool_, inplace=False, has_out=False)
def isinf(s, self):
    return s.eq(s.abs(self), math.inf)


@pointwise("isfinite(Tensor self) -> Tensor", out=dtypes.bool_, inplace=False, has_out=False)
def isfinite(s, self):
    return s.lt(s.abs(self), math.inf)


@pointwise(
    "round.decimals(Tensor self, *, int decimals) -> Tensor",
    refuse=("bool", "uint8", "int8", "int16", "int32", "int64"),
    out_rules="exact",
)
def round_decimals(s, self, decimals):
    scale = 10.0 ** abs(decimals) if abs(decimals) < 309 else math.inf
    return s.div(s.round(s.mul(self, scale)), scale) if decimals >= 0 else s.mul(s.round(s.div(self, scale)), scale)
