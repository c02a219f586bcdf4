"""The compiler from ATen-level graphs to native code.

Enter at :func:`compile_graph`; its passes are listed in compile.py. A graph is opened (opening.py), lowered by operator kind to the loop
IR (lowering.py, ir.py, values.py, index.py), fused (schedule.py), written as LLVM assembly (codegen.py over builder.py, scalar_ops.py and
vector_math.py), compiled or fetched from the cache (llvm.py, cache.py) and bound into one native callable (memory.py, program.py,
csrc/launch.c). Invariants: ``ir.verify`` holds after each pass; a kernel's text depends on nothing but the graph and the settings, so
equal loop nests have equal text.
"""

__all__ = ["compile_graph"]


def __getattr__(name):
    # The passes are imported at the first compilation: importing the package is free.
    if name == "compile_graph":
        from .compile import compile_graph

        globals()[name] = compile_graph
        return compile_graph
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
