"""The compiler from ATen-level graphs to native code.

Enter at :func:`compile_graph`; its passes are listed in compile.py. A graph is opened (opening.py), lowered by operator kind to the loop
IR (lowering.py, ir.py, values.py, base/expr.py), fused (schedule.py), written as LLVM instructions (codegen.py over builder.py, scalar_ops.py and
expansions/), compiled or fetched from the cache (llvm.py, cache.py) and bound into one native callable (memory.py, program.py,
csrc/runtime/launch.c). Invariants: ``ir.verify`` holds after each pass; a kernel's text depends on nothing but the graph and the settings, so
equal loop nests have equal text.
"""

import importlib

__all__ = ["compile_frozen", "compile_graph", "config"]

# The passes are imported at the first compilation: importing the package is free.
_LAZY = {"compile_frozen": "freezing", "compile_graph": "compile", "config": "settings"}
_PACKAGES = ("aoti_compile_and_package", "aoti_load_package")  # of a level above, found by name when asked for


def __getattr__(name):
    if name in _LAZY:
        value = globals()[name] = getattr(importlib.import_module(f".{_LAZY[name]}", __name__), name)
        return value
    if name in _PACKAGES:
        return getattr(importlib.import_module("flambeau.export.package"), name)
    if name in ("metrics", "utils"):
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
