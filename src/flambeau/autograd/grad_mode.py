"""Switches of gradient recording. Each is a context manager, and a decorator when called without arguments.

They are guards of the native dispatch state (csrc/core/state.c): entering and leaving can't be interrupted half-way.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from typing import Any

from .. import _C


def is_grad_enabled() -> bool:
    """Whether operations are recorded for derivatives now."""
    return bool(_C.tls("grad_enabled"))


def _set_grad_enabled(mode: bool) -> None:
    """The switch without a context."""
    _C.tls("grad_enabled", int(bool(mode)))


class _Switch(_C.Guard):
    """Context manager and decorator over one field of the dispatch state."""

    def __call__(self, fn) -> Any:
        if inspect.isclass(fn):
            warnings.warn(
                "Decorating classes is deprecated and will be disabled in future versions. You should only decorate functions or methods. To "
                "preserve the current behavior of class decoration, you can directly decorate the `__init__` method and nothing else.",
                FutureWarning,
                stacklevel=2,
            )
            fn.__init__ = self(fn.__init__)
            return fn
        if inspect.isgeneratorfunction(fn):
            from .generator_mode import generator_under

            return generator_under(self.clone, fn)

        @functools.wraps(fn)
        def wrapped(*args, **kwargs):
            with self.clone():
                return fn(*args, **kwargs)

        return wrapped

    def clone(self):
        return type(self)()


class no_grad(_Switch):
    """Nothing is recorded."""

    def __new__(cls, fn=None) -> Any:
        self = super().__new__(cls)
        if fn is not None:
            self.__init__()
            return self(fn)
        return self

    def __init__(self, fn=None):
        super().__init__(grad_enabled=0)


class enable_grad(no_grad):
    """Recording is on, also inside no_grad."""

    def __init__(self, fn=None):
        _Switch.__init__(self, grad_enabled=1)


class set_grad_enabled(_Switch):
    """Takes effect at once; as a context manager it restores the state before."""

    def __init__(self, mode: bool):
        if not isinstance(mode, bool):
            raise TypeError(
                f"set_grad_enabled(): argument 'enabled' (position 1) must be bool, not {type(mode).__name__}"
            )
        self.mode = bool(mode)
        self._initial = _C.tls("grad_enabled")
        super().__init__(grad_enabled=int(self.mode), grad_before=self._initial)
        _C.tls("grad_enabled", int(self.mode))

    def __call__(self, fn):
        _C.tls("grad_enabled", self._initial)
        return super().__call__(fn)

    def clone(self):
        return set_grad_enabled(self.mode)


class inference_mode(_Switch):
    """As no_grad; what is made inside can't be saved for a backward pass, nor asked for a gradient or written outside."""

    def __new__(cls, mode=True) -> Any:
        self = super().__new__(cls)
        if callable(mode):
            self.__init__(True)
            return self(mode)
        return self

    def __init__(self, mode=True):
        self.mode = mode if isinstance(mode, bool) else True
        super().__init__(grad_enabled=int(not self.mode), inference=int(self.mode))

    def clone(self):
        return inference_mode(self.mode)


def is_inference_mode_enabled() -> bool:
    """Whether a block of ``inference_mode`` is running."""
    return bool(_C.tls("inference"))


class set_multithreading_enabled:
    """Accepted for programs that set it: a pass runs in the thread that asks for it, so there is nothing to switch."""

    _enabled = True

    def __init__(self, mode: bool):
        self._before = set_multithreading_enabled._enabled
        set_multithreading_enabled._enabled = bool(mode)

    def __enter__(self):
        return None

    def __exit__(self, *exc):
        set_multithreading_enabled._enabled = self._before


def is_multithreading_enabled() -> bool:
    """What set_multithreading_enabled was last told."""
    return set_multithreading_enabled._enabled
