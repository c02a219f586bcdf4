"""The stacks of modes: objects that see every call of their kind made while they are on the stack.

A mode's handler runs with the mode off the stack, so calls inside it go to the next mode out. The depth of each stack is mirrored in the
native dispatch state: with empty stacks a call never looks here. Stacks are per thread.
"""

from __future__ import annotations

import contextlib
import threading

from .. import _C


class _Stacks(threading.local):
    def __init__(self):
        self.function: list = []
        self.dispatch: list = []


_stacks = _Stacks()


def _sync(name: str, stack: list) -> None:
    _C.tls(name, len(stack))


class _Mode:
    """Context manager pushing itself on its stack; re-enterable any number of times."""

    _stack_name: str

    def __enter__(self):
        stack = getattr(_stacks, self._stack_name)
        stack.append(self)
        _sync(self._stack_name + "_modes", stack)
        return self

    def __exit__(self, *exc):
        stack = getattr(_stacks, self._stack_name)
        stack.pop()
        _sync(self._stack_name + "_modes", stack)

    @classmethod
    def push(cls, *args, **kwargs):
        return cls(*args, **kwargs)


class TorchDispatchMode(_Mode):
    """Override ``__torch_dispatch__(self, func, types, args=(), kwargs=None)`` to see every ATen-level call."""

    _stack_name = "dispatch"

    def __init__(self, _dispatch_key=None):
        pass

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError(f"{type(self).__name__} must define __torch_dispatch__")


class BaseTorchDispatchMode(TorchDispatchMode):
    """Passes everything on."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class TorchFunctionMode(_Mode):
    """Override ``__torch_function__(self, func, types, args=(), kwargs=None)`` to see every call of the public API."""

    _stack_name = "function"

    def __init__(self):
        pass

    def __torch_function__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError(f"{type(self).__name__} must define __torch_function__")


class BaseTorchFunctionMode(TorchFunctionMode):
    """Passes everything on."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def dispatch_stack() -> list:
    """The active dispatch modes of this thread, outermost first (a copy)."""
    return list(_stacks.dispatch)


def function_stack() -> list:
    return list(_stacks.function)


def current_dispatch_mode():
    return _stacks.dispatch[-1] if _stacks.dispatch else None


def current_function_mode():
    return _stacks.function[-1] if _stacks.function else None


@contextlib.contextmanager
def popped(which: str):
    """The innermost mode, off the stack for the duration."""
    stack = getattr(_stacks, which)
    mode = stack.pop()
    depth = len(stack)
    _sync(which + "_modes", stack)
    try:
        yield mode
    finally:
        del stack[depth:]
        stack.append(mode)
        _sync(which + "_modes", stack)


@contextlib.contextmanager
def disabled(which: str = "dispatch"):
    """All modes of the kind off for the duration. Yields those that were on."""
    before = getattr(_stacks, which)
    setattr(_stacks, which, [])
    _sync(which + "_modes", [])
    try:
        yield list(before)
    finally:
        setattr(_stacks, which, before)
        _sync(which + "_modes", before)
