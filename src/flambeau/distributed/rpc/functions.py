"""Functions that other workers call."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

__all__ = ["async_execution"]

_MARK = "_wrapped_async_rpc_function"


def async_execution(fn: Callable) -> Callable:
    """``fn`` returns a Future: the caller gets its value, and no thread of the worker waits for it. Also around a staticmethod or classmethod's
    function, and inside of them."""

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    setattr(wrapper, _MARK, fn)
    return wrapper


def is_async(function: Any) -> bool:
    return hasattr(function, _MARK)


class Unfinished:
    """What a function returns that isn't marked itself, for the result of one that is."""

    def __init__(self, future: Any):
        self.future = future
