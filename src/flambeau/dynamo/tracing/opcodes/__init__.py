"""Handlers of the normal instructions (:mod:`...bytecode.versions`), a file to a family: methods of the frame under the instruction's name.

A handler takes variables off the stack and puts them there. It returns False when the frame is done.
"""

from .arithmetic import Arithmetic
from .blocks import Blocks
from .building import Building
from .calls import Calls
from .jumps import Jumps
from .matching import Matching
from .names import Names

__all__ = ["Opcodes"]


class Opcodes(Names, Arithmetic, Building, Jumps, Calls, Matching, Blocks):
    """Every instruction that is traced. The families don't override each other (tests/dynamo/test_places.py)."""
