"""The names that ``compile(options=)`` takes for the backend inductor: its settings, ours and PyTorch's (2.13).

A setting of PyTorch's that has no meaning here is passed over; a name that neither knows is refused.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping

from ..base.nearest import Absent

__all__ = ["check_options"]

# What `compile` and native loops read themselves.
OWN = frozenset(["guard_filter_fn", "fastmath", "cache", "parallel"])


def check_options(options: Mapping[str, object]) -> None:
    """RuntimeError for a name that is no setting, and for a value of another type than the setting's."""
    config = importlib.import_module("flambeau.inductor.settings").config
    for key, value in options.items():
        name = key.replace("-", "_")
        if name not in OWN and name not in config:
            raise RuntimeError(Absent(f"Unexpected optimization option {key}", name, lambda: OWN.union(config.names())))
        held = getattr(config, name, None) if name in config else None
        if isinstance(held, bool | int | float | str) and not _is_of(type(held), value):
            raise RuntimeError(
                f"Unexpected type of attr {key}, got {type(value).__name__} should be {type(held).__name__}"
            )


def _is_of(expected: type, value: object) -> bool:
    return type(value) is expected or (expected is float and type(value) is int)
