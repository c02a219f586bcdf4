"""Weights that layers on codes share with PyTorch's programs under the names ``*_prepack`` and ``*_unpack``, and the layers that take them.

Nothing is rearranged here: a packed weight is a record of the weight, the bias and the sizes of its layer.
"""

from __future__ import annotations

from typing import Any

from ...base import dtypes
from ...base.records import replace, slotted
from ...core.operator import namespace
from ...core.quantized import PackedWeight, is_quantized, make, parts
from .arithmetic import operator

aten, quantized = namespace("aten"), namespace("quantized")


@slotted(eq=False)
class LinearPackedParams(PackedWeight):
    """``weight`` (N, K) of qint8, or of floats that float16 holds; ``bias`` (N) of floats or None."""

    weight: Any
    bias: Any

    def __repr__(self):
        return f"LinearPackedParams({tuple(self.weight._shape)})"


@slotted(eq=False)
class ConvPackedParams(PackedWeight):
    """``weight`` of qint8, ``bias`` of floats or None, and the sizes, a list each. ``transpose``: whether of a transposed convolution."""

    weight: Any
    bias: Any
    stride: list
    padding: list
    output_padding: list
    dilation: list
    groups: int
    transpose: bool

    def __repr__(self):
        return f"ConvPackedParams({tuple(self.weight._shape)}, transpose={self.transpose})"

    def of_dimensions(self, n: int) -> ConvPackedParams:
        """The record for a convolution of ``n`` dimensions: PyTorch's files hold those of one as ones of two, of which the first has a single place."""
        if n > 1 or self.weight.dim() == 3:
            return self
        w, sizes = parts(self.weight), (self.stride, self.padding, self.output_padding, self.dilation)
        weight = make(replace(w, codes=w.codes.squeeze(2)))
        return ConvPackedParams(weight, self.bias, *(v[1:] for v in sizes), self.groups, self.transpose)


@slotted(eq=False)
class CellParams(PackedWeight):
    """One layer and direction of a recurrent layer on floats. ``input``, ``hidden``: the packed weights of its products; ``biases``: theirs, which files
    hold twice. ``reduce_range``: whether what comes in has codes of 7 bits."""

    input: LinearPackedParams
    hidden: LinearPackedParams
    biases: tuple
    reduce_range: bool

    def __repr__(self):
        return f"CellParams({self.input!r}, {self.hidden!r})"


def _packed(name: str, x, kind: type):
    if not isinstance(x, kind):
        raise RuntimeError(
            f"quantized::{name}() Expected a value of type '{kind.__name__}', which {_PREPACK[kind]} gives, but instead found type "
            f"'{type(x).__name__}'."
        )
    return x


_PREPACK = {LinearPackedParams: "linear_prepack", ConvPackedParams: "conv*d_prepack"}
# Greater values than float16's are kept as its greatest.
HALF_MAX = 65504.0


def _weight(name: str, weight) -> None:
    if not is_quantized(weight):
        raise RuntimeError(
            f"quantized::{name}: expected a quantised weight, got one of {getattr(weight, '_dtype', type(weight).__name__)}"
        )


# ---- linear ------------------------------------------------------------------------------------------------------------------


@operator("linear_prepack(Tensor W, Tensor? B=None) -> Any")
def linear_prepack(W, B):
    _weight("linear_prepack", W)
    return LinearPackedParams(W, B)


@operator("linear_unpack(Any W_prepack) -> (Tensor W_origin, Tensor? B_origin)")
def linear_unpack(W_prepack):
    p = _packed("linear_unpack", W_prepack, LinearPackedParams)
    return p.weight, p.bias


def _linear(name: str, relu: bool) -> None:
    @operator(f"{name}(Tensor X, Any W_prepack, float Y_scale_i, int Y_zero_point_i) -> Tensor Y")
    def run(X, W_prepack, scale, zero_point):
        p = _packed(name, W_prepack, LinearPackedParams)
        return quantized._linear.default(X, p.weight, p.bias, scale, zero_point, relu)


def _linear_dynamic(name: str, relu: bool) -> None:
    @operator(f"{name}(Tensor X, Any W_prepack, bool reduce_range=False) -> Tensor Y")
    def run(X, W_prepack, reduce_range):
        return _dynamic_products(name, X, W_prepack, reduce_range, relu)


def _dynamic_products(name: str, X, W_prepack, reduce_range: bool, relu: bool):
    p = _packed(name, W_prepack, LinearPackedParams)
    if is_quantized(p.weight):
        return quantized._linear_dynamic.default(X, p.weight, p.bias, reduce_range, relu)
    made = aten.linear.default(X, p.weight, p.bias)
    return aten.relu.default(made) if relu else made


@operator("linear_prepack_fp16(Tensor W, Tensor? B=None) -> Any")
def linear_prepack_fp16(W, B):
    if is_quantized(W) or not W._dtype.is_floating_point:
        raise RuntimeError(f"quantized::linear_prepack_fp16: expected a weight of floats, got one of {W._dtype}")
    kept = aten.clamp.default(W, -HALF_MAX, HALF_MAX)
    return LinearPackedParams(kept.to(dtypes.float16).to(dtypes.float32), B)


