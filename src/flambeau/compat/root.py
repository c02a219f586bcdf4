"""Names of the root namespace that ``flambeau/__init__.py`` doesn't hold: the section "" of the tables, and every module there is."""

from __future__ import annotations

import importlib
import importlib.util
import sys

from ..core.bindings import LATER, function
from ..core.operator import namespace
from ..ops.aten_names import NAMES
from .aliases import ALIASES
from .namespaces import SECTIONS, make, parse

__all__ = ["find", "names"]

_MODULES = {
    *(n for n in (*ALIASES, *SECTIONS) if n and "." not in n and not n.startswith("+")),
    *("amp", "distributions", "serialization", "masked", "export"),
}


def names() -> set[str]:
    return {n for n in parse("") if n} | _MODULES


def find(name: str):
    """(the object,), or None when there is none of that name."""
    if name == "torch":  # ``torch.torch.Tensor``: PyTorch's package imports itself
        return (sys.modules["flambeau"],)
    if name and name in parse(""):
        return (make("", name),)
    if name in _MODULES and importlib.util.find_spec(f"flambeau.{name}") is not None:
        return (importlib.import_module(f"flambeau.{name}"),)
    if name in LATER or (name in NAMES and namespace("aten")._packet(name) is not None):
        return (function(name),)  # operators without a function of their own: torch.constant_pad_nd
    return None
