"""Loops that become one node of the graph instead of being unrolled: those over arrays and numbers that flambeau.loops understands.

At the start of a loop over a long range, or of a while loop, the loop is compiled from its bytecode with the types that its variables have
there. What it writes goes back into the arrays, the numbers that are used later are results of the node.

:mod:`.starts` is where frames come in, with quick looks at what a loop runs over (:mod:`.trips`) and how long that is (:mod:`.worth`). Most
programs have no loop that gets past them. The rest of this folder, and with it flambeau.loops, is imported by the first that does: :mod:`.running`
has the loop compiled, which is told to the compiler by :mod:`.described` and :mod:`.inputs` and put into the graph by :mod:`.placing`."""

from typing import Any

from . import late
from .notes import NOTES as NOTES
from .starts import loop_starts as loop_starts
from .starts import trip_of as trip_of
from .starts import try_arrays as try_arrays
from .starts import try_range as try_range
from .starts import try_while as try_while
from .worth import WORTH as WORTH
from .worth import recurses as recurses


def __getattr__(name: str) -> Any:
    value = globals()[name] = getattr(late, name)
    return value
