"""What a handler gets that runs in the middle of an import of its own thread: a signal's, the collector's, a finaliser, a tracer.

The interpreter hands such a handler the module as far as it is, since the import can't go on before the handler ends.
"""

from __future__ import annotations

import functools
import importlib
import types
from collections.abc import Callable
from typing import Any

from .upper_levels import ask

__all__ = ["compile_later", "is_whole"]


def is_whole(name: str) -> bool:
    """Load the module. False where its thread is in the middle of that."""
    return _is_whole(importlib.import_module(name))


def _is_whole(module: types.ModuleType) -> bool:
    return not getattr(module.__spec__, "_initializing", False)


def compile_later(model: Any = None, **options: Any) -> Any:
    """``torch.compile`` while the compiler is being loaded: a function that runs as it is written and is compiled by its first call after that.
    What isn't a plain function is returned as it is."""
    if model is None:
        return functools.partial(compile_later, **options)
    if not isinstance(model, type(compile_later)):
        return model
    compiled: Callable | None = None

    @functools.wraps(model)
    def run(*args, **kwargs):
        nonlocal compiled
        if compiled is None:
            compiler = ask("compiler")
            if not _is_whole(compiler):
                return model(*args, **kwargs)
            compiled = compiler.compile(model, **options)
        return compiled(*args, **kwargs)

    return run
