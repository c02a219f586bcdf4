"""``torch.utils.hooks``."""

from __future__ import annotations

import warnings

from ..autograd.handles import RemovableHandle
from ..base.public import public_in

__all__ = ["BackwardHook", "RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]


def unserializable_hook(f):
    """Mark a hook of a tensor as one that saving leaves out with a warning."""
    f.__torch_unserializable__ = True
    return f


def warn_if_has_hooks(tensor) -> None:
    """Warn when ``tensor`` has hooks, which a pickle loses."""
    for hook in (getattr(tensor, "_backward_hooks", None) or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(
                f"backward hook {hook!r} on tensor will not be serialized.  If this is expected, you can decorate the function with "
                "@torch.utils.hooks.unserializable_hook to suppress this warning",
                stacklevel=2,
            )


@public_in("utils.hooks")
class BackwardHook:
    """PyTorch's internal helper of full backward hooks; modules here have their own."""

    def __init__(self, module, user_hooks, user_pre_hooks):
        raise NotImplementedError("torch.utils.hooks.BackwardHook: use Module.register_full_backward_hook")
