"""Process-wide defaults and switches of the root namespace: device of factories, determinism, precision, warnings."""

from __future__ import annotations

import importlib

from ..base import dtypes
from ..base.device import Device, as_device, current_device, set_default

_state = {
    "matmul": "highest",
    "deterministic": 0,
    "warn_always": False,
    "interop": 1,
    "anomaly": False,
    "anomaly_nan": True,
}


def get_default_device() -> Device:
    """The device of factories that name none."""
    return current_device()


def set_default_device(device) -> None:
    """Factories that name no device use ``device`` ("cpu" or "meta"); None gives the CPU. RuntimeError for a device that isn't there."""
    device = as_device(device)
    if device.type not in ("cpu", "meta"):
        raise RuntimeError(f"Torch not compiled with {device.type.upper()} enabled")
    set_default(device)


def get_device_module(device=None):
    """The namespace of a device: ``torch.cpu`` for "cpu"."""
    kind = as_device(device).type if device is not None else "cpu"
    return importlib.import_module(f"flambeau.{kind}")


def set_default_tensor_type(t) -> None:
    """The element type of ``t`` (``torch.DoubleTensor``, or its name) becomes the default."""
    name = t if isinstance(t, str) else t.__name__
    kind = {"FloatTensor": "float32", "DoubleTensor": "float64", "HalfTensor": "float16", "BFloat16Tensor": "bfloat16"}
    if name.rpartition(".")[2] not in kind:
        raise TypeError("only floating-point types are supported as the default type")
    dtypes.set_default_dtype(getattr(dtypes, kind[name.rpartition(".")[2]]))


def set_flush_denormal(mode: bool) -> bool:
    """Denormal numbers are kept here: False, as on a system that can't flush them."""
    return False


def get_float32_matmul_precision() -> str:
    return _state["matmul"]


def set_float32_matmul_precision(precision: str) -> None:
    """Remembered; products of float32 are computed in float32 at each setting."""
    if precision not in ("highest", "high", "medium"):
        raise RuntimeError(f"Unknown float32_matmul_precision: {precision}")
    _state["matmul"] = precision


def get_num_interop_threads() -> int:
    return _state["interop"]


def set_num_interop_threads(n: int) -> None:
    """Remembered: operators run one after the other here."""
    if n < 1:
        raise RuntimeError(f"set_num_interop_threads expects a positive integer, got {n}")
    _state["interop"] = n


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Remembered: every algorithm here is deterministic."""
    _state["deterministic"] = (1 if warn_only else 2) if mode else 0


def are_deterministic_algorithms_enabled() -> bool:
    return _state["deterministic"] > 0


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    return _state["deterministic"] == 1


def get_deterministic_debug_mode() -> int:
    return _state["deterministic"]


def set_deterministic_debug_mode(mode) -> None:
    levels = {"default": 0, "warn": 1, "error": 2}
    if mode not in levels and mode not in levels.values():
        raise RuntimeError(
            f"invalid value of debug_mode, expected 0, 1, 2, 'default', 'warn' or 'error', but got {mode}"
        )
    _state["deterministic"] = levels.get(mode, mode)


def is_warn_always_enabled() -> bool:
    return _state["warn_always"]


def set_warn_always(on: bool) -> None:
    _state["warn_always"] = bool(on)


def is_anomaly_enabled() -> bool:
    return _state["anomaly"]


def is_anomaly_check_nan_enabled() -> bool:
    return _state["anomaly_nan"]


def set_anomaly_enabled(mode: bool, check_nan: bool = True) -> None:
    _state["anomaly"], _state["anomaly_nan"] = bool(mode), bool(check_nan)
