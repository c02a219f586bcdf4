"""Modes and device contexts that are on when a compiled function is called.

They are off while tracing. Function modes are then traced as if the function had entered them, and are off while the graph runs: what they do
is in it. Dispatch modes see the operators of the graph when it runs; a backend whose kernels are not operators is not asked under them.
What is on, and of which classes, is guarded (guards/process.py).
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable

from flambeau import _C
from flambeau.base.process_state import autocast_settings
from flambeau.base.switches import SWITCHES
from flambeau.core import modes
from flambeau.core.modes import TorchDispatchMode

from ..exc import SkipFrame, unsupported
from ..guards.source import CallSource, ConstSource
from ..rules import trace_rules
from ..rules.reflect import module_of
from . import autocast

__all__ = ["ActiveModes", "OperatorCheck"]


def nth_function_mode(n: int, _):
    """The n-th function mode from outside."""
    return modes.function_stack()[n]


def trait(backend: Callable, name: str) -> bool:
    """Whether a backend says of itself: ``hides_operators`` (its kernels are not operators), ``reads_memory`` (its code takes the data of its
    inputs, so a transform's tensors are not for it)."""
    while isinstance(backend, functools.partial):
        backend = backend.func
    return getattr(backend, name, False)


def without_function_modes(fn: Callable) -> Callable:
    def run(*args):
        with modes.disabled("function"):
            return fn(*args)

    return run


class ActiveModes:
    def __init__(self):
        self.dispatch, self.function = modes.dispatch_stack(), modes.function_stack()
        self.transforms = bool(_C.tls("transforms"))  # their depth is guarded; the graph runs on their tensors
        self.autocast = autocast_settings()
        if self.autocast is not None:
            if not all(getattr(m, "is_autocast", False) for m in self.function):
                raise SkipFrame("function modes and autocast are on")
            self.function = ()
        if any(module_of(type(m)).startswith("flambeau.") for m in (*self.dispatch, *self.function)):
            raise SkipFrame("a mode of the library is on")

    @contextlib.contextmanager
    def off(self):
        """Modes, transforms and overrides don't see capture's own operations on tensors. Those of the program's operations are traced."""
        with (
            modes.disabled("dispatch"),
            modes.disabled("function"),
            _C.Guard(clear="transforms"),
            _C.Guard(clear="saved_hooks"),  # of the user's: they are for what the call saves
            _C.Guard(function_disabled=1),
        ):
            yield

    def enter(self, tx) -> None:
        """The function modes become variables of the trace. (What is on is guarded with the rest of the process.)"""
        none = ConstSource(None, "modes")
        if self.autocast is not None:
            autocast.begin(tx, self.autocast)
        for i, mode in enumerate(self.function):
            source = CallSource(none, functools.partial(nth_function_mode, i), f"function_mode_{i}")
            tx.output.blocks.function_modes.append(tx.wrap(mode, source))

    def backend_call(self, compiler, gm, examples) -> Callable:
        """What runs the graph at a call."""
        backend = compiler.backend
        hidden = trait(backend, "hides_operators")
        whole = self.transforms or SWITCHES["anomaly"]  # the operator that fails is to be named
        without_data = any(isinstance(x, _C.TensorBase) and x._device.type == "meta" for x in examples)
        plainly = hidden if self.dispatch or without_data else (hidden or trait(backend, "reads_memory")) and whole
        fn = gm.forward if plainly else compiler.call_backend(gm, examples)
        return without_function_modes(fn) if (self.function or self.autocast) and callable(fn) else fn


class OperatorCheck(TorchDispatchMode):
    """Looks at the operators that a call comes down to, for those that disallow_in_graph was called for."""

    sees_parts = True

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if trace_rules.is_disallowed(func):
            unsupported(
                "disallowed",
                f"a call that comes down to the disallowed operator {func}",
                "disallow_in_graph was called for it.",
                "allow_in_graph undoes it.",
            )
        return func(*args, **(kwargs or {}))
