"""functools.cached_property without its lock, which CPython 3.11 still takes: two threads may compute a value twice, and a fork in the middle
leaves nothing locked in the child."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["cached_property"]


class cached_property:
    def __init__(self, compute: Callable):
        self.compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance, owner: type | None = None):
        if instance is None:
            return self
        value = instance.__dict__[self.name] = self.compute(instance)
        return value
