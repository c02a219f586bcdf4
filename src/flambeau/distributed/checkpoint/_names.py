"""The tensors of a model by their own names, whatever wraps it; whole tensors cut as others are."""

from __future__ import annotations

from ...modules.module import Module
from ..tensor import DTensor, distribute_tensor

__all__ = ["like", "named", "parameter_names"]

# What wrappers put into names.
_WRAPPERS = ("_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module")


def named(model: Module) -> dict[str, tuple[object, bool]]:
    """{own name: (tensor, whether it is a parameter)} of parameters and persistent buffers, also those that share a tensor."""
    found: dict = {}

    def visit(m: Module, prefix: str) -> None:
        for name, p in m._parameters.items():
            if p is not None:
                found[prefix + name] = p, True
        for name, b in m._buffers.items():
            if b is not None and name not in m._non_persistent_buffers_set:
                found[prefix + name] = b, False
        for name, child in m._modules.items():
            if child is not None:
                wraps = name in _WRAPPERS or _is_parallel(m)
                visit(child, prefix if wraps else f"{prefix}{name}.")

    visit(model, "")
    return found


def _is_parallel(m: Module) -> bool:
    return type(m).__name__ in ("DistributedDataParallel", "DataParallel") and list(m._modules) == ["module"]


def parameter_names(model: Module) -> dict[int, str]:
    """{id of a parameter: its first name}."""
    return {id(t): name for name, (t, is_parameter) in reversed(named(model).items()) if is_parameter}


def like(value, t):
    """A whole tensor cut as ``t`` is, and the other way round."""
    if isinstance(t, DTensor) and not isinstance(value, DTensor):
        return distribute_tensor(value.detach(), t.device_mesh, t.placements, src_data_rank=None)
    return value.full_tensor() if isinstance(value, DTensor) and not isinstance(t, DTensor) else value
