"""Capture: from unmodified Python functions to graphs, by interpreting their bytecode.

A call goes: native callable or frame evaluator (csrc/frame/frame_eval.c) → on a miss :mod:`convert` → :mod:`.tracing.executor` runs the bytecode on
*variables* (one class per family of Python types), recording tensor operations in an fx graph (:mod:`.graph.output_graph`), assumptions as
guards on *sources*, and writes to existing objects as side effects → :mod:`.bytecode.codegen` writes code that calls the compiled graph, replays
the side effects and returns. What cannot be captured breaks the graph (:mod:`exc`, :mod:`.bytecode.resume`): the instruction runs as ordinary Python
and the rest of the function is captured as a function of its own.

Invariants: captured code does exactly what the plain function does whenever its guards hold; tracing changes nothing that the user can
see; anything not understood ends in a break with a reason, or in running the frame plainly with a recorded reason.
"""
