"""``torch.nn.utils._named_member_accessor``: tensors of a module exchanged by name."""

from __future__ import annotations

from ... import _C
from ...core.tensor import Tensor
from ...modules.module import Module

__all__ = ["set_tensor", "swap_tensor"]


def swap_tensor(module: Module, name: str, tensor: Tensor | None, allow_missing: bool = False) -> Tensor | None:
    """Put ``tensor`` (None: nothing) in the place of the parameter, buffer or attribute ``name`` of ``module``; what was there.

    No hook runs, and a parameter may become a plain tensor. KeyError for a name with a dot or none at all, TypeError for what is no tensor;
    AttributeError when nothing has the name, unless ``allow_missing``: then None comes back.
    """
    if name == "" or "." in name:
        raise KeyError(f'tensor name can\'t be empty or contain ".", got {name!r}')
    if tensor is not None and not isinstance(tensor, _C.TensorBase):
        raise TypeError(f"{tensor} is not an instance of torch.Tensor")
    place = next((d for d in (module._parameters, module._buffers) if name in d), module.__dict__)
    before = place.get(name)
    if name not in place and not allow_missing:
        raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
    if before is not None and not isinstance(before, _C.TensorBase):
        raise TypeError(f"{name}: {before} is not an instance of torch.Tensor")
    if tensor is None and place is module.__dict__:
        place.pop(name, None)
    else:
        place[name] = tensor
    return before


def set_tensor(module: Module, name: str, tensor: Tensor | None) -> None:
    """:func:`swap_tensor` for a name that may be new."""
    swap_tensor(module, name, tensor, allow_missing=True)
