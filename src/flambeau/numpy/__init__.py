"""NumPy's functions on tensors, for captured code: NumPy's promotion and defaults, the compiler's kernels.

:mod:`promotion` says which dtype things are computed in, :mod:`table` holds the functions and enters them in
:mod:`flambeau.dynamo.numpy_bridge`. What is not in the table, or raises TypeError here, runs in NumPy after a graph break.
"""

from . import table as table
