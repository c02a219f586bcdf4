"""What functions do with the elements of quantised tensors: the classes of ../elements.py, and views."""

from __future__ import annotations

from .... import _C
from ....base import dtypes
from ....core.operator import namespace
from ..tracing import quantised_of, uncaptured_codes
from . import numbers
from .functions import VIEWS, named, rule
from .record import is_codes, like

aten = namespace("aten")


def whole(name: str, t):
    """``t``, which has to be quantised as a whole, by bytes or words."""
    if not is_codes(t):
        raise RuntimeError(f"{name}: expected a quantised tensor, got one of {t.dtype}")
    if t._axis is not None or t._packed is not None:
        raise RuntimeError(
            f"{name}: expected a tensor of bytes that is quantised per tensor, got {t.qscheme()} of {t.dtype}"
        )
    return t


def _refuse_more(func, args, kwargs):
    """Break the graph where further arguments are quantised."""
    for x in (*args, *kwargs.values()):
        if isinstance(x, _C.TensorBase) and is_codes(x):
            uncaptured_codes(f"{named(func)} of several quantised tensors")


# ---- views -----------------------------------------------------------------------------------------------------------------


def _seen(t, codes):
    if t._axis is None:
        return like(t, codes)
    if tuple(codes.shape) != tuple(t._codes.shape) or tuple(codes.stride()) != tuple(t._codes.stride()):
        raise RuntimeError("Setting strides is possible only on uniformly quantized tensor")
    return quantised_of(codes, t._scale, t._zero_point, t._axis)


def _unpacked(func, t):
    if not is_codes(t) or t._packed is not None:
        uncaptured_codes(f"{named(func)} of codes of four bits")
    return t


def view(func, t, *args, **kwargs):
    out = func(_unpacked(func, t)._codes, *args, **kwargs)
    if isinstance(out, _C.TensorBase):
        return _seen(t, out)
    return type(out)([_seen(t, x) for x in out])


VIEWS.append(view)
rule(
    "reshape", "flatten", "contiguous", "unflatten", "view_as", "reshape_as", "expand_as", "movedim", "moveaxis", "swapaxes", "swapdims",
    "tensor_split", "chunk", "split", "unbind", "hsplit", "vsplit", "ravel", "detach", "narrow", "unsqueeze", "squeeze",
)(view)  # fmt: skip


@rule("__getitem__")
def getitem(func, t, key):
    return _seen(t, func(_unpacked(func, t)._codes, key))


@rule("__get__")
def attribute(func, t, *owner):
    out = func(_unpacked(func, t)._codes)
    return _seen(t, out) if isinstance(out, _C.TensorBase) else out


@rule("clone")
def clone(func, t, **kwargs):
    return quantised_of(t._codes.clone(**kwargs), t._scale, t._zero_point, t._axis, t._packed)


@rule("empty_like")
def empty_like(func, t, **kwargs):
    return like(t, func(whole("empty_like", t)._codes, **kwargs))


# ---- moved -----------------------------------------------------------------------------------------------------------------


@rule(
    "index_select", "gather", "take", "flip", "roll", "repeat", "sort", "topk", "max", "min", "amax", "amin", "median",
    "upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d", "reflection_pad1d", "reflection_pad2d", "replication_pad2d",
    "channel_shuffle", "pixel_shuffle", "pixel_unshuffle",
)  # fmt: skip
def moved(func, t, *args, **kwargs):
    _refuse_more(func, args, kwargs)
    out = func(whole(named(func), t)._codes, *args, **kwargs)
    kind = t._codes.dtype
    if isinstance(out, _C.TensorBase):
        return like(t, out)
    return type(out)([like(t, x) if x.dtype is kind else x for x in out])


@rule("max_pool2d", "max_pool3d", "max_pool2d_with_indices", "max_pool3d_with_indices")
def max_pool(func, t, *args, **kwargs):
    kind = whole(named(func), t)._codes.dtype
    out = func(t._codes.to(dtypes.float32), *args, **kwargs)
    if isinstance(out, _C.TensorBase):
        return like(t, out.to(kind))
    return type(out)([like(t, out[0].to(kind)), out[1]])


@rule("interpolate", "upsample", "upsample_nearest")
def interpolate(func, t, size=None, scale_factor=None, mode="nearest", *args, **kwargs):
    if mode not in ("nearest", "nearest-exact"):
        uncaptured_codes(f"interpolate({mode}) of quantised tensors")
    return like(t, func(whole("interpolate", t)._codes, size, scale_factor, mode, *args, **kwargs))


# ---- computed --------------------------------------------------------------------------------------------------------------


@rule(
    "clamp", "clamp_min", "clamp_max", "clip", "gelu", "mean", "std",
    "avg_pool1d", "avg_pool2d", "avg_pool3d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "upsample_bilinear2d",
)  # fmt: skip
def computed(func, t, *args, **kwargs):
    _refuse_more(func, args, kwargs)
    out = func(numbers.values(whole(named(func), t)), *args, **kwargs)
    return numbers.quantised(out, t._scale, t._zero_point, t.dtype)


def _written(t, made, inplace=True):
    """``made``, or ``t`` with its codes."""
    if not inplace:
        return made
    t._codes.copy_(made._codes)
    return t


@rule("clamp_", "clamp_min_", "clamp_max_", "clip_", "relu_", "hardtanh_", "leaky_relu_", "threshold_")
def computed_in_place(func, t, *args, **kwargs):
    return _written(t, computed(getattr(aten, named(func)[:-1]), t, *args, **kwargs))


