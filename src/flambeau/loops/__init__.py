"""Python loops over NumPy arrays and numbers as native loops.

A loop that capture meets is a region of bytecode. :mod:`region` finds it, :mod:`interpreter` runs it abstractly on types
(:mod:`values`) until they are stable and then once more writing LLVM instructions (:mod:`emitter`), of which :mod:`module` makes the kernel. The
rules of Python's and NumPy's numbers are in :mod:`arithmetic`, those of array views and element-wise expressions in :mod:`arrays`. The result is
one node of the graph, the operator ``flambeau::loop`` (:mod:`operator`). Invariant: what isn't understood raises :class:`Declined`, and the loop
is unrolled or runs plainly; what is, gives Python's and NumPy's results, types and errors.
"""

from . import derivatives as derivatives  # the derivative of the operator is part of it
from . import examples as examples  # and what it is under vmap
from .interpreter import compile_region
from .values import Declined

__all__ = ["Declined", "compile_region"]
