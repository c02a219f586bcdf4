"""Writes the LLVM code of one loop kernel.

:class:`Emitter` is a chain of classes, each of which adds one subject: common subexpressions (:mod:`.arithmetic`), sizes and strides
(:mod:`.sizes`), memory (:mod:`.memory`), errors and interrupts (:mod:`.exits`), element loops (:mod:`.element_loops`), buffers of the loop's own
(:mod:`.buffers`), calls (:mod:`.calls`). Local variables are stack slots, which LLVM turns into registers. A size, a stride or an offset is an
operand (an i64), or a Python int where it is known. What is written becomes a module in :mod:`..module`.
"""

from .arithmetic import Arithmetic
from .buffers import BUFFER_FUNCTIONS, LIMBO
from .constants import BOOL, F64, I64, constant
from .exits import CLEANUP, CODE, EXIT, RARELY, SHARED, USUALLY, block_label, turn_label
from .kernel import Emitter
from .memory import SCOPES
from .sizes import SMALL_SIZE

__all__ = [
    "BOOL", "BUFFER_FUNCTIONS", "CLEANUP", "CODE", "EXIT", "F64", "I64", "LIMBO", "RARELY", "SCOPES", "SHARED", "SMALL_SIZE", "USUALLY",
    "Arithmetic", "Emitter", "block_label", "constant", "turn_label",
]  # fmt: skip
