"""What happens at a call: trace through it, put it in the graph, or run it as ordinary Python. One place answers, and says why."""

from __future__ import annotations

import importlib
import logging
import os
import sys
import types
from collections.abc import Callable
from typing import Any

from flambeau import _frame
from flambeau.base.records import slotted

from .callable_kinds import class_call as class_call
from .callable_kinds import is_autograd_function as is_autograd_function
from .callable_kinds import is_compiled as is_compiled
from .callable_kinds import is_disabled as is_disabled
from .callable_kinds import is_function_mode_class as is_function_mode_class
from .callable_kinds import is_library_module_call as is_library_module_call
from .callable_kinds import is_mode_method
from .callable_kinds import is_nn_module_class as is_nn_module_class
from .callable_kinds import is_optimizer_class as is_optimizer_class
from .callable_kinds import is_parameter_class as is_parameter_class
from .callable_kinds import is_plain_mode as is_plain_mode
from .callable_kinds import is_polyfill as is_polyfill
from .callable_kinds import is_torch_callable as is_torch_callable
from .callable_kinds import unwrap_compiled as unwrap_compiled
from .disabled import disabled_module
from .disabled import disabled_modules as disabled_modules
from .disabled import warn_disabled as warn_disabled
from .file_rules import disable_path as disable_path
from .file_rules import enable_path as enable_path
from .file_rules import file_of as file_of
from .file_rules import skip_file as skip_file
from .frame_rules import CHECKPOINT as CHECKPOINT
from .frame_rules import frame_has_tensors as frame_has_tensors
from .frame_rules import has_tensor as has_tensor
from .frame_rules import is_library_value as is_library_value
from .frame_rules import is_package_code as is_package_code
from .frame_rules import runs_whole as runs_whole
from .frame_rules import skip_frame_reason as skip_frame_reason
from .marks import allow_in_graph as allow_in_graph
from .marks import allowed as allowed
from .marks import disallow_in_graph as disallow_in_graph
from .marks import disallowed as disallowed
from .marks import disallows_operators as disallows_operators
from .marks import forbid as forbid
from .marks import forbidden as forbidden
from .marks import forget as forget
from .marks import is_allowed as is_allowed
from .marks import is_disallowed as is_disallowed
from .marks import is_disallowed_method as is_disallowed_method
from .marks import substitutes as substitutes
from .reflect import is_a as is_a
from .reflect import module_of

# os.environ is an object that holds a dict of bytes.
ENVIRONMENT = frozenset(
    id(f.__code__)
    for f in (
        os.getenv,
        os._Environ.__getitem__,
        os._Environ.__iter__,
        os._Environ.__len__,
        os.environ.encodekey,
        os.environ.decodevalue,
    )
)
# Methods that only decide whether a message is wanted: where it isn't, nothing happens.
LOGGING = frozenset(
    id(getattr(cls, name).__code__)
    for cls in (logging.Logger, logging.LoggerAdapter)
    for name in ("debug", "info", "warning", "error", "exception", "critical", "log", "isEnabledFor")
)
# Attribute of functions that nested_compile_region made; "maker": of itself.
REGION = "_torchdynamo_nested_compile_region"
_MAKERS = ("flambeau.numpy.", "flambeau.func.", "flambeau.core.")
_QUESTIONS = ("get_", "is_", "are_", "has_")


@slotted
class Decision:
    """Whether calls of a Python function are traced through, and why."""

    inlined: bool
    why: str


def inline_reason(fn) -> Decision:
    code = getattr(fn, "__code__", None)
    if not isinstance(code, types.CodeType):
        return Decision(False, "not a Python function")
    flags = _frame.code_flags(code)
    if getattr(fn, "_torchdynamo_disable", False) or flags & _frame.SKIP_RECURSIVE:
        return Decision(False, "torch._dynamo.disable was applied to it")
    pattern = disabled_module(fn)
    if pattern is not None:
        return Decision(False, f"disable_module({pattern!r})")
    if is_mode_method(fn):
        return Decision(True, "a method of the library's function modes")
    if id(code) in ENVIRONMENT:  # code objects are compared by content otherwise, constants and all
        return Decision(True, "a reader of the environment")
    if id(code) in LOGGING:
        return Decision(True, "a message that may not be wanted")
    skip, why = skip_file(code.co_filename)
    return Decision(not skip, why)


def explain(fn) -> tuple[str, str]:
    """Whether calls of ``fn`` are traced through ("inline") or not ("skip"), and why."""
    if is_disallowed(fn):
        return "skip", "disallow_in_graph was called for it"
    if is_allowed(fn):
        return "inline", "goes into the graph as one node (allow_in_graph)"
    if is_torch_callable(fn):
        return "inline", "an operator of the library: one node"
    decision = inline_reason(fn)
    return "inline" if decision.inlined else "skip", decision.why


def may_act(fn) -> bool:
    """Whether ``fn`` is a Python function of the library that isn't known to be a question or to make tensors or functions only."""
    return (
        isinstance(fn, (types.FunctionType, types.MethodType))
        and not module_of(fn).startswith(_MAKERS)
        and not fn.__name__.startswith(_QUESTIONS)
        and not is_allowed(fn)
    )


def library_attr(path: str) -> Callable:
    """A name of the top-level namespace, e.g. ``"nn.functional.relu"``, without importing anything new."""
    root = sys.modules.get("flambeau") or importlib.import_module("flambeau")
    out: Any = root
    for part in path.split("."):
        out = getattr(out, part)
    return out
