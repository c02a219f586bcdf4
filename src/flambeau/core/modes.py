"""Modes: objects that see every call of their kind made while they are on the stack.

A mode's handler runs with the mode off the stack, so calls inside it go to the next mode out. The stacks belong to the native dispatch
state of the thread (csrc/core/state.c); nothing here keeps a copy.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from .. import _C
from ..base.public import public_in


def _plain_methods_only(cls: type, name: str) -> None:
    """A handler that is a class method wouldn't know its mode: using one is an error, as in PyTorch."""
    if isinstance(cls.__dict__.get(name), classmethod):

        def refuse(self, *args, **kwargs):
            raise RuntimeError(f"{cls.__name__}.{name}: classmethod is not supported, please make it a plain method")

        setattr(cls, name, refuse)


@public_in("utils._python_dispatch")
class TorchDispatchMode(_C.DispatchModeBase):
    """Override ``__torch_dispatch__(self, func, types, args=(), kwargs=None)`` to see every ATen-level call."""

    sees_parts = False  # True: composites come as what they are made of here, not as the calls that PyTorch would show
    sees_composites = False  # True: every composite of ATen comes as one call

    def __init__(self, _dispatch_key=None):
        pass

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        _plain_methods_only(cls, "__torch_dispatch__")

    @classmethod
    def push(cls, *args, **kwargs):
        return cls(*args, **kwargs)

    def becoming(self, tensor, view):
        """``tensor`` is about to get the sizes, strides and place of ``view``, a view of it (``unsqueeze_`` and its kin)."""

    def resized(self, tensor, name: str):
        """``tensor`` is about to get another shape or memory by the method ``name``, which is no operator."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError(f"{type(self).__name__} must define __torch_dispatch__")


@public_in("utils._python_dispatch")
class BaseTorchDispatchMode(TorchDispatchMode):
    """Passes everything on."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class TorchFunctionMode(_C.FunctionModeBase):
    """Override ``__torch_function__(self, func, types, args=(), kwargs=None)`` to see every call of the public API."""

    def __init__(self):
        pass

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        _plain_methods_only(cls, "__torch_function__")

    @classmethod
    def push(cls, *args, **kwargs):
        return cls(*args, **kwargs)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError(f"{type(self).__name__} must define __torch_function__")


class BaseTorchFunctionMode(TorchFunctionMode):
    """Passes everything on."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def dispatch_stack() -> list:
    """The active dispatch modes of this thread, outermost first (a copy)."""
    return list(_C.stack("dispatch_modes"))


def tell_resized(tensor, name: str) -> None:
    """Tell the active modes of a method that gives ``tensor`` another shape or memory."""
    for mode in _C.stack("dispatch_modes"):
        if isinstance(mode, TorchDispatchMode):
            mode.resized(tensor, name)


def function_stack() -> list:
    return list(_C.stack("function_modes"))


def current_dispatch_mode():
    return _C.innermost("dispatch_modes")


def current_function_mode():
    return _C.innermost("function_modes")


def popped(which: str):
    """Context manager: the innermost mode ("dispatch" or "function"), off the stack for the duration."""
    return _C.Guard(pop=which + "_modes")


def disabled(which: str = "dispatch"):
    """Context manager: all modes of the kind off for the duration. Yields those that were on."""
    return _C.Guard(clear=which + "_modes")


@contextlib.contextmanager
def without(kind: type) -> Iterator[list]:
    """No dispatch mode of the class is on within the block; others stay. Yields those that were, outermost first."""
    stack = dispatch_stack()
    off = [mode for mode in stack if isinstance(mode, kind)]
    if not off:
        yield off
        return
    with disabled("dispatch"), contextlib.ExitStack() as others:
        for mode in stack:
            if mode not in off:
                others.enter_context(mode)
        yield off
