"""CPU kernels on NumPy, one rule a kind (level 3).

``build(op)`` gives the facet ``eager``: a function of all schema arguments, tensors in and out. The backend handler turns it into the
operator's native ``kernel`` at the first call. Enter at :mod:`.backend`.
"""

from . import backend, call_plans, contraction, factory, index, mutation, often, pointwise, reduction, view  # noqa: F401
