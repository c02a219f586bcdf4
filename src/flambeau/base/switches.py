"""Switches of the process that programs set and read. What obeys a switch reads it here; capture guards the ones that :mod:`.process_state` lists."""

from __future__ import annotations

from typing import Any

__all__ = ["SWITCHES"]

SWITCHES: dict[str, Any] = {
    "deterministic": 0,  # 0: any algorithm; 1: warn where one isn't deterministic; 2: raise
    "float32_matmul_precision": "highest",
    "anomaly": False,  # written by autograd/anomaly.py alone, which tells the engine
    "anomaly_check_nan": True,
    "warn_always": False,
    "interop_threads": 1,
}
