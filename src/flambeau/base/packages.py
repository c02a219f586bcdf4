"""Packages that export a function under the name of one of their modules (``autograd.gradcheck``, ``export.unflatten``).

The import system binds a module to its package each time it is imported under another name, as the ``torch`` hook does it, and would
put the module in the function's place.
"""

from __future__ import annotations

import sys
import types

__all__ = ["keep_exports"]


class _Package(types.ModuleType):
    def __setattr__(self, name, value):
        held = self.__dict__.get(name)
        if isinstance(value, types.ModuleType) and held is not None and not isinstance(held, types.ModuleType):
            return
        if isinstance(value, types.ModuleType) and name in self.__dict__.get("_exported_when_loaded", ()):
            value = getattr(value, name)
        super().__setattr__(name, value)


def keep_exports(package: str, *later: str) -> None:
    """No later import of a module replaces the export of ``package`` with the same name.

    ``later`` names modules that aren't loaded yet: when one is, ``package`` exports its member of that name.
    """
    module = sys.modules[package]
    module.__class__ = _Package
    if later:
        module._exported_when_loaded = later  # type: ignore[attr-defined]
