"""The compiler from ATen-level graphs to native code.

Enter at :func:`compile_graph`; compile.py lists the passes. A folder imports only from those above it in this table.

=============  =====================================================================================
``machine/``    LLVM, the cache of machine code, the processor
``assembly/``   LLVM instructions as objects: building, printing, verification
``ir/``         the loop IR: nodes, values, sizes
``passes/``     passes over the graph of operators: decomposition, folding, packing, sums
``codegen/``    a fused kernel as LLVM instructions
``lowering/``   from operators to the loop IR; ``lowering/native/``: launches of native kernels
``scheduling/`` fusion, chains of launches, order of launches, memory
``runtime/``    plans: records, frame of integers, files
``tuning/``     choices by measurement
=============  =====================================================================================

Invariants: ``ir.verify`` holds after each pass; a kernel's text depends on nothing but the graph and the settings, so
equal loop nests have equal text.
"""

import importlib

from ..base import upper_levels

__all__ = ["compile_frozen", "compile_graph", "config"]

# The passes are imported at the first compilation: importing the package is free.
_LAZY = {"compile_frozen": "freezing", "compile_graph": "compile", "config": "settings"}
_PACKAGES = ("aoti_compile_and_package", "aoti_load_package")  # export's, which is a level above


def __getattr__(name):
    if name in _LAZY:
        value = globals()[name] = getattr(importlib.import_module(f".{_LAZY[name]}", __name__), name)
        return value
    if name in _PACKAGES:
        return upper_levels.ask(name)
    if name in ("metrics", "utils"):
        return importlib.import_module(f".{name}", __name__)
    # Tools look for these parts of the machine at the package.
    if name in ("cache", "llvm", "processor"):
        return importlib.import_module(f".machine.{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
