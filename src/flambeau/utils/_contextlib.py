"""``torch.utils._contextlib``: context managers that are decorators too, of functions and of generators."""

from __future__ import annotations

import functools
import inspect
from typing import Any

from ..autograd.generator_mode import generator_under

__all__: list[str] = []


class _NoParamDecoratorContextManager:
    """Base: subclasses define ``__enter__`` and ``__exit__``. ``cls(fn)`` decorates; ``with cls():`` is a block."""

    def __new__(cls, fn: Any = None, *args: Any, **kwargs: Any):
        self = super().__new__(cls)
        if fn is None or not callable(fn):
            return self
        self.__init__()  # type: ignore[misc]
        return self(fn)

    def clone(self):
        """What each call of a decorated function enters."""
        return type(self)()

    def __enter__(self) -> None:
        raise NotImplementedError(f"{type(self).__name__} must define __enter__")

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        raise NotImplementedError(f"{type(self).__name__} must define __exit__")

    def __call__(self, fn):
        if inspect.isgeneratorfunction(fn):
            return generator_under(self.clone, fn)

        @functools.wraps(fn)
        def decorated(*args, **kwargs):
            with self.clone():
                return fn(*args, **kwargs)

        return decorated


class _DecoratorContextManager(_NoParamDecoratorContextManager):
    """Base of those with arguments: ``cls(...)`` is a block and a decorator; ``clone`` makes an equal one."""

    def __new__(cls, *args: Any, **kwargs: Any):
        return object.__new__(cls)
