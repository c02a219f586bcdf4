"""Abstract interpretation of a loop's bytecode.

Each block is run on the types of its variables where control enters it; types of paths that meet are joined, until nothing changes
(:mod:`.blocks`; Cousot and Cousot, "Abstract interpretation", 1977). Last runs write the code (:mod:`.compiler`), leave what is used later where the
caller finds it (:mod:`.results`), and spread the turns over threads where that is right (:mod:`.parallel_turns`). A variable is a stack slot of the
kernel (one for each type that it has anywhere); within a block its value is known better than its type (constants, bounds).
"""

from .blocks import Interpreter
from .compiled import Compiled
from .compiler import RegionCompiler, compile_region

__all__ = ["Compiled", "Interpreter", "RegionCompiler", "compile_region"]
