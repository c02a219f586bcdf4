"""Kernels that note how each number came about, so that a loop can be differentiated without unrolling it.

:class:`TapeEmitter` writes the kernel of a loop like any :class:`~...emitter.Emitter`, and beside each operation on floats a note on a tape
(:mod:`.notes`): the numbers of the one or two notes that its operands were, and the partial derivatives with respect to them (Griewank and Walther,
Evaluating Derivatives, chapter 4: an operation list). Control flow is simply run, so branches, ``while``, ``break`` and subscripts by data need
nothing. The number of a float's note is kept beside it: that of an LLVM value in another value, that of a variable in a slot of its own, that of an
element in memory ``%shadow`` bytes behind the element (4 bytes; everything that the kernel touches lies in one :mod:`.arena`, see
:mod:`..derivatives`). Number 0 is a constant. The cotangents are then carried from the last note to the first (``REVERSE``), or tangents from the
first to the last (``FORWARD``).
"""

from .emitter import TAPE, TapeEmitter
from .notes import NOTE, NOTE_RECORD, TAPE_RECORD, note_function, tape_places
from .partials import Partials
from .sweeps import FORWARD, REVERSE

__all__ = [
    "FORWARD", "NOTE", "NOTE_RECORD", "REVERSE", "TAPE", "TAPE_RECORD", "Partials", "TapeEmitter", "note_function", "tape_places",
]  # fmt: skip
