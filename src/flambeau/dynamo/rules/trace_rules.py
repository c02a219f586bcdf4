"""What happens at a call: trace through it, put it in the graph, or run it as ordinary Python. One place answers, and says why."""

from __future__ import annotations

import collections.abc
import copy
import copyreg
import fnmatch
import functools
import importlib
import itertools
import logging
import os
import sys
import types
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from flambeau import _C, _frame
from flambeau.base.installed import SITE, STDLIB
from flambeau.base.weak import Marks, Noted, remembered
from flambeau.core.operator import namespace

from .library_classes import is_function
from .reflect import dict_of, instance_dict, is_a, module_of, mro_of, name_of, type_item

__all__ = [
    "allow_in_graph",
    "disallow_in_graph",
    "explain",
    "inline_reason",
    "is_allowed",
    "is_compiled",
    "is_disabled",
    "is_disallowed",
    "is_nn_module_class",
    "is_torch_callable",
    "skip_file",
]

PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
# Library code that is Python for users to read and for capture to trace: modules, optimisers, example programs.
EXAMPLES = os.path.join(PACKAGE, "examples") + os.sep
INLINE_IN_PACKAGE = (
    *(os.path.join(PACKAGE, d) + os.sep for d in ("modules", "nn", "ao", "optim", "distributions")),
    EXAMPLES,
    os.path.join(PACKAGE, "nested") + os.sep,  # wrapper classes
    os.path.join(PACKAGE, "ops", "affine", "traced") + os.sep,
    os.path.join(PACKAGE, "compat", "masked_tensor.py"),
    os.path.join(PACKAGE, "aot", "traced_calls.py"),
    os.path.join(PACKAGE, "compat", "jit_traced.py"),
    os.path.join(PACKAGE, "compat", "torchscript") + os.sep,  # operators of TorchScript's own
    os.path.join(PACKAGE, "amp", "grad_scaler.py"),  # which keeps tensors that it makes
    os.path.join(PACKAGE, "ops", "lists", "adam.py"),  # the rule that optimisers share with fused operators
    os.path.join(PACKAGE, "autograd", "generator_mode.py"),
    os.path.join(PACKAGE, "distributed", "functional_collectives.py"),
    os.path.join(PACKAGE, "compiler", "numpy_wrap.py"),
    os.path.join(PACKAGE, "numpy", "in_python.py"),
    os.path.join(PACKAGE, "utils", "checkpoint_sequence.py"),
    os.path.join(PACKAGE, "compiler", "regions.py"),
    os.path.join(PACKAGE, "export", "exported_program.py"),  # calls of exported programs
    os.path.join(PACKAGE, "export", "constraints.py"),
    os.path.join(PACKAGE, "export", "structure.py"),
    os.path.join(PACKAGE, "dynamo", "variables", "functions", "polyfills.py"),
)
NOT_INLINED_IN_PACKAGE = (
    os.path.join(PACKAGE, "nn", "functional.py"),
    os.path.join(PACKAGE, "nn", "functional") + os.sep,
    os.path.join(PACKAGE, "distributions", "validation.py"),  # a check of the graph
)
INLINE_STDLIB = (
    "functools",
    "contextlib",
    "collections",
    "dataclasses",
    "copy",
    "copyreg",
    "operator",
    "enum",
    "abc",
    "typing",
)
# Traced where the program calls them; their own frames are never captured.
TRACED_STDLIB = (
    "_collections_abc", "_weakrefset", "argparse", "bisect", "calendar", "difflib", "fractions", "graphlib", "heapq", "inspect", "numbers",
    "pprint", "random", "reprlib", "statistics", "string", "textwrap", "types", "weakref",
)  # fmt: skip
COPIES = frozenset(f.__code__.co_filename for f in (copy.deepcopy, copyreg.__newobj__))
MIXINS = collections.abc.Mapping.get.__code__.co_filename
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
REGION = (
    "_torchdynamo_nested_compile_region"  # attribute of functions that nested_compile_region made; "maker": of itself
)

allowed, disallowed = Marks(), Marks()  # callables and operators
forbidden = Noted()  # why it must not be called in captured code
disabled_paths: set[str] = set()
disabled_modules: set[str] = set()  # patterns of names
substitutes = Noted()  # of what is called: the function that is traced instead
inline_modules: set[str] = set()