@operator("linear_unpack_fp16(Any W_prepack) -> (Tensor W_origin, Tensor? B_origin)")
def linear_unpack_fp16(W_prepack):
    p = _packed("linear_unpack_fp16", W_prepack, LinearPackedParams)
    return p.weight, p.bias


def _linear_fp16(name: str, relu: bool) -> None:
    @operator(f"{name}(Tensor X, Any W_prepack) -> Tensor Y")
    def run(X, W_prepack):
        return _dynamic_products(name, X, W_prepack, False, relu)


_linear_fp16("linear_dynamic_fp16", False)
_linear_fp16("linear_relu_dynamic_fp16", True)
_linear("linear", False)
_linear("linear_relu", True)
_linear_dynamic("linear_dynamic", False)
_linear_dynamic("linear_relu_dynamic", True)


# ---- convolutions ------------------------------------------------------------------------------------------------------------


def _sizes(n: int, **given) -> None:
    for what, values in given.items():
        if len(values) != n:
            raise RuntimeError(f"{what} should contain {n} elements for {n}D convolution.")


def _conv(n: int) -> None:
    @operator(
        f"conv{n}d_prepack(Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, int groups) -> Any"
    )
    def prepack(weight, bias, stride, padding, dilation, groups):
        _weight(f"conv{n}d_prepack", weight)
        _sizes(n, stride=stride, padding=padding, dilation=dilation)
        return ConvPackedParams(
            weight, bias, list(stride), list(padding), [0] * n, list(dilation), int(groups), transpose=False
        )

    for suffix, relu in (("", False), ("_relu", True)):
        _conv_call(n, f"conv{n}d{suffix}", ".new" if n > 1 else "", relu)
    _dynamic(n, f"conv{n}d_dynamic")
    _unpacked(n, f"conv{n}d", _UNPACKED[:-1])


def _conv_call(n: int, name: str, overload: str, relu: bool) -> None:
    @operator(f"{name}{overload}(Tensor qx, Any packed_weight, float output_scale, int output_zero_point) -> Tensor")
    def run(qx, packed_weight, scale, zero_point):
        p = _packed(name, packed_weight, ConvPackedParams).of_dimensions(n)
        return quantized._convolution.default(
            qx, p.weight, p.bias, p.stride, p.padding, p.dilation, p.groups, scale, zero_point, relu
        )


def _conv_transpose(n: int) -> None:
    @operator(
        f"conv_transpose{n}d_prepack(Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] output_padding, int[] dilation, "
        "int groups) -> Any"
    )
    def prepack(weight, bias, stride, padding, output_padding, dilation, groups):
        _weight(f"conv_transpose{n}d_prepack", weight)
        _sizes(n, stride=stride, padding=padding, output_padding=output_padding, dilation=dilation)
        sizes = [list(v) for v in (stride, padding, output_padding, dilation)]
        return ConvPackedParams(weight, bias, *sizes, int(groups), transpose=True)

    name = f"conv_transpose{n}d"

    @operator(f"{name}(Tensor qx, Any packed_weight, float output_scale, int output_zero_point) -> Tensor")
    def run(qx, packed_weight, scale, zero_point):
        p = _packed(name, packed_weight, ConvPackedParams).of_dimensions(n)
        return quantized._convolution_transpose.default(
            qx, p.weight, p.bias, p.stride, p.padding, p.output_padding, p.dilation, p.groups, scale, zero_point
        )

    _dynamic(n, f"{name}_dynamic")
    _unpacked(n, name, _UNPACKED)


def _dynamic(n: int, name: str) -> None:
    @operator(f"{name}(Tensor qx, Any packed_weight, bool reduce_range=False) -> Tensor")
    def run(qx, packed_weight, reduce_range):
        p = _packed(name, packed_weight, ConvPackedParams).of_dimensions(n)
        return quantized._convolution_dynamic.default(
            *(
                qx,
                p.weight,
                p.bias,
                p.stride,
                p.padding,
                p.output_padding,
                p.dilation,
                p.groups,
                p.transpose,
                reduce_range,
            )
        )


_UNPACKED = ("stride", "padding", "dilation", "groups", "transpose", "output_padding")


def _unpacked(n: int, name: str, fields) -> None:
    """Declare what reads a packed weight: the weight and the bias, and each size."""

    @operator(f"{name}_unpack(Any packed_weights) -> (Tensor unpacked_weights, Tensor? B_origin)")
    def unpack(packed_weights):
        p = _packed(f"{name}_unpack", packed_weights, ConvPackedParams).of_dimensions(n)
        return p.weight, p.bias

    for field in fields:
        kind = {"groups": "int", "transpose": "int"}.get(field, "int[]")

        @operator(f"{name}_{field}(Any packed_weights) -> {kind}")
        def read(packed_weights, field=field, kind=kind):
            found = getattr(_packed(f"{name}_{field}", packed_weights, ConvPackedParams).of_dimensions(n), field)
            return int(found) if kind == "int" else list(found)


for _n in (1, 2, 3):
    _conv(_n)
    _conv_transpose(_n)
