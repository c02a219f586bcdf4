"""What is traced through by the file that it stands in: the library's own, the standard library's, other packages'."""

from __future__ import annotations

import collections.abc
import functools
import os

from flambeau.base.installed import SITE, STDLIB

__all__ = [
    "EXAMPLES",
    "PACKAGE",
    "TRACED_STDLIB",
    "disable_path",
    "enable_path",
    "file_of",
    "file_rule",
    "module_of_file",
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
MIXINS = collections.abc.Mapping.get.__code__.co_filename
disabled_paths: set[str] = set()


def file_of(code_or_fn) -> str:
    code = getattr(code_or_fn, "__code__", code_or_fn)
    return getattr(code, "co_filename", "")


def module_of_file(path: str) -> str:
    """The module, or the package, of a file of the standard library."""
    return path[len(STDLIB) :].split(os.sep)[0].removesuffix(".py")


@functools.lru_cache(maxsize=4096)
def file_rule(filename: str) -> tuple[bool, str]:
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
        name = module_of_file(path)
        if name in INLINE_STDLIB or name in TRACED_STDLIB:
            return False, "a small Python module of the standard library"
        return True, "the standard library"
    return False, "user code"


def skip_file(filename: str) -> tuple[bool, str]:
    for p in disabled_paths:
        f = os.path.abspath(filename)
        if f == p or f.startswith(p + os.sep):
            return True, f"disable_path({p!r})"
    return file_rule(filename)


def disable_path(path: str) -> None:
    disabled_paths.add(os.path.abspath(path))


def enable_path(path: str) -> None:
    disabled_paths.discard(os.path.abspath(path))