@rule("relu")
def relu(func, t, inplace=False):
    return _written(t, computed(aten.relu, t), inplace)


@rule("relu6")
def relu6(func, t, inplace=False):
    return _written(t, computed(aten.hardtanh, t, 0.0, 6.0), inplace)


@rule("hardtanh")
def hardtanh(func, t, min_val=-1.0, max_val=1.0, inplace=False):
    return _written(t, computed(aten.hardtanh, t, min_val, max_val), inplace)


@rule("leaky_relu")
def leaky_relu(func, t, negative_slope=0.01, inplace=False):
    return _written(t, computed(aten.leaky_relu, t, negative_slope), inplace)


@rule("threshold")
def threshold(func, t, threshold, value, inplace=False):
    return _written(t, computed(aten.threshold, t, threshold, value), inplace)


@rule("sigmoid", "hardsigmoid", "tanh")
def bounded(func, t, inplace=False):
    name = named(func)
    if inplace:
        uncaptured_codes(f"{name} in place")
    low, high = numbers.LIMITS[whole(name, t)._codes.dtype]
    scale, middle = (1 / 128, (high - low + 1) // 2) if name == "tanh" else (1 / 256, 0)
    return numbers.quantised(func(numbers.values(t)), scale, low + middle, t.dtype)


@rule(
    "eq", "ne", "lt", "le", "gt", "ge", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "greater", "greater_equal", "less",
    "less_equal", "not_equal",
)  # fmt: skip
def compared(func, a, b):
    a, b = (numbers.values(x) if isinstance(x, _C.TensorBase) and is_codes(x) else x for x in (a, b))
    return func(a, b)


# ---- joined and filled -----------------------------------------------------------------------------------------------------


def _alike(a, b) -> bool:
    """Whether both have the same scale and zero point. Of tensors that isn't known: what is computed for others is right for these, too."""
    if any(isinstance(x, _C.TensorBase) for x in (a._scale, a._zero_point, b._scale, b._zero_point)):
        return a is b
    return a._scale == b._scale and a._zero_point == b._zero_point


@rule("cat", "concat", "concatenate")
def cat(func, tensors, dim=0):
    first = whole("cat", tensors[0])
    for t in tensors:
        if whole("cat", t).dtype is not first.dtype:
            raise RuntimeError(f"cat: expected quantised tensors of one dtype, got {[t.dtype for t in tensors]}")
    if all([_alike(first, t) for t in tensors]):
        return like(first, aten.cat([t._codes for t in tensors], dim))
    joined = aten.cat([numbers.values(t) for t in tensors], dim)
    return numbers.quantised(joined, first._scale, first._zero_point, first.dtype)


@rule("stack")
def stack(func, tensors, dim=0):
    return cat(func, [t.unsqueeze(dim) for t in tensors], dim)


def _code(t, value):
    """The code of a number, a tensor without dimensions."""
    kind = t._codes.dtype
    scale, zero_point = (numbers.number(x, dtypes.float32) for x in (t._scale, t._zero_point))
    return numbers.codes_of(numbers.number(value, dtypes.float32), scale, zero_point, kind, *numbers.LIMITS[kind])


@rule("fill_")
def fill_(func, t, value):
    if isinstance(value, _C.TensorBase):
        uncaptured_codes("fill_ with a tensor")
    t._codes.copy_(_code(whole("fill_", t), value))
    return t


@rule("masked_fill")
def masked_fill(func, t, mask, value):
    if isinstance(value, _C.TensorBase):
        uncaptured_codes("masked_fill with a tensor")
    return like(t, aten.where(mask, _code(whole("masked_fill", t), value), t._codes))


@rule("constant_pad_nd")
def constant_pad_nd(func, t, pad, value=0):
    codes = whole("constant_pad_nd", t)._codes
    inside = aten.constant_pad_nd(aten.ones_like(codes, dtype=dtypes.bool_), pad, False)
    return like(t, aten.where(inside, aten.constant_pad_nd(codes, pad), _code(t, value)))


@rule("pad")
def pad(func, t, pad, mode="constant", value=None):
    if mode == "constant":
        return constant_pad_nd(func, t, pad, 0 if value is None else value)
    return like(t, func(whole("pad", t)._codes, pad, mode))


@rule("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_dropout")
def dropout(func, t, p=0.5, training=True, inplace=False):
    if training:
        uncaptured_codes(f"{named(func)} of quantised tensors in training")
    return t


@rule("cpu")
def cpu(func, t):
    return t


@rule("to")
def to(func, t, device=None, *args, **kwargs):
    if args or kwargs or str(device) != "cpu":
        uncaptured_codes("to() of a quantised tensor to something other than the CPU")
    return t


@rule("copy_")
def copy_(func, t, src, non_blocking=False):
    if not is_codes(t):
        raise RuntimeError(
            "Copying from quantized Tensor to non-quantized Tensor is not allowed, please use dequantize to get a float Tensor"
        )
    if is_codes(src):
        if t.dtype is not src.dtype or t._axis is not None or src._axis is not None or not _alike(t, src):
            uncaptured_codes("copy_ of a quantised tensor with another scale, which the target takes over")
        t._codes.copy_(src._codes)
        return t
    made = numbers.quantised(src, whole("copy_", t)._scale, t._zero_point, t.dtype)
    t._codes.copy_(made._codes)
    return t
