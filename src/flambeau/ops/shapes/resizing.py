"""A tensor's own shape and memory changed: ``resize_``, ``resize_as_``, ``set_``. Modes see them; what they do is in ``core/public.py`` and
``core/methods.py``, on tensors with memory of their own."""

from __future__ import annotations

from ...base.memory_format import preserve_format, suggested_format
from ...core import methods, public
from ...core.declare import composite
from ...core.operator import namespace

aten = namespace("aten")


@composite(
    "resize_(Tensor(a!) self, SymInt[] size, *, MemoryFormat? memory_format=None) -> Tensor(a!)",
    variants="",
    has_out=False,
)
def resize_(self, size, memory_format):
    return public.resize(self, tuple(size), memory_format)


@composite(
    "resize_as_(Tensor(a!) self, Tensor the_template, *, MemoryFormat? memory_format=None) -> Tensor(a!)",
    variants="",
    has_out=False,
)
def resize_as_(self, the_template, memory_format):
    """With ``preserve_format`` also in the memory format that the other tensor's strides suggest."""
    if memory_format is preserve_format:
        memory_format = suggested_format(the_template._shape, the_template._strides)
    return public.resize(self, tuple(the_template._shape), memory_format)


@composite("set_(Tensor(a!) self) -> Tensor(a!)", variants="", has_out=False)
def set_nothing(self):
    return methods.take_memory(self)


@composite("set_.source_Tensor(Tensor(a!) self, Tensor source) -> Tensor(a!)", variants="", has_out=False)
def set_tensor(self, source):
    return methods.take_memory(self, source)


@composite("set_.source_Storage(Tensor(a!) self, Storage source) -> Tensor(a!)", variants="", has_out=False)
def set_storage(self, source):
    return methods.take_memory(self, source)


@composite(
    "set_.source_Storage_storage_offset(Tensor(a!) self, Storage source, SymInt storage_offset, SymInt[] size, SymInt[] stride=[]) -> Tensor(a!)",
    variants="",
    has_out=False,
)
def set_part(self, source, storage_offset, size, stride):
    return methods.take_memory(self, source, storage_offset, size, stride)


@composite(
    "set_.source_Tensor_storage_offset(Tensor(a!) self, Tensor source, SymInt storage_offset, SymInt[] size, SymInt[] stride=[]) -> Tensor(a!)",
    variants="",
    has_out=False,
)
def set_part_of(self, source, storage_offset, size, stride):
    methods.check_source(self, source)
    return aten.set_.source_Storage_storage_offset(self, source._storage, storage_offset, size, stride)
