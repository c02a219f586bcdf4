"""Functions of ``torch._higher_order_ops`` that capture traces through: ``InvokeQuant``, ``register_hook_op``, ``inline_asm_elementwise``."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from ..base.compiling import is_compiling
from .wrap import invoke_quant_packed

__all__ = ["InvokeQuant", "inline_asm_elementwise", "register_hook_op"]


@dataclasses.dataclass(frozen=True)
class InvokeQuant:
    """A caller of functions whose calls stay together in the captured graph, as one node ``invoke_quant_packed(subgraph, *operands,
    quant_options=self)`` with the ``scheme`` that was given: a backend finds them and puts a kernel of its own there. What is computed is the
    function. ``codegen_low_precision`` is for such a backend."""

    codegen_low_precision: bool = True

    def __call__(self, fn: Callable, *args: Any, scheme: str | None = None, **kwargs: Any) -> Any:
        """``fn(*args, **kwargs)``, which returns a tuple of tensors."""
        if not is_compiling():
            return fn(*args, **kwargs)
        if scheme is not None:
            kwargs["scheme"] = scheme
        return invoke_quant_packed(fn, *args, **kwargs, quant_options=self)


def register_hook_op(tensor: Any, hook_body: Callable, *freevars: Any) -> Any:
    """``tensor`` itself, whose gradient becomes ``hook_body(gradient, *freevars)``: ``Tensor.register_hook`` as a function."""
    tensor.register_hook(lambda gradient: hook_body(gradient, *freevars))
    return tensor


def inline_asm_elementwise(
    *inputs: Any, asm_str: str, constraints: str, dtype: Any, is_pure: bool = True, pack: int = 1
) -> Any:
    """A line of a device's assembler for each element, which PyTorch has for CUDA. RuntimeError for tensors of the host, as there;
    NotImplementedError for a device's, since flambeau's device kernels are made from the loop IR alone."""
    if not inputs:
        raise ValueError("inline_asm_elementwise requires at least one input tensor")
    if any(x.device.type != "cuda" for x in inputs):
        raise RuntimeError("inline_asm_elementwise only supports CUDA tensors")
    raise NotImplementedError(f"inline_asm_elementwise: assembler in a kernel ({asm_str!r}) is not built")
