"""What a native loop leaves to NumPy: calls of functions that there is no code for here (linear algebra, transforms, sorting, statistics, other
ufuncs).

The kernel calls Python in the middle of its run (``flb_loop_python`` of csrc/runtime/loop_process.c) with the text of the call (:mod:`.description`)
and the arrays that are its operands and results, in the loop's own memory. The sizes of the results follow from those of the operands
(:mod:`.result_sizes`), the dtypes are those of the same call on small arrays. Where NumPy raises, the loop ends, and the function runs plainly where
that is possible.
"""

from .emitting import METHODS, called
from .performing import perform
from .result_sizes import rule_of

__all__ = ["METHODS", "called", "perform", "rule_of"]
