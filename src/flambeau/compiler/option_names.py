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
    """RuntimeError for a name that is no setting."""
    config = importlib.import_module("flambeau.inductor.settings").config
    for key in options:
        name = key.replace("-", "_")
        if name not in OWN and name not in config:
            raise RuntimeError(Absent(f"Unexpected optimization option {key}", name, lambda: OWN.union(config.names())))
