"""Whether autocast is on, and to which dtype: the innermost block of the thread says it, outside of all what was set."""

from __future__ import annotations

import threading

from .. import _C
from ..base.dtypes import DType, bfloat16, float16
from ..core.modes import TorchFunctionMode

__all__ = ["Layer", "current", "state"]


class Layer(TorchFunctionMode):
    """What an autocast block puts on the stack of function modes."""

    is_autocast = True  # for capture, which doesn't trace it

    def __init__(self, device: str, enabled: bool, dtype: DType, cache: bool):
        self.device, self.enabled, self.dtype, self.cache = device, enabled, dtype, cache


class _State(threading.local):
    def __init__(self):
        self.enabled = {"cpu": False, "cuda": False}
        self.dtype = {"cpu": bfloat16, "cuda": float16}
        self.cache = True
        self.nesting = 0


state = _State()


def _innermost(device: str) -> Layer | None:
    if _C.tls("function_modes"):
        for mode in reversed(_C.stack("function_modes")):
            if isinstance(mode, Layer) and mode.device == device:
                return mode
    return None


def current(device: str) -> tuple[bool, DType | None, bool]:
    """(enabled, dtype, whether casts may be kept) for ``device``."""
    layer = _innermost(device)
    if layer is not None:
        return layer.enabled, layer.dtype, layer.cache
    return state.enabled.get(device, False), state.dtype.get(device), state.cache


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether autocast is on, for ``device_type`` where one is given."""
    return current(device_type)[0]


def is_any_autocast_enabled() -> bool:
    """Whether autocast is on for any device."""
    return any(current(device)[0] for device in state.enabled)


def set_autocast_enabled(device_type, enabled: bool | None = None) -> None:
    """``set_autocast_enabled("cpu", True)``; the old form with one argument is about "cuda"."""
    if enabled is None:
        device_type, enabled = "cuda", device_type
    state.enabled[device_type] = bool(enabled)


def get_autocast_dtype(device_type: str) -> DType:
    """The dtype that autocast computes in on a device."""
    if device_type not in state.dtype:
        raise RuntimeError(f"unknown device type for autocast in get_autocast_dtype: {device_type}")
    return current(device_type)[1]


def set_autocast_dtype(device_type: str, dtype: DType) -> None:
    """Let autocast compute in ``dtype`` on a device."""
    state.dtype[device_type] = dtype


def is_autocast_cpu_enabled() -> bool:
    """Whether autocast is on for the CPU."""
    return current("cpu")[0]


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """Turn autocast on or off for the CPU."""
    state.enabled["cpu"] = bool(enabled)


def get_autocast_cpu_dtype() -> DType:
    """The dtype that autocast computes in on the CPU."""
    return current("cpu")[1]


def set_autocast_cpu_dtype(dtype: DType) -> None:
    """Let autocast compute in ``dtype`` on the CPU."""
    state.dtype["cpu"] = dtype


def get_autocast_gpu_dtype() -> DType:
    """The dtype that autocast would compute in on a GPU."""
    return state.dtype["cuda"]


def set_autocast_gpu_dtype(dtype: DType) -> None:
    """Let autocast compute in ``dtype`` on a GPU."""
    state.dtype["cuda"] = dtype


def is_autocast_cache_enabled() -> bool:
    """Whether autocast keeps the casts of weights."""
    return current("cpu")[2]


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Let autocast keep the casts of weights, or not."""
    state.cache = bool(enabled)


def autocast_increment_nesting() -> int:
    """One block of autocast more; how many there are."""
    state.nesting += 1
    return state.nesting


def autocast_decrement_nesting() -> int:
    """One block of autocast less; how many there are."""
    state.nesting -= 1
    return state.nesting


def clear_autocast_cache() -> None:
    """Casts aren't kept between calls here: nothing to clear."""
