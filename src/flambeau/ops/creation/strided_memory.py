"""Empty tensors with given strides."""

from __future__ import annotations

from ...base import dtypes
from ...core.declare import composite, explicit
from ...core.operator import namespace
from .factories import OPTIONS

aten = namespace("aten")


def _reach(size, stride) -> int:
    """How many elements the memory has."""
    if len(size) != len(stride):
        raise RuntimeError(f"mismatch in length of strides and shape: {len(stride)} and {len(size)}")
    if any(s < 0 for s in stride):
        raise RuntimeError("Stride calculation overflowed: negative strides are not supported")
    return sum((n - 1) * s for n, s in zip(size, stride)) + 1 if all(size) else 0


def _laid_out(size, stride, dtype, device):
    flat = aten.empty.memory_format([_reach(size, stride)], dtype=dtype, device=device)
    return aten.as_strided.default(flat, list(size), list(stride))


@composite(f"empty_strided(SymInt[] size, SymInt[] stride, {OPTIONS}) -> Tensor", variants="function", has_out=False)
def empty_strided(size, stride, dtype, layout, device, pin_memory):
    return _laid_out(size, stride, dtype or dtypes.get_default_dtype(), device)


@explicit(
    f"new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, {OPTIONS}) -> Tensor",
    variants="method",
    has_out=False,
)
def new_empty_strided(self, size, stride, dtype, layout, device, pin_memory):
    return _laid_out(size, stride, dtype or self.dtype, device or self.device)


@new_empty_strided.override("batch")
def _new_empty_strided_batch(b, self, size, stride, dtype, layout, device, pin_memory):
    """The memory of the examples, one behind the other."""
    size, stride = [b.size, *size], [_reach(size, stride), *stride]
    return aten.new_empty_strided.default(self, size, stride, dtype=dtype, layout=layout, device=device)


# A factory: it reads no element.
new_empty_strided.derivative()


@composite(
    f"empty_permuted(SymInt[] size, int[] physical_layout, {OPTIONS}) -> Tensor", variants="function", has_out=False
)
def empty_permuted(size, physical_layout, dtype, layout, device, pin_memory):
    if len(physical_layout) != len(size):
        raise RuntimeError(
            f"Number of dimensions in size does not match the length of the physical_layout; i.e. len(size) = {len(size)} is not equal to len(physical_layout) = {len(physical_layout)}"
        )
    if sorted(physical_layout) != list(range(len(size))):
        raise RuntimeError(
            "Duplicate dim not allowed"
            if len(set(physical_layout)) != len(physical_layout)
            else f"Dimension out of range (expected to be between 0 and {len(size) - 1}, but got {list(physical_layout)}). NB: negative dims not "
            "currently supported"
        )
    stride, step = [0] * len(size), 1
    for d in reversed(physical_layout):
        stride[d] = step
        step *= max(size[d], 1)
    return _laid_out(size, stride, dtype or dtypes.get_default_dtype(), device)
