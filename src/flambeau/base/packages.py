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
        super().__setattr__(name, value)


def keep_exports(package: str) -> None:
    """From now on no import of a module takes the place of what ``package`` exports under the same name."""
    sys.modules[package].__class__ = _Package
