"""What a quantised tensor holds: a tensor without an array whose payload is an :class:`Affine`, integer codes with a scale and a zero point.

``c`` stands for ``(c - zero_point) * scale``. Operators reach the codes by the facet ``"quantized"`` (eager/quantized.py); everything above the
backend sees a tensor with shape, strides and a quantised dtype. Such tensors have no gradient. Capture
takes them apart (dynamo/variables/tensors/codes.py).
"""

from __future__ import annotations

import math
import reprlib
from typing import Any

import numpy as np

from .. import _C
from ..base import affine, dtypes
from ..base.public import NamedConstant, public_in
from ..base.records import slotted
from .operator import OpOverload
from .tensor import CPU, Tensor

__all__ = [
    "CODES",
    "PACKED",
    "QUANTISED",
    "Affine",
    "PackedWeight",
    "QScheme",
    "among",
    "checked",
    "dequantized",
    "described",
    "is_quantized",
    "like",
    "make",
    "parts",
    "quantised",
    "quantized_rule",
    "through_values",
    "whole",
]


@public_in("", "qscheme")
class QScheme(NamedConstant):
    """How codes are read: ``torch.per_tensor_affine`` and the like."""


per_tensor_affine, per_channel_affine, per_tensor_symmetric, per_channel_symmetric = map(
    QScheme, ("per_tensor_affine", "per_channel_affine", "per_tensor_symmetric", "per_channel_symmetric")
)
per_channel_affine_float_qparams = QScheme("per_channel_affine_float_qparams")

# The element type of the codes, by quantised dtype.
CODES = {
    dtypes.qint8: dtypes.int8,
    dtypes.quint8: dtypes.uint8,
    dtypes.qint32: dtypes.int32,
    dtypes.quint4x2: dtypes.uint8,
}
# Two codes of such a dtype share a byte.
PACKED = dtypes.quint4x2
QUANTISED = {code: kind for kind, code in CODES.items() if kind is not PACKED}


@slotted(eq=False)
class Affine:
    """``codes``: a plain tensor of int8, uint8 or int32. ``scale``, ``zero_point``: a float and an int; with ``axis``, a float64 and an int64
    tensor, or two of float32, with an entry for each index of that dimension. ``packed``: the shape, where codes have four bits and two share a
    byte; ``codes`` then is one row of bytes."""

    codes: Any
    scale: Any
    zero_point: Any
    axis: int | None = None
    packed: tuple[int, ...] | None = None

    @property
    def scheme(self) -> QScheme:
        if self.axis is None:
            return per_tensor_affine
        return per_channel_affine_float_qparams if self.zero_point._dtype is dtypes.float32 else per_channel_affine

    @property
    def array(self) -> np.ndarray:
        """The codes, one an element."""
        return (
            self.codes._array if self.packed is None else affine.unpacked(self.codes.contiguous()._array, self.packed)
        )

    @property
    def limits(self) -> tuple[int, int]:
        """The least and the greatest code."""
        return affine.range_of(self.codes._dtype.np) if self.packed is None else affine.FOUR_BITS

    @property
    def parameters(self):
        """(scale, zero point) as numbers, or as arrays that broadcast with the codes."""
        if self.axis is None:
            return self.scale, self.zero_point
        ndim = self.codes._ndim if self.packed is None else len(self.packed)
        return affine.along(self.scale._array, self.axis, ndim), affine.along(self.zero_point._array, self.axis, ndim)


class PackedWeight:
    """A record of a quantised weight and what belongs to it, which operators take as one argument (``linear_prepack``)."""

    __slots__ = ()


def described(record: Affine) -> tuple:
    """What files say beside the codes: (scheme, scale, zero point), and the axis where channels have their own."""
    if record.axis is None:
        return (per_tensor_affine, record.scale, record.zero_point)
    # Zero points that are floats are told by their dtype.
    return (per_channel_affine, record.scale, record.zero_point, record.axis)