def file_of(code_or_fn) -> str:
    code = getattr(code_or_fn, "__code__", code_or_fn)
    return getattr(code, "co_filename", "")


def _module_of(path: str) -> str:
    """The module, or the package, of a file of the standard library."""
    return path[len(STDLIB) :].split(os.sep)[0].removesuffix(".py")


@functools.lru_cache(maxsize=4096)
def _file_rule(filename: str) -> tuple[bool, str]:
    """(skip, why)."""
    if filename == MIXINS:
        return False, "mixin methods of the abstract containers"
    if filename.startswith("<frozen"):
        return True, "a frozen module of the interpreter"
    path = os.path.abspath(filename) if not filename.startswith("<") else filename
    if path.startswith(PACKAGE):
        if path.startswith(INLINE_IN_PACKAGE) and not path.startswith(NOT_INLINED_IN_PACKAGE):
            return False, "library modules are traced through"
        return True, "the library itself"
    if path.startswith(SITE):
        top = next(path[len(s) :] for s in SITE if path.startswith(s)).split(os.sep)[0]
        if top in ("numpy", "scipy", "llvmlite", "optree", "bytecode", "_pytest", "pytest", "rich", "matplotlib"):
            return True, f"a library with C parts ({top})"
        return False, "a third-party package in Python"
    if path.startswith(STDLIB):
        name = _module_of(path)
        if name in INLINE_STDLIB or name in TRACED_STDLIB:
            return False, "a small Python module of the standard library"
        return True, "the standard library"
    return False, "user code"


def skip_file(filename: str) -> tuple[bool, str]:
    for p in disabled_paths:
        f = os.path.abspath(filename)
        if f == p or f.startswith(p + os.sep):
            return True, f"disable_path({p!r})"
    return _file_rule(filename)


def disable_path(path: str) -> None:
    disabled_paths.add(os.path.abspath(path))


def enable_path(path: str) -> None:
    disabled_paths.discard(os.path.abspath(path))


def disabled_module(fn) -> str | None:
    """The pattern that the module of ``fn`` is disabled by."""
    if not disabled_modules:
        return None
    name = module_of(fn) or fn.__globals__.get("__name__") or ""
    return next((p for p in disabled_modules if fnmatch.fnmatchcase(name, p)), None)


def inline_reason(fn) -> tuple[str, str]:
    """("inline" or "skip", why) for a Python function."""
    code = getattr(fn, "__code__", None)
    if not isinstance(code, types.CodeType):
        return "skip", "not a Python function"
    flags = _frame.code_flags(code)
    if getattr(fn, "_torchdynamo_disable", False) or flags & _frame.SKIP_RECURSIVE:
        return "skip", "torch._dynamo.disable was applied to it"
    pattern = disabled_module(fn)
    if pattern is not None:
        return "skip", f"disable_module({pattern!r})"
    if is_mode_method(fn):
        return "inline", "a method of the library's function modes"
    if id(code) in ENVIRONMENT:  # code objects are compared by content otherwise, constants and all
        return "inline", "a reader of the environment"
    if id(code) in LOGGING:
        return "inline", "a message that may not be wanted"
    skip, why = skip_file(code.co_filename)
    return ("skip" if skip else "inline"), why


def explain(fn) -> tuple[str, str]:
    """Whether calls of ``fn`` are traced through ("inline") or not ("skip"), and why."""
    if is_disallowed(fn):
        return "skip", "disallow_in_graph was called for it"
    if is_allowed(fn):
        return "inline", "goes into the graph as one node (allow_in_graph)"
    if is_torch_callable(fn):
        return "inline", "an operator of the library: one node"
    return inline_reason(fn)


# -- allow / disallow --


def _each(fn) -> list[Any]:
    """What the rule is for; ``"ns::*"`` is a namespace of operators."""
    return [
        namespace(f.removesuffix("::*")) if isinstance(f, str) and f.endswith("::*") else f
        for f in (fn if isinstance(fn, (list, tuple)) else (fn,))
    ]


def allow_in_graph(fn):
    """``fn`` becomes one node of the graph; nothing in it is looked at. Takes a callable or a list of them; undoes disallow_in_graph."""
    for f in _each(fn):
        if not callable(f) and not is_namespace(f):
            raise AssertionError(f"allow_in_graph expects a callable, got {name_of(type(f))}")
        disallowed.discard(f)
        for o in overloads(f):
            disallowed.discard(o)
        if not is_namespace(f):
            allowed.add(f)
    return fn


