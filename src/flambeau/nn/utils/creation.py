"""Making and reshaping modules."""

from __future__ import annotations

import inspect

from ...base.memory_format import MemoryFormat
from ...modules.module import Module

__all__ = [
    "skip_init",
    "convert_conv2d_weight_memory_format",
    "convert_conv3d_weight_memory_format",
]


def skip_init(module_cls: type[Module], *args, **kwargs) -> Module:
    """The module without initialised parameters: made on the meta device, then given memory."""
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    device = kwargs.pop("device", "cpu")
    return module_cls(*args, **kwargs, device="meta").to_empty(device=device)


def _convert_weights(module, memory_format, kinds: tuple[str, ...]):
    for m in module.modules():
        if any(c.__name__ in kinds for c in type(m).__mro__):
            m.weight.data = m.weight.detach().clone(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module: Module, memory_format: MemoryFormat) -> Module:
    """Lay the weights of every two-dimensional convolution below ``module`` out in ``memory_format``. Returns ``module``."""
    return _convert_weights(module, memory_format, ("Conv2d", "ConvTranspose2d"))


def convert_conv3d_weight_memory_format(module: Module, memory_format: MemoryFormat) -> Module:
    """Lay the weights of every three-dimensional convolution below ``module`` out in ``memory_format``. Returns ``module``."""
    return _convert_weights(module, memory_format, ("Conv3d", "ConvTranspose3d"))