def checked(codes, description, packed=None) -> Affine:
    """The record that :func:`described` says. RuntimeError where it says none."""
    shape = tuple(codes._shape) if packed is None else packed
    match description:
        case (scheme, float() as scale, int() as zero_point) if scheme is per_tensor_affine:
            made = Affine(codes, scale, zero_point, packed=packed)
            low, high = made.limits
            if low <= zero_point <= high:
                return made
        case (scheme, _C.TensorBase() as scale, _C.TensorBase() as zero_point, int() as axis) if (
            scheme is per_channel_affine or scheme is per_channel_affine_float_qparams
        ):
            # NOTE: the tensors themselves, not copies: a stream fills their memory later.
            sizes, kinds = {tuple(t._shape) for t in (scale, zero_point)}, (scale._dtype, zero_point._dtype)
            known = ((dtypes.float64, dtypes.int64), (dtypes.float32, dtypes.float32))
            if sizes == {shape[axis : axis + 1]} and kinds in known and axis >= 0:
                return Affine(codes, scale, zero_point, axis, packed)
    raise RuntimeError(
        f"invalid checkpoint: a quantised tensor of {codes._dtype} codes with {reprlib.repr(description)}"
    )


def parts(t) -> Affine | None:
    """The record of a quantised tensor, None for any other."""
    p = t._payload  # the array isn't looked at: stand-ins of call plans have none
    return p if isinstance(p, Affine) else None


def is_quantized(t) -> bool:
    # The dtype first: a body that is recorded as a program may ask for it, and not for a payload.
    return isinstance(t, _C.TensorBase) and t._dtype in CODES and parts(t) is not None


def among(args, kwargs) -> bool:
    """Whether an argument is quantised, or a list has one that is."""
    for a in (*args, *kwargs.values()):
        if isinstance(a, _C.TensorBase):
            if a._array is None and parts(a) is not None:
                return True
        elif isinstance(a, (list, tuple)) and any(map(is_quantized, a)):
            return True
    return False


def make(record: Affine, cls=Tensor) -> Tensor:
    """The tensor with these codes."""
    codes, shape, strides, kind = record.codes, record.packed, None, PACKED
    if shape is None:
        shape, strides, kind = codes._shape, codes._strides, QUANTISED[codes._dtype]
    else:
        strides = tuple(math.prod(shape[k + 1 :]) for k in range(len(shape)))
    out = _C.without_data(cls, shape, strides, kind, CPU, codes.storage_offset(), None)
    out._payload = record
    return out


def like(t, codes) -> Tensor:
    """Other codes, read as those of ``t``, which is quantised as a whole."""
    p = parts(t)
    return make(Affine(codes, p.scale, p.zero_point))


def quantised(x: np.ndarray, scale: float, zero_point: int, dtype) -> Tensor:
    """The tensor of the values ``x``, quantised as a whole."""
    if dtype is PACKED:
        codes = affine.packed(affine.codes(x, scale, zero_point, np.uint8, affine.FOUR_BITS))
        return make(Affine(_C.from_array(codes), float(scale), int(zero_point), packed=tuple(x.shape)))
    codes = affine.codes(x, scale, zero_point, CODES[dtype].np)
    return make(Affine(_C.from_array(codes), float(scale), int(zero_point)))


def whole(name: str, t) -> Affine:
    """The record of an argument of the operator ``name`` that has to be quantised as a whole. RuntimeError for any other."""
    p = parts(t)
    if p is None:
        raise RuntimeError(f"{name}: expected a quantised tensor, got one of {t._dtype}")
    if p.axis is not None or p.packed is not None:
        raise RuntimeError(
            f"{name}: expected a tensor of bytes that is quantised per tensor, got {p.scheme} of {t._dtype}"
        )
    return p


def through_values(op: OpOverload, t, *args) -> Tensor:
    """``op`` of the values of ``t``, quantised as ``t`` is."""
    p = whole(op.name(), t)
    positional, named = op.split((_C.computed(dequantized(t)), *args))
    return quantised(op(*positional, **named)._array, p.scale, p.zero_point, t._dtype)


def dequantized(t) -> np.ndarray:
    """The values of a quantised tensor, in float32."""
    p = parts(t)
    return affine.values(p.array, *p.parameters)


def quantized_rule(*ops: OpOverload):
    """What operators do with quantised arguments: ``fn(*all arguments in schema order)`` on tensors, below autograd."""

    def wrap(fn):
        for op in ops:
            op.override("quantized", fn)
        return fn

    return wrap