def disallow_in_graph(fn):
    """Calls of ``fn`` break the graph and run eagerly. Takes a callable, an operator namespace, or a list of them."""
    for f in _each(fn):
        if not callable(f) and not is_namespace(f):
            raise AssertionError(f"disallow_in_graph expects a callable, got {name_of(type(f))}")
        if type(f) is types.FunctionType and not is_torch_callable(f) and not is_allowed(f):
            raise RuntimeError(
                f"disallow_in_graph is for operators, which are nodes of the graph; {f.__qualname__} is a function that is traced through. "
                "Use torch._dynamo.disable for it."
            )
        allowed.discard(f)
        disallowed.add(f)
        for o in overloads(f):
            disallowed.add(o)
    return fn


def forbid(fn, why: str) -> None:
    """Captured code that calls ``fn`` is an error, not a graph break."""
    forbidden[fn] = why


def forget(fn) -> None:
    allowed.discard(fn)
    disallowed.discard(fn)


def is_namespace(f) -> bool:
    return module_of(type(f)).startswith("flambeau.") and "namespace" in name_of(type(f)).lower()


def overloads(f) -> list[Any]:
    names = getattr(f, "overloads", None)
    if callable(names) and module_of(type(f)).startswith("flambeau."):
        return [getattr(f, n) for n in names()]
    return []


def is_disallowed(fn) -> bool:
    if fn in disallowed:
        return True
    if not disallowed or not module_of(type(fn)).startswith("flambeau."):
        return False
    packet = getattr(fn, "overloadpacket", None) or getattr(fn, "_overloadpacket", None)
    if packet is not None and packet in disallowed and not overloads(packet):
        return True
    name = (
        getattr(fn, "_qualified_op_name", None)
        or (fn.name() if callable(getattr(fn, "name", None)) else None)
        or str(fn)
    )
    ns = name.replace("::", ".").split(".")[0]
    return any(is_namespace(d) and getattr(d, "name", getattr(d, "_name", None)) == ns for d in disallowed)


def disallows_operators() -> bool:
    """Whether any operator (not a function above it) is disallowed."""
    return any(hasattr(f, "_schema") or is_namespace(f) for f in disallowed)


def is_disallowed_method(name: str, cls_attr) -> bool:
    return cls_attr is not None and cls_attr in disallowed


def is_allowed(fn) -> bool:
    return fn in allowed


# -- kinds of callables --


def is_disabled(fn) -> bool:
    return is_a(fn, _frame.DisabledFunction)


def warn_disabled(fn) -> None:
    """One line for each disabled function that is met without a reason: they are easily left behind after debugging."""
    inner = fn.fn if is_disabled(fn) else fn
    if getattr(fn, "_torchdynamo_disable_msg", None) or inner in _warned_disabled:
        return
    _warned_disabled.add(inner)
    code = getattr(inner, "__code__", None)
    where = f" ({code.co_filename}:{code.co_firstlineno})" if code is not None else ""
    name = getattr(inner, "__qualname__", repr(inner))
    warnings.warn(
        f"torch.compile met {name}{where}, on which torch._dynamo.disable was used: it breaks the graph. "
        "Give disable a reason= if that is meant to stay.",
        UserWarning,
        stacklevel=2,
    )


_warned_disabled = Marks()


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


POLYFILLS = os.path.join(PACKAGE, "dynamo", "variables", "functions", "polyfills.py")


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
        return f.startswith(PACKAGE) and _file_rule(f)[0] and not is_mode_method(fn)
    if is_a(fn, types.MethodType):
        owner = fn.__self__
        return is_torch_callable(fn.__func__) and (
            not is_a(owner, type) or is_autograd_function(owner) or module_of(owner).startswith("flambeau")
        )
    if is_a(fn, types.BuiltinFunctionType):
        return module_of(fn).startswith("flambeau")
    return is_function(type(fn)) and callable(fn) and not is_nn_module_class(type(fn))


def may_act(fn) -> bool:
    """Whether ``fn`` is a Python function of the library that isn't known to be a question or to make tensors or functions only."""
    return (
        isinstance(fn, (types.FunctionType, types.MethodType))
        and not module_of(fn).startswith(_MAKERS)
        and not fn.__name__.startswith(_QUESTIONS)
        and not is_allowed(fn)
    )


