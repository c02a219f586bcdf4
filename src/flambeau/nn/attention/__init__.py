"""``torch.nn.attention``: which implementation of attention is asked for. There is one here, so the choice changes nothing."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Callable, Iterable, Iterator

__all__ = ["SDPBackend", "WARN_FOR_UNFUSED_KERNELS", "sdpa_kernel"]

WARN_FOR_UNFUSED_KERNELS = False


class SDPBackend(enum.IntEnum):
    """Ways to compute attention; MATH is the one there is."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextlib.contextmanager
def sdpa_kernel(backends: SDPBackend | Iterable[SDPBackend], set_priority: bool = False) -> Iterator[None]:
    """Accepts a backend or a list of them; attention is computed the same way."""
    for backend in [backends] if isinstance(backends, SDPBackend) else backends:
        if not isinstance(backend, SDPBackend):
            raise AssertionError("Backend must be an instance of SDPBackend or a list of SDPBackend instances")
    yield


def current_flash_attention_impl() -> None:
    """None: there are no flash-attention kernels to choose from."""


def list_flash_attention_impls() -> list[str]:
    """Names of the implementations of flash attention that can be chosen: none."""
    return []


def activate_flash_attention_impl(impl: str) -> None:
    """ValueError: there are no implementations to choose from."""
    raise ValueError(f"Unknown flash attention impl {impl!r}: there are none in flambeau")


def register_flash_attention_impl(name: str, *, register_fn: Callable) -> None:
    """NotImplementedError: attention is compiled here, from ``scaled_dot_product_attention``."""
    raise NotImplementedError("register_flash_attention_impl: flambeau has no flash-attention kernels")


def restore_flash_attention_impl() -> None:
    """Back to the only implementation."""
