"""What the first loop that gets past the quick looks imports."""

import importlib
from typing import Any

# A quarter of what a first compilation would import.
_LATE = {
    "elements_of": "elements",
    "reads_arrays": "reading",
    "run_natively": "running",
    "try_collecting": "running",
    "try_function": "running",
}


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(f".{_LATE[name]}", __package__), name)
    return value
