"""Functions of NumPy's on whole arrays, as element loops of the kernel: ``function(emitter, place in the code, *arguments)``.

Shapes, gathers and reductions have modules of their own (:mod:`..shapes`, :mod:`..gathers`, :mod:`..reductions`); what there is no code for is left
to NumPy (:mod:`..numpy_calls`).
"""

from .concatenation import array, row
from .products import outer_of
from .table import FUNCTIONS
from .vectors import cumsum

__all__ = ["FUNCTIONS", "array", "cumsum", "outer_of", "row"]
