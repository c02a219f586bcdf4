"""Handlers of the override "lower": they run the rules of native kernels (core/native_kernels), for a compiled graph or for an eager call."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any, ClassVar

__all__ = ["Handler"]


class Handler:
    """``rules``: modules whose public functions take a handler first. They are methods of it: ``h.scan(val, x, dim, False)``."""

    rules: ClassVar[tuple[ModuleType, ...]] = ()

    def __getattr__(self, name: str) -> Any:
        for module in type(self).rules:
            if name in module.__all__:
                return functools.partial(getattr(module, name), self)
        raise AttributeError(f"{type(self).__name__} has no {name}")
