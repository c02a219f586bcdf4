"""Modules whose intermediate values are computed again in the backward: wrappers that leave the parameters' names as they are."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Iterator

from ..autograd.graph import save_on_cpu
from ..modules.module import Module
from ..utils.checkpoint import checkpoint
from .fsdp.wrap import recursive_wrap

__all__ = [
    "ActivationWrapper",
    "CheckpointImpl",
    "CheckpointWrapper",
    "OffloadWrapper",
    "apply_activation_checkpointing",
    "checkpoint_wrapper",
    "offload_wrapper",
]

_NAME = "_checkpoint_wrapped_module"
_PREFIX = f"{_NAME}."


class CheckpointImpl(enum.Enum):
    """Which way of ``torch.utils.checkpoint``."""

    REENTRANT = enum.auto()
    NO_REENTRANT = enum.auto()


class ActivationWrapper(Module):
    """``mod`` under its own names. Base of the following."""

    def __init__(self, mod: Module):
        super().__init__()
        self._modules[_NAME] = mod
        self.register_state_dict_post_hook(_without_prefix)
        self._register_load_state_dict_pre_hook(_with_prefix)

    def __getattr__(self, name: str):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self._modules[_NAME], name)

    def __getitem__(self, key):
        return self._modules[_NAME][key]

    def named_parameters(self, *args, **kwargs) -> Iterator:
        """Without the wrapper's name."""
        for name, p in super().named_parameters(*args, **kwargs):
            yield name.replace(_PREFIX, ""), p


def _without_prefix(module, state_dict, prefix, local_metadata) -> None:
    for key in [k for k in state_dict if k.startswith(f"{prefix}{_PREFIX}")]:
        state_dict[prefix + key[len(prefix) + len(_PREFIX) :]] = state_dict.pop(key)


def _with_prefix(state_dict, prefix, *args) -> None:
    for key in [k for k in state_dict if k.startswith(prefix) and not k.startswith(f"{prefix}{_PREFIX}")]:
        state_dict[f"{prefix}{_PREFIX}{key[len(prefix) :]}"] = state_dict.pop(key)


class CheckpointWrapper(ActivationWrapper):
    """Calls ``mod`` by ``checkpoint_fn`` (``torch.utils.checkpoint.checkpoint`` unless given) with the further keywords."""

    def __init__(
        self,
        mod: Module,
        checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
        checkpoint_fn: Callable | None = None,
        **checkpoint_fn_kwargs,
    ):
        super().__init__(mod)
        self.checkpoint_impl = checkpoint_impl
        reentrant = {} if checkpoint_fn else {"use_reentrant": checkpoint_impl is CheckpointImpl.REENTRANT}
        self.checkpoint_fn = functools.partial(checkpoint_fn or checkpoint, **reentrant, **checkpoint_fn_kwargs)

    def forward(self, *args, **kwargs):
        wrapped = self._modules[_NAME]
        if self.checkpoint_impl is CheckpointImpl.REENTRANT and kwargs:
            # It passes tensors on by position only.
            names = list(kwargs)
            n = len(args)
            return self.checkpoint_fn(
                lambda *all_: wrapped(*all_[:n], **dict(zip(names, all_[n:]))), *args, *kwargs.values()
            )
        return self.checkpoint_fn(wrapped, *args, **kwargs)


class OffloadWrapper(ActivationWrapper):
    """Calls ``mod`` with what is saved for the backward kept by the CPU."""

    def forward(self, *args, **kwargs):
        with save_on_cpu(pin_memory=True):
            return self._modules[_NAME](*args, **kwargs)


def checkpoint_wrapper(
    module: Module,
    checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
    checkpoint_fn: Callable | None = None,
    **checkpoint_fn_kwargs,
) -> Module:
    """``module`` in a CheckpointWrapper."""
    return CheckpointWrapper(module, checkpoint_impl, checkpoint_fn, **checkpoint_fn_kwargs)


def offload_wrapper(module: Module) -> Module:
    """``module`` in an OffloadWrapper."""
    return OffloadWrapper(module)


def apply_activation_checkpointing(
    model: Module,
    checkpoint_wrapper_fn: Callable = checkpoint_wrapper,
    check_fn: Callable | None = None,
    auto_wrap_policy: Callable | None = None,
) -> None:
    """Wrap the submodules for which ``check_fn(module)`` is true (all, without one), or that a policy of ``fsdp.wrap`` picks, in place."""
    wanted = check_fn or (lambda module: True)

    def by_check(module: Module, recurse: bool, **kwargs) -> bool:
        return recurse or wanted(module)

    recursive_wrap(model, auto_wrap_policy or by_check, checkpoint_wrapper_fn, set())
