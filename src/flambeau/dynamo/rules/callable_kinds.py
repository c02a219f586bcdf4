"""Kinds of callables and of classes of the library: told by identity, class and place, without running the program's code."""

from __future__ import annotations

import os
import types

from flambeau import _C, _frame
from flambeau.base.weak import remembered

from .file_rules import PACKAGE, file_of, file_rule
from .library_classes import is_function
from .reflect import dict_of, is_a, module_of, mro_of, name_of, type_item

__all__ = [
    "class_call",
    "is_autograd_function",
    "is_compiled",
    "is_disabled",
    "is_function_mode_class",
    "is_library_module_call",
    "is_mode_method",
    "is_nn_module_class",
    "is_optimizer_class",
    "is_parameter_class",
    "is_plain_mode",
    "is_polyfill",
    "is_torch_callable",
    "unwrap_compiled",
]

POLYFILLS = os.path.join(PACKAGE, "dynamo", "variables", "functions", "polyfills.py")


def is_disabled(fn) -> bool:
    return is_a(fn, _frame.DisabledFunction)


def is_compiled(fn) -> bool:
    return is_a(fn, (_frame.CompiledFunction, _frame.FrozenFunction))


def unwrap_compiled(fn):
    while is_compiled(fn):
        fn = fn.fn
    return fn


def is_mode_method(fn: types.FunctionType) -> bool:
    """Methods of TorchFunctionMode and its plain subclass, which users' modes call through super()."""
    return fn.__name__ in ("__init__", "__torch_function__") and file_of(fn) == os.path.join(
        PACKAGE, "core", "modes.py"
    )


def is_polyfill(code: types.CodeType) -> bool:
    """Whether the code stands for a function of the interpreter, which has no frame."""
    return code.co_filename == POLYFILLS


def is_torch_callable(fn) -> bool:
    """An operator or function of the library that becomes a node: native function objects, operators, functions in its files."""
    if is_a(fn, type):
        return False
    if is_a(fn, (_C.Function, _C.Operator)):
        return True
    if type(fn) is types.FunctionType:
        f = file_of(fn)
        if f.startswith("<"):
            return str(fn.__globals__.get("__name__", "")).startswith("flambeau.") or module_of(fn).startswith(
                "flambeau."
            )
        return f.startswith(PACKAGE) and file_rule(f)[0] and not is_mode_method(fn)
    if is_a(fn, types.MethodType):
        owner = fn.__self__
        return is_torch_callable(fn.__func__) and (
            not is_a(owner, type) or is_autograd_function(owner) or module_of(owner).startswith("flambeau")
        )
    if is_a(fn, types.BuiltinFunctionType):
        return module_of(fn).startswith("flambeau")
    return is_function(type(fn)) and callable(fn) and not is_nn_module_class(type(fn))


def is_autograd_function(cls: type) -> bool:
    return any(name_of(c) == "Function" and module_of(c).startswith("flambeau.") for c in mro_of(cls))


def is_function_mode_class(cls: type) -> bool:
    return any(name_of(c) == "TorchFunctionMode" and module_of(c).startswith("flambeau.") for c in mro_of(cls))


def is_plain_mode(cls: type) -> bool:
    """A function mode made by the native base's own ``__new__``, which takes nothing."""
    return is_function_mode_class(cls) and is_a(type_item(cls, "__new__"), types.BuiltinFunctionType)


@remembered
def is_nn_module_class(cls: type) -> bool:
    return any(name_of(c) == "Module" and module_of(c).startswith("flambeau.nn") for c in mro_of(cls))


@remembered
def is_optimizer_class(cls: type) -> bool:
    return any(name_of(c) == "Optimizer" and module_of(c).startswith("flambeau.optim") for c in mro_of(cls))


@remembered
def is_parameter_class(cls: type) -> bool:
    return any(name_of(c) == "Parameter" and module_of(c).startswith("flambeau.nn") for c in mro_of(cls))


def class_call(cls: type):
    """What calling an instance of ``cls`` runs, or None."""
    return next((dict_of(c)["__call__"] for c in mro_of(cls) if "__call__" in dict_of(c)), None)


def is_library_module_call(call) -> bool:
    return type(call) is types.FunctionType and file_of(call).startswith(PACKAGE)