_MAKERS = ("flambeau.numpy.", "flambeau.func.", "flambeau.core.")
_QUESTIONS = ("get_", "is_", "are_", "has_")


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


# -- frames reached by the evaluator --


CALLS_USERS = tuple(
    os.path.join(PACKAGE, d) + os.sep
    for d in (
        "modules",
        "nn",
        "ao",
        "optim",
        "func",
        "utils",
        "compiler",
        "examples",
        os.path.join("distributed", "fsdp"),
    )
)


# A function under a checkpoint runs once more in the backward, where nothing is captured; both runs must save the same.
CHECKPOINT = os.path.join(PACKAGE, "utils", "checkpoint.py")


def runs_whole(code: types.CodeType) -> bool:
    """Library frames below the operators: what they call (kernels of custom operators, hooks) is part of the operation, not captured."""
    f = code.co_filename
    return f.startswith(PACKAGE) and (f == CHECKPOINT or (not f.startswith(CALLS_USERS) and _file_rule(f)[0]))


def skip_frame_reason(func: types.FunctionType) -> str | None:
    """Why the frame evaluator leaves this frame alone, or None."""
    code = func.__code__
    if code.co_filename.startswith("<"):
        return "generated code"
    if getattr(func, "_torchdynamo_disable", False):
        return "torch._dynamo.disable was applied to it"
    if code.co_filename in COPIES:
        return "what can't be copied while tracing is copied plainly"
    pattern = disabled_module(func)
    if pattern is not None:
        return f"disable_module({pattern!r})"
    if code.co_name.startswith("<") and code.co_name != "<lambda>":
        return f"{code.co_name} frames belong to their function"
    skip, why = skip_file(code.co_filename)
    if skip:
        return why
    if code.co_filename.startswith(STDLIB) and _module_of(code.co_filename) in TRACED_STDLIB:
        return "the standard library"
    if code.co_filename.startswith(PACKAGE) and not code.co_filename.startswith(EXAMPLES):
        return "the library itself"
    return None


def frame_has_tensors(func: types.FunctionType, args: tuple) -> bool:
    """Whether a frame can do anything worth capturing: tensors, arrays or modules among its arguments, or the library in its globals."""
    if any(has_tensor(a, 3) for a in args):
        return True
    for c in func.__closure__ or ():
        try:
            if has_tensor(c.cell_contents, 2) or is_library_value(c.cell_contents):
                return True
        except ValueError:
            continue
    g = func.__globals__
    return any(n in g and (has_tensor(g[n], 1) or is_library_value(g[n])) for n in func.__code__.co_names)


def is_library_value(v) -> bool:
    if is_a(v, types.ModuleType):
        return str(v.__dict__.get("__name__")).split(".")[0] in ("flambeau", "torch", "numpy")
    # What a compiled function of the program's does is looked at when it is called.
    return not is_compiled(v) and is_torch_callable(v)


MOST_LOOKED_AT = 10_000
"""Objects that are looked at for a tensor: the beginning of a long list says what it is of."""


def has_tensor(v, depth: int) -> bool:
    """Whether a tensor, an array or a module is ``v`` or held by it, so many levels below. No code of the user's runs."""
    looked_at = itertools.islice(_reached(v, depth), MOST_LOOKED_AT)
    return any(
        is_a(x, (_C.TensorBase, np.ndarray)) or (left > 0 and is_nn_module_class(type(x))) for x, left in looked_at
    )


def _reached(v, depth: int) -> Iterator[tuple[Any, int]]:
    """``v`` and what it holds, each with the levels that are left below it."""
    yield v, depth
    if depth > 0:
        for x in _held(v):
            yield from _reached(x, depth - 1)


def _held(v) -> Iterable:
    for cls in (list, tuple, set, frozenset):
        if is_a(v, cls):
            return cls.__iter__(v)
    if is_a(v, dict):
        return dict.values(v)
    d = None if is_a(v, (type, types.ModuleType, types.FunctionType)) else instance_dict(v)
    return () if d is None else dict.values(d)


def library_attr(path: str) -> Callable:
    """A name of the top-level namespace, e.g. ``"nn.functional.relu"``, without importing anything new."""
    root = sys.modules.get("flambeau") or importlib.import_module("flambeau")
    out: Any = root
    for part in path.split("."):
        out = getattr(out, part)
    return out
