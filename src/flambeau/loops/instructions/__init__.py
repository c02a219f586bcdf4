"""What each instruction of a loop's bytecode does to the stack, the variables and the text, in the version of CPython that runs.

Each class is a part of the interpreter whose methods have the names of the instructions. Jumps, calls and returns are told as the end of a block,
:class:`~..machine.BlockEnd`. Iterators are in :mod:`..iteration`, calls of functions whose bytecode joins the loop's in :mod:`..inlining`.
"""

from .attributes import Attributes
from .building import Building
from .calls import Calls
from .jumps import Jumps
from .known_functions import KnownFunctions
from .loading import Loading
from .operators import Operators
from .subscripts import Subscripts

__all__ = ["Attributes", "Building", "Calls", "Jumps", "KnownFunctions", "Loading", "Operators", "Subscripts"]
