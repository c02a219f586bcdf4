"""Which frames the evaluator captures that plain code reaches: not the library's own, and only where there may be tensors."""

from __future__ import annotations

import copy
import copyreg
import itertools
import os
import types
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from flambeau import _C
from flambeau.base.installed import STDLIB

from .callable_kinds import is_compiled, is_nn_module_class, is_torch_callable
from .disabled import disabled_module
from .file_rules import EXAMPLES, PACKAGE, TRACED_STDLIB, file_rule, module_of_file, skip_file
from .reflect import instance_dict, is_a

__all__ = [
    "MOST_LOOKED_AT",
    "frame_has_tensors",
    "has_tensor",
    "is_library_value",
    "is_package_code",
    "runs_whole",
    "skip_frame_reason",
]

COPIES = frozenset(f.__code__.co_filename for f in (copy.deepcopy, copyreg.__newobj__))
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
    return f.startswith(PACKAGE) and (f == CHECKPOINT or (not f.startswith(CALLS_USERS) and file_rule(f)[0]))


def is_package_code(code: types.CodeType) -> bool:
    """Whether it belongs to flambeau itself; its examples are programs."""
    return code.co_filename.startswith(PACKAGE) and not code.co_filename.startswith(EXAMPLES)


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
    if code.co_filename.startswith(STDLIB) and module_of_file(code.co_filename) in TRACED_STDLIB:
        return "the standard library"
    if is_package_code(code):
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
