"""Subclasses that answer for their own metadata: ``_make_wrapper_subclass(..., dispatch_sizes_strides_policy="sizes")`` and its kin.

Sizes, strides, device or layout of such tensors are what ``__torch_dispatch__`` of their class says when it is handed ``aten.sym_size``,
``aten.sym_stride``, ``aten.dim``, ``aten.numel``, ``aten.is_contiguous``, ``prim.device`` or ``prim.layout``; None means what the tensor was made
with, NotImplemented is a TypeError. ``size``, ``stride`` and ``layout`` of Tensor ask for themselves where the class has ``_answers``; the
rest is put on the class.
"""

from __future__ import annotations

from typing import Any

from ..base import shapes
from ..base.memory_format import MemoryFormat, contiguous_format, has_format
from .operator import OpOverload, namespace

__all__ = ["answer", "layout_of", "size_of", "stride_of"]


def answer(cls: Any, sizes_strides: str | None, device: bool, layout: bool) -> None:
    """From now on tensors of ``cls`` are asked: for strides with the policy ``"strides"``, for sizes too with ``"sizes"``, for device and layout
    where these are true. RuntimeError for another policy."""
    if sizes_strides not in (None, "sizes", "strides"):
        raise RuntimeError(f"unknown dispatch_sizes_strides_policy {sizes_strides!r}: it is 'sizes' or 'strides'")
    answers, asked = set(cls._answers), dict[str, Any]()
    if sizes_strides is not None:
        answers.add("stride")
        asked["is_contiguous"] = _is_contiguous
    if sizes_strides == "sizes":
        answers.add("size")
        asked |= _SIZES
    if device:
        asked["device"] = property(lambda self: _asked(self, _prim("device"), default=self._device))
    if layout:
        answers.add("layout")
    cls._answers = frozenset(answers)
    for name, value in asked.items():
        if name not in vars(cls):
            setattr(cls, name, value)


def _prim(name: str) -> OpOverload:
    return getattr(namespace("prim"), name).default


def _asked(self: Any, op: OpOverload, *rest: Any, default: Any) -> Any:
    cls = type(self)
    result = cls.__torch_dispatch__(op, (cls,), (self, *rest), {})
    if result is NotImplemented:
        raise TypeError(
            f"Multiple dispatch failed for 'torch.ops.{op.namespace}.{op._opname}'; all __torch_dispatch__ handlers returned NotImplemented:\n"
            f"  - tensor subclass {cls}"
        )
    return default if result is None else result


def _one(values: Any, dim: int | None) -> Any:
    return values if dim is None else values[shapes.normalize_dim(dim, len(values))]


def stride_of(self, dim=None):
    """What ``stride(dim)`` is."""
    return _one(tuple(_asked(self, namespace("aten").sym_stride.default, default=self._strides)), dim)


def size_of(self, dim=None):
    """What ``size(dim)`` is."""
    return _one(shapes.Size(_asked(self, namespace("aten").sym_size.default, default=self._shape)), dim)


def layout_of(self, default: Any) -> Any:
    """What ``layout`` is; ``default`` when the class doesn't say."""
    return _asked(self, _prim("layout"), default=default)


def _dim(self):
    """The number of dimensions."""
    return _asked(self, namespace("aten").dim.default, default=self._ndim)


def _numel(self):
    """The number of elements."""
    return _asked(self, namespace("aten").numel.default, default=self._shape.numel())


def _is_contiguous(self, memory_format: MemoryFormat = contiguous_format):
    """Whether the elements lie row-major, or in another memory format."""
    packet = namespace("aten").is_contiguous
    if memory_format is contiguous_format:
        return _asked(self, packet.default, default=shapes.is_contiguous(self._shape, self._strides))
    default = has_format(self._shape, self._strides, memory_format)
    return _asked(self, packet.memory_format, memory_format, default=default)


_SIZES = {
    "shape": property(size_of),
    "dim": _dim,
    "ndimension": _dim,
    "ndim": property(_dim),
    "numel": _numel,
    "nelement": _numel,
}
