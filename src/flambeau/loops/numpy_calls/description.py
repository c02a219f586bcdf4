"""What a kernel tells Python of a call of NumPy's: the text of a tuple of literals, which :mod:`.emitting` writes and :mod:`.performing` reads."""

from __future__ import annotations

import ast
import functools
import importlib
from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple

from ...base.numpy_kernels import served

__all__ = ["ArgumentKind", "CallDescription", "path_of"]


class ArgumentKind(Enum):
    """How an argument is given: as an array, as an array without dimensions that stands for NumPy's or Python's number, or as a literal of the
    text."""

    ARRAY = "a"
    NUMPY_NUMBER = "s"
    PYTHON_NUMBER = "n"
    LITERAL = "v"


class CallDescription(NamedTuple):
    """``arguments``: (kind, value of a literal) of each; ``results``: how many arrays it gives."""

    function: Callable
    arguments: tuple[tuple[ArgumentKind, Any], ...]
    options: dict[str, Any]
    results: int

    def printed(self) -> str:
        arguments = tuple((kind.value, value) for kind, value in self.arguments)
        return repr((*path_of(self.function), arguments, self.options, self.results))

    @staticmethod
    @functools.lru_cache(1024)
    def parsed(text: str) -> CallDescription:
        """What the text says, of the function that NumPy's is served by."""
        module, name, arguments, options, results = ast.literal_eval(text)
        function = served(getattr(importlib.import_module(module), name))
        return CallDescription(
            function, tuple((ArgumentKind(kind), value) for kind, value in arguments), options, results
        )


@functools.lru_cache(256)
def path_of(f) -> tuple[str, str] | None:
    """(module, name) by which a function is found again."""
    for module in (getattr(f, "__module__", None), "numpy", "scipy.special"):
        if module is not None and getattr(importlib.import_module(module), f.__name__, None) is f:
            return module, f.__name__
    return None
