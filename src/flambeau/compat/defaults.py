"""Process-wide defaults and switches of the root namespace: device of factories, determinism, precision, warnings."""

from __future__ import annotations

import importlib

from ..base import accelerator, dtypes
from ..base.device import Device, as_device, current_device, set_default
from ..base.switches import SWITCHES


def get_default_device() -> Device:
    """The device of factories that name none."""
    return current_device()


def set_default_device(device) -> None:
    """Factories that name no device use ``device`` ("cpu", "cuda" or "meta"); None gives the CPU. RuntimeError for a device that isn't there."""
    device = as_device(device)
    if device.type not in ("cpu", "meta") and not (device.type == "cuda" and accelerator.count()):
        raise RuntimeError(f"Torch not compiled with {device.type.upper()} enabled")
    set_default(device)


def get_device_module(device=None):
    """The namespace of a device: ``torch.cpu`` for "cpu"."""
    kind = as_device(device).type if device is not None else "cpu"
    return importlib.import_module(f"flambeau.{kind}")


def set_default_tensor_type(t) -> None:
    """The element type of ``t`` (``torch.DoubleTensor``, ``torch.cuda.FloatTensor``, or its name) becomes the default, and its device."""
    name = t if isinstance(t, str) else f"{getattr(t, '__module__', '')}.{getattr(t, '__name__', '')}"
    kind = {"FloatTensor": "float32", "DoubleTensor": "float64", "HalfTensor": "float16", "BFloat16Tensor": "bfloat16"}
    if name.rpartition(".")[2] not in kind:
        raise TypeError("invalid type object: only floating-point types are supported as the default type")
    device = "cuda" if name.startswith("torch.cuda.") else "cpu"
    if device != current_device().type:
        set_default_device(device)
    dtypes.set_default_dtype(getattr(dtypes, kind[name.rpartition(".")[2]]))


def set_flush_denormal(mode: bool) -> bool:
    """Denormal numbers are kept here: False, as on a system that can't flush them."""
    return False


def get_float32_matmul_precision() -> str:
    """What was set: "highest", "high" or "medium"."""
    return SWITCHES["float32_matmul_precision"]


def set_float32_matmul_precision(precision: str) -> None:
    """Whether products of float32 may round their factors ("high", "medium"): cuBLASLt does so on CUDA; on the CPU they are computed in float32 at
    each setting."""
    if precision not in ("highest", "high", "medium"):
        raise RuntimeError(f"Unknown float32_matmul_precision: {precision}")
    SWITCHES["float32_matmul_precision"] = precision


def get_num_interop_threads() -> int:
    """What ``set_num_interop_threads`` set."""
    return SWITCHES["interop_threads"]


def set_num_interop_threads(n: int) -> None:
    """Remembered: operators run one after the other here."""
    if n < 1:
        raise RuntimeError(f"set_num_interop_threads expects a positive integer, got {n}")
    SWITCHES["interop_threads"] = n


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Remembered: every algorithm here is deterministic. TypeError for a mode that is no bool."""
    if not isinstance(mode, bool):
        raise TypeError(
            f"_set_deterministic_algorithms(): argument 'mode' (position 1) must be bool, not {type(mode).__name__}"
        )
    SWITCHES["deterministic"] = (1 if warn_only else 2) if mode else 0


def are_deterministic_algorithms_enabled() -> bool:
    """What ``use_deterministic_algorithms`` set."""
    return SWITCHES["deterministic"] > 0


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether only a warning was asked for."""
    return SWITCHES["deterministic"] == 1


def get_deterministic_debug_mode() -> int:
    """0 ("default"), 1 ("warn") or 2 ("error")."""
    return SWITCHES["deterministic"]


def set_deterministic_debug_mode(mode) -> None:
    """Remembered: "default", "warn" or "error", or 0 to 2. RuntimeError for others."""
    levels = {"default": 0, "warn": 1, "error": 2}
    if mode not in levels and mode not in levels.values():
        raise RuntimeError(
            f"invalid value of debug_mode, expected 0, 1, 2, 'default', 'warn' or 'error', but got {mode}"
        )
    SWITCHES["deterministic"] = levels.get(mode, mode)


def is_warn_always_enabled() -> bool:
    """What ``set_warn_always`` set."""
    return SWITCHES["warn_always"]


def set_warn_always(on: bool) -> None:
    """Remembered: whether warnings are to come at each call."""
    SWITCHES["warn_always"] = bool(on)
