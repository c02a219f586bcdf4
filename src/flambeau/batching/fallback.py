"""What is done with an operator that has no batching rule: it is called once an example. Whether it may be, and whether it says so, are settings.

PyTorch's names for them: ``torch._C._functorch._set_vmap_fallback_enabled`` and ``torch._C._debug_only_display_vmap_fallback_warnings``.
"""

from __future__ import annotations

import warnings

from ..base.records import slotted
from ..core.operator import OpOverload

__all__ = [
    "fallback_allowed",
    "is_fallback_enabled",
    "is_warning_enabled",
    "set_fallback_enabled",
    "set_warning_enabled",
]


@slotted(frozen=False)
class _Settings:
    enabled: bool = True
    warns: bool = False


_settings = _Settings()


def is_fallback_enabled() -> bool:
    """Whether operators without a batching rule are called once an example; True unless it was switched off."""
    return _settings.enabled


def set_fallback_enabled(enabled: bool) -> None:
    """With False an operator without a batching rule is a RuntimeError."""
    _settings.enabled = bool(enabled)


def is_warning_enabled() -> bool:
    """Whether the slow way warns; False unless it was switched on."""
    return _settings.warns


def set_warning_enabled(enabled: bool) -> None:
    """With True each call that goes the slow way is a UserWarning that names the operator."""
    _settings.warns = bool(enabled)


def fallback_allowed(op: OpOverload, size: int) -> None:
    """Called before ``op`` is run once an example of ``size``. RuntimeError when it may not be."""
    name = op.name()
    if not _settings.enabled:
        raise RuntimeError(
            f"vmap: {name} has no batching rule, and the fallback, which calls it once an example, is switched off"
        )
    if size == 0:
        raise RuntimeError(
            f"vmap: {name} has no batching rule and is run once an example. "
            "The fallback path does not support vmap over dims of size 0"
        )
    if _settings.warns:
        warnings.warn(
            f"There is a performance drop because we have not yet implemented the batching rule for {name}. "
            "op.override('batch', fn) gives it one.",
            stacklevel=2,
        )
