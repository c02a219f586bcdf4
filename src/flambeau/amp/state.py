"""Whether autocast is on, and to which dtype: for each device, in each thread."""

from __future__ import annotations

import threading

from ..base.dtypes import DType, bfloat16, float16

__all__ = ["state"]


class _State(threading.local):
    def __init__(self):
        self.enabled = {"cpu": False, "cuda": False}
        self.dtype = {"cpu": bfloat16, "cuda": float16}
        self.cache = True
        self.nesting = 0


state = _State()


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    return state.enabled.get(device_type, False)


def set_autocast_enabled(device_type, enabled: bool | None = None) -> None:
    """``set_autocast_enabled("cpu", True)``; the old form with one argument is about "cuda"."""
    if enabled is None:
        device_type, enabled = "cuda", device_type
    state.enabled[device_type] = bool(enabled)


def get_autocast_dtype(device_type: str) -> DType:
    if device_type not in state.dtype:
        raise RuntimeError(f"unknown device type for autocast in get_autocast_dtype: {device_type}")
    return state.dtype[device_type]


def set_autocast_dtype(device_type: str, dtype: DType) -> None:
    state.dtype[device_type] = dtype


def is_autocast_cpu_enabled() -> bool:
    return state.enabled["cpu"]


def set_autocast_cpu_enabled(enabled: bool) -> None:
    state.enabled["cpu"] = bool(enabled)


def get_autocast_cpu_dtype() -> DType:
    return state.dtype["cpu"]


def set_autocast_cpu_dtype(dtype: DType) -> None:
    state.dtype["cpu"] = dtype


def get_autocast_gpu_dtype() -> DType:
    return state.dtype["cuda"]


def set_autocast_gpu_dtype(dtype: DType) -> None:
    state.dtype["cuda"] = dtype


def is_autocast_cache_enabled() -> bool:
    return state.cache


def set_autocast_cache_enabled(enabled: bool) -> None:
    state.cache = bool(enabled)


def autocast_increment_nesting() -> int:
    state.nesting += 1
    return state.nesting


def autocast_decrement_nesting() -> int:
    state.nesting -= 1
    return state.nesting


def clear_autocast_cache() -> None:
    """Casts aren't kept between calls here: nothing to clear."""
