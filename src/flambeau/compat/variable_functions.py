"""``torch._VF``: ATen's operators as functions, under their own names, without what torch's Python functions add."""

from __future__ import annotations

import sys

from ..core.bindings import function
from .root import is_built

__all__: list[str] = []


def __getattr__(name: str):
    if name.startswith("__"):
        raise AttributeError(name)
    if is_built(name):
        found = function(name)
    else:
        found = getattr(sys.modules["flambeau"], name)
    globals()[name] = found
    return found
